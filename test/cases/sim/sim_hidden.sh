#!/usr/bin/env bash
# Collectives without a Coll event are recorded from their API call or the copy engine's events, and only
# those; every operation carries the number of its call.
. "$(dirname "$0")/../../lib/sim.sh"
for how in "--nccl 2.27" "--nccl 2.28" "--nccl 2.29" "--nccl 2.30" "--nccl 2.30 --interface v5" \
  "--nccl 2.30 --interface v4"; do
  # shellcheck disable=SC2086
  verified hidden $how
done
verified NCCL_INSPECTOR_EVENTS=deep hidden
verified NCCL_INSPECTOR_EVENTS=coll,collapi hidden
verified NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES=500000 hidden
# In the summary they are functions of their own: their times are those of calls, their numbers ours.
"$BUILD/nccl-inspector" summary --input_dir "$TMP/logs" --output_dir "$TMP/out.d" --no-plots --no-html \
  >"$TMP/summary" 2>&1 || true
grep -q 'AllReduce (api)' "$TMP/summary" && grep -q 'AllGather (api)' "$TMP/summary" ||
  { fail "summary mixes calls with kernels"; cat "$TMP/summary"; }
verified hidden --set allgatherv=0
verified ce
# A communicator that launches after its group's stop, the first time much later: one record each.
printf '%s\n' 'set ranks=1' 'comm w size=4' 'coll w bytes=1m nonblocking=2500' \
  'coll w bytes=1m nonblocking=1' >"$TMP/late.scn"
verified "$TMP/late.scn" --nccl 2.30
# Where launches were seen to come inside their group, a call is given a second. One whose kernel comes after
# it is recorded by itself; the kernel's record comes after, and the log says that one of them was premature.
printf '%s\n' 'set ranks=1' 'comm w size=4' 'coll w bytes=1m' 'coll w bytes=1m nonblocking=2500' \
  'coll w bytes=1m' >"$TMP/late.scn"
NCCL_INSPECTOR_DUMP_FORMAT=jsonl run_logged NCCL_INSPECTOR_DUMP_FORMAT=jsonl "$TMP/late.scn" >"$TMP/out" \
  2>&1 || { cat "$TMP/out"; exit 1; }
grep -q '"call_sn":1,"coll_src":"api"' "$TMP"/logs/*.jsonl && grep -q '"late_call":1' "$TMP"/logs/*.jsonl ||
  { fail "a premature record must be told"; }
finish
