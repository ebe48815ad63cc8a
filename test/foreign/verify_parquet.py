"""Reads Parquet files with pyarrow, DuckDB and polars and compares every value with the .json that stands
beside them.

    verify_parquet.py DIR            every DIR/*.json and the .parquet of the same name

The truth holds strings as hexadecimal bytes (possibly ill-formed UTF-8: Python's own replacement is the
reference) and doubles as bit patterns. Also compared: schema, row counts, bounds and null counts of every row
group, page checksums, and counts by a filter that readers answer with the help of the bounds. Exit 1 on the
first file that differs.
"""
import glob
import json
import math
import os
import struct
import sys

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq

ARROW_TYPES = {"int64": pa.int64(), "double": pa.float64()}
PHYSICAL = {"int64": "INT64", "double": "DOUBLE", "string": "BYTE_ARRAY"}


class Wrong(Exception):
    pass


def check(cond, *what):
    if not cond:
        raise Wrong(" ".join(str(w) for w in what)[:2000])


def expected(column):
    kind, values = column["type"], column["values"]
    if kind == "string":
        cache = {}
        for v in set(values):
            cache[v] = None if v is None else bytes.fromhex(v).decode("utf-8", "replace")
        return [cache[v] for v in values]
    if kind == "double":
        return [None if v is None else struct.unpack("<d", int(v, 16).to_bytes(8, "little"))[0]
                for v in values]
    return values


def bits(v):
    return None if v is None else struct.pack("<d", v)


def same(kind, got, want):
    if kind == "double":
        return [bits(v) for v in got] == [bits(v) for v in want]
    return got == want


def compare_table(reader, table, truth, wants):
    check(table.num_rows == truth["rows"], reader, "rows", table.num_rows, "expected", truth["rows"])
    check(table.column_names == [c["name"] for c in truth["columns"]], reader, "columns", table.column_names)
    for column, want in zip(truth["columns"], wants):
        got = table.column(column["name"])
        kind = column["type"]
        if kind == "string":
            got = got.cast(pa.string())
        else:
            check(got.type == ARROW_TYPES[kind], reader, column["name"], got.type)
        got = got.to_pylist()
        if not same(kind, got, want):
            at = next(i for i, (g, w) in enumerate(zip(got, want)) if not same(kind, [g], [w]))
            raise Wrong(f"{reader} column {column['name']} ({kind}) row {at}: {got[at]!r:.200} expected {want[at]!r:.200}")


def bounds(kind, values):
    values = [v for v in values if v is not None and v == v]
    if kind == "string":
        values = [v.encode() for v in values]
    return (min(values), max(values)) if values else None


def compare_statistics(path, truth, wants):
    meta = pq.ParquetFile(path).metadata
    check(meta.created_by.startswith("nccl-inspector version "), "created_by", meta.created_by)
    row = 0
    for g in range(meta.num_row_groups):
        group = meta.row_group(g)
        check(group.num_rows > 0, "empty row group", g)
        if truth["row_group_rows"]:
            check(group.num_rows <= truth["row_group_rows"], "row group of", group.num_rows)
        for i, (column, want) in enumerate(zip(truth["columns"], wants)):
            chunk, kind = group.column(i), column["type"]
            part = want[row:row + group.num_rows]
            where = (column["name"], kind, "row group", g)
            check(chunk.physical_type == PHYSICAL[kind], *where, chunk.physical_type)
            check(chunk.num_values == group.num_rows, *where, "values", chunk.num_values)
            st, b = chunk.statistics, bounds(kind, part)
            check(st.null_count == part.count(None), *where, "null_count", st.null_count)
            if not st.has_min_max:
                too_long = kind == "string" and any(v is not None and len(v.encode()) > 256 for v in part)
                check(b is None or too_long, *where, "no bounds, expected", b)
                continue
            check(b is not None, *where, "bounds of nothing")
            lo, hi = (st.min_raw, st.max_raw) if kind == "int64" else (st.min, st.max)
            if kind == "string":
                lo, hi = lo.encode(), hi.encode()
            check((lo, hi) == b, *where, "bounds", lo, hi, "expected", b)
            if kind == "double":
                check(not (lo == 0 and math.copysign(1, lo) > 0) and
                      not (hi == 0 and math.copysign(1, hi) < 0), *where, "signed zero")
        row += group.num_rows
    check(row == truth["rows"], "row groups hold", row)
    for i, column in enumerate(truth["columns"]):
        leaf = pq.ParquetFile(path).schema.column(i)
        check(leaf.max_definition_level == 1 and leaf.max_repetition_level == 0, column["name"],
              "is not OPTIONAL")
        if column["type"] == "string":
            check(str(leaf.logical_type) == "String" and leaf.converted_type == "UTF8", leaf.logical_type,
                  leaf.converted_type)


