# For test/cases/agent/*.sh: the real daemon on a free port, with a state folder of its own and no job's
# boxes; and what test/lib/case.sh has. Sourced. What was begun is ended at exit.
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/case.sh"
need "$INSPECTOR-live" curl python3
unset NOTIFY_SOCKET STATE_DIRECTORY
mkdir "$TMP/boxes"
AGENTS=()
agents_end() {
  local p
  for p in "${AGENTS[@]}"; do { kill -9 "$p" && wait "$p"; } 2>/dev/null; done
  if mountpoint -q "$TMP/full"; then umount "$TMP/full"; fi
}
at_exit agents_end

# begin NAME [OPTION...]: an agent with state $TMP/NAME; sets PID and URL; what it says is in $TMP/NAME.err.
# It has settled then.
begin() {
  local name=$1
  shift
  : >"$TMP/$name.err"
  "$INSPECTOR" agent --foreground --listen 127.0.0.1:0 --state-dir "$TMP/$name" --box-dir "$TMP/boxes" "$@" \
    2>>"$TMP/$name.err" &
  PID=$!
  AGENTS+=("$PID")
  wait_for 20 grep -q ' serves ' "$TMP/$name.err" ||
    { fail "$name: does not serve:"; cat "$TMP/$name.err"; finish; }
  URL=$(sed -n 's/.* serves \(http[^ ]*\) .*/\1/p' "$TMP/$name.err" | head -n 1)
}
settled() {
  wait_for 20 curl -sfk "$@" -o /dev/null "$URL/metrics" || { fail "no metrics after 20 s"; finish; }
}
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
  timeout 20 "$INSPECTOR" agent --foreground --listen 127.0.0.1:0 --state-dir "$TMP/refused" --box-dir \
    "$TMP/boxes" "$@" 2>"$TMP/refused.err" || rc=$?
  [ $rc != 0 ] && [ $rc != 124 ] || fail "$name: exit status $rc"
  grep -qE -- "$pattern" "$TMP/refused.err" ||
    { fail "$name: does not say '$pattern' but:"; cat "$TMP/refused.err"; }
}
# code URL [OPTION of curl...]: the status.
code() {
  local url=$1
  shift; curl -sk --max-time 10 -o "$TMP/body" -D "$TMP/head" -w '%{http_code}' "$@" "$url" || true
}
# is NAME GOT WANTED
is() { [ "$2" = "$3" ] || fail "$1: '$2', expected '$3'"; }
# metric NAME: its value; with labels as grep finds it.
metric() { curl -sfk "$URL/metrics" | grep "^nccl_inspector_$1[{ ]" | sed 's/.* //' || true; }
