#!/usr/bin/env bash
# doctor: what NCCL makes of NCCL_PROFILER_PLUGIN, and whether it loads.
. "$(dirname "$0")/../../lib/doctor.sh"
doctor "all is well" 0
says ok plugin "loads (interfaces.*v4 v5 v6"
[ ! -e "$TMP/logs" ] || { fail "the trial left something behind"; find "$TMP/logs"; }

doctor "not set" 2 NCCL_PROFILER_PLUGIN=
says problem plugin "is not set"
grep -q "export NCCL_PROFILER_PLUGIN=$PLUGIN" "$TMP/out" || { fail "it does not say what to set"; }
doctor "no such file" 2 NCCL_PROFILER_PLUGIN=/nowhere/libnccl-profiler-inspector.so
says problem plugin "/nowhere/.* does not load"
doctor "none" 2 NCCL_PROFILER_PLUGIN=NONE
says problem plugin "switches profiling off"
doctor "a beginning of STATIC_PLUGIN" 2 NCCL_PROFILER_PLUGIN=static
says problem plugin "main program"
doctor "too long" 2 NCCL_PROFILER_PLUGIN="/$(printf 'x%.0s' {1..300})/p.so"
says problem plugin "cuts it at 254"
ln -s "$PLUGIN" "$TMP/libnccl-profiler-mine.so"
doctor "a short name" 0 NCCL_PROFILER_PLUGIN=mine LD_LIBRARY_PATH="$TMP"
says ok plugin "libnccl-profiler-mine.so loads"
# By name, as after an installation; then NVIDIA's, whose file has the same name, first in the loader's path.
mkdir "$TMP/ours" "$TMP/nvidia"
cp "$PLUGIN" "$TMP/ours/"
doctor "by name" 0 NCCL_PROFILER_PLUGIN=inspector LD_LIBRARY_PATH="$TMP/ours"
says ok plugin "$TMP/ours/libnccl-profiler-inspector.so loads"
says note plugin "not the one beside this program, $PLUGIN"
echo 'const char *const ncclProfiler_v5[] = {"Inspector"};' |
  ${CC:-gcc} -shared -fPIC -x c - -o "$TMP/nvidia/libnccl-profiler-inspector.so"
doctor "NVIDIA's comes first" 2 NCCL_PROFILER_PLUGIN=inspector LD_LIBRARY_PATH="$TMP/nvidia:$TMP/ours"
says problem plugin "$TMP/nvidia/libnccl-profiler-inspector.so is another profiler, NVIDIA's inspector (interfaces v5)"
grep -q -- "-> export NCCL_PROFILER_PLUGIN=$PLUGIN; or let its folder be the first" "$TMP/out" ||
  { fail "it does not say what to do"; }
doctor "ours first" 0 NCCL_PROFILER_PLUGIN=inspector LD_LIBRARY_PATH="$TMP/ours:$TMP/nvidia"
says ok plugin "$TMP/ours/libnccl-profiler-inspector.so loads"
cp "$PLUGIN" "$TMP/p.so"
(cd "$TMP" && doctor "a relative path" 0 NCCL_PROFILER_PLUGIN=./p.so && says warning plugin "working directory"; [ $failures = 0 ]) || failures=1
if [ -e "$BUILD/test/noop.so" ]; then
  doctor "another profiler" 2 NCCL_PROFILER_PLUGIN="$BUILD/test/noop.so"
  says problem plugin "is another profiler"
fi
doctor "no profiler" 2 NCCL_PROFILER_PLUGIN="libm.so.6"
says problem plugin "does not load\|is no profiler"
head -c 40000 "$PLUGIN" >"$TMP/cut.so"
doctor "half a file" 2 NCCL_PROFILER_PLUGIN="$TMP/cut.so"
says problem plugin "cut.so does not load"
echo 'just text' >"$TMP/text.so"
doctor "no library" 2 NCCL_PROFILER_PLUGIN="$TMP/text.so"
says problem plugin "text.so does not load"
finish
