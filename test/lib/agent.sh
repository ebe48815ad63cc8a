# For test/cases/agent/*.sh: the real daemon on a free port, with a state folder of its own and no job's boxes. Sourced; sets BUILD,
# INSPECTOR and TMP. What was begun is ended at exit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
BUILD=$(realpath "${BUILD:-build}")
INSPECTOR=$BUILD/nccl-inspector
[ -x "$INSPECTOR-live" ] || { echo "$INSPECTOR-live is not built"; exit 77; }
command -v curl >/dev/null || { echo "no curl"; exit 77; }
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
unset NOTIFY_SOCKET STATE_DIRECTORY
TMP=$(mktemp -d)
mkdir "$TMP/boxes"
AGENTS=()
over() {
  local p
  for p in "${AGENTS[@]}"; do { kill -9 "$p" && wait "$p"; } 2>/dev/null || true; done
  mountpoint -q "$TMP/full" && umount "$TMP/full"
  rm -rf "$TMP"
}
trap over EXIT
failures=0
fail() { echo "FAIL $*"; failures=$((failures + 1)); }
finish() { [ $failures = 0 ] || { echo "$failures failures"; exit 1; }; exit 0; }

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
  local until=$((SECONDS + $1))
  shift
  while ! "$@" >/dev/null 2>&1; do
    [ $SECONDS -le $until ] || return 1
    sleep 0.1
  done
}
# begin NAME [OPTION...]: an agent with state $TMP/NAME; sets PID and URL; what it says is in $TMP/NAME.err. It has settled then.
begin() {
  local name=$1
  shift
  : >"$TMP/$name.err"
  "$INSPECTOR" agent --foreground --listen 127.0.0.1:0 --state-dir "$TMP/$name" --box-dir "$TMP/boxes" "$@" 2>>"$TMP/$name.err" &
  PID=$!
  AGENTS+=("$PID")
  wait_for 20 grep -q ' serves ' "$TMP/$name.err" || { fail "$name: does not serve:"; cat "$TMP/$name.err"; finish; }
  URL=$(sed -n 's/.* serves \(http[^ ]*\) .*/\1/p' "$TMP/$name.err" | head -n 1)
}
settled() { wait_for 20 curl -sfk "$@" -o /dev/null "$URL/metrics" || { fail "no metrics after 20 s"; finish; }; }
# ends CODE: the last one, by SIGTERM.
ends() {
  local rc=0
  kill -TERM "$PID"
  wait "$PID" || rc=$?
  [ $rc = "$1" ] || fail "SIGTERM: exit status $rc, expected $1"
}
# refused NAME PATTERN [OPTION...]: an agent that does not begin, and says why.
refused() {
  local name=$1 pattern=$2 rc=0
  shift 2
  timeout 20 "$INSPECTOR" agent --foreground --listen 127.0.0.1:0 --state-dir "$TMP/refused" --box-dir "$TMP/boxes" "$@" 2>"$TMP/refused.err" || rc=$?
  [ $rc != 0 ] && [ $rc != 124 ] || fail "$name: exit status $rc"
  grep -qE -- "$pattern" "$TMP/refused.err" || { fail "$name: does not say '$pattern' but:"; cat "$TMP/refused.err"; }
}
# code URL [OPTION of curl...]: the status.
code() { local url=$1; shift; curl -sk --max-time 10 -o "$TMP/body" -D "$TMP/head" -w '%{http_code}' "$@" "$url" || true; }
# is NAME GOT WANTED
is() { [ "$2" = "$3" ] || fail "$1: '$2', expected '$3'"; }
# metric NAME: its value; with labels as grep finds it.
metric() { curl -sfk "$URL/metrics" | grep "^nccl_inspector_$1[{ ]" | sed 's/.* //' || true; }
