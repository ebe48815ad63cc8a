#!/usr/bin/env bash
# Forged logs against the judgement of `summary`: communicators, peers and sizes without end, times that stand
# still, go back or do not fit, numbers that repeat or cross, ranks that lie. Each is summed up with exit
# status 0 or 2 and a bounded amount of memory.
. "$(dirname "$0")/../../lib/case.sh"
for kind in communicators peers equal back zero huge single lies repeats numbers sizes crossed pauses; do
  python3 test/lib/summary_hostile.py $kind "$TMP/$kind" "${N:-1200}"
  rc=0
  # A sanitizer needs address space of its own.
  [ "${NI_VARIANT:-plain}" != plain ] || ulimit -v 1500000
  timeout 60 "$BUILD/nccl-inspector" summary "$TMP/$kind" --output-dir "$TMP/out" --no-plots --no-parquet \
    --no-csv --no-html -j2 --force >"$TMP/text" 2>&1 || rc=$?
  if [ $rc = 0 ] || [ $rc = 2 ]; then
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$TMP/out/summary/summary.json" ||
      fail "$kind: summary.json is no JSON"
    echo "ok   $kind"
  else
    fail "$kind: exit status $rc: $(tail -n 25 "$TMP/text")"
  fi
done
finish
