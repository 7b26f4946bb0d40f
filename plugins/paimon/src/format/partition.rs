//! Partitions: the values that name one, the folder it lies in, and what manifest lists say of several.

use arrow_array::{Array, ArrayRef};

use super::binary_row::{Datum, read_row, serialize_row, write_row};
use super::key::{KeyColumns, compare};
use super::manifest::{ManifestEntry, Stats};
use super::schema::{LakeSchema, LakeType};

/// Option: what the folder of a partition is called whose value is NULL or blank.
const DEFAULT_NAME_OPTION: &str = "partition.default-name";
const DEFAULT_NAME: &str = "__DEFAULT_PARTITION__";
/// Option: whether values are named as Java prints them (Paimon's default), or as SQL casts them to text.
pub const LEGACY_NAME_OPTION: &str = "partition.legacy-name";

/// Characters that a folder's name has as `%XX`, beside those that control something.
const ESCAPED: &str = "\"#%'*/:=?\\{}[]^";

/// How a table is divided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partitioning {
    columns: Vec<(String, LakeType)>,
    default_name: String,
    legacy: bool,
}

impl Partitioning {
    /// As a schema says it; the text names what this program cannot name folders of.
    pub fn of(schema: &LakeSchema) -> Result<Self, String> {
        let column = |name: &String| {
            let field = schema.fields.iter().find(|field| field.name == *name);
            let ty = field.and_then(|field| LakeType::parse(field.ty.as_str()?));
            let ty = ty.ok_or_else(|| format!("column {name} has a type that is not known here"))?;
            Ok((name.clone(), ty))
        };
        let columns = schema.partition_keys.iter().map(column).collect::<Result<Vec<_>, String>>()?;
        let legacy = schema.option(LEGACY_NAME_OPTION).is_none_or(|text| text.eq_ignore_ascii_case("true"));
        if let Some((name, ty)) = columns.iter().find(|(_, ty)| !can_divide(*ty, legacy)) {
            return Err(format!("a table cannot be divided by column {name}, which is {}", ty.sql(true)));
        }
        let default_name = schema.option(DEFAULT_NAME_OPTION).unwrap_or(DEFAULT_NAME).to_owned();
        Ok(Self { columns, default_name, legacy })
    }

    /// Whether the table is not divided at all.
    pub fn is_whole(&self) -> bool {
        self.columns.is_empty()
    }

    /// The folder of a partition, given as a binary row, with a slash at the end; empty for the whole table.
    pub fn folder(&self, partition: &[u8]) -> Result<String, String> {
        let values = self.values(partition)?;
        let mut folder = String::new();
        for ((name, ty), value) in self.columns.iter().zip(values) {
            let text = value.map(|value| text_of(&value, *ty, self.legacy)).filter(|text| !is_blank(text));
            let shown = text.as_ref().unwrap_or(&self.default_name);
            folder += &format!("{}={}/", escaped(name), escaped(shown));
        }
        Ok(folder)
    }

    /// The folder of an entry's bucket, with a slash at the end.
    pub fn bucket_folder(&self, entry: &ManifestEntry) -> Result<String, String> {
        Ok(format!("{}bucket-{}/", self.folder(&entry.partition)?, entry.bucket))
    }

    /// Least and greatest value of each partition column over some entries, and how many NULLs it has.
    pub fn stats(&self, entries: &[ManifestEntry]) -> Result<Stats, String> {
        if self.is_whole() {
            return Ok(Stats::none());
        }
        let rows = entries.iter().map(|entry| self.values(&entry.partition)).collect::<Result<Vec<_>, _>>()?;
        let column = |place: usize| rows.iter().filter_map(move |row| row.get(place).copied().flatten());
        let places = 0..self.columns.len();
        let least: Vec<_> = places.clone().map(|place| column(place).min_by(compare)).collect();
        let greatest: Vec<_> = places.clone().map(|place| column(place).max_by(compare)).collect();
        let nulls = places.map(|place| Some((rows.len() - column(place).count()) as i64)); // far below 2^63
        Ok(Stats {
            min_values: serialize_row(&least),
            max_values: serialize_row(&greatest),
            null_counts: Some(nulls.collect()),
        })
    }

    fn values<'a>(&self, partition: &'a [u8]) -> Result<Vec<Option<Datum<'a>>>, String> {
        let types: Vec<_> = self.columns.iter().map(|(_, ty)| *ty).collect();
        read_row(partition, &types).ok_or_else(|| "a partition's values cannot be read".to_owned())
    }
}

/// The columns of some rows that divide a table; NULL may stand in them.
#[derive(Debug)]
pub struct PartitionColumns<'a> {
    columns: Vec<(&'a ArrayRef, KeyColumns<'a>)>,
}

