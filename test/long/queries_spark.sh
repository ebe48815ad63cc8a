#!/usr/bin/env bash
# docs/queries.sql asked of the same Parquet files by Spark and by DuckDB. Installs pyspark as
# parquet_spark.sh does.
. "$(dirname "$0")/../lib/case.sh"
java -version >/dev/null 2>&1 || skip "no JVM for Spark"
python=$("$ROOT/test/foreign/setup.sh" pyspark)
cd "$TMP"
"$BUILD/test/host/loggen" logs --ranks 12 --node 4 --ops 400 --comm-name --format ours --p2p 10
"$BUILD/nccl-inspector" summary logs --output-dir out --no-plots --no-html -q >/dev/null
"$python" "$ROOT/test/foreign/verify_queries.py" "$ROOT/docs/queries.sql" "$TMP/out/parquet_files" \
  2>"$TMP/spark.log" ||
  { rc=$?; tail -n 20 "$TMP/spark.log" >&2; exit $rc; }
