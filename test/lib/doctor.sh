# For test/cases/doctor_*.sh: nccl-inspector doctor in an environment of the test's own. Sourced; and what
# test/lib/case.sh has.
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/case.sh"
BIN=$INSPECTOR
PLUGIN=$BUILD/libnccl-profiler-inspector.so
need "$BIN" "$PLUGIN"
unset "${!NCCL_@}" "${!INSPECTOR_@}"
# A plugin that stays loaded frees nothing in the trial's child.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0:exitcode=99} NO_SIM=--no-sim

# doctor NAME RC [NAME=value ...] [options] : all well otherwise (plugin named, switched on, a folder to write
# in). Leaves $TMP/out.
doctor() {
  local name=$1 want=$2 rc=0
  shift 2
  CASE=$name
  local -a vars=()
  while [[ ${1:-} == *=* && ${1:-} != --* ]]; do vars+=("$1"); shift; done
  env NCCL_PROFILER_PLUGIN="$PLUGIN" NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR="$TMP/logs/a/b" \
    NCCL_HOME=/nonexistent \
    "${vars[@]}" timeout 60 "$BIN" doctor $NO_SIM "$@" >"$TMP/out" 2>&1 || rc=$?
  if [ $rc != "$want" ]; then
    fail "$name: exit $rc, $want expected"; cat "$TMP/out"
  fi
}
# says STATUS CHECK WORDS: that finding is there, and when it is a warning or problem the line behind it says
# what to do.
says() {
  if ! grep -A1 "^$1 *$2 .*$3" "$TMP/out" >"$TMP/found"; then
    fail "$CASE: no '$1 $2 $3'"; cat "$TMP/out"
  elif [ "$1" = problem ] && ! grep -q -- '->' "$TMP/found"; then
    fail "$CASE: a problem without a word about what to do"; cat "$TMP/found"
  else
    echo "ok   $CASE: $(head -n 1 "$TMP/found" | cut -c1-110)"
  fi
}
