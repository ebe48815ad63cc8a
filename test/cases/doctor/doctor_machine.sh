#!/usr/bin/env bash
# doctor: shared memory, limits, clock, GPUs; and the simulated run.
. "$(dirname "$0")/../../lib/doctor.sh"
doctor "no shared memory" 0 --shm-dir /nowhere
says warning shm "cannot be used"
(ulimit -f 100; doctor "files are limited" 2; says problem limits "ulimit -f"; [ $failures = 0 ]) || failures=1
(ulimit -n 100; doctor "few descriptors" 0; says warning limits "only 100 open files"; [ $failures = 0 ]) || failures=1
grep -q '^[a-z]* *clock ' "$TMP/out" || { fail "nothing about the clock"; }
grep -q '^[a-z]* *gpu ' "$TMP/out" || { fail "nothing about GPUs"; }

if [ -x "$BUILD/nccl-sim" ]; then
  NO_SIM='--sim-seconds 1'
  doctor "simulated run" 0 TMPDIR="$TMP"
  says ok simulation "0 disagreements"
  [ -z "$(ls -d "$TMP"/nccl-inspector-doctor-* 2>/dev/null)" ] || { fail "the simulated run left files"; }
  mkdir "$TMP/alone"
  cp "$BIN" "$TMP/alone/"
  BIN=$TMP/alone/nccl-inspector
  doctor "nccl-sim not there" 0 PATH=/usr/bin:/bin
  says note simulation "nccl-sim was not found"
  doctor "nccl-sim in PATH" 0 PATH="$BUILD:/usr/bin:/bin" TMPDIR="$TMP"
  says ok simulation "0 disagreements"
fi
finish
