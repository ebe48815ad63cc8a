#!/usr/bin/env bash
# docs/queries.sql asked of the same Parquet files by Spark and by DuckDB. Installs pyspark as parquet_spark.sh does.
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
cd "$dir"
"$build/test/host/loggen" logs --ranks 12 --node 4 --ops 400 --comm-name --format ours --p2p 10
"$build/nccl-inspector" summary logs --output-dir out --no-plots --no-html -q >/dev/null
"$python" "$root/test/foreign/verify_queries.py" "$root/docs/queries.sql" "$dir/out/parquet_files" 2>"$dir/spark.log" ||
  { rc=$?; tail -n 20 "$dir/spark.log" >&2; exit $rc; }
