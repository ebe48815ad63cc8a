#!/usr/bin/env bash
# Real NCCL, release by release, without a GPU (test/gpu/no_device/no_device.h): gpu_drive's declarations are
# those of its header, doctor names release and interface rightly, NCCL loads the plugin with that interface,
# and all that it raises for the plans of gpu_drive is in the log, ranks meeting in shared memory and through
# the network; from 2.31 on with symmetric kernels and tags, and what was read of those releases
# (test/gpu/inferences.py).
# The libraries are fetched once and kept (test/gpu/fetch_nccl.py); skipped only where no registry answers.
#   NI_NCCL_RELEASES   default the newest, or with each other commit one before 2.31; test/long/nccl_wheels.sh
#                      runs more of them
#   NI_NCCL_LONG=1     all ends and all older interfaces, too
. "$(dirname "$0")/../../lib/sim.sh"
turns=(2.32.3 2.28.9)
releases=${NI_NCCL_RELEASES:-${turns[$(git rev-list --count HEAD 2>/dev/null || echo 0) % 2]}}
long=${NI_NCCL_LONG:-0}
GPU=$(realpath -m "$BUILD/test/gpu")
PLUGIN=$(realpath "$PLUGIN") BUILD=$(realpath "$BUILD")
BIN=$BUILD/nccl-inspector
need "$GPU/fake/no_device.so" "$GPU/gpu_check"
rc=0
# shellcheck disable=SC2086
test/gpu/fetch_nccl.py $releases >"$TMP/libraries" 2>"$TMP/fetch" || rc=$?
cat "$TMP/fetch"
mapfile -t libs <"$TMP/libraries"
[ $rc = 0 ] || [ $rc = 77 ] || fail "the releases $releases could not be fetched"
[ ${#libs[@]} -gt 0 ] || skip "$(tail -n 1 "$TMP/fetch")"
mkdir "$TMP/lib" "$TMP/include"
ln -s "$GPU/fake/no_device.so" "$TMP/lib/libnvidia-ml.so.1"
printf '#include <stddef.h>\ntypedef struct CUstream_st *cudaStream_t;\ntypedef struct CUevent_st *cudaEvent_t;\n' >"$TMP/include/cuda_runtime.h"
: >"$TMP/include/cuda_fp16.h"
bad() { fail "$release ${what:-}: $*"; }

# What lets NCCL take symmetric kernels: two GPUs with NVLink, and memory by handles.
nvlink=(NCCL_P2P_DISABLE=0 NCCL_CUMEM_ENABLE=1 NCCL_TOPO_FILE="$PWD/test/gpu/no_device/nvlink.xml")
layout=gpus
# run NAME [NAME=value ...] [options of gpu_drive]
run() {
  local -a vars=()
  what=$1
  shift
  while [[ ${1:-} == *=* ]]; do vars+=("$1"); shift; done
  rm -rf "$TMP/truth" "$TMP/logs"
  env LD_LIBRARY_PATH="$TMP/lib" NI_NO_DEVICE_NCCL="$so" NCCL_P2P_DISABLE=1 NCCL_CUMEM_ENABLE=0 \
    NCCL_CUMEM_HOST_ENABLE=0 NCCL_SOCKET_IFNAME=lo \
    NCCL_DEBUG=INFO NCCL_PROFILER_PLUGIN="$PLUGIN" NCCL_INSPECTOR_ENABLE=1 \
    NCCL_INSPECTOR_DUMP_DIR="$TMP/logs" "${vars[@]}" timeout -k 5 150 \
    "$GPU/gpu_drive" --out "$TMP/truth" --nccl "$so" --cuda "$GPU/fake/no_device.so" --layout $layout \
    --stall 90 --seconds 100 --iterations 2 \
    --max-bytes 1048576 "$@" >"$TMP/out" 2>&1 ||
    { bad "gpu_drive ended with $?"; grep -a 'gpu_drive:\|WARN' "$TMP/out" | tail -n 5; return 1; }
}
agree() { # [partial] [options of gpu_check]; partial: what was aborted is rightly incomplete
  local partial=0
  [ "${1:-}" = partial ] && partial=1 && shift
  "$GPU/gpu_check" --any-timing "$@" "$TMP/truth" "$TMP/logs" >"$TMP/rows" 2>"$TMP/differences" || true
  # No device: on a busy machine the device's thread and the polling one come by when they can.
  if ! grep -q '^ok.*each operation once' "$TMP/rows" ||
    grep '^FAIL' "$TMP/rows" | grep -v 'execution time\|bus bandwidth'; then
    bad "gpu_check"
    cat "$TMP/differences"
  fi
  [ "$partial" = 1 ] || "$BIN" check -q "$TMP/logs" >"$TMP/check" 2>&1 || bad "$(tail -n 1 "$TMP/check")"
}

# The same as run, with the recorder instead of the plugin: $TMP/PID.rec.
recorded() {
  rm -f "$TMP"/*.rec
  run "$1" NCCL_PROFILER_PLUGIN="$BUILD/test/recorder.so" NI_RECORDER_FILE="$TMP/%p.rec" "${@:2}"
}
kept() {
  "$GPU/gpu_contract" "$TMP"/*.rec >"$TMP/rows" 2>&1 || { bad "contract"; grep '^FAIL' "$TMP/rows"; }
}
# inferred AT_LEAST [NAME]: so many statements are seen, and each that is holds; with NAME: that one.
inferred() {
  python3 test/gpu/inferences.py "$code" "$TMP"/*.rec >"$TMP/rows" 2>&1 || true
  if [ -n "${2:-}" ]; then
    grep -q "^PASS.$2" "$TMP/rows" || { bad "$2"; grep "$2\|Error" "$TMP/rows"; }
  elif [ "$(grep -c '^PASS' "$TMP/rows")" -lt "$1" ] || grep '^FAIL' "$TMP/rows"; then
    bad "inferences: $(grep -c '^PASS' "$TMP/rows") of $1"
  fi
}

# ras_agrees PORT
ras_agrees() {
  timeout 40 "$BIN" hang "$TMP/logs" --ras="127.0.0.1:$1" --ras-timeout 10 >"$TMP/ras" 2>&1 || true
  grep -q "^RAS and the plugin agree on what 2 ranks of 1 communicator launched" "$TMP/ras"
}

for so in "${libs[@]}"; do
  what='' symmetric=''
  code=$("$GPU/gpu_drive" --version-of "$so") || { release=$so; bad "does not load"; continue; }
  release=$((code / 10000)).$((code / 100 % 100)).$((code % 100))
  header=$(dirname "$so")/../include
  if [ -e "$header/nccl.h" ]; then
    "${CXX:-g++}" -std=c++17 -fsyntax-only -Wno-narrowing -I "$TMP/include" -I "$header" -I test/gpu test/gpu/header_facts.cc 2>"$TMP/facts" ||
      { bad "gpu_api.h differs from its nccl.h"; grep error "$TMP/facts" | head -n 5; }
  fi
  known=$(grep -aoh 'ncclProfiler_v[0-9]*' "$so" | sort -u | tr -dc '0-9\n' | tail -n 1) || true
  ours=$(for v in 1 2 3 4 5 6 7 8 9; do [ "$v" -le "${known:-0}" ] && grep -qa "ncclProfiler_v$v" "$PLUGIN" && echo $v; done | tail -n 1) || true
  NCCL_PROFILER_PLUGIN=$PLUGIN NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR="$TMP/d" "$BIN" doctor --nccl \
    "$so" >"$TMP/doctor" 2>&1 || true
  if [ "$code" -ge 22700 ]; then
    grep -q "is release $release; it will use the plugin's interface v$ours" "$TMP/doctor" ||
      { bad "doctor"; grep nccl "$TMP/doctor"; }
  else
    grep -q "is release $release: it tells no device times" "$TMP/doctor" ||
      { bad "doctor"; grep nccl "$TMP/doctor"; }
    echo "ok   NCCL $release: header, doctor; v$known is its newest interface"
    continue
  fi
  run "all plans" --plans dtypes,p2p,alltoall,groups,graph,split,nonblocking,comms || continue
  grep -qa "NCCL Inspector: .*interface v$ours, NCCL $release," "$TMP/out" || bad "NCCL did not take v$ours"
  agree
  all=$(grep 'each operation once' "$TMP/rows" | cut -f3)
  if [ "$code" -ge 22807 ]; then # its RAS counts as the plugin does, while it runs
    port=$((20000 + RANDOM % 10000))
    run "RAS" NCCL_RAS_ADDR=127.0.0.1:$port --plans sweep --iterations 12 &
    running=$!
    wait_for 60 ras_agrees $port || { bad "RAS"; tail -n 5 "$TMP/ras"; }
    wait $running || bad "the run beside RAS"
  fi
  layout=hostid # a host each: sockets, and all proxy events
  run "all plans, network" NCCL_INSPECTOR_EVENTS=trace \
    --plans dtypes,p2p,alltoall,groups,graph,split,nonblocking,comms && agree
  over_net=$(grep 'each operation once' "$TMP/rows" | cut -f3)
  run "end by abort" --plans mix,groups --end abort && agree partial
  layout=gpus
  if [ "$code" -ge 23100 ]; then
    run "symmetric kernels, tags" "${nvlink[@]}" --plans probe,symmetric,tags && agree
    symmetric="; symmetric $(grep 'each operation once' "$TMP/rows" | cut -f3)"
    recorded "symmetric kernels, tags, recording" "${nvlink[@]}" --plans probe,symmetric,tags && inferred 20
    recorded "KernelCh out of the mask for a while" NI_RECORDER_PAUSE=2,5 --plans mix && inferred "" 'shift:'
    recorded "the same, symmetric" "${nvlink[@]}" NI_RECORDER_PAUSE=4,9 --plans symmetric && inferred "" shift-symmetric:
  fi
  oldest=4
  if [ "$long" = 1 ]; then
    oldest=1
    # works of a batch are seen while they run
    run "long kernels" NI_NO_DEVICE_KERNEL_US=3000 --plans groups,p2p && agree
    for end in finalize exit quick_exit; do run "end by $end" --plans groups --end $end && agree; done
  fi
  for ((v = oldest; v < ours; v++)); do
    if [ $v -lt 4 ]; then # before v3 nothing calls back at a graph's replay, unless the network is used
      run "v$v" NI_FORCE_PLUGIN="$PLUGIN" NCCL_PROFILER_PLUGIN="$BUILD/test/force_v$v.so" --plans \
        "$([ $v = 3 ] && echo mix || echo groups)" && agree --unnamed
    else
      run "v$v" NI_FORCE_PLUGIN="$PLUGIN" NCCL_PROFILER_PLUGIN="$BUILD/test/force_v$v.so" \
        --plans mix,groups,p2p && agree
    fi
  done
  recorded "recording" --plans mix,groups,p2p,alltoall && kept
  layout=hostid
  recorded "recording, network" --plans mix,groups,p2p,alltoall && kept
  layout=gpus
  echo "ok   NCCL $release: header, doctor, v$ours and v$oldest to v$((ours - 1)); $all; by network $over_net$symmetric"
done
[ $rc = 0 ] || skip "$(tail -n 1 "$TMP/fetch"); run were: $(printf '%s ' "${libs[@]}")"
finish
