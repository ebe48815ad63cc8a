#!/usr/bin/env bash
# The tests, on a fresh Debian or Ubuntu: installs what is missing, builds, runs. Ends with the stages' times and "N passed, N failed".
# What takes longer is in scripts/check-long.sh, also the tests that run only under sanitizers here on the plain build.
#   NI_TEST_DATA=DIR   recorded data (default ../shared/data); tests that want it are skipped without it
#   scripts/check.sh fast      lint, unit tests and cases on the plain build only
set -u
cd "$(dirname "$0")/.." || exit 1
scripts/install-deps.sh test
jobs=$(nproc)
export NI_TEST_DATA=${NI_TEST_DATA:-../shared/data}
total_passed=0 total_failed=0 total_skipped=0 total_again=0
table=

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# cpu: the seconds of all processes that have ended under this one. (In a subshell `times` would begin anew.)
count_cpu() {
  times >"$scratch/times"
  cpu=$(awk -F '[ms ]' 'NR == 2 {print int(60 * $1 + $2 + 60 * $4 + $5)}' "$scratch/times")
}

# One stage: a build variant and the tests that run on it. Its counts are added up.
stage() { # title command...
  local title=$1 out=$scratch/out rc counts p=0 f=0 k=0 again=() cpu seconds=$SECONDS before
  shift
  printf '\n== %s\n' "$title"
  count_cpu
  before=$cpu
  "$@" 2>&1 | tee "$out"
  rc=${PIPESTATUS[0]}
  counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$out" | tail -n 1)
  read -ra again <<<"$(sed -n 's/^[0-9]* second tries: //p' "$out" | tail -n 1)"
  if [ -n "$counts" ]; then
    read -r p _ f _ k _ <<<"${counts//,/ } 0"
  elif [ "$rc" = 0 ]; then
    p=1
  else
    f=1
    echo "FAIL: $title (exit $rc)"
  fi
  total_passed=$((total_passed + p)) total_failed=$((total_failed + f)) total_skipped=$((total_skipped + k))
  total_again=$((total_again + ${#again[@]}))
  count_cpu
  cpu=$((cpu - before)) seconds=$((SECONDS - seconds))
  echo "$title: $seconds s, $cpu s of CPU"
  table+=$(printf '%-46s %6d %6d %7d %7d %7d  %s' "$title" $seconds $cpu "$p" "$f" "$k" "${again[*]}")$'\n'
}

if [ "${1:-}" = fast ]; then
  stage "build and all tests" make -s -j"$jobs" check
else
  stage "build and tests" make -s -j"$jobs" check-plain
  stage "sanitizers: address and undefined" make -s -j"$jobs" check-asan
  stage "sanitizers: threads" make -s -j"$jobs" check-tsan
  stage "fuzzers, a few seconds each" make -s -j"$jobs" check-fuzz
  # One in three, another one with each commit; check-long.sh runs them all.
  stage "mutations: a broken rule must fail the suite" env NI_MUTATION_SHARE="${NI_MUTATION_SHARE:-3}" make -s check-mutation
  stage "models of pool and list" make -s check-model
  stage "aarch64 under emulation" make -s -j"$jobs" check-aarch64
fi
stage "lint, rooms" scripts/lint.sh fast
printf '\n%-46s %6s %6s %7s %7s %7s  %s\n%s' stage seconds CPU passed failed skipped "second tries" "$table"
echo "$SECONDS seconds, $total_again second tries"
printf '\n%d passed, %d failed, %d skipped\n' $total_passed $total_failed $total_skipped
[ $total_failed = 0 ]
