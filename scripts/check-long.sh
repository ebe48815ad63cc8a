#!/usr/bin/env bash
# The long forms, for hours: everything of check.sh, all tests on the plain build, the threaded tests again
# and again, ten minutes of each fuzzer, and test/long/*.sh (volumes, foreign readers, soak). Ends with "N
# passed, N failed".
#   scripts/check-long.sh [LOOPS=50] [FUZZ_SECONDS=600]   as environment or arguments NAME=value
set -u
cd "$(dirname "$0")/.." || exit 2
for a in "$@"; do
  case $a in
    LOOPS=* | FUZZ_SECONDS=*) export "${a?}" ;;
    *) echo "usage: $0 [LOOPS=50] [FUZZ_SECONDS=600]" >&2; exit 64 ;;
  esac
done
loops=${LOOPS:-50} fuzz_seconds=${FUZZ_SECONDS:-600}
export NI_TEST_DATA=${NI_TEST_DATA:-../shared/data}
scripts/install-deps.sh long
passed=0 failed=0 skipped=0

run() { # title command...
  local title=$1 rc=0 started=$SECONDS
  shift
  printf '\n== %s\n' "$title"
  "$@" || rc=$?
  case $rc in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) ;;
    *) failed=$((failed + 1)); echo "FAIL: $title (exit $rc)" ;;
  esac
  echo "$title: $((SECONDS - started)) s"
}

run "check" env NI_MUTATION_SHARE=1 SANITIZER_SHARE= scripts/check.sh
run "all tests on the plain build" make -s -j"$(nproc)" check
run "what check.sh leaves to the plain build, under the address sanitizer" make -s check-asan ASAN_MEANING=
run "all unit tests under gcc's address sanitizer" make -s check-gcc GCC_WHOLE=1 GCC_ONLY='^test_'
run "lint" scripts/lint.sh
for variant in build build-asan build-tsan; do
  name=${variant#build}
  for pattern in sim life fault load core pool; do
    run "$pattern, $loops times, ${name:-plain}" env BUILD=$variant NI_VARIANT="${name#-}" bash -c \
      'for i in $(seq "$1"); do test/runner.sh "$2" >"$BUILD/loop.log" 2>&1 || { cat "$BUILD/loop.log"; exit 1; }; done' loop "$loops" $pattern
  done
done
run "fuzzers, $fuzz_seconds s each" test/fuzz/run.sh "$fuzz_seconds"
for t in test/long/*.sh; do
  [ -x "$t" ] && run "$(basename "$t" .sh)" env BUILD=build "$t"
done
printf '\n%d passed, %d failed, %d skipped\n' $passed $failed $skipped
[ $failed = 0 ]
