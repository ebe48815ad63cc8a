#!/usr/bin/env bash
# A job beside a sampler of GPUs whose every NVML call takes 200 ms: the job's process loads no NVML and loses
# nothing, all of the sampler's threads have idle priority and a name. What the callbacks cost beside it is in
# make bench (BENCH=gpu).
. "$(dirname "$0")/../../lib/sim.sh"
SAMPLE=$BUILD/test/bench/sample_gpus
NVML=$BUILD/test/nvml
for f in "$SAMPLE" "$NVML/libnvidia-ml.so.1"; do
  [ -e "$f" ] || skip "$f is not built: make tools"
done
cp test/fake_nvml/healthy.txt "$TMP/nvml"
echo '* gpus 1' >>"$TMP/nvml"
export NI_FAKE_NVML=$TMP/nvml

LD_LIBRARY_PATH=$NVML "$SAMPLE" --seconds 600 --every 50 >"$TMP/sampled" 2>"$TMP/sampler.err" &
sampler=$!
samples() { [ -s "$TMP/sampled" ] && grep -q ni-xid /proc/$sampler/task/*/comm; }
wait_for 10 samples || fail "the sampler does not begin"
{ cat test/fake_nvml/healthy.txt; echo '* gpus 1'; echo '* delay 200'; } >"$TMP/nvml.new"
mv "$TMP/nvml.new" "$TMP/nvml"

# The job could have it: the library is on its path. The loader says which files it opens.
export LD_DEBUG=files LD_DEBUG_OUTPUT=$TMP/loader
LD_LIBRARY_PATH=$NVML verified 1x2
unset LD_DEBUG LD_DEBUG_OUTPUT
cat "$TMP"/loader.* >"$TMP/opened" || fail "the loader said nothing"
grep -q 'libnccl-profiler-inspector\|nccl-sim' "$TMP/opened" || fail "the loader named no file of the job"
if grep -q nvidia-ml "$TMP/opened"; then
  fail "the job loaded NVML: $(grep nvidia-ml "$TMP/opened" | head -n 1)"
fi

threads=0
for t in /proc/$sampler/task/*; do
  # The 41st field is the scheduling policy, 5 of them SCHED_IDLE; the name before it may hold blanks.
  policy=$(sed 's/.*) //' "$t/stat" | cut -d' ' -f39)
  [ "$policy" = 5 ] || fail "thread $(cat "$t/comm") has scheduling policy $policy"
  threads=$((threads + 1))
done
[ $threads = 2 ] || fail "the sampler has $threads threads: $(cat /proc/$sampler/task/*/comm)"
grep -q '^ni-xid$' /proc/$sampler/task/*/comm || fail "no thread is called ni-xid"
kill $sampler
wait $sampler || true
[ ! -s "$TMP/sampler.err" ] || fail "the sampler said: $(cat "$TMP/sampler.err")"
finish
