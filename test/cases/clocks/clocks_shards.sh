#!/usr/bin/env bash
# Shards of logs whose hosts' clocks differ know nothing of each other: merged in any order they are the
# summary of all, to the byte.
# And so is what --jobs and the index make of them. Of "set" a clock was set back, and sizes vary.
. "$(dirname "$0")/../../lib/case.sh"
same() { # LOGS
  local logs=$1 i d
  whole() {
    "$INSPECTOR" summary "$logs" --no-plots --no-html --no-parquet --output-dir "$1" "${@:2}" >"$1.txt"
  }
  whole one --jobs 1 --no-index
  whole four --jobs 4 --no-index
  "$INSPECTOR" index -q "$logs"
  whole indexed
  for i in 1 2 3; do
    "$INSPECTOR" summary "$logs" --shard "$i/3" --partial "p$i" --no-parquet --quiet >/dev/null
  done
  "$INSPECTOR" merge --output-dir m123 --no-plots --no-html p1 p2 p3 >/dev/null
  "$INSPECTOR" merge --output-dir m312 --no-plots --no-html p3 p1 p2 >/dev/null
  for d in four indexed m123 m312; do
    cmp one/summary/summary.json $d/summary/summary.json || fail "$logs: summary.json: $d"
    diff -rq one/summary $d/summary || fail "$logs: tables: $d"
  done
  rm -r one four indexed m123 m312 p1 p2 p3
}
"$BUILD/test/ni-jobs" --layout A --kind late --size 10 --seed 4 --steps 24 --stored --out "$TMP/right" \
  >/dev/null
"$BUILD/test/ni-jobs" --layout C --kind stage --size 15 --seed 50253400 --steps 24 --with tokens=0.02 \
  --stored --out "$TMP/sizes" >/dev/null
cd "$TMP"
python3 "$ROOT/test/lib/shift_clock.py" right logs node-2 317
python3 "$ROOT/test/lib/shift_clock.py" sizes set node-1 -1 2.4
same logs
grep -q '^CLOCKS: the clock of node-2 is 31[67]' one.txt || fail "not a word of node-2"
same set
grep -q '^CLOCKS: the clock of node-1 was set back by' one.txt || fail "not a word of node-1"
finish
