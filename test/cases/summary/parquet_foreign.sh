#!/usr/bin/env bash
# Random Parquet files, read back by pyarrow, DuckDB and polars, value for value.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
build=${BUILD:-build}
case $build in /*) ;; *) build=$root/$build ;; esac
python=$(BUILD=$build "$root/test/foreign/setup.sh")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
NI_PQ_TRUTH_DIR=$dir NI_PQ_SEEDS=${NI_PQ_SEEDS:-32} "$build/test/unit/test_parquet_property" >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
"$python" "$root/test/foreign/verify_parquet.py" "$dir"
