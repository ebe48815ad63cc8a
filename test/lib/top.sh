# What the cases of `top` have in common: fake agents on a free port (test/lib/fake_agents.py), and asking them.
# shellcheck shell=bash
cd "$(dirname "$0")/../../.." || exit 2
BUILD=$(realpath "${BUILD:-build}")
[ -x "$BUILD/nccl-inspector-live" ] || { echo "no nccl-inspector-live was built: its libraries are missing"; exit 77; }
INSPECTOR=$BUILD/nccl-inspector
WORK=$(mktemp -d)
server=
TMUX_SOCKET=$WORK/tmux
finish() {
  tmux -S "$TMUX_SOCKET" kill-server 2>/dev/null || true # it may have ended just now
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$WORK"
}
trap finish EXIT
FAILURES=0
fail() { echo "FAIL $*"; FAILURES=1; }
eventually() { # COMMAND...: until it succeeds, 30 s at most
  local until=$((SECONDS + 30))
  until "$@" >/dev/null 2>&1; do [ $SECONDS -le $until ] || return 1; sleep 0.05; done
}

serve() { # FOLDER: sets PORT
  python3 test/lib/fake_agents.py "$1" >"$WORK/server.log" 2>&1 &
  server=$!
  eventually test -e "$1/port" || true
  PORT=$(cat "$1/port") || { cat "$WORK/server.log"; exit 1; }
}
top() { # CODE NAMES ARGS...: `top` of these agents ends with CODE; what it says is in $WORK/out and $WORK/err
  local code=$1 name rc=0 agents=()
  for name in $2; do agents+=(--agent "http://127.0.0.1:$PORT/$name"); done
  shift 2
  NO_PROXY='' timeout 60 "$INSPECTOR" top "${agents[@]}" "$@" >"$WORK/out" 2>"$WORK/err" </dev/null || rc=$?
  [ $rc = "$code" ] || { fail "top $*: exit $rc, not $code"; cat "$WORK/out" "$WORK/err"; }
}
says() { # FILE PATTERN...
  local file=$1 pattern
  shift
  for pattern; do grep -qE -- "$pattern" "$WORK/$file" || { fail "no '$pattern' in $file:"; cat "$WORK/$file"; }; done
}
says_not() { ! grep -qE -- "$2" "$WORK/$1" || { fail "'$2' in $1:"; cat "$WORK/$1"; }; }
