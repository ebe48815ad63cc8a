# For test/cases/sim_*.sh: run a scenario against the plugin and compare its logs with the truth.
# Sourced; sets BUILD, SIM, PLUGIN and TMP, which is removed at exit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
BUILD=${BUILD:-build}
SIM=$BUILD/nccl-sim
PLUGIN=${NI_PLUGIN:-$BUILD/libnccl-profiler-inspector.so}
for f in "$SIM" "$PLUGIN"; do
  [ -e "$f" ] || { echo "$f is not built"; exit 77; }
done
TMP=$(mktemp -d)
export TMPDIR=$TMP # --pool-report leaves its logs there for whoever wants to read them
# Killed processes leave their black boxes behind: here, and not in everybody's /dev/shm.
BOXES=$(mktemp -d /dev/shm/ni-test.XXXXXX 2>/dev/null) || BOXES=0
trap 'rm -rf "$TMP"; [ "$BOXES" = 0 ] || rm -rf "$BOXES"' EXIT
failures=0

# Variables that a developer's shell may have set must not decide a test.
for v in $(env | sed -n 's/^\(NCCL_INSPECTOR_[A-Z0-9_]*\|NCCL_PROFILE[A-Z0-9_]*\)=.*/\1/p'); do unset "$v"; done

# run_logged [NAME=value ...] scenario-or-NxG [options of nccl-sim]: runs it; leaves $TMP/truth and $TMP/logs.
run_logged() {
  local -a vars=()
  while [[ $1 == *=* ]]; do vars+=("$1"); shift; done
  local scenario=$1 what=--scenario; shift
  [[ $scenario =~ ^[0-9]+x[0-9]+$ ]] && what=--job
  rm -rf "$TMP/truth" "$TMP/logs"
  env NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR="$TMP/logs" NCCL_INSPECTOR_BLACKBOX="$BOXES" "${vars[@]}" timeout 50 "$SIM" --quiet \
    --plugin "$PLUGIN" $what "$scenario" --truth "$TMP/truth" "$@"
}

# verified: the same, and every value must agree. A run that is to end by a signal has RC=137 before it.
verified() {
  local rc=0 seconds=$SECONDS
  { run_logged "$@"; } >"$TMP/out" 2>&1 || rc=$?
  if [ $rc != "${RC:-0}" ]; then
    echo "FAIL $*: nccl-sim ended with $rc, ${RC:-0} expected"
    tail -n 20 "$TMP/out"
    failures=$((failures + 1))
  elif ! "$SIM" --verify "$TMP/truth" "$TMP/logs" >"$TMP/verify" 2>&1; then
    echo "FAIL $*"
    cat "$TMP/verify"
    failures=$((failures + 1))
  else
    echo "ok   $* ($((SECONDS - seconds)) s) $(tail -n 1 "$TMP/verify")"
  fi
}

finish() {
  [ $failures = 0 ] || { echo "$failures runs disagree"; exit 1; }
  exit 0
}