impl<'a> PartitionColumns<'a> {
    /// As [`KeyColumns::new`].
    pub fn new(columns: impl Iterator<Item = (&'a ArrayRef, LakeType)>) -> Self {
        let column = |(array, ty)| (array, KeyColumns::new(std::iter::once((array, ty))));
        Self { columns: columns.map(column).collect() }
    }

    /// Appends the partition of a row as manifests have it.
    pub fn write_row(&self, row: usize, values: &mut Vec<Option<Datum<'a>>>, out: &mut Vec<u8>) {
        let value = |(array, column): &(&ArrayRef, KeyColumns<'a>)| column.first(row).filter(|_| array.is_valid(row));
        values.clear();
        values.extend(self.columns.iter().map(value));
        out.extend_from_slice(&(values.len() as u32).to_be_bytes()); // a table has fewer than 2^32 columns
        write_row(values, out);
    }
}

/// Whether values of a type have a name on which all readers agree. (Numbers with a floating point are spelt
/// differently by versions of Java, moments by time zones, and bytes have no spelling.)
fn can_divide(ty: LakeType, legacy: bool) -> bool {
    match ty {
        LakeType::Float | LakeType::Double | LakeType::Bytes => false,
        LakeType::LocalTimestamp(_) => legacy,
        _ => true,
    }
}

/// Whether tables with such a column need the names that Java prints.
pub fn needs_legacy_names(ty: LakeType) -> bool {
    matches!(ty, LakeType::LocalTimestamp(_))
}

fn is_blank(text: &str) -> bool {
    text.chars().all(char::is_whitespace)
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\0'..='\x1f' | '\x7f' => out += &format!("%{:02X}", c as u32),
            c if ESCAPED.contains(c) => out += &format!("%{:02X}", c as u32),
            c => out.push(c),
        }
    }
    out
}

fn text_of(value: &Datum<'_>, ty: LakeType, legacy: bool) -> String {
    match (*value, ty) {
        (Datum::Boolean(value), _) => value.to_string(),
        (Datum::TinyInt(value), _) => value.to_string(),
        (Datum::SmallInt(value), _) => value.to_string(),
        (Datum::Int(days), LakeType::Date) if !legacy => date(days.into()),
        (Datum::Int(value), _) => value.to_string(),
        (Datum::BigInt(value), _) => value.to_string(),
        (Datum::Decimal(digits, _), LakeType::Decimal(_, scale)) => decimal(digits, scale.unsigned_abs().into()),
        (Datum::Decimal(digits, _), _) => digits.to_string(),
        (Datum::Bytes(bytes), _) => String::from_utf8_lossy(bytes).into_owned(),
        (Datum::Timestamp(micros, fraction), _) if !legacy => moment(micros, fraction),
        (Datum::Timestamp(micros, _), _) => moment_of_java(micros),
        // No table is divided by these.
        (Datum::Float(value), _) => value.to_string(),
        (Datum::Double(value), _) => value.to_string(),
    }
}

