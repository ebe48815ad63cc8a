#!/usr/bin/env bash
# Random Parquet files read back by Spark, where a JVM is there. Installs pyspark from PyPI (about 450 MB) the
# first time.
. "$(dirname "$0")/../lib/case.sh"
java -version >/dev/null 2>&1 || skip "no JVM for Spark"
python=$("$ROOT/test/foreign/setup.sh" pyspark)
NI_PQ_TRUTH_DIR=$TMP NI_PQ_SEEDS=${NI_PQ_SEEDS:-32} "$BUILD/test/unit/test_parquet_property" >"$TMP/log" \
  2>&1 || { cat "$TMP/log"; exit 1; }
cd "$TMP"   # Spark leaves its work directories where it stands
"$python" "$ROOT/test/foreign/verify_spark.py" "$TMP" 2>"$TMP/spark.log" ||
  { rc=$?; tail -n 20 "$TMP/spark.log" >&2; exit $rc; }
