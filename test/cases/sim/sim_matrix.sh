#!/usr/bin/env bash
# Every release with sets of kinds, and every interface through the newest release's translations: each
# operation, call, event and transfer is in the logs once, with its values. The long form runs all sets on all
# releases.
. "$(dirname "$0")/../../lib/sim.sh"
# The log closes its own accounts, too; a communicator's ranks are all in it. Where a busy machine keeps the
# poller from its work for a second, a channel comes after its operation was held for complete: that is told,
# and it is what happened.
complete() {
  local only='^INCOMPLETE: [0-9]+ operations? with a channel that came late \([^;]*\)$'
  "$BUILD/nccl-inspector" check --quiet "$TMP/logs" >"$TMP/check" 2>&1 && return
  if grep -qE "$only" "$TMP/check"; then
    echo "     $(cat "$TMP/check")"
  else
    fail "check of $*"
    cat "$TMP/check"
  fi
}
try() {
  verified "$@"
  complete "$@"
}
for release in 2.23 2.24 2.25 2.26 2.27 2.28 2.29 2.30 2.32; do
  more=()
  [ $release != 2.32 ] || more=(--set allgatherv=0) # a plain Broadcast shifts the counters: sim_rows
  try NCCL_INSPECTOR_EVENTS=trace matrix --nccl $release "${more[@]}"
  [ -n "${NI_LONG:-}" ] || continue
  for events in standard light deep coll kernelch,proxyop standard,ce,sync \
    -kernelch coll,net,steps,proxystep; do
    try NCCL_INSPECTOR_EVENTS=$events matrix --nccl $release "${more[@]}"
  done
done
try matrix --nccl 2.23
try matrix --nccl 2.26
try matrix --nccl 2.30
try NCCL_INSPECTOR_EVENTS=light matrix --nccl 2.25
try NCCL_INSPECTOR_EVENTS=light matrix --nccl 2.27
try NCCL_INSPECTOR_EVENTS=light matrix --nccl 2.30
try NCCL_INSPECTOR_EVENTS=deep matrix --nccl 2.28
try NCCL_INSPECTOR_EVENTS=trace matrix --nccl 2.30 --interface v4
try NCCL_INSPECTOR_EVENTS=trace matrix --nccl 2.30 --interface v5
# Through the translations to v1, v2 and v3 nobody says which communicator it is: counts only.
for v in 1 2 3; do
  run_logged NCCL_INSPECTOR_EVENTS=trace matrix --nccl 2.30 --interface v$v >"$TMP/out" 2>&1 ||
    { cat "$TMP/out"; failures=$((failures + 1)); }
  n=$(grep -c '"called":1' "$TMP/truth")
  got=$("$BUILD/nccl-inspector" check --json "$TMP/logs" | python3 -c '
import json, sys
d = json.load(sys.stdin)
bad = [p["code"] for p in d["problems"] if p["code"] not in ("ranks",)]
print(d["operations"], d["events_by"]["proxyop"] > 0, d["events_by"]["group"] > 0, bad)')
  [ "$got" = "$n True True []" ] && echo "ok   v$v on 2.30: $got" ||
    { fail "v$v on 2.30: $got, $n operations were shown"; }
done
finish
