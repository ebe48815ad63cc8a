#!/usr/bin/env bash
# Forged logs against the judgement of `summary`: communicators, peers and sizes without end, times that stand still, go back or do not
# fit, numbers that repeat or cross, ranks that lie. Each is summed up with exit status 0 or 2 and a bounded amount of memory.
set -euo pipefail
cd "$(dirname "$0")/../../.."
BUILD=$(realpath "${BUILD:-build}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
for kind in communicators peers equal back zero huge single lies repeats numbers sizes crossed pauses; do
  python3 test/lib/summary_hostile.py $kind "$work/$kind" "${N:-1200}"
  rc=0
  # A sanitizer needs address space of its own.
  [ "${NI_VARIANT:-plain}" != plain ] || ulimit -v 1500000
  timeout 60 "$BUILD/nccl-inspector" summary "$work/$kind" --output-dir "$work/out" --no-plots --no-parquet --no-csv --no-html -j2 --force >"$work/text" 2>&1 || rc=$?
  if [ $rc = 0 ] || [ $rc = 2 ]; then
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$work/out/summary/summary.json" || failed=1
    echo "ok   $kind"
  else
    echo "FAIL $kind: exit status $rc: $(tail -n 25 "$work/text")"
    failed=1
  fi
done
exit $failed
