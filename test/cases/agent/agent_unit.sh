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
! sed 's/#.*//' contrib/agent.conf | grep -q . || fail "agent.conf says something"
# make install: the unit names the installed program.
make -s install BUILD="$BUILD" DESTDIR="$TMP/root" PREFIX=/opt/ni >/dev/null
unit=$TMP/root/opt/ni/lib/systemd/system/nccl-inspector-agent.service
grep -q '^ExecStart=/opt/ni/bin/nccl-inspector agent' "$unit" || fail "the installed unit"
cmp contrib/agent.conf "$TMP/root/opt/ni/share/nccl-inspector/agent.conf" || fail "the installed agent.conf"
make -s uninstall BUILD="$BUILD" DESTDIR="$TMP/root" PREFIX=/opt/ni >/dev/null
is "left after uninstall" "$(find "$TMP/root" -type f | head)" ""
finish
