#!/usr/bin/env bash
# The summary against DuckDB's own arithmetic, over our Parquet files and over the logs; docs/queries.sql runs.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
build=${BUILD:-build}
case $build in /*) ;; *) build=$root/$build ;; esac
python=$(BUILD=$build "$root/test/foreign/setup.sh")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for options in "--format v4.0 --comm-name --p2p 10" "--format ours --p2p 5 --straggler 3"; do
  rm -rf "$work/logs" "$work/out"
  # shellcheck disable=SC2086
  "$build/test/host/loggen" "$work/logs" --ranks 8 --node 4 --ops 900 $options
  "$build/nccl-inspector" summary "$work/logs" --output-dir "$work/out" --no-plots --no-html -q
  "$python" "$root/test/foreign/verify_summary.py" "$work/out" "$work/logs/*.log" "$root/docs/queries.sql"
done