/// The digits with the point at its place.
fn decimal(digits: i128, scale: usize) -> String {
    let sign = if digits < 0 { "-" } else { "" };
    let all = format!("{:0>width$}", digits.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = all.split_at(all.len() - scale);
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

const MICROS_A_DAY: i64 = 86_400_000_000;

/// `2024-01-31`
fn date(days: i64) -> String {
    // Years begin in March here, so that the day that not each has comes last; 400 of them are an era.
    const ERA_DAYS: i64 = 146_097;
    let from_march = days + 719_468;
    let (era, day) = (from_march.div_euclid(ERA_DAYS), from_march.rem_euclid(ERA_DAYS));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", year + era * 400 + next)
}

/// `2024-01-31 23:59:59.123`, with as many digits as the type has.
fn moment(micros: i64, fraction: u8) -> String {
    let (days, rest) = (micros.div_euclid(MICROS_A_DAY), micros.rem_euclid(MICROS_A_DAY));
    let seconds = rest / 1_000_000;
    let mut text = format!("{} {:02}:{:02}:{:02}", date(days), seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if fraction > 0 {
        let digits = format!("{:06}", rest % 1_000_000);
        text.push('.');
        text += &digits[..usize::from(fraction).min(6)];
    }
    text
}

/// `2024-01-31T23:59`, then seconds, milliseconds and microseconds as far as there are any.
fn moment_of_java(micros: i64) -> String {
    let (days, rest) = (micros.div_euclid(MICROS_A_DAY), micros.rem_euclid(MICROS_A_DAY));
    let (seconds, micros) = (rest / 1_000_000, rest % 1_000_000);
    let minutes = format!("{}T{:02}:{:02}", date(days), seconds / 3_600, seconds / 60 % 60);
    match (seconds % 60, micros) {
        (0, 0) => minutes,
        (seconds, 0) => format!("{minutes}:{seconds:02}"),
        (seconds, micros) if micros % 1_000 == 0 => format!("{minutes}:{seconds:02}.{:03}", micros / 1_000),
        (seconds, micros) => format!("{minutes}:{seconds:02}.{micros:06}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::schema::LakeColumn;
    use super::*;

    fn by(ty: LakeType, options: &[(&str, &str)]) -> Result<Partitioning, String> {
        let column = |name: &str, ty| LakeColumn { name: name.into(), ty, nullable: true, comment: None };
        let options = options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<BTreeMap<_, _>>();
        let columns = [column("id", LakeType::Int), column("p", ty)];
        Partitioning::of(&LakeSchema::first(&columns, Vec::new(), vec!["p".into()], options, 0))
    }

    #[test]
    fn folders_are_named_as_paimon_names_them() {
        let (legacy, cast) = (&[][..], &[(LEGACY_NAME_OPTION, "false")][..]);
        for (ty, value, options, expected) in [
            (LakeType::Boolean, Datum::Boolean(true), cast, "true"),
            (LakeType::TinyInt, Datum::TinyInt(-8), cast, "-8"),
            (LakeType::SmallInt, Datum::SmallInt(300), cast, "300"),
            (LakeType::Int, Datum::Int(-1), legacy, "-1"),
            (LakeType::BigInt, Datum::BigInt(i64::MIN), cast, "-9223372036854775808"),
            (LakeType::Decimal(20, 0), Datum::Decimal(u64::MAX.into(), 20), cast, "18446744073709551615"),
            (LakeType::Decimal(10, 2), Datum::Decimal(-5, 10), cast, "-0.05"),
            (LakeType::Decimal(9, 9), Datum::Decimal(1, 9), legacy, "0.000000001"),
            (LakeType::Date, Datum::Int(19_753), cast, "2024-01-31"),
            (LakeType::Date, Datum::Int(-1), cast, "1969-12-31"),
            (LakeType::Date, Datum::Int(19_753), legacy, "19753"),
            (LakeType::Timestamp(0), Datum::Timestamp(86_399_000_000, 0), cast, "1970-01-01 23%3A59%3A59"),
            (LakeType::Timestamp(3), Datum::Timestamp(-1_000, 3), cast, "1969-12-31 23%3A59%3A59.999"),
            (LakeType::Timestamp(6), Datum::Timestamp(0, 6), cast, "1970-01-01 00%3A00%3A00.000000"),
            (LakeType::Timestamp(6), Datum::Timestamp(0, 6), legacy, "1970-01-01T00%3A00"),
            (LakeType::LocalTimestamp(3), Datum::Timestamp(1_000, 3), legacy, "1970-01-01T00%3A00%3A00.001"),
            (LakeType::LocalTimestamp(6), Datum::Timestamp(1_000_001, 6), legacy, "1970-01-01T00%3A00%3A01.000001"),
            (LakeType::String, Datum::Bytes("grüße, welt".as_bytes()), cast, "grüße, welt"),
            (LakeType::String, Datum::Bytes(b"a/b=c%d\\e:\x01^'\"[{"), cast, "a%2Fb%3Dc%25d%5Ce%3A%01%5E%27%22%5B%7B"),
            (LakeType::String, Datum::Bytes(b"  "), cast, "__DEFAULT_PARTITION__"),
            (LakeType::String, Datum::Bytes(b""), &[(DEFAULT_NAME_OPTION, "none")], "none"),
        ] {
            let folder = by(ty, options).unwrap().folder(&serialize_row(&[Some(value)]));
            assert_eq!(folder, Ok(format!("p={expected}/")), "{ty:?} {value:?}");
        }
        let null = serialize_row(&[None]);
        assert_eq!(by(LakeType::Date, cast).unwrap().folder(&null).unwrap(), "p=__DEFAULT_PARTITION__/");
    }

    #[test]
    fn columns_whose_values_have_no_one_name_divide_nothing() {
        for ty in [LakeType::Float, LakeType::Double, LakeType::Bytes] {
            assert!(by(ty, &[]).unwrap_err().contains("column p, which is"), "{ty:?}");
        }
        assert!(by(LakeType::LocalTimestamp(3), &[(LEGACY_NAME_OPTION, "false")]).is_err());
        assert!(by(LakeType::LocalTimestamp(3), &[]).is_ok());
    }

    #[test]
    fn what_is_no_partition_is_no_folder() {
        let whole = serialize_row(&[Some(Datum::Bytes(b"longer than a slot"))]);
        let partitioning = by(LakeType::String, &[]).unwrap();
        assert!(partitioning.folder(&whole).is_ok());
        for length in 0..whole.len() - 8 {
            assert!(partitioning.folder(&whole[..length]).is_err(), "{length}");
        }
        assert!(partitioning.folder(&serialize_row(&[])).is_err());
    }
}
