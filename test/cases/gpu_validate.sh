#!/usr/bin/env bash
# scripts/gpu_validate.sh: on the fake NCCL it runs to its table and verdict; a fault in NCCL's events gives a FAIL; without a
# GPU it says so and exits 77.
set -euo pipefail
cd "$(dirname "$0")/../.."
BUILD=$(realpath -m "${BUILD:-build}")
[ -e "$BUILD/test/gpu/fake/libnccl.so.2" ] && [ -x "$BUILD/test/gpu/gpu_check" ] || { echo "$BUILD/test/gpu is not built"; exit 77; }
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0:verify_asan_link_order=0}
for v in $(env | sed -n 's/^\(NCCL_[A-Z0-9_]*\)=.*/\1/p'); do unset "$v"; done
validate() { timeout 250 scripts/gpu_validate.sh --build "$BUILD" --out "$TMP/out" "$@" >"$TMP/log" 2>&1; }
bad() { echo "FAIL: $*"; tail -n 40 "$TMP/log"; exit 1; }

validate --fake --stages shapes,ends,versions,record,cost,torch || bad "the fake run ended with $?"
grep -q '^VERDICT: PASSED' "$TMP/out/table.txt" || bad "no verdict"
for stage in shapes ends versions record; do grep -q "^ok	$stage" "$TMP/out/table.tsv" || bad "no row of $stage"; done
grep -q '^info	cost	default, 8 B	enqueue' "$TMP/out/table.tsv" || bad "no costs"
grep -q 'fake NCCL' "$TMP/out/machine.txt" || bad "a fake run must say so"
tar -tzf "$TMP/out/recordings.tar.gz" | grep -q -- '-nccl2.30.7-.*-rank1.rec.gz' || bad "no recordings"
[ "$(ls "$TMP/out" | wc -l)" -le 8 ] || bad "too many files"

# What was recorded is what the replay test takes.
mkdir "$TMP/real"
tar -C "$TMP/real" --strip-components=1 -xzf "$TMP/out/recordings.tar.gz"
NI_REAL_DATA=$TMP/real BUILD=$BUILD test/cases/sim_replay_real.sh >"$TMP/log" 2>&1 || bad "the replay test does not take its recordings"

rc=0
FAKE_NCCL_FAULT=lose:3 validate --fake --stages ends || rc=$?
[ $rc = 1 ] && grep -q '^VERDICT: FAILED' "$TMP/out/table.txt" || bad "a lost operation: exit $rc, 1 expected"
rc=0
FAKE_CUDA_DEVICES=0 validate --fake || rc=$?
[ $rc = 77 ] && grep -q 'finds no GPU' "$TMP/log" || bad "no device: exit $rc, 77 expected"
if ! ls /dev/nvidia[0-9]* >/dev/null 2>&1 && ! command -v nvidia-smi >/dev/null; then
  rc=0
  validate || rc=$?
  [ $rc = 77 ] && grep -q 'no NVIDIA GPU found' "$TMP/log" || bad "no GPU: exit $rc, 77 expected"
fi
rc=0
validate --stages nonsense || rc=$?
[ $rc = 64 ] || bad "a wrong stage: exit $rc, 64 expected"
echo "passed"
