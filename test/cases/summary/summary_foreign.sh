#!/usr/bin/env bash
# The summary against DuckDB's own arithmetic, over our Parquet files and over the logs; docs/queries.sql
# runs.
. "$(dirname "$0")/../../lib/case.sh"
python=$("$ROOT/test/foreign/setup.sh")
for options in "--format v4.0 --comm-name --p2p 10" "--format ours --p2p 5 --straggler 3"; do
  rm -rf "$TMP/logs" "$TMP/out"
  # shellcheck disable=SC2086
  "$BUILD/test/host/loggen" "$TMP/logs" --ranks 8 --node 4 --ops 900 $options
  "$BUILD/nccl-inspector" summary "$TMP/logs" --output-dir "$TMP/out" --no-plots --no-html -q
  "$python" "$ROOT/test/foreign/verify_summary.py" "$TMP/out" "$TMP/logs/*.log" "$ROOT/docs/queries.sql"
done
