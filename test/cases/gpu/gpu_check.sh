#!/usr/bin/env bash
# gpu_drive on a fake NCCL: the plugin's log agrees with its truth at every end, for every release and
# interface; and gpu_check notices each way in which a log can be wrong. What is proven here are the tools of
# scripts/gpu_validate.sh.
. "$(dirname "$0")/../../lib/sim.sh"
GPU=$BUILD/test/gpu
need "$GPU/gpu_check" "$GPU/fake/libnccl.so.2"
PLUGIN=$(realpath "$PLUGIN") HERE=$(realpath "$BUILD")
all=sweep,dtypes,p2p,alltoall,groups,graph,split,nonblocking,comms,mix

drive() { # [NAME=value ...] [options of gpu_drive]
  local -a vars=()
  while [[ ${1:-} == *=* ]]; do vars+=("$1"); shift; done
  rm -rf "$TMP/truth" "$TMP/logs"
  env NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR="$TMP/logs" NCCL_PROFILER_PLUGIN="$PLUGIN" \
    "${vars[@]}" \
    timeout 60 "$GPU/gpu_drive" --out "$TMP/truth" --nccl "$GPU/fake/libnccl.so.2" --cuda \
    "$GPU/fake/libcuda.so.1" \
    --iterations 3 --max-bytes 33554432 "$@" >"$TMP/out" 2>&1
}

# agree NAME [NAME=value ...] [options]: everything is in the log, and times agree with the events. A busy
# machine may keep the proxy thread from its processor, so figures that time decides are looked at by hand in
# gpu_validate.sh only.
agree() {
  local name=$1; shift
  if ! drive "$@"; then
    fail "$name: gpu_drive"; tail -n 5 "$TMP/out"; return
  fi
  "$GPU/gpu_check" --any-timing "$TMP/truth" "$TMP/logs" >"$TMP/rows" 2>&1 || true
  if grep '^FAIL' "$TMP/rows" | grep -v 'execution time\|bus bandwidth'; then
    fail "$name"; cat "$TMP/rows"
  else
    echo "ok   $name: $(grep 'each operation once' "$TMP/rows" | cut -f3)"
  fi
}

# notice NAME ROW [NAME=value ...] [options]: that row must be a FAIL.
notice() {
  local name=$1 row=$2; shift 2
  drive "$@" || { fail "$name: gpu_drive"; tail -n 5 "$TMP/out"; return; }
  if "$GPU/gpu_check" "$TMP/truth" "$TMP/logs" >"$TMP/rows" 2>&1 || ! grep -q "^FAIL.$row" "$TMP/rows"; then
    fail "$name was not noticed"; cat "$TMP/rows"
  else
    echo "ok   $name is noticed"
  fi
}

for release in 2.27 2.28 2.30; do agree "NCCL $release" FAKE_NCCL_VERSION=$release --plans $all; done
agree "2.30 with Broadcast events" NCCL_ALLGATHERV_ENABLE=0 --plans sweep,dtypes
for v in 4 5 6; do
  agree "interface v$v forced" NI_FORCE_PLUGIN="$PLUGIN" NCCL_PROFILER_PLUGIN="$HERE/test/force_v$v.so" \
    --plans mix,graph
  grep -qa "\"interface\":\"v$v\"" <(zcat "$TMP"/logs/*.gz) || { fail "v$v was not used"; }
done
for end in destroy finalize exit quick_exit abort; do agree "end by $end" --plans mix --end $end; done
agree "4 ranks, algorithm forced" NCCL_ALGO=Tree --plans mix,p2p,groups --ranks 4

agree "the plugin unloaded between communicators" --plans comms

drive FAKE_NCCL_UNNAMED=1 --plans mix
"$GPU/gpu_check" --any-timing --unnamed "$TMP/truth" "$TMP/logs" >"$TMP/rows" 2>&1 &&
  grep -q '^ok.each operation once' "$TMP/rows" ||
  { fail "communicators without a name"; cat "$TMP/rows"; }

# From v5 on a collective whose events are lost is recorded from its call; v4 knows none.
notice "a lost operation" "each operation once" FAKE_NCCL_VERSION=2.27 FAKE_NCCL_FAULT=lose:5 --plans $all
notice "an operation shown by its call only" "size, datatype" FAKE_NCCL_FAULT=lose:1 --plans mix
notice "a lost P2P" "each operation once" FAKE_NCCL_FAULT=lose:500 --plans $all
notice "a record twice" "each operation once" FAKE_NCCL_FAULT=twice:7 --plans $all
notice "a wrong size" "size, datatype" FAKE_NCCL_FAULT=size:9 --plans $all
notice "a wrong datatype" "size, datatype" FAKE_NCCL_FAULT=dtype:3 --plans mix
notice "a wrong algorithm" "size, datatype" FAKE_NCCL_FAULT=algo:3 NCCL_ALGO=Ring --plans mix
notice "a wrong peer" "size, datatype" FAKE_NCCL_FAULT=peer:500 --plans $all
notice "an operation without its last channel" "each operation once" FAKE_NCCL_FAULT=channels:2 --plans mix
notice "kernels longer than their events" "execution time" FAKE_NCCL_FAULT=slow:1 --plans sweep
notice "another plugin" "each operation once" NCCL_PROFILER_PLUGIN="$HERE/test/noop.so" --plans mix

rc=0
drive FAKE_CUDA_DEVICES=0 --plans probe || rc=$?
[ $rc = 77 ] || { fail "gpu_drive without a GPU ended with $rc, 77 expected"; }

rc=0
drive FAKE_NCCL_FAULT=hang:3 --plans mix --stall 2 || rc=$?
[ $rc = 3 ] && grep -q 'nothing moved for 2 s' "$TMP/out" && grep -q 'rank 1 is at' "$TMP/out" &&
  grep -q 'gpu_drive(' "$TMP/out" ||
  { fail "a hang ended with $rc, 3 and the ranks' stacks expected"; cat "$TMP/out"; }

# Recordings of such a run keep the contract, and so does what was recorded on real GPUs.
drive NI_RECORDER_FILE="$TMP/%p.rec" NCCL_PROFILER_PLUGIN="$HERE/test/recorder.so" --plans mix,groups
"$GPU/gpu_contract" "$TMP"/*.rec >"$TMP/rows" ||
  { fail "the fake NCCL breaks the contract"; cat "$TMP/rows"; }
for fault in channels:2 stamp:2; do
  rm -f "$TMP"/*.rec
  drive FAKE_NCCL_FAULT=$fault NI_RECORDER_FILE="$TMP/%p.rec" NCCL_PROFILER_PLUGIN="$HERE/test/recorder.so" \
    --plans mix
  ! "$GPU/gpu_contract" "$TMP"/*.rec >"$TMP/rows" ||
    { fail "gpu_contract does not notice $fault"; cat "$TMP/rows"; }
done
real=${NI_TEST_DATA:-../shared/data}/real-callbacks/h100x4-allreduce-v5.jsonl
if [ -e "$real" ]; then
  "$GPU/gpu_contract" "$real" >"$TMP/rows" || { fail "$real"; cat "$TMP/rows"; }
fi
finish
