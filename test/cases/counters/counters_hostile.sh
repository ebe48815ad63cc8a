#!/usr/bin/env bash
# Series, net_prof's JSON and its text with any bytes in them: read or refused with a reason, in bounded time
# and memory, and nothing of them steers a terminal. NI_HOSTILE: so many of each kind (default 40).
. "$(dirname "$0")/../../lib/case.sh"
bin=$(realpath "$BUILD/nccl-inspector")
export NI_TEST_DATA=${NI_TEST_DATA:-../shared/data}
[ -r "$NI_TEST_DATA/cassini/before.txt.gz" ] || skip "no $NI_TEST_DATA/cassini"
runs=0 refused=0
# The seed to look at; the command.
ask() {
  local rc=0
  ( [ "${NI_VARIANT:-}" = asan ] || [ "${NI_VARIANT:-}" = tsan ] || ulimit -v 2000000; timeout 20 "$bin" "${@:2}" ) >"$TMP/out" 2>"$TMP/err" || rc=$?
  runs=$((runs + 1))
  [ $rc = 0 ] || refused=$((refused + 1))
  if [ $rc -gt 3 ]; then
    fail "seed $1: ${*:2}: exit $rc"
    tail -n 5 "$TMP/err"
  elif [ $rc = 1 ] && [ ! -s "$TMP/err" ] && [ ! -s "$TMP/out" ]; then
    fail "seed $1: ${*:2}: refused without a word"
  fi
  if LC_ALL=C grep -qaP '[\x00-\x08\x0b-\x1f\x7f]' "$TMP/out" "$TMP/err"; then
    fail "seed $1: ${*:2}: a control character"
  fi
}

mkdir "$TMP/logs" "$TMP/root"
zcat "$NI_TEST_DATA/cassini/before.txt.gz" >"$TMP/before.txt"
zcat "$NI_TEST_DATA/cassini/after.txt.gz" >"$TMP/after.txt"
python3 test/lib/counters/counter_trees.py "$TMP/root" eth ens1 -- mlx5 mlx5_0 -- host
NI_ROOT=$TMP/root "$bin" counters collect "$TMP/before.json" 2>/dev/null || true
NI_ROOT=$TMP/root "$bin" counters collect "$TMP/after.json" 2>/dev/null || true
NI_ROOT=$TMP/root "$bin" counters record --every 10ms --for 300ms "$TMP/logs" 2>/dev/null
series=$(echo "$TMP"/logs/*-counters-*)
cp "$series" "$TMP/whole.jsonl.gz"
for seed in $(seq "${NI_HOSTILE:-40}"); do
  python3 test/lib/counters/counters_mangle.py series "$seed" "$TMP/whole.jsonl.gz" "$series"
  ask "$seed" check "$TMP/logs"
  ask "$seed" summary --no-plots --output-dir "$TMP/o" --force "$TMP/logs"
  ask "$seed" trace -o "$TMP/t.json.gz" "$TMP/logs"
  python3 test/lib/counters/counters_mangle.py json "$seed" "$TMP/after.json" "$TMP/bad.json"
  ask "$seed" counters summarize "$TMP/before.json" "$TMP/bad.json"
  ask "$seed" counters summarize --csv "$TMP/c.csv" --html "$TMP/p.html" "$TMP/bad.json" "$TMP/after.json"
  [ $((seed % 4)) = 0 ] || continue
  python3 test/lib/counters/counters_mangle.py text "$seed" "$TMP/after.txt" "$TMP/bad.txt"
  ask "$seed" counters summarize "$TMP/before.txt" "$TMP/bad.txt"
done
mkfifo "$TMP/pipe.json"
ask pipe counters summarize "$TMP/pipe.json" "$TMP/after.json"
ask folder counters summarize "$TMP" "$TMP/after.json"
{ [ $refused -gt $((runs / 10)) ] && [ $refused -lt $runs ]; } || fail "$refused of $runs runs were refused"
finish "$runs runs, $refused refused or incomplete"
