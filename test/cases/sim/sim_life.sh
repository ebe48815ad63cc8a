#!/usr/bin/env bash
# Communicators come and go: shared progress threads, unload and reload, many at once.
. "$(dirname "$0")/../../lib/sim.sh"
verified split_share
verified reload
verified reload --interface v4
verified churn
verified churn --seed 2
verified many_comms --set n=2000
# A communicator that grows: the old one and the new one, each of their operations once, and nobody misses
# ranks of either.
for iface in 6 5 4; do
  verified grow --interface v$iface
  "$INSPECTOR" check --no-index "$TMP/logs" >"$TMP/check" || { fail "grow v$iface: check"; cat "$TMP/check"; }
  tail -n 1 "$TMP/check" | grep -qx COMPLETE || fail "grow v$iface: not COMPLETE"
  awk '$1 ~ /^0x/ {print $2, $3, $4}' "$TMP/check" | sort >"$TMP/comms"
  printf '%s\n' 'dp 2/2 120' 'dp 4/4 240' | diff - "$TMP/comms" || fail "grow v$iface: other communicators"
done
# A release is said as people write it, by the simulator and by the plugin in NCCL's log.
NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR=$TMP/logs "$SIM" --plugin "$PLUGIN" --scenario allreduce \
  --nccl 2.30 >"$TMP/out" 2>&1 ||
  { cat "$TMP/out"; failures=$((failures + 1)); }
for said in '^scenario .*allreduce.*, NCCL 2\.30\.7$' 'interface v6, NCCL 2\.30\.7, clock'; do
  grep -q "$said" "$TMP/out" || { fail "not said: $said"; cat "$TMP/out"; }
done
finish
