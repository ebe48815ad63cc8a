# For test/cases/hang_*.sh and test/long/hang_*.sh: a simulated job in the background, looked at while it runs or hangs.
# Sourced; sets BUILD, SIM, INSPECTOR, PLUGIN, TMP and BOXES (both removed at exit; what was started is killed).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
BUILD=$(realpath -m "${BUILD:-build}")
SIM=$BUILD/nccl-sim INSPECTOR=$BUILD/nccl-inspector
PLUGIN=${NI_PLUGIN:-$BUILD/libnccl-profiler-inspector.so}
for f in "$SIM" "$INSPECTOR" "$PLUGIN"; do
  [ -e "$f" ] || { echo "$f is not built"; exit 77; }
done
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
TMP=$(mktemp -d)
BOXES=$(mktemp -d /dev/shm/ni-hang.XXXXXX 2>/dev/null) || { echo "no /dev/shm to put black boxes into"; exit 77; }
JOB=
stop_job() {
  [ -z "$JOB" ] || kill -9 "$JOB" 2>/dev/null || true # its ranks die with it
  [ -z "$JOB" ] || wait "$JOB" 2>/dev/null || true
  JOB=
}
trap 'stop_job; rm -rf "$TMP" "$BOXES"' EXIT
failures=0
for v in $(env | sed -n 's/^\(NCCL_INSPECTOR_[A-Z0-9_]*\|NCCL_PROFILE[A-Z0-9_]*\)=.*/\1/p'); do unset "$v"; done

fail() {
  echo "FAIL $*"
  failures=$((failures + 1))
}
finish() {
  [ $failures = 0 ] || { echo "$failures failed"; exit 1; }
  exit 0
}

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

# agrees CODE CHECKER EXPECTED...: had the look that exit status, and does test/lib/hang_CHECKER.py find what is expected?
# What the verdict says is in $TMP/said.
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
hangs() {
  local name=$1 until=$((SECONDS + 40))
  shift
  while look --stuck-after 1; ! agrees 3 expect "$@" && [ $SECONDS -lt $until ]; do sleep 0.3; done
  checked "$name" 3 expect "$@"
}
