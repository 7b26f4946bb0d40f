// Reads Apache Paimon tables with Paimon's own Java library, request by request.
//
// A request is a line on standard input: the table's path WAREHOUSE/DB.db/TABLE, a tab, and the number of a snapshot or
// nothing. The answer is one line {"row": {...}} for each row, then {"end": COUNT}, or {"error": "..."}. Numbers with a
// fraction, dates and times are texts, bytes are hex, everything else is plain JSON.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.LocalDate;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.time.temporal.ChronoField;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.options.Options;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.FileStoreTableFactory;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.RowType;

public final class PaimonReader {
    private static final DateTimeFormatter MOMENT = new DateTimeFormatterBuilder()
            .appendPattern("uuuu-MM-dd'T'HH:mm:ss")
            .appendFraction(ChronoField.NANO_OF_SECOND, 0, 9, true)
            .toFormatter();

    private final PrintStream out;

    private PaimonReader(PrintStream out) {
        this.out = out;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err); // whatever the libraries print must not get between the answers
        PaimonReader reader = new PaimonReader(out);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String end;
            try {
                String[] parts = line.split("\t", -1);
                end = "{\"end\":" + reader.read(parts[0], parts[1]) + "}";
            } catch (Exception | Error error) {
                end = "{\"error\":" + quoted(error.toString()) + "}";
            }
            out.print(end + "\n");
            out.flush();
        }
    }

    private long read(String path, String snapshot) throws Exception {
        Options options = new Options();
        options.set("path", path);
        FileStoreTable table = FileStoreTableFactory.create(CatalogContext.create(options));
        if (!snapshot.isEmpty()) {
            table = table.copy(Collections.singletonMap("scan.snapshot-id", snapshot));
        }
        RowType type = table.rowType();
        List<String> names = type.getFieldNames();
        InternalRow.FieldGetter[] getters = new InternalRow.FieldGetter[names.size()];
        for (int i = 0; i < getters.length; i++) {
            getters[i] = InternalRow.createFieldGetter(type.getTypeAt(i), i);
        }
        long[] count = {0};
        ReadBuilder builder = table.newReadBuilder();
        StringBuilder text = new StringBuilder();
        try (RecordReader<InternalRow> rows = builder.newRead().createReader(builder.newScan().plan())) {
            rows.forEachRemaining(row -> {
                text.setLength(0);
                for (int i = 0; i < getters.length; i++) {
                    text.append(i == 0 ? "{\"row\":{" : ",").append(quoted(names.get(i))).append(':');
                    text.append(plain(getters[i].getFieldOrNull(row), type.getTypeAt(i)));
                }
                out.print(text.append("}}\n"));
                count[0]++;
            });
        }
        return count[0];
    }

    private static String plain(Object value, DataType type) {
        if (value == null) {
            return "null";
        }
        switch (type.getTypeRoot()) {
            case BOOLEAN:
            case TINYINT:
            case SMALLINT:
            case INTEGER:
            case BIGINT:
                return value.toString();
            case FLOAT:
            case DOUBLE:
                return quoted(Double.toString(((Number) value).doubleValue()));
            case DECIMAL:
                return quoted(((Decimal) value).toBigDecimal().toPlainString());
            case DATE:
                return quoted(LocalDate.ofEpochDay((Integer) value).toString());
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return quoted(MOMENT.format(((Timestamp) value).toLocalDateTime()));
            case BINARY:
            case VARBINARY:
                return quoted(HexFormat.of().formatHex((byte[]) value));
            case CHAR:
            case VARCHAR:
                return quoted(((BinaryString) value).toString());
            default:
                throw new IllegalArgumentException("no text for type " + type);
        }
    }

    private static String quoted(String text) {
        StringBuilder quoted = new StringBuilder(text.length() + 2).append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                quoted.append('\\').append(c);
            } else if (c < ' ') {
                quoted.append(String.format("\\u%04x", (int) c));
            } else {
                quoted.append(c);
            }
        }
        return quoted.append('"').toString();
    }
}
