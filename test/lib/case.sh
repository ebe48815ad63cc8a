# What every case has, be it test/cases/ROOM/NAME.sh or test/long/NAME.sh. Sourced, by the case or by the
# library of its room.
#
# It goes to the root of the tree and sets ROOT, BUILD (absolute, exported), INSPECTOR, SIM, PLUGIN, VARIANT
# (the sanitizer of the build: asan, tsan or nothing) and TMP, a folder that is removed at exit. Variables
# that a developer's shell may have set for the plugin are unset, since they must not decide a test. A case
# that has counted a failure ends with 1, also when it forgets `finish` or goes on to skip the rest.
# shellcheck shell=bash disable=SC2034
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$ROOT"
BUILD=$(realpath -m "${BUILD:-build}")
export BUILD
INSPECTOR=$BUILD/nccl-inspector
SIM=$BUILD/nccl-sim
PLUGIN=${NI_PLUGIN:-$BUILD/libnccl-profiler-inspector.so}
VARIANT=${NI_VARIANT:-}
unset "${!NCCL_INSPECTOR_@}" "${!NCCL_PROFILE@}"
failures=0 # `fail` counts; a case counts by itself where a program of its own has said what is wrong

# at_exit COMMAND: what the case has begun and must end. The newest one runs first, before TMP is removed.
# The text is expanded only then, so that single quotes let it name what the case sets later.
AT_EXIT=()
at_exit() { AT_EXIT+=("$*"); }
case_ends() {
  local rc=$? i left
  set +eu
  trap '' PIPE # who reads may be gone, and what follows must be done
  for ((i = ${#AT_EXIT[@]} - 1; i >= 0; i--)); do eval "${AT_EXIT[i]}"; done
  left=$(jobs -p)
  # shellcheck disable=SC2086
  [ -z "$left" ] || { kill -9 $left; wait $left; } 2>/dev/null
  rm -rf "$TMP" 2>/dev/null || { chmod -R u+rwx "$TMP"; rm -rf "$TMP"; }
  if [ $failures != 0 ] && { [ $rc = 0 ] || [ $rc = 77 ]; }; then rc=1; fi
  exit $rc
}
TMP=$(mktemp -d "${TMPDIR:-/tmp}/ni-case.XXXXXX")
trap case_ends EXIT

# grouped NUMBER: as text for people has it: 1,234,567.
grouped() { sed -E ':again;s/([0-9])([0-9]{3})(,|$)/\1,\2\3/;t again' <<<"$1"; }

# fail WHAT: counted and told; the case goes on.   fatal WHAT: the case ends.
fail() {
  echo "FAIL $*"
  failures=$((failures + 1))
}
fatal() {
  fail "$@"
  exit 1
}
# finish [WHAT]: the end of a case; WHAT is told if nothing has failed.
# shellcheck disable=SC2120
finish() {
  [ $failures = 0 ] || { echo "$failures failed"; exit 1; }
  [ $# = 0 ] || echo "$*"
  exit 0
}
# skip WHY: the case cannot run, or the rest of it; what has failed until then counts.
skip() {
  [ $failures = 0 ] || finish
  echo "$*"
  exit 77
}
# has_turn NUMBER: whether this row of a table runs: of NI_ROW_SHARE rows one, another one with each commit
# (test/runner.sh says after how many this is); without a share each.
has_turn() { [ -z "${NI_ROW_SHARE:-}" ] || [ $((($1 + ${NI_COMMITS:-0}) % NI_ROW_SHARE)) = 0 ]; }
# skip_under VARIANT WHY
skip_under() { [ "$VARIANT" != "$1" ] || skip "not under $1: $2"; }
# need PROGRAM|FILE...: skips the case where one of them is not there. With a slash it is a file.
need() {
  local what
  for what; do
    case $what in
      "$BUILD"/*) [ -e "$what" ] || skip "$what is not built" ;;
      */*) [ -e "$what" ] || skip "no $what" ;;
      *) command -v "$what" >/dev/null || skip "no $what" ;;
    esac
  done
}
# need_users UID...: skips the case unless it is root and can become them.
need_users() {
  local uid
  [ "$(id -u)" = 0 ] || skip "not root: nobody can be become here"
  need setpriv
  for uid; do
    setpriv --reuid "$uid" --regid "$uid" --clear-groups true 2>/dev/null ||
      skip "setpriv cannot take another uid here"
  done
}
# own_boxes: sets BOXES to a folder in memory, removed at exit, or to 0. Killed processes leave their black
# boxes behind: there, and not in everybody's /dev/shm.
# need_boxes: the same; skips the case where there is no /dev/shm.
own_boxes() {
  BOXES=$(mktemp -d /dev/shm/ni-test.XXXXXX 2>/dev/null) || BOXES=0
  [ "$BOXES" = 0 ] || at_exit 'rm -rf "$BOXES"'
}
need_boxes() {
  own_boxes
  [ "$BOXES" != 0 ] || skip "no /dev/shm to put black boxes into"
}
# own_memory: sets FAST to a folder for thousands of small files, in memory where there is a /dev/shm. It is
# removed at exit.
own_memory() {
  FAST=$(mktemp -d /dev/shm/ni-test.XXXXXX 2>/dev/null) || FAST=$(mktemp -d "$TMP/fast.XXXXXX")
  at_exit 'rm -rf "$FAST"'
}
# wait_for SECONDS COMMAND...: until it succeeds; what it prints is not shown. 1: it never did. The seconds
# are for what never comes: how long it takes on a busy machine is not what is tested. COMMAND runs in this
# shell, so a function may set what it has found; after a second it is asked less often.
wait_for() {
  local until=$((SECONDS + $1)) times=0
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -le $until ] || return 1
    times=$((times + 1))
    if [ $times -le 20 ]; then sleep 0.05; else sleep 0.2; fi
  done
}
