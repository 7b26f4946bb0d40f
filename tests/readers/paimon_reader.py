"""Reads Apache Paimon tables with the official pypaimon, request by request.

A request is a line of JSON on standard input: {"path": "WAREHOUSE/DB.db/TABLE"}, with "snapshot": N for an older state.
The answer is one line {"row": {...}} for each row, then {"end": COUNT}, or {"error": "..."}. Numbers with a fraction,
dates and times are texts, bytes are hex, everything else is plain JSON.
"""
import datetime
import decimal
import json
import os
import sys

from pypaimon import CatalogFactory


def plain(value):
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        text = value.isoformat()
        return text.rstrip("0").rstrip(".") if "." in text else text
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    return value


def answer(request, out):
    path = os.path.abspath(request["path"])
    database, name = os.path.split(path)
    warehouse, database = os.path.split(database)
    catalog = CatalogFactory.create({"warehouse": warehouse})
    table = catalog.get_table(f"{database.removesuffix('.db')}.{name}")
    if request.get("snapshot") is not None:
        table = table.copy({"scan.snapshot-id": str(request["snapshot"])})
    builder = table.new_read_builder()
    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    count = 0
    for batch in rows.to_batches(max_chunksize=4096) if rows is not None else []:
        for row in batch.to_pylist():
            count += 1
            cells = {key: plain(value) for key, value in row.items()}
            out.write(json.dumps({"row": cells}, ensure_ascii=False, separators=(",", ":")) + "\n")
    return count


def main():
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    # Whatever the libraries print must not get between the answers.
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            end = {"end": answer(json.loads(line), out)}
        except Exception as error:  # the caller decides what a failure means
            end = {"error": f"{type(error).__name__}: {error}"}
        out.write(json.dumps(end) + "\n")
        out.flush()


main()
