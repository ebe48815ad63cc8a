# What the cases of `top` have in common: fake agents on a free port (test/lib/fake_agents.py), and asking
# them.
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/case.sh"
[ -x "$BUILD/nccl-inspector-live" ] || skip "no nccl-inspector-live was built: its libraries are missing"
TMUX_SOCKET=$TMP/tmux
at_exit 'tmux -S "$TMUX_SOCKET" kill-server 2>/dev/null' # it may have ended just now

serve() { # FOLDER: sets PORT
  python3 test/lib/fake_agents.py "$1" >"$TMP/server.log" 2>&1 &
  wait_for 30 test -e "$1/port" || { cat "$TMP/server.log"; fatal "the fake agents do not begin"; }
  PORT=$(cat "$1/port")
}
top() { # CODE NAMES ARGS...: `top` of these agents ends with CODE; what it says is in $TMP/out and $TMP/err
  local code=$1 name rc=0 agents=()
  for name in $2; do agents+=(--agent "http://127.0.0.1:$PORT/$name"); done
  shift 2
  NO_PROXY='' timeout 60 "$INSPECTOR" top "${agents[@]}" "$@" >"$TMP/out" 2>"$TMP/err" </dev/null || rc=$?
  [ $rc = "$code" ] || { fail "top $*: exit $rc, not $code"; cat "$TMP/out" "$TMP/err"; }
}
says() { # FILE PATTERN...
  local file=$1 pattern
  shift
  for pattern; do
    grep -qE -- "$pattern" "$TMP/$file" || { fail "no '$pattern' in $file:"; cat "$TMP/$file"; }
  done
}
says_not() { ! grep -qE -- "$2" "$TMP/$1" || { fail "'$2' in $1:"; cat "$TMP/$1"; }; }
