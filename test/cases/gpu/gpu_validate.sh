#!/usr/bin/env bash
# scripts/gpu_validate.sh: on the fake NCCL it runs to its table and verdict; a fault in NCCL's events gives a
# FAIL; without a GPU it says so and exits 77.
. "$(dirname "$0")/../../lib/case.sh"
need "$BUILD/test/gpu/fake/libnccl.so.2" "$BUILD/test/gpu/gpu_check"
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0:verify_asan_link_order=0}
unset "${!NCCL_@}"
validate() { timeout 250 scripts/gpu_validate.sh --build "$BUILD" --out "$TMP/out" "$@" >"$TMP/log" 2>&1; }
bad() { tail -n 40 "$TMP/log"; fatal "$@"; }

validate --fake --stages shapes,ends,versions,record,cost,torch,many || bad "the fake run ended with $?"
grep -q '^VERDICT: PASSED' "$TMP/out/table.txt" || bad "no verdict"
for stage in shapes ends versions record many; do
  grep -q "^ok	$stage" "$TMP/out/table.tsv" || bad "no row of $stage"
done
grep -q '^info	cost	default, 8 B	enqueue' "$TMP/out/table.tsv" || bad "no costs"
grep -q 'fake NCCL' "$TMP/out/machine.txt" || bad "a fake run must say so"
tar -tzf "$TMP/out/recordings.tar.gz" | grep -- '-nccl2.30.7-.*-rank1.rec.gz' >/dev/null ||
  bad "no recordings"
[ "$(ls "$TMP/out" | wc -l)" -le 8 ] || bad "too many files"

# What was recorded is what the replay test takes.
mkdir "$TMP/real"
tar -C "$TMP/real" --strip-components=1 -xzf "$TMP/out/recordings.tar.gz"
NI_REAL_DATA=$TMP/real BUILD=$BUILD test/cases/sim/sim_replay_real.sh >"$TMP/log" 2>&1 ||
  bad "the replay test does not take its recordings"

# The way of a real machine: two GPUs, MPS and nccl-tests, each a stand-in on the PATH.
mkdir "$TMP/bin"
cat >"$TMP/bin/nvidia-smi" <<'EOS'
#!/bin/sh
case "$*" in -L) echo "GPU 0: stand-in"; echo "GPU 1: stand-in" ;; *) echo "stand-in, 0, 0, Default" ;; esac
EOS
cat >"$TMP/bin/nvidia-cuda-mps-control" <<EOS
#!/bin/sh
[ "\$1" = -d ] && echo start >>"$TMP/mps" || cat >>"$TMP/mps"
EOS
cat >"$TMP/bin/all_reduce_perf" <<EOS
#!/bin/sh
"$BUILD/test/gpu/gpu_drive" --out "$TMP/t" --nccl "$BUILD/test/gpu/fake/libnccl.so.2" --cuda "$BUILD/test/gpu/fake/libcuda.so.1" --plans sweep \
  --max-bytes 67108864 >/dev/null 2>&1
echo "    33554432       8388608     float     sum      -1   1680.0   19.97   19.97      0   1680.0   19.97   19.97      0"
echo "    67108864      16777216     float     sum      -1   3360.0   10.00   10.00      0   3360.0   10.00   10.00      0"
EOS
chmod +x "$TMP"/bin/*
rc=0
PATH=$TMP/bin:$PATH LD_LIBRARY_PATH=$BUILD/test/gpu/fake FAKE_CUDA_DEVICES=2 FAKE_NCCL_VERSION=2.28.9 \
  validate --nccl "$BUILD/test/gpu/fake/libnccl.so.2" --stages ends,nccltests || rc=$?
[ $rc = 1 ] && grep -q '^ok	nccltests	AllReduce of 33554432' "$TMP/out/table.tsv" &&
  grep -q '^FAIL	nccltests	AllReduce of 67108864' "$TMP/out/table.tsv" ||
  bad "nccl-tests: the first size agrees, the second does not; exit $rc"
grep -q '^info	probe	used below	layout gpus, 2 ranks' "$TMP/out/table.tsv" || bad "two GPUs were not used"
[ "$(tr '\n' ' ' <"$TMP/mps")" = "start quit " ] ||
  bad "MPS was not started and ended once: $(cat "$TMP/mps")"

# A hang in one run: its plans are made one by one, the rest goes on, and the ranks' stacks come back.
rc=0
NI_STALL=2 FAKE_NCCL_FAULT=hang:320 validate --fake --part 2 --stages shapes,ends || rc=$?
[ $rc = 1 ] &&
  grep -q '^FAIL	shapes	shapes-hostid: the run itself	gpu_drive ended with 3: .*nothing moved for 2 s' \
  "$TMP/out/table.tsv" &&
  grep -q '^ok	shapes	comms-hostid' "$TMP/out/table.tsv" && grep -q '^ok	ends	abort' "$TMP/out/table.tsv" ||
  bad "a hang took the rest with it"
tar -xzOf "$TMP/out/details.tar.gz" ./shapes-hostid/out | grep 'rank 1 is at' >/dev/null ||
  bad "no stacks of a hang in details.tar.gz"

# No time left: said, with the way to make up for it.
rc=0
validate --fake --part 3 --seconds 1 || rc=$?
[ $rc = 0 ] && grep -q '^info	cost	not run	.*--stages cost' "$TMP/out/table.tsv" ||
  bad "no row for a stage without time"

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
  [ ! -e "$TMP/out/table.txt" ] || bad "an earlier run's table is still there"
fi
rc=0
validate --stages nonsense || rc=$?
[ $rc = 64 ] || bad "a wrong stage: exit $rc, 64 expected"
echo "passed"
