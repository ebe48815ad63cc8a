# For test/cases/sim_*.sh: run a scenario against the plugin and compare its logs with the truth.
# Sourced; and what test/lib/case.sh has, and BOXES (0: there is no /dev/shm).
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/case.sh"
need "$SIM" "$PLUGIN"
export TMPDIR=$TMP # --pool-report leaves its logs there for whoever wants to read them
own_boxes

# run_logged [NAME=value ...] scenario-or-NxG [options of nccl-sim]: runs it; leaves $TMP/truth and $TMP/logs.
run_logged() {
  local -a vars=()
  while [[ $1 == *=* ]]; do vars+=("$1"); shift; done
  local scenario=$1 what=--scenario; shift
  [[ $scenario =~ ^[0-9]+x[0-9]+$ ]] && what=--job
  rm -rf "$TMP/truth" "$TMP/logs"
  env NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR="$TMP/logs" NCCL_INSPECTOR_BLACKBOX="$BOXES" \
    "${vars[@]}" timeout 50 "$SIM" --quiet \
    --plugin "$PLUGIN" $what "$scenario" --truth "$TMP/truth" "$@"
}

# verified: the same, and every value must agree. A run that is to end by a signal has RC=137 before it.
verified() {
  local rc=0 seconds=$SECONDS
  { run_logged "$@"; } >"$TMP/out" 2>&1 || rc=$?
  if [ $rc != "${RC:-0}" ]; then
    fail "$*: nccl-sim ended with $rc, ${RC:-0} expected"
    tail -n 20 "$TMP/out"
  elif ! "$SIM" --verify "$TMP/truth" "$TMP/logs" >"$TMP/verify" 2>&1; then
    fail "$*"
    cat "$TMP/verify"
  else
    echo "ok   $* ($((SECONDS - seconds)) s) $(tail -n 1 "$TMP/verify")"
  fi
}
