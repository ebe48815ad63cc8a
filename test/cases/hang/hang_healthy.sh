#!/usr/bin/env bash
# A job that is merely slow is never said to hang, however often one looks, from its first moment to its last.
# The long form is test/long/hang_100.sh.
. "$(dirname "$0")/../../lib/hang.sh"

healthy() { # NAME seconds-until-a-hang [job's arguments]
  local name=$1 after=$2 looks=0 waits=0 rc
  shift 2
  job slow "$@"
  while kill -0 "$JOB" 2>/dev/null; do
    look --stuck-after "$after"
    looks=$((looks + 1))
    grep -q '"waits":\[{' "$TMP/verdict" && waits=$((waits + 1))
    [ "$RC" != 3 ] || { fail "$name: a healthy job is said to hang"; head -c 2000 "$TMP/verdict"; break; }
    sleep 0.2
  done
  rc=0
  wait "$JOB" || rc=$?
  [ $rc = 0 ] || { fail "$name: nccl-sim ended with $rc"; tail -n 3 "$TMP/sim.out"; }
  JOB=
  look --stuck-after "$after"
  [ "$RC" = 0 ] ||
    { fail "$name: exit code $RC after its end"; cat "$TMP/verdict.err"; head -c 1000 "$TMP/verdict"; }
  [ $looks -gt 5 ] || fail "$name: only $looks looks"
  echo "ok   $name: $looks looks, in $waits of them somebody waited"
}

# As on a loaded machine everything may take seconds, a hang begins at 20 s here; the pauses are 1.5 s.
healthy "checkpoint, evaluation, compilation" 20

# Before the first write there is no folder, but black boxes that name it: nothing is missing.
job slow NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=-1
four_boxes() { [ "$(find "$BOXES" -name '*.box' | wc -l)" = 4 ]; }
wait_for 10 four_boxes || fail "there are no four boxes"
look --stuck-after 20
{ [ "$RC" = 0 ] && grep -q '"ranks":[1-9]' "$TMP/verdict"; } ||
  fail "before the first write: exit code $RC, $(cat "$TMP/verdict.err") $(head -c 500 "$TMP/verdict")"
stop_job
RC=0
mkdir "$TMP/none"
"$INSPECTOR" hang "$TMP/nowhere" --box-dir "$TMP/none" >"$TMP/out" 2>&1 || RC=$?
[ "$RC" = 1 ] || fail "a folder that is not there: exit code $RC"
finish
