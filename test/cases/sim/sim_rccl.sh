#!/usr/bin/env bash
# RCCL (docs/rccl.md): the same plugin, told apart by the file that the activation mask lies in. Every
# operation is in the logs once, with its channels and with nanoseconds made of RCCL's ticks; what RCCL has at
# bit 15 and state 31 is left alone.
. "$(dirname "$0")/../../lib/sim.sh"
MASKS=$BUILD/test/rccl
need "$MASKS/librccl.so.1" "$MASKS/libframework.so" "$MASKS/libhidden.so"

# 256 channels come as 0, so they are counted until none comes any more; under a sanitizer some come after
# that.
most=()
[ -z "$VARIANT" ] || most=(--set most=254)

sources() {
  zcat -f "$TMP"/logs/* | grep -o '"coll_timing_source":"[a-z_]*"' | sort | uniq -c | awk '{print $2, $1}' |
    sed 's/.*:"//; s/"//' | tr '\n' ' '
}
is_said() { # what, pattern
  if zgrep -hE "$2" "$TMP"/logs/* >/dev/null; then echo "ok   $1"; else fail "$1: no $2"; fi
}
is_not_said() {
  if zgrep -hoE "$2" "$TMP"/logs/* >"$TMP/found"; then \
    fail "$1: $(head -n 1 "$TMP/found")"; else echo "ok   $1"; fi
}

for release in rccl-2.28 rccl-2.31; do
  verified NCCL_INSPECTOR_EVENTS=deep rccl --nccl $release "${most[@]}"
  is_said "$release: the log says which library it is" \
    '"library":"rccl","gpu_clock_khz":100000,"interface":"v[67]"'
  is_not_said "$release: a communicator without a name has none" '"unknown"'
  is_said "$release: one with a name has it" '"name":"tp"'
  [ "$(sources)" = "kernel_gpu 78 " ] && echo "ok   all by the GPU's clock" ||
    fail "$release: sources of times: $(sources)"
done
# Every kind of event, so every bit that the plugin knows: the simulator ends when it finds one of RCCL's own
# among them.
verified NCCL_INSPECTOR_EVENTS=all matrix --nccl rccl-2.28
verified NCCL_INSPECTOR_EVENTS=all matrix --nccl rccl-2.31 --set allgatherv=0
verified NCCL_INSPECTOR_EVENTS=all matrix --nccl rccl-2.31 --set allgatherv=0 --interface v6
verified NCCL_INSPECTOR_EVENTS=trace matrix --nccl rccl-2.28 --interface v5
verified NCCL_INSPECTOR_EVENTS=trace matrix --nccl rccl-2.28 --interface v4
verified p2p --nccl rccl-2.28
verified nodes --nccl rccl-2.28
verified collnet --nccl rccl-2.28

# Somebody else asks for ProxyDiag: what lies behind the known descriptor is not there in the simulator, and
# the updates are nobody's.
verified NCCL_INSPECTOR_EVENTS=trace rccl_diag --nccl rccl-2.28
is_not_said "ProxyDiag's updates are no strays" '"strays":\{"[a-z_]*":[1-9]'

# The library by its symbols, where it is linked into another file.
NI_SIM_MASK_IN=$MASKS/libframework.so verified rccl --nccl rccl-2.28 "${most[@]}"
is_said "RCCL inside another library" '"library":"rccl","gpu_clock_khz":100000'
# By nothing: ticks are not believed to be nanoseconds, neither at once nor ever.
NI_SIM_MASK_IN=$MASKS/libhidden.so run_logged paced --nccl rccl-2.28 --set ops=150 --set rate=100 \
  >"$TMP/out" 2>&1 || { fail "a hidden library"; cat "$TMP/out"; }
is_said "a library that nobody knows" '"library":"unknown","interface"'
is_said "its times are not believed" '"clock_rate":[1-9]'
is_not_said "and ticks are never taken for nanoseconds" kernel_gpu
# Nanoseconds of such a one are, once the host's clock has agreed.
NI_SIM_MASK_IN=$MASKS/libhidden.so run_logged paced --nccl 2.28 --set ops=150 --set rate=100 >"$TMP/out" \
  2>&1 || { fail "a hidden NCCL"; cat "$TMP/out"; }
is_said "nanoseconds of a library that nobody knows: not at first" '"coll_sn":0,.*kernel_cpu'
is_said "but later" kernel_gpu
# The rate is a setting; one that is wrong for RCCL shows where it is not the setting that says it.
NI_SIM_MASK_IN=$MASKS/libhidden.so verified NCCL_INSPECTOR_GPU_CLOCK_KHZ=100000 allreduce --nccl rccl-2.28
is_said "the rate of the setting" '"library":"unknown","gpu_clock_khz":100000'

# A hang on channels beyond 64 is told with their number, and what was killed has its times in nanoseconds,
# too.
cat >"$TMP/wide.scn" <<'END'
# the last of three never ends
set ranks=2
comm world label=-
coll world func=AllReduce bytes=64m channels=100 repeat=2
sync world
coll world func=AllReduce bytes=64m channels=100 hang=all
sleep ms=2500
exit how=sigkill
END
run_logged NCCL_INSPECTOR_STUCK_SECONDS=1 "$TMP/wide.scn" --nccl rccl-2.28 >"$TMP/out" 2>&1 || true # killed
is_said "channels in the kernel: 64 bits, and how many above" \
  '"stuck":.*"channels_open":"0xffffffffffffffff","channels_open_above":36'
"$BUILD/nccl-inspector" hang "$TMP/logs" >"$TMP/hang" 2>&1 || true # it hangs
grep -q 'on channels 0-63 and 36 from 64 on' "$TMP/hang" && echo "ok   hang says it" ||
  { fail "hang"; cat "$TMP/hang"; }
if [ "$BOXES" != 0 ]; then
  rm -f "$BOXES"/*
  cat >"$TMP/killed.scn" <<'END'
# killed before anything was written
set ranks=2
comm world label=-
coll world func=AllReduce bytes=64m channels=100 repeat=20
sync world
exit how=sigkill
END
  verified_recovered() {
    run_logged NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=200000 "$@" >"$TMP/out" 2>&1 || true # killed
    "$BUILD/nccl-inspector" recover --box-dir "$BOXES" --output "$TMP/logs" >"$TMP/recover" 2>&1 ||
      cat "$TMP/recover"
    "$SIM" --verify "$TMP/truth" "$TMP/logs" >"$TMP/verify" 2>&1 &&
      echo "ok   $* recovered: $(tail -n 1 "$TMP/verify")" ||
      { fail "$* recovered"; cat "$TMP/recover" "$TMP/verify"; }
  }
  verified_recovered "$TMP/killed.scn" --nccl rccl-2.28
  is_said "what recover wrote says the library" '"library":"rccl","gpu_clock_khz":100000.*"recovered_ns"'
fi

# Names of files, and what is refused.
mkdir "$TMP/short"
ln -s "$(realpath "$PLUGIN")" "$TMP/short/librccl-profiler-inspector.so"
env NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_BLACKBOX=0 NCCL_INSPECTOR_DUMP_DIR="$TMP/named" \
  LD_LIBRARY_PATH="$TMP/short" \
  NCCL_PROFILER_PLUGIN=inspector "$SIM" --quiet --scenario allreduce --nccl rccl-2.28 >"$TMP/out" 2>&1
[ -n "$(ls "$TMP/named" 2>/dev/null)" ] && echo "ok   librccl-profiler-inspector.so by its short name" ||
  { fail "short name"; cat "$TMP/out"; }
"$SIM" --plugin "$PLUGIN" --scenario rccl --nccl 2.28 >"$TMP/out" 2>&1 && fail "256 channels of NCCL"
grep -q 'NCCL has 64 at most' "$TMP/out" || { fail "256 channels of NCCL"; cat "$TMP/out"; }
finish
