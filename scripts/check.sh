#!/usr/bin/env bash
# All tests, on a fresh Debian or Ubuntu: installs what is missing, builds, runs. Ends with "N passed, N failed".
# What takes longer is in scripts/check-long.sh.
#   NI_TEST_DATA=DIR   recorded data (default ../shared/data); tests that want it are skipped without it
#   scripts/check.sh fast      unit tests and cases on the plain build only
set -u
cd "$(dirname "$0")/.." || exit 1
scripts/install-deps.sh test
jobs=$(nproc)
export NI_TEST_DATA=${NI_TEST_DATA:-../shared/data}
total_passed=0 total_failed=0 total_skipped=0

# One stage: a build variant and the tests that run on it. Its counts are added up.
stage() { # title command...
  local title=$1 out rc counts
  shift
  printf '\n== %s\n' "$title"
  out=$(mktemp)
  "$@" 2>&1 | tee "$out"
  rc=${PIPESTATUS[0]}
  counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$out" | tail -n 1)
  rm -f "$out"
  if [ -n "$counts" ]; then
    read -r p _ f _ k _ <<<"${counts//,/ } 0"
    total_passed=$((total_passed + p)) total_failed=$((total_failed + f)) total_skipped=$((total_skipped + k))
  elif [ "$rc" = 0 ]; then
    total_passed=$((total_passed + 1))
  else
    total_failed=$((total_failed + 1))
    echo "FAIL: $title (exit $rc)"
  fi
}

stage "build and tests" make -s -j"$jobs" check
if [ "${1:-}" != fast ]; then
  stage "sanitizers: address and undefined" make -s -j"$jobs" check-asan
  stage "sanitizers: threads" make -s -j"$jobs" check-tsan
  stage "fuzzers, a few seconds each" make -s -j"$jobs" check-fuzz
  stage "mutations: a broken rule must fail the suite" make -s check-mutation
  stage "models of pool and list" make -s check-model
  stage "aarch64 under emulation" make -s -j"$jobs" check-aarch64
fi
printf '\n%d passed, %d failed, %d skipped\n' $total_passed $total_failed $total_skipped
[ $total_failed = 0 ]
