#!/usr/bin/env bash
# Random Parquet files read back by Spark, where a JVM is there. Installs pyspark from PyPI (about 450 MB) the first time.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD:-build}
case $build in /*) ;; *) build=$root/$build ;; esac
if ! java -version >/dev/null 2>&1; then
  echo "skip: no JVM for Spark" >&2
  exit 77
fi
python=$(BUILD=$build "$root/test/foreign/setup.sh" pyspark)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
NI_PQ_TRUTH_DIR=$dir NI_PQ_SEEDS=${NI_PQ_SEEDS:-32} "$build/test/unit/test_parquet_property" >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
cd "$dir"   # Spark leaves its work directories where it stands
"$python" "$root/test/foreign/verify_spark.py" "$dir" 2>"$dir/spark.log" || { rc=$?; tail -n 20 "$dir/spark.log" >&2; exit $rc; }
