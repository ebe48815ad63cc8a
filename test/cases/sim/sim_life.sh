#!/usr/bin/env bash
# Communicators come and go: shared progress threads, unload and reload, many at once.
. "$(dirname "$0")/../../lib/sim.sh"
verified split_share
verified reload
verified reload --interface v4
verified churn
verified churn --seed 2
verified many_comms --set n=2000
# A release is said as people write it, by the simulator and by the plugin in NCCL's log.
NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR=$TMP/logs "$SIM" --plugin "$PLUGIN" --scenario allreduce --nccl 2.30 >"$TMP/out" 2>&1 ||
  { cat "$TMP/out"; failures=$((failures + 1)); }
for said in '^scenario .*allreduce.*, NCCL 2\.30\.7$' 'interface v6, NCCL 2\.30\.7, clock'; do
  grep -q "$said" "$TMP/out" || { fail "not said: $said"; cat "$TMP/out"; }
done
finish
