#!/usr/bin/env bash
# Two runs in one folder: all commands see them, name them alike, and --run chooses one of them.
. "$(dirname "$0")/../../lib/sim.sh"
I=$BUILD/nccl-inspector
run_logged 1x4 --procs --iterations 10
cp -r "$TMP/logs" "$TMP/one"
sleep 1 # a start is a second in names of files
run_logged SLURM_JOB_ID=4711 1x4 --procs --iterations 5
mkdir "$TMP/both"
cp "$TMP/one/"* "$TMP/logs/"* "$TMP/both/"
[ "$(find "$TMP/both" -name '*.gz' | wc -l)" = 8 ] || fatal "the runs share names of files"

n() { "$I" check "$@" --json | jq .operations; }
one=$(n "$TMP/one") two=$(n "$TMP/logs") both=$(n "$TMP/both")
[ "$both" = $((one + two)) ] || fail "$one and $two are $both"
"$I" check "$TMP/both" >"$TMP/text" || fail "check: exit $?"
grep -q '^note  *2 runs in these logs, added up here: --run chooses one$' "$TMP/text" ||
  fail "check has no note: $(cat "$TMP/text")"
grep -q 'run 2 (job 4711, 4 processes, from 20..-..-.. ..:..:..Z)' "$TMP/text" ||
  fail "check names no job: $(cat "$TMP/text")"
[ "$(grep -c ' 4/4 ' "$TMP/text")" = "$(("$("$I" check "$TMP/one" | grep -c ' 4/4 ')" + "$("$I" check "$TMP/logs" | grep -c ' 4/4 ')"))" ] ||
  fail "ranks of both are one communicator: $(cat "$TMP/text")"
for run in 2 last 4711; do [ "$(n "$TMP/both" --run $run)" = "$two" ] || fail "--run $run"; done
[ "$(n "$TMP/both" --run=1)" = "$one" ] || fail "--run 1"
"$I" check "$TMP/both" --run 1 --json | jq -e '.notes == []' >/dev/null ||
  fail "a note of a run that was chosen"
rc=0; "$I" check "$TMP/both" --run 3 2>"$TMP/err" || rc=$?
{ [ $rc = 1 ] && grep -q 'want a number from 1 to 2' "$TMP/err" && grep -q 'job 4711' "$TMP/err"; } ||
  fail "--run 3: $rc $(cat "$TMP/err")"

# The others: the same runs, the same numbers.
summary() { "$I" summary "$@" --output-dir "$TMP/out" --no-plots --no-html --no-parquet --no-csv; }
summary "$TMP/both" >"$TMP/text" || fail "summary: exit $?"
grep -q '^note: 2 runs in these logs' "$TMP/text" || fail "summary has no note: $(cat "$TMP/text")"
[ "$(summary "$TMP/both" --json | jq .records)" = "$both" ] ||
  fail "summary of both takes records of one run for copies of the other's"
[ "$(summary "$TMP/both" --run last --json | jq .records)" = "$two" ] || fail "summary --run last"
drawn() { "$I" trace "$@" -o "$TMP/t.json" --json | jq "$FIELD"; }
FIELD=.operations
[ "$(drawn "$TMP/both" --run 1)" = "$(drawn "$TMP/one")" ] || fail "trace --run 1"
FIELD=.ranks
[ "$(drawn "$TMP/both" --run last)" = 4 ] || fail "trace --run last: ranks"
"$I" trace "$TMP/both" -o "$TMP/t.json" | grep -q '^note  *2 runs in these logs' || fail "trace has no note"
[ "$("$I" pools "$TMP/both" --run last --json | jq .processes)" = 4 ] || fail "pools --run last"
"$I" hang "$TMP/both" >"$TMP/text" || fail "hang: exit $?"
grep -q '^not counted: 4 processes of an earlier run' "$TMP/text" ||
  fail "hang has no word of it: $(cat "$TMP/text")"
for run in 1 2; do
  "$I" hang "$TMP/both" --run $run >"$TMP/text" || fail "hang --run $run: exit $?"
  { grep -q 'all 4 processes have ended' "$TMP/text" && ! grep -q 'not counted' "$TMP/text"; } ||
    fail "hang --run $run: $(cat "$TMP/text")"
done
rc=0; "$I" hang "$TMP/both" --run 3 2>"$TMP/err" || rc=$?
{ [ $rc = 1 ] && grep -q 'want a number from 1 to 2' "$TMP/err"; } ||
  fail "hang --run 3: $rc $(cat "$TMP/err")"
finish
