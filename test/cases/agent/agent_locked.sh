#!/usr/bin/env bash
# The agent under what its systemd unit takes from it: system calls, kinds of sockets, memory that is written
# and run, rights, the mask of its files. It serves, reads another user's job, tells of its hang, writes
# copies beside the logs, runs the program of --on-hang.
# And the unit leaves so little open (systemd-analyze security), with each right that stays explained in
# docs/security.md.
. "$(dirname "$0")/../../lib/case.sh"
need python3 systemd-analyze
unit=contrib/systemd/nccl-inspector-agent.service
sed "s|@BINDIR@|/usr/bin|" $unit >"$TMP/nccl-inspector-agent.service"
systemd-analyze security --offline=yes --no-pager "$TMP/nccl-inspector-agent.service" >"$TMP/security" 2>&1 ||
  skip "this systemd-analyze judges no file: $(tail -n 1 "$TMP/security")"
systemd-analyze security --offline=yes --no-pager --threshold=35 "$TMP/nccl-inspector-agent.service" \
  >/dev/null 2>&1 || fail "$(tail -n 1 "$TMP/security")"
for right in $(sed -n 's/^CapabilityBoundingSet=//p' $unit); do
  grep -q "\`$right\`" docs/security.md || fail "docs/security.md does not say what $right is for"
done
[ -z "$VARIANT" ] || skip "a sanitizer's runtime needs more of the kernel"
need_users 64001
rc=0
python3 test/lib/unit_locks.py $unit true >"$TMP/said" 2>&1 || rc=$?
[ $rc != 77 ] || skip "$(tail -n 1 "$TMP/said")"
[ $rc = 0 ] || fatal "nothing runs under the unit's locks: $(cat "$TMP/said")"
printf '#!/bin/sh\nexec python3 "%s/test/lib/unit_locks.py" "%s/%s" "%s" "$@"\n' "$PWD" "$PWD" $unit \
  "$INSPECTOR" >"$TMP/locked"
chmod 755 "$TMP/locked"
NI_BIN=$TMP/locked python3 test/lib/agent_locked.py || fail "the agent under its unit's locks"
finish "$(tail -n 1 "$TMP/security")"
