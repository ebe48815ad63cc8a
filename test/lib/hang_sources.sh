#!/usr/bin/env bash
# What a verdict rests on: two copies of all boxes 10 s apart make it certain, also after the job is gone;
# logs alone name those who are inside and say whom they know nothing of.
. "$(dirname "$0")/hang.sh"
mkdir "$TMP/none"

job hang_late NCCL_INSPECTOR_STUCK_SECONDS=7
hangs "live boxes" world "ReduceScatter 0" verdict=likely never_called=2 inside=0,1,3
"$INSPECTOR" snapshot "$BOXES" --output "$TMP/copies" -q || fail "snapshot ends with $?"
sleep 10.5
"$INSPECTOR" snapshot --box-dir "$BOXES" --output "$TMP/copies" -q || fail "the second snapshot ends with $?"
[ "$(find "$TMP/copies" -name '*.box' | wc -l)" = 8 ] || fail "there should be two copies of four boxes"

expect() { # NAME verdict's inputs -- EXPECTED...
  local name=$1
  shift
  local -a in=()
  while [ "$1" != -- ]; do in+=("$1"); shift; done
  shift
  look_at "${in[@]}" --stuck-after 1 --box-dir "$TMP/none"
  checked "$name" 3 expect "$@"
}
expect "two copies" "$TMP/copies" -- world "ReduceScatter 0" verdict=certain never_called=2 inside=0,1,3
expect "two copies and logs" "$TMP/copies" "$TMP/logs" -- world "ReduceScatter 0" verdict=certain \
  never_called=2 inside=0,1,3
rm "$(find "$TMP/copies" -name '*.box' | sort -V | tail -n 1)" \
  "$(find "$TMP/copies" -name '*.box' | sort -V | tail -n 2 | head -n 1)"
expect "one process not copied" "$TMP/copies" -- world "ReduceScatter 0" verdict=likely
names "the rank without data" 'no data from rank'

# Logs alone: stuck lines come when the operation is 7 s old. Rank 2 has said nothing since long before: no
# data of it.
stuck_lines() { [ "$(zcat "$TMP"/logs/*.gz 2>/dev/null | grep -c '"stuck":{')" -ge 3 ]; }
wait_for 20 stuck_lines || fail "no stuck lines in the logs"
expect "logs alone" "$TMP/logs" -- world "ReduceScatter 0" verdict=likely inside=0,1,3 no_data=2

# Post mortem: all ranks were killed together, so nobody is gone before the others.
stop_job
sleep 0.3
expect "after the end" "$BOXES" -- world "ReduceScatter 0" verdict=likely never_called=2 inside=0,1,3
"$INSPECTOR" recover "$TMP/logs" --box-dir "$BOXES" -q || fail "recover ends with $?"
expect "recovered logs" "$TMP/logs" -- world "ReduceScatter 0" verdict=likely never_called=2 inside=0,1,3

# What cannot be read is named, and nothing is said to be fine.
mkdir "$TMP/bad"
head -c 5000 "$(find "$BOXES" -name '*.box' | head -n 1)" >"$TMP/bad/x.box"
RC=0
"$INSPECTOR" hang "$TMP/bad" >"$TMP/verdict" 2>"$TMP/verdict.err" || RC=$?
{ [ "$RC" = 1 ] && grep -q 'x.box: cut short' "$TMP/verdict.err"; } ||
  fail "a cut box: exit code $RC, $(cat "$TMP/verdict.err")"
finish