def compare_annotations(con, path, truth):
    """Both annotations as they stand in the file: pyarrow shows one derived from the other."""
    want = {"string": ("UTF8", "StringType()")}
    rows = con.execute("SELECT name, type, repetition_type, converted_type, logical_type FROM parquet_schema(?)", [path]).fetchall()
    check(len(rows) == len(truth["columns"]) + 1, "schema of", rows)
    for (name, kind, repetition, converted, logical), column in zip(rows[1:], truth["columns"]):
        check((name, kind, repetition) == (column["name"], PHYSICAL[column["type"]], "OPTIONAL"), name, kind,
              repetition)
        c, l = want.get(column["type"], (None, None))
        check(converted == c and (logical or "").startswith(l or ""), name, "is annotated", converted,
              logical)
        check(l is not None or logical is None, name, "is annotated", logical)


def compare_offsets(path):
    """The offsets must point at page headers (thrift: field 1, i32, type); sequential readers would not
    notice."""
    meta = pq.ParquetFile(path).metadata
    with open(path, "rb") as f:
        for g in range(meta.num_row_groups):
            for i in range(meta.num_columns):
                chunk = meta.row_group(g).column(i)
                f.seek(chunk.data_page_offset)
                check(f.read(2) == b"\x15\x00", chunk.path_in_schema, "no data page at",
                      chunk.data_page_offset)
                if chunk.dictionary_page_offset is not None:
                    f.seek(chunk.dictionary_page_offset)
                    check(f.read(2) == b"\x15\x04", chunk.path_in_schema, "no dictionary at",
                          chunk.dictionary_page_offset)


def compare_filters(con, path, truth, wants):
    for column, want in zip(truth["columns"], wants):
        present = [v for v in want if v is not None]
        if column["type"] not in ("int64", "string") or not present:
            continue
        name = column["name"]
        for v in (present[0], present[-1], min(present), max(present)):
            if isinstance(v, str) and ("\0" in v or len(v) > 1000):
                continue  # of no use as a query parameter
            n = want.count(v)
            got = con.execute(f"SELECT count(*) FROM read_parquet(?) WHERE {name} = ?",
                              [path, v]).fetchall()[0][0]
            check(got == n, "DuckDB", name, "=", repr(v), "finds", got, "expected", n)
            got = polars.scan_parquet(path).filter(polars.col(name) == v).select(polars.len()).collect().item()
            check(got == n, "polars", name, "=", repr(v), "finds", got, "expected", n)


def verify(con, path, truth):
    wants = [expected(c) for c in truth["columns"]]
    compare_table("pyarrow", pq.read_table(path, page_checksum_verification=True), truth, wants)
    compare_table("DuckDB", con.sql("SELECT * FROM read_parquet(?)", params=[path]).to_arrow_table(), truth,
                  wants)
    compare_table("polars", polars.read_parquet(path).to_arrow(), truth, wants)
    compare_statistics(path, truth, wants)
    compare_annotations(con, path, truth)
    compare_offsets(path)
    compare_filters(con, path, truth, wants)


def checksum_is_there(path):
    """A flipped bit in the first page must be seen by its checksum: without one, readers would accept the
    page."""
    data = bytearray(open(path, "rb").read())
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    end = (chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size
    data[end - 1] ^= 0x10
    try:
        pq.read_table(pa.BufferReader(pa.py_buffer(bytes(data))), page_checksum_verification=True)
    except OSError as e:
        check("CRC" in str(e) or "checksum" in str(e), "damage found, but not by the checksum:", e)
        return
    raise Wrong("a flipped bit was not noticed: no page checksum")


def main():
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    paths = sorted(glob.glob(os.path.join(sys.argv[1], "*.json")))
    if not paths:
        sys.exit(f"{sys.argv[1]}: no .json to compare with")
    rows = cells = 0
    for path in paths:
        parquet = path[:-5] + ".parquet"
        with open(path) as f:
            truth = json.load(f)
        try:
            verify(con, parquet, truth)
            if truth["rows"]:
                checksum_is_there(parquet)
        except Exception as e:  # a reader that refuses the file is a failure like a wrong value
            sys.exit(f"FAIL {parquet} (seed {truth['seed']}): {type(e).__name__}: {e}")
        rows += truth["rows"]
        cells += truth["rows"] * len(truth["columns"])
    print(f"{len(paths)} files, {rows} rows, {cells} values: the same in pyarrow {pa.__version__}, DuckDB {duckdb.__version__}, "
          f"polars {polars.__version__}")


main()
# Some of the foreign libraries abort now and then in their threads' teardown; what is to be said has been
# said.
sys.stdout.flush()
os._exit(0)
