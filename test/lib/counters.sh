# For test/cases/counters/*.sh: sweeps as files, and what the commands say of them. Sourced; and what
# test/lib/case.sh has.
# shellcheck shell=bash disable=SC2034
. "$(dirname "${BASH_SOURCE[0]}")/case.sh"
need "$INSPECTOR" python3
. test/lib/netprof.sh
CASSINI=${NI_TEST_DATA:-../shared/data}/cassini

sweep() { python3 test/lib/counters/netprof.py sweep "$@"; }
# said NAME CODE COMMAND...: its exit status; leaves what it prints in $TMP/said and $TMP/errors.
said() {
  local name=$1 code=$2 rc=0
  shift 2
  "$INSPECTOR" counters "$@" >"$TMP/said" 2>"$TMP/errors" || rc=$?
  [ $rc = "$code" ] ||
    { fail "$name: exit status $rc, expected $code:"; head -n 5 "$TMP/said" "$TMP/errors"; }
}
# has NAME PATTERN, hasnt NAME PATTERN: a line of the last one's output.
has() {
  grep -qE -- "$2" "$TMP/said" "$TMP/errors" ||
    { fail "$1: no line with '$2' in:"; head -n 12 "$TMP/said" "$TMP/errors"; }
}
hasnt() {
  ! grep -qE -- "$2" "$TMP/said" "$TMP/errors" ||
    fail "$1: says '$(grep -hE -- "$2" "$TMP/said" "$TMP/errors" | head -n 1)'"
}
# is NAME EXPRESSION: of Python, true of the last one's JSON, which is j; c(entity, counter) is a row of it.
is() {
  python3 - "$TMP/said" "$2" <<'PY' || fail "$1: not so: $2"
import json, sys
j = json.load(open(sys.argv[1]))
def c(entity, counter):
    e = [e for e in j["entities"] if e["name"] == entity][0]
    return [r for r in e["counters"] if r["name"] == counter][0]
def near(a, b): return abs(a - b) <= 1e-6 * abs(b)
sys.exit(not eval(sys.argv[2]))
PY
}
# Without it (offline) the reason, and 77.
netprof() {
  netprof_of "$1" && return
  skip "all but the comparison with net_prof $1, which cannot be had: $(tail -n 1 "$TMP/pip")"
}
