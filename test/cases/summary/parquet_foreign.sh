#!/usr/bin/env bash
# Random Parquet files, read back by pyarrow, DuckDB and polars, value for value.
. "$(dirname "$0")/../../lib/case.sh"
python=$("$ROOT/test/foreign/setup.sh")
NI_PQ_TRUTH_DIR=$TMP NI_PQ_SEEDS=${NI_PQ_SEEDS:-32} "$BUILD/test/unit/test_parquet_property" >"$TMP/log" \
  2>&1 || { cat "$TMP/log"; exit 1; }
"$python" "$ROOT/test/foreign/verify_parquet.py" "$TMP"
