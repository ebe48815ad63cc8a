"""Reads the two large files of test/long/parquet_large.sh: file.parquet beyond 2^31 bytes, chunk.parquet with
one column chunk of more than 2^31 uncompressed bytes."""
import os
import sys

import duckdb
import polars
import pyarrow.parquet as pq

ROWS = 280_000_000
ALL = ROWS * (ROWS - 1) // 2


def spread(i):
    """The value of a row: no codec makes such numbers shorter. Sums of them are those of the rows, modulo
    2^64."""
    x = i * 0x9E3779B97F4A7C15 % 2**64
    return x - 2**64 if x >= 2**63 else x


def equal(got, want, what):
    if got != want:
        sys.exit(f"FAIL {what}: {got} expected {want}")


d = sys.argv[1]
f, c = os.path.join(d, "file.parquet"), os.path.join(d, "chunk.parquet")
if os.path.getsize(f) <= 2**31:
    sys.exit("FAIL: file.parquet is too small to prove anything")
count, total = duckdb.sql(f"SELECT count(*), sum(n) FROM '{f}'").fetchone()
equal((count, total % 2**64), (ROWS, spread(ALL) % 2**64), "DuckDB, file.parquet")
equal(duckdb.sql(f"SELECT count(*) FROM '{f}' WHERE n = {spread(ROWS - 1)}").fetchall(), [(1,)],
      "DuckDB, last row")
equal(polars.scan_parquet(f).select(polars.col("n").sum()).collect(engine="streaming").item() % 2**64,
      spread(ALL) % 2**64, "polars, file.parquet")
p = pq.ParquetFile(f, page_checksum_verification=True)
last = p.read_row_group(p.metadata.num_row_groups - 1).column("n").to_pylist()
equal(last, [spread(i) for i in range(ROWS - len(last), ROWS)], "pyarrow, last row group")

m = pq.ParquetFile(c).metadata
equal(m.num_row_groups, 1, "chunk.parquet, row groups")
chunk = m.row_group(0).column(0)
if chunk.total_uncompressed_size <= 2**31:
    sys.exit("FAIL: the chunk is too small to prove anything")
equal(chunk.num_values, ROWS, "chunk.parquet, values")
equal(duckdb.sql(f"SELECT count(*), sum(x) FROM '{c}'").fetchall(), [(ROWS, ROWS * 0.5)],
      "DuckDB, chunk.parquet")
rows = total = 0
for batch in pq.ParquetFile(c, page_checksum_verification=True).iter_batches(batch_size=1 << 20):
    rows += batch.num_rows
    if batch.column(0).value_counts().to_pylist() != [{"values": 0.5, "counts": batch.num_rows}]:
        sys.exit("FAIL: a value that is not 0.5")
equal(rows, ROWS, "pyarrow, chunk.parquet")
print(f"{os.path.getsize(f)} bytes of file, {chunk.total_uncompressed_size} of chunk: the same in pyarrow, DuckDB, polars")
