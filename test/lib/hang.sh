# For test/cases/hang_*.sh and test/long/hang_*.sh: a simulated job in the background, looked at while it runs
# or hangs.
# Sourced; and what test/lib/case.sh has, and BOXES. What was started is killed at exit.
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/case.sh"
need "$SIM" "$INSPECTOR" "$PLUGIN" python3
need_boxes
JOB=
stop_job() {
  [ -z "$JOB" ] || kill -9 "$JOB" 2>/dev/null || true # its ranks die with it
  [ -z "$JOB" ] || wait "$JOB" 2>/dev/null || true
  JOB=
}
at_exit stop_job

# job SCENARIO [NAME=value ...] [options of nccl-sim]: starts it. Logs in $TMP/logs.
job() {
  local scenario=$1
  shift
  local -a vars=()
  while [ $# -gt 0 ] && [[ $1 == *=* ]] && [[ $1 != --* ]]; do vars+=("$1"); shift; done
  stop_job
  rm -rf "$TMP/logs" "${BOXES:?}"/*
  env NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_BLACKBOX="$BOXES" NCCL_INSPECTOR_DUMP_DIR="$TMP/logs" \
    "${vars[@]}" "$SIM" --quiet --plugin "$PLUGIN" --scenario "$scenario" --truth "$TMP/truth" "$@" >"$TMP/sim.out" 2>&1 &
  JOB=$!
}

# ended: waits for a job that ends by itself.
ended() {
  wait "$JOB" || fail "nccl-sim ended with $?"
  JOB=
}

# look_at INPUTS...: one look; $TMP/verdict, its exit status in RC.   look [options]: at the job.
look_at() {
  RC=0
  "$INSPECTOR" hang --json "$@" >"$TMP/verdict" 2>"$TMP/verdict.err" || RC=$?
}
look() { look_at "$TMP/logs" --box-dir "$BOXES" "$@"; }

# agrees CODE CHECKER EXPECTED...: had the look that exit status, and does test/lib/hang_CHECKER.py find what
# is expected? What the verdict says is in $TMP/said.
agrees() {
  local code=$1 checker=$2
  shift 2
  [ "$RC" = "$code" ] && python3 "test/lib/hang_$checker.py" "$@" <"$TMP/verdict" >"$TMP/said" 2>&1
}
# checked NAME CODE CHECKER EXPECTED...: the same, told.
checked() {
  local name=$1 code=$2
  shift
  if agrees "$@"; then
    echo "ok   $name: $(tail -n 1 "$TMP/said")"
    return
  fi
  fail "$name: exit code $RC, expected $code and ${*:3}"
  tail -n 3 "$TMP/said" "$TMP/verdict.err" "$TMP/sim.out" 2>/dev/null || true
  head -c 1500 "$TMP/verdict"
}
# names WHAT PATTERN: what was said holds it.
names() { grep -q -- "$2" "$TMP/said" || fail "$1: not named: $(cat "$TMP/said")"; }

# hangs NAME EXPECTED...: looks until it says what is expected (hang_expect.py), 40 s at most.
looked() {
  look --stuck-after 1
  agrees 3 expect "$@"
}
hangs() {
  local name=$1
  shift
  wait_for 40 looked "$@" || true # told below
  checked "$name" 3 expect "$@"
}
