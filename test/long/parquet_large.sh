#!/usr/bin/env bash
# Parquet beyond 2^31 bytes, a file and a column chunk, read by pyarrow, DuckDB and polars. 2.3 GB of disk, about a minute.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD:-build}
case $build in /*) ;; *) build=$root/$build ;; esac
python=$(BUILD=$build "$root/test/foreign/setup.sh")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
if [ "$(df --output=avail -B1M "$dir" | tail -n 1)" -lt 4000 ]; then
  echo "skip: less than 4 GB free in $dir" >&2
  exit 77
fi
NI_PQ_LARGE_DIR=$dir NI_PQ_BENCH_ROWS=100000 "$build/test/unit/test_parquet_volume"
"$python" "$root/test/foreign/verify_large.py" "$dir"
