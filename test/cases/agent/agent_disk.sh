#!/usr/bin/env bash
# A disk that does not take the agent's state: it is told once, shown, tried again, and costs no answer.
. "$(dirname "$0")/../../lib/agent.sh"
# Where the state cannot be: root's disk is full; else a folder that cannot be written.
if [ "$(id -u)" = 0 ] && mkdir "$TMP/full" &&
  mount -t tmpfs -o size=64k,mode=700 tmpfs "$TMP/full" 2>/dev/null; then
  head -c 65536 /dev/zero >"$TMP/full/rest" 2>/dev/null || true
  begin full
  settled
  wait_for 15 eval "curl -s '$URL/healthz' | grep -q '^degraded: the state'" ||
    { fail "a full disk is not told"; ls -la "$TMP/full"; }
  is "metrics with a full disk" "$(code "$URL/metrics")" 200
  is degraded "$(metric agent_degraded | sed "s,\.0,,")" 1
  [ "$(metric agent_state_errors_total)" -ge 1 ] || fail "errors of the state are not counted"
  is "told once" "$(grep -c 'agent.state: No space' "$TMP/full.err")" 1
  rm "$TMP/full/rest"
  wait_for 15 eval "curl -s '$URL/healthz' | grep -q '^ok'" || fail "the state is not tried again"
  grep -q 'saved again' "$TMP/full.err" || fail "that it is saved again is not told"
  ends 0
elif [ "$(id -u)" != 0 ]; then
  mkdir "$TMP/shut" && chmod 500 "$TMP/shut"
  rc=0
  "$INSPECTOR" agent --foreground --listen 127.0.0.1:0 --state-dir "$TMP/shut/state" \
    2>"$TMP/shut.err" || rc=$?
  is "a folder that cannot be written" "$rc-$(grep -c 'state-dir=.*Permission denied' "$TMP/shut.err")" 1-1
fi
finish
