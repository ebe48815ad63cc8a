#!/usr/bin/env bash
# What our reading of NCCL 2.31 infers may be otherwise: with each switch of the simulator turned the other
# way the plugin still records everything once, with values that are true (docs/simulator.md lists them).
. "$(dirname "$0")/../../lib/sim.sh"
try() { verified NCCL_INSPECTOR_EVENTS=deep "$@"; }
for switch in classic_phases=0 barrier_phases=0 replay_tag=0 old_phases=0; do
  try symmetric --set $switch
done
printf '%s\n' 'set ranks=2 nccl=2.31' 'comm w label=w' 'coll w algo=COLLNET_DIRECT channels=2 repeat=3' \
  >"$TMP/collnet.scn"
try "$TMP/collnet.scn" --set collnet_phases=0
# A symmetric plan behind a replay: its counters are not reserved yet, so KernelCh comes at once, with stamps
# of nothing.
printf '%s\n' 'set ranks=2 nccl=2.31' 'comm w label=w' 'coll w symmetric=1 repeat=20' \
  'coll w symmetric=1 behind_replay=1' \
  'coll w symmetric=1 repeat=5' >"$TMP/behind.scn"
try "$TMP/behind.scn"
try "$TMP/behind.scn" --set counter0=0
# One call that makes two operations is no replay: it was not captured.
printf '%s\n' 'set ranks=2 nccl=2.31' 'comm w label=w' 'coll w symmetric=1 parts=2 repeat=5' \
  'coll w parts=2 repeat=5' >"$TMP/parts.scn"
verified "$TMP/parts.scn"
# Shifts: as inferred, at once with earlier stamps, not at all; by a Broadcast and by the mask.
for how in "" "--set shift_stamps=1" "--set mask_shifts=0" "--set n=20"; do
  # shellcheck disable=SC2086
  verified shift $how
done
for how in "--set shift_stamps=1" "--set mask_shifts=0"; do
  # shellcheck disable=SC2086
  verified ras $how
done
# NCCL 2.32 is taken to agree.
try symmetric --nccl 2.32
try tags --nccl 2.32
# A kernel's name is gone when the callback returns: wrong names are the least that can come of it.
run_logged symmetric --set lasting_texts=0 >"$TMP/out" 2>&1 || { fail "lasting_texts=0"; cat "$TMP/out"; }
# Proto is SIMPLE through v6: that it is a symmetric kernel is then not known, and a replay's KernelCh are
# waited for in vain.
run_logged symmetric --interface v6 --set empty_proto=0 >"$TMP/out" 2>&1 ||
  { fail "empty_proto=0"; cat "$TMP/out"; }
finish
