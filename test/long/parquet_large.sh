#!/usr/bin/env bash
# Parquet beyond 2^31 bytes, a file and a column chunk, read by pyarrow, DuckDB and polars. 2.3 GB of disk,
# about a minute.
. "$(dirname "$0")/../lib/case.sh"
python=$("$ROOT/test/foreign/setup.sh")
[ "$(df --output=avail -B1M "$TMP" | tail -n 1)" -ge 4000 ] || skip "less than 4 GB free in $TMP"
NI_PQ_LARGE_DIR=$TMP NI_PQ_BENCH_ROWS=100000 "$BUILD/test/unit/test_parquet_volume"
"$python" "$ROOT/test/foreign/verify_large.py" "$TMP"
