# For test/cases/doctor_*.sh: nccl-inspector doctor in an environment of the test's own. Sourced; sets BUILD, BIN, PLUGIN,
# TMP (removed at exit).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
BUILD=$(realpath -m "${BUILD:-build}")
BIN=$BUILD/nccl-inspector
PLUGIN=$BUILD/libnccl-profiler-inspector.so
for f in "$BIN" "$PLUGIN"; do
  [ -e "$f" ] || { echo "$f is not built"; exit 77; }
done
TMP=$(mktemp -d)
trap 'chmod -R u+rwx "$TMP" 2>/dev/null; rm -rf "$TMP"' EXIT
failures=0
for v in $(env | sed -n 's/^\(NCCL_[A-Z0-9_]*\|INSPECTOR_[A-Z0-9_]*\)=.*/\1/p'); do unset "$v"; done
# A plugin that stays loaded frees nothing in the trial's child.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0:exitcode=99} NO_SIM=--no-sim

# doctor NAME RC [NAME=value ...] [options] : all well otherwise (plugin named, switched on, a folder to write in). Leaves
# $TMP/out.
doctor() {
  local name=$1 want=$2 rc=0
  shift 2
  CASE=$name
  local -a vars=()
  while [[ ${1:-} == *=* && ${1:-} != --* ]]; do vars+=("$1"); shift; done
  env NCCL_PROFILER_PLUGIN="$PLUGIN" NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR="$TMP/logs/a/b" NCCL_HOME=/nonexistent \
    "${vars[@]}" timeout 60 "$BIN" doctor $NO_SIM "$@" >"$TMP/out" 2>&1 || rc=$?
  if [ $rc != "$want" ]; then
    echo "FAIL $name: exit $rc, $want expected"; cat "$TMP/out"; failures=$((failures + 1))
  fi
}
# says STATUS CHECK WORDS: that finding is there, and when it is a warning or problem the line behind it says what to do.
says() {
  if ! grep -A1 "^$1 *$2 .*$3" "$TMP/out" >"$TMP/found"; then
    echo "FAIL $CASE: no '$1 $2 $3'"; cat "$TMP/out"; failures=$((failures + 1))
  elif [ "$1" = problem ] && ! grep -q -- '->' "$TMP/found"; then
    echo "FAIL $CASE: a problem without a word about what to do"; cat "$TMP/found"; failures=$((failures + 1))
  else
    echo "ok   $CASE: $(head -n 1 "$TMP/found" | cut -c1-110)"
  fi
}
finish() { [ $failures = 0 ] || { echo "$failures failures"; exit 1; }; exit 0; }
