# For test/cases/run/: a job below `nccl-inspector run` that hangs, or is stopped.
# Sourced, from anywhere; and what test/lib/hang.sh has. The working folder is $TMP from then on.
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/hang.sh"
cd "$TMP"
export NCCL_INSPECTOR_BLACKBOX=$BOXES
# Who is missing in the job that hangs.
MISSING='rank 2 (sim-node1)'
stop() {
  cat err screen 2>/dev/null || true
  fatal "$@"
}
# The job, and what tells when its last operation has begun: the black boxes of three ranks hold it.
HANGS=(--scenario hang_late --procs --quiet --plugin "$PLUGIN")
is_inside() { grep -qF "$MISSING" < <("$INSPECTOR" hang --box-dir "$BOXES" "$1/logs"); }
# ends CODE WHEN: the job of $JOB ends, with that code.
ends() {
  local rc=0
  wait "$JOB" || rc=$?
  JOB=
  [ $rc = "$1" ] || stop "$2: $rc"
}
