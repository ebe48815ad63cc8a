#!/usr/bin/env bash
# Shards of the logs, merged: every file and every word of one summary. 1, 3, 7 and 64 shards (many of them
# empty), random orders and trees, other --jobs and --memory, both kinds of logs, findings, roll-ups, marks,
# losses, damages, counters, filters, an operation that hangs, percentiles on both sides of 262,144 and 1,024
# values; partials of the same shards are the same bytes.
. "$(dirname "$0")/../../lib/merge.sh"
loggen=$BUILD/test/host/loggen jobs=$BUILD/test/ni-jobs
quick="--no-plots --no-html"

# check NAME N LOGS...: one summary, N shards, any order.
check() {
  local name=$1 n=$2
  shift 2
  # shellcheck disable=SC2086
  one "$name" $quick "$@"
  shards "$name" "$n" "$@"
  # shellcheck disable=SC2046
  MERGE="$quick" merged "$name" any $(parts "$name" | shuf --random-source=<(yes "$name"))
  same "$name" any
}

# ---- a job with a finding, with pictures and page ----------------------------------------------------------
"$jobs" --layout A --kind late --size 30 --seed 7 --steps 30 --out "$TMP/late" >/dev/null
one late "$TMP/late"
grep -q 'takes .* longer between operations' "$TMP/late.one/said" || fail "no finding to compare"
shards late 7 "$TMP/late"
# shellcheck disable=SC2046
merged late any $(parts late | shuf --random-source=<(yes))
same late any
one late64 $quick --json --no-parquet "$TMP/late"
shards late64 64 --no-parquet "$TMP/late"
# shellcheck disable=SC2046
MERGE="$quick --json" merged late64 any $(parts late64 | shuf --random-source=<(yes 64))
same late64 any

# ---- trees: partials of partials, twice --------------------------------------------------------------------
p=$TMP/late.parts
tree() { "$INSPECTOR" merge --partial "$@" >/dev/null || fail "merge --partial $*: $?"; }
tree "$TMP/t1" "$p/3" "$p/1"
tree "$TMP/t2" "$p/7" "$TMP/t1" "$p/2"
tree "$TMP/t3" "$p/5" "$p/4" "$p/6"
merged late tree "$TMP/t3" "$TMP/t2"
same late tree
tree "$TMP/u1" "$p/1" "$p/2"
tree "$TMP/u2" "$p/3" "$p/7"
tree "$TMP/u3" "$TMP/u2" "$TMP/u1"
cmp "$TMP/t2" "$TMP/u3" || fail "the same shards in another tree are other bytes"
diff -r -x output.log "$TMP/t2.parquet" "$TMP/u3.parquet" || fail "and other Parquet files"
"$INSPECTOR" summary --shard 2/7 --partial "$TMP/again" --jobs 3 --memory 16M --no-parquet "$TMP/late" \
  >/dev/null
"$INSPECTOR" summary --shard 2/7 --partial "$TMP/once" --jobs 1 --no-parquet "$TMP/late" >/dev/null
cmp "$TMP/again" "$TMP/once" || fail "other --jobs and --memory are other bytes"
"$INSPECTOR" merge "$TMP/t2" "$p/5" "$p/4" "$p/6" --jobs 3 --memory 16M $quick --output-dir "$TMP/small" \
  >/dev/null
diff -r -x '*.log' -x '*.png' -x '*.html' "$TMP/small/summary" "$TMP/late.one/out/summary" \
  >"$TMP/diff" || true
[ "$(grep -vc '^Only in .*late.one' "$TMP/diff")" = 0 ] || fail "other --memory: $(head -n 3 "$TMP/diff")"

# ---- both kinds of logs, filters, one log in several ranges ------------------------------------------------
"$loggen" "$TMP/nvidia" --ranks 6 --node 3 --ops 800 --comm-name --p2p 10 --gzip --member-lines 100
"$loggen" "$TMP/ours" --ranks 6 --node 3 --ops 800 --format ours --p2p 10 --gzip --member-lines 100
check nvidia 3 "$TMP/nvidia"
check mixed 3 "$TMP/nvidia" "$TMP/ours" --skip-first 2
check filters 3 "$TMP/ours" --coll AllReduce,Sund --rank 0-3,77 --host node-0 --since +1s --sn 5-600
check size 3 --no-parquet "$TMP/ours" --size 1M-64M
check compat 3 "$TMP/nvidia" --compat
"$loggen" "$TMP/large" --ranks 2 --node 2 --ops 12000 --format ours
check series 2 "$TMP/ours" --time-granularity 100ms --since=+100ms
check large 2 "$TMP/large" --memory 16M

# ---- what the golden logs hold -----------------------------------------------------------------------------
for d in test/golden/*/input; do
  name=$(basename "$(dirname "$d")")
  grep -q . < <(find "$d" -name '*.jsonl*' -o -name '*.log*') || continue
  check "golden-$name" 3 --no-parquet "$PWD/$d"
done
finish
