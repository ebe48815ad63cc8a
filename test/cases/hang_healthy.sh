#!/usr/bin/env bash
# A job that is merely slow is never said to hang, however often one looks, from its first moment to its last. The long form
# is test/long/hang_100.sh.
. "$(dirname "$0")/../lib/hang.sh"

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
  [ "$RC" = 0 ] || { fail "$name: exit code $RC after its end"; cat "$TMP/verdict.err"; head -c 1000 "$TMP/verdict"; }
  [ $looks -gt 5 ] || fail "$name: only $looks looks"
  echo "ok   $name: $looks looks, in $waits of them somebody waited"
}

# As on a loaded machine everything may take seconds, a hang begins at 20 s here; the pauses are 1.5 s.
healthy "checkpoint, evaluation, compilation" 20
finish
