#!/usr/bin/env bash
# What comes with the agent: the systemd unit, and the settings file that shows all options with their
# defaults.
. "$(dirname "$0")/../../lib/agent.sh"
unit=$TMP/nccl-inspector-agent.service
make -s install BUILD="${BUILD#"$PWD"/}" PREFIX="$TMP/at" UNITDIR="$TMP" MANIFEST=no >"$TMP/out" 2>&1 || { fail "make install"; tail -n 5 "$TMP/out"; }
# Alerts lead to pages that are there.
mapfile -t pages < <(sed -n 's/^ *runbook_url: //p' "$TMP/at/share/nccl-inspector/prometheus/nccl-inspector-alerts.yml")
[ ${#pages[@]} -ge 8 ] || fail "${#pages[@]} alerts with a runbook_url"
for page in "${pages[@]}"; do
  path=${page#file://}
  { [ "$path" != "$page" ] && [ -s "${path%%#*}" ]; } || fail "an alert's runbook_url is no page of this machine: $page"
done
if command -v systemd-analyze >/dev/null; then
  systemd-analyze verify --man=no "$unit" >"$TMP/verify" 2>&1 || true
  ! grep 'nccl-inspector-agent' "$TMP/verify" | grep -v 'Transaction\|not found' ||
    fail "systemd-analyze verify"
fi

# Its command line as it stands, on a machine that has no settings, with what systemd adds: it serves, and
# ends by SIGTERM.
read -ra starts < <(sed -n 's/^ExecStart=//p' "$unit")
mkdir "$TMP/state"
# shellcheck disable=SC2016
alone='ip link set lo up && mount -t tmpfs tmpfs /dev/shm || exit 77
  [ ! -d /etc/nccl-inspector ] || mount -t tmpfs tmpfs /etc/nccl-inspector || exit 77
  err=$1 && shift
  "$@" 2>"$err" &
  for i in $(seq 100); do curl -sf http://127.0.0.1:9777/metrics >/dev/null && break; kill -0 $! || break; sleep 0.2; done
  curl -sf http://127.0.0.1:9777/metrics | grep -q "^nccl_inspector_agent_info" || echo "no metrics"
  kill -TERM $!
  wait $! || echo "exit status $?"'
if [ "$(id -u)" = 0 ] && command -v ip >/dev/null && unshare --net --mount true 2>/dev/null; then
  rc=0
  STATE_DIRECTORY=$TMP/state unshare --net --mount bash -c "$alone" _ "$TMP/unit.err" \
    "${starts[@]}" >"$TMP/out" 2>&1 || rc=$?
  [ $rc = 77 ] && echo "note: no network and memory of one's own here: the unit was not begun"
  if [ $rc != 77 ]; then
    { [ $rc = 0 ] && [ ! -s "$TMP/out" ]; } ||
      { fail "ExecStart of the unit as it stands, exit status $rc"; cat "$TMP/out" "$TMP/unit.err"; }
    grep -q 'there is no /etc/nccl-inspector/agent.conf: all settings are the defaults' "$TMP/unit.err" ||
      { fail "that the defaults hold is not said"; cat "$TMP/unit.err"; }
  fi
fi
# A file that need not be there is read where it is; one that was named outright must be there.
refused missing "--config=$TMP/none.conf: No such file" --config "$TMP/none.conf"
echo 'nonsense = 1' >"$TMP/wrong.conf"
chmod 600 "$TMP/wrong.conf"
refused wrong "wrong.conf:1.*nonsense" --config "-$TMP/wrong.conf"

# Every long option but those of a command line is there once, and all lines are accepted.
"$INSPECTOR" agent --help | grep -oE '^ +(-., )?--[a-z-]+' | sed 's/.*--//' | sort >"$TMP/options"
sed -n 's/^#\([a-z-]*\) = .*/\1/p' contrib/agent.conf | sort >"$TMP/shown"
# What secrets stand in has a file: what is on a command line or in a file for all is read by others.
grep -vxE 'help|usage|version|config|foreground|otlp-header' "$TMP/options" | diff - "$TMP/shown" ||
  fail "agent.conf shows other options"
sed -n 's/^#\([a-z-]* = .*\)/\1/p' contrib/agent.conf |
  grep -vE '^(token-file|tls-|on-hang|otlp|head|listen|state-dir|box-dir)' >"$TMP/agent.conf"
chmod 600 "$TMP/agent.conf"
begin unit --config "-$TMP/agent.conf"
settled
ends 0
! grep -q . < <(sed 's/#.*//' contrib/agent.conf) || fail "agent.conf says something"
finish
