#!/usr/bin/env bash
# Merge where figures lie on a border: 1, 7 and 64 shards, most of them empty, and random trees of them;
# slices with 1,024 distinct values and with one more, groups with 262,144 and one more (NI_LARGE; NI_TREES
# trees); sums beyond 2^64; counters, roll-ups, buckets, marks, operations that had not finished. The bytes of
# one summary. test/long/merge.sh is the long form.
. "$(dirname "$0")/../../lib/merge.sh"
need python3
quick="--no-plots --no-html"

# check NAME N OPTIONS... LOGS: one summary, and N shards merged in any order.
check() {
  local name=$1 n=$2
  shift 2
  # shellcheck disable=SC2086
  one "$name" $quick --no-parquet "$@"
  shards "$name" "$n" --no-parquet "$@"
  # shellcheck disable=SC2046
  MERGE="$quick" merged "$name" any $(parts "$name" | shuf --random-source=<(yes "$name"))
  same "$name" any
}
# ---- random trees, most of the parts empty -----------------------------------------------------------------
"$BUILD/test/host/loggen" "$TMP/logs" --ranks 6 --node 3 --ops 20 --format ours --p2p 10
for n in 1 7 64; do
  # shellcheck disable=SC2086
  one "n$n" $quick --no-parquet "$TMP/logs"
  shards "n$n" "$n" --no-parquet "$TMP/logs"
  mkdir "$TMP/trees$n"
  # shellcheck disable=SC2046
  python3 test/lib/merge_trees.py "$INSPECTOR" "$TMP/trees$n" \
    "${NI_TREES:-4}" $(parts "n$n") || fail "trees of $n shards"
  MERGE="$quick" merged "n$n" tree "$TMP/trees$n/merged"
  same "n$n" tree
done

# ---- distinct values, and sums -----------------------------------------------------------------------------
# exact NAME TABLE PATTERN: the column of the table says so of its rows.
exact() {
  local said
  said=$(python3 -c 'import csv, sys; print(" ".join(r["exec_time_us_approx"] for r in csv.DictReader(open(sys.argv[1]))))' \
    "$TMP/$1.one/out/summary/$2.csv")
  [ "$said" = "$3" ] || fail "$1: approximate in $2: $said"
}
for n in 4096 4100 ${NI_LARGE:-}; do
  python3 test/lib/merge_logs.py "$TMP/v$n" "$n"
  check "v$n" 3 "$TMP/v$n"
  slices="false false false false" group=false
  [ "$n" -le 4096 ] || slices="true true true true"
  [ "$n" -le 262144 ] || group=true
  exact "v$n" summary_by_rank "$slices"
  exact "v$n" summary "$group"
  rm -rf "$TMP/v$n" "$TMP/v$n.parts"
done
python3 test/lib/merge_logs.py "$TMP/huge" 4000 huge
check huge 3 "$TMP/huge" --time-granularity 1s

# ---- what is not a record ----------------------------------------------------------------------------------
python3 test/lib/series_logs.py "$TMP/series"
check series 3 "$TMP/series" --time-granularity 1s
printf '# parts\nlate: node-1-pid7002.jsonl\nfirst: *node-0-pid*\nrest of it: nothing* *node-1-pid*\n' \
  >"$TMP/groups"
check groups 3 "$TMP/series" --time-granularity 1s --groups "$TMP/groups"
grep -q 'rest of it' "$TMP/groups.one/out/summary/series.csv" || fail "no groups to compare"
python3 test/lib/step_logs.py "$TMP/steps"
python3 test/lib/mark_logs.py "$TMP/steps" "$TMP/marks" 40 "step #"
check marks 5 "$TMP/marks"
grep -q 'step 7' "$TMP/marks.one/out/summary/summary.json" || fail "no marks to compare"
python3 test/lib/hang_plant.py "$TMP/hang" late B 1 >/dev/null
check hang 3 "$TMP/hang"
grep -q 'HANG (likely)' "$TMP/hang.one/said" || fail "nothing hangs"
finish
