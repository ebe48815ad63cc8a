#!/usr/bin/env bash
# What comes with the agent: the systemd unit, and the settings file that shows all options with their defaults.
. "$(dirname "$0")/../../lib/agent.sh"
sed "s|@BINDIR@|$BUILD|" contrib/systemd/nccl-inspector-agent.service >"$TMP/nccl-inspector-agent.service"
if command -v systemd-analyze >/dev/null; then
  systemd-analyze verify --man=no "$TMP/nccl-inspector-agent.service" >"$TMP/verify" 2>&1 || true
  ! grep 'nccl-inspector-agent' "$TMP/verify" | grep -v 'Transaction\|not found' || fail "systemd-analyze verify"
fi
# Every long option but those of a command line is there once, and all lines are accepted.
"$INSPECTOR" agent --help | grep -oE '^ +(-., )?--[a-z-]+' | sed 's/.*--//' | sort >"$TMP/options"
sed -n 's/^#\([a-z-]*\) = .*/\1/p' contrib/agent.conf | sort >"$TMP/shown"
grep -vxE 'help|usage|version|config|foreground' "$TMP/options" | diff - "$TMP/shown" || fail "agent.conf shows other options"
sed -n 's/^#\([a-z-]* = .*\)/\1/p' contrib/agent.conf | grep -vE '^(token-file|tls-|on-hang|otlp|head|listen|state-dir|box-dir)' >"$TMP/agent.conf"
chmod 600 "$TMP/agent.conf"
begin unit --config "$TMP/agent.conf"
settled
ends 0
! grep -q . < <(sed 's/#.*//' contrib/agent.conf) || fail "agent.conf says something"
finish
