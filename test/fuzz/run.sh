#!/usr/bin/env bash
# Builds and runs every fuzzer (test/fuzz/fuzz_*.c) under AddressSanitizer and UndefinedBehaviorSanitizer.
#   test/fuzz/run.sh [seconds for each] [name...]
#   FUZZ_BUILD=build-asan   links them with the objects of `make asan`, which know edges but no comparisons:
#                           for scripts/check.sh. The default, build-fuzz, is a build of their own with all
#                           that libFuzzer can use.
# Starts from test/fuzz/corpus/NAME and NAME.tar.gz (what long runs found, `-set_cover_merge=1`); what it adds
# goes to BUILD/corpus/NAME, and findings to BUILD/findings (BUILD: build-fuzz): run the fuzzer with such a
# file as argument to see it again. NAME.dict is used when there is one.
set -u
cd "$(dirname "$0")/../.." || exit 2
seconds=${1:-10}
shift || true
BUILD=${FUZZ_BUILD:-build-fuzz}
CC=${FUZZ_CC:-clang} CXX=${FUZZ_CXX:-clang++}

mkdir -p "$BUILD"
NI_FUZZ_DIR=$(mktemp -d /dev/shm/ni-fuzz.XXXXXX 2>/dev/null || mktemp -d)
export NI_FUZZ_DIR
trap 'rm -rf "$NI_FUZZ_DIR"' EXIT
printf 'int LLVMFuzzerTestOneInput(const char *d, long n);\nint LLVMFuzzerTestOneInput(const char *d, long n) { (void)d; (void)n; return 0; }\n' >"$BUILD/probe.c"
if ! "$CC" -fsanitize=fuzzer,address "$BUILD/probe.c" -o "$BUILD/probe" >/dev/null 2>&1; then
  echo "skip  $CC cannot build fuzzers (apt-get install clang libclang-rt-dev)"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi
names=() targets=()
for src in test/fuzz/fuzz_*.c; do
  name=$(basename "$src" .c)
  name=${name#fuzz_}
  if [ $# -gt 0 ]; then case " $* " in *" $name "*) ;; *) continue ;; esac; fi
  # Libraries that not everybody has.
  case $name in serve) needs='#include <microhttpd.h>' ;; rpc) \
    needs=$'#include <nghttp2/nghttp2.h>\n#include <gnutls/gnutls.h>' ;; nsys) \
    needs='#include <sqlite3.h>' ;; *) needs= ;; esac
  echo "$needs" | "$CC" -fsyntax-only -x c - 2>/dev/null || continue
  names+=("$name") targets+=("$BUILD/fuzz/$name")
done
san="-fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
build() {
  if [ "$BUILD" = build-asan ]; then make -s -j"$(nproc)" asan-fuzzers
  else make -s -j"$(nproc)" BUILD="$BUILD" CC="$CC" CXX="$CXX" SAN="$san" \
    OPT="-O1 -g1" REPORT_DIR=build/report "${targets[@]}"; fi
}
if ! build >"$BUILD/make.log" 2>&1; then
  echo "FAIL  build"
  tail -n 30 "$BUILD/make.log"
  echo "0 passed, 1 failed"
  exit 1
fi

one() { # name
  local name=$1 corpus found rc=0 args
  # a fuzzer may go to a folder of its own
  corpus=$(realpath -m "$BUILD/corpus") found=$(realpath -m "$BUILD/findings")
  local seeds=test/fuzz/corpus/$name
  mkdir -p "$corpus/$name" "$found"
  args="-max_total_time=$seconds -timeout=5 -rss_limit_mb=1024 -malloc_limit_mb=512 -max_len=4096 -print_final_stats=1 -artifact_prefix=$found/$name-"
  [ -e "test/fuzz/$name.dict" ] && args="$args -dict=test/fuzz/$name.dict"
  if [ -e "$seeds.tar.gz" ]; then
    tar -xzf "$seeds.tar.gz" -C "$corpus/$name" || { echo "FAIL  $name: $seeds.tar.gz"; return; }
  fi
  [ -d "$seeds" ] || seeds=
  # First what earlier runs found, all of it, however long that takes on a busy machine.
  # shellcheck disable=SC2086
  { "$BUILD/fuzz/$name" ${args/-max_total_time=$seconds/-runs=0} "$corpus/$name" $seeds &&
    "$BUILD/fuzz/$name" $args "$corpus/$name" $seeds; } >"$BUILD/fuzz/$name.log" 2>&1 || rc=$?
  if [ $rc != 0 ]; then
    echo "FAIL  $name (exit $rc)"
    grep -v '^#' "$BUILD/fuzz/$name.log" | tail -n 50
    return
  fi
  echo "ok    $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$BUILD/fuzz/$name.log" | tail -n 1) inputs in $seconds s," \
    "$(grep -o 'cov: [0-9]*' "$BUILD/fuzz/$name.log" | tail -n 1 | sed 's/cov: //') edges"
}

# Two at a time, where there are two cores: each is one process that computes all the time.
lanes=$(($(nproc) > 1 ? 2 : 1))
rm -f "$BUILD"/fuzz/*.said
for name in "${names[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge $lanes ]; do wait -n; done
  { one "$name" >"$BUILD/fuzz/$name.part" 2>&1; mv "$BUILD/fuzz/$name.part" "$BUILD/fuzz/$name.said"; cat "$BUILD/fuzz/$name.said"; } &
done
wait
passed=$(cat "$BUILD"/fuzz/*.said | grep -c '^ok ')
echo "$passed passed, $((${#names[@]} - passed)) failed"
[ "$passed" = ${#names[@]} ]
