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

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# cpu: the seconds of all processes that have ended under this shell, which may be one that runs beside the others.
count_cpu() {
  local file=$scratch/times.$BASHPID
  times >"$file" # not in a subshell, where it would begin anew
  cpu=$(awk -F '[ms ]' 'NR == 2 {print int(60 * $1 + $2 + 60 * $4 + $5)}' "$file")
}

# One stage: a build variant and the tests that run on it. Its row, for the table: title, seconds, CPU, counts, second tries.
stage() { # title command...
  local title=$1 out=$scratch/out.$BASHPID rc counts p=0 f=0 k=0 again cpu seconds=$SECONDS before
  shift
  printf '\n== %s\n' "$title"
  count_cpu
  before=$cpu
  "$@" 2>&1 | tee "$out"
  rc=${PIPESTATUS[0]}
  counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$out" | tail -n 1)
  again=$(sed -n 's/^[0-9]* second tries: //p' "$out" | tail -n 1)
  if [ -n "$counts" ]; then
    read -r p _ f _ k _ <<<"${counts//,/ } 0"
  elif [ "$rc" = 0 ]; then
    p=1
  else
    f=1
    echo "FAIL: $title (exit $rc)"
  fi
  count_cpu
  cpu=$((cpu - before)) seconds=$((SECONDS - seconds))
  echo "$title: $seconds s, $cpu s of CPU"
  printf '%s|%d|%d|%d|%d|%d|%s\n' "$title" $seconds $cpu "$p" "$f" "$k" "$again" >>"$scratch/rows"
}

# What computes all the time gets what the tests of the other stages leave of the cores: half of those mostly wait. It begins
# with the builds that they need.
beside() {
  renice -n 10 $BASHPID >/dev/null
  for variant in asan tsan; do
    stage "build, $variant" make -s -j"$jobs" $variant
    : >"$scratch/$variant"
  done
  stage "lint, rooms" scripts/lint.sh fast
  stage "gate: instructions, not seconds" make -s -j"$jobs" gate
  stage "models of pool and list" make -s check-model
  stage "aarch64 under emulation" make -s -j"$jobs" check-aarch64
  # One in three, another one with each commit; check-long.sh runs them all.
  stage "mutations: a broken rule must fail the suite" env NI_MUTATION_SHARE="${NI_MUTATION_SHARE:-3}" make -s check-mutation
  stage "fuzzers, a few seconds each" make -s -j"$jobs" check-fuzz
}
built() { # variant: waits until its build has ended, well or not
  while [ ! -e "$scratch/$1" ] && kill -0 "$beside" 2>/dev/null; do sleep 1; done
}

if [ "${1:-}" = fast ]; then
  stage "build and all tests" make -s -j"$jobs" check
  stage "lint, rooms" scripts/lint.sh fast
else
  stage "build" make -s -j"$jobs" tests
  beside >"$scratch/beside" 2>&1 &
  beside=$!
  echo "beside the tests: builds with sanitizers, lint, gate, models, aarch64, mutations, fuzzers; told when they have ended"
  stage "tests" make -s check-plain
  built asan
  stage "sanitizers: address and undefined" make -s -j"$jobs" check-asan
  built tsan
  stage "sanitizers: threads" make -s -j"$jobs" check-tsan
  wait
  cat "$scratch/beside"
fi
awk -F '|' -v took=$SECONDS '
  BEGIN {printf "\n%-46s %6s %6s %7s %7s %7s  %s\n", "stage", "seconds", "CPU", "passed", "failed", "skipped", "second tries"}
  {printf "%-46s %6d %6d %7d %7d %7d  %s\n", $1, $2, $3, $4, $5, $6, $7; cpu += $3; p += $4; f += $5; k += $6; again += split($7, names, " ")}
  END {printf "%d seconds, %d of CPU, %d second tries\n\n%d passed, %d failed, %d skipped\n", took, cpu, again, p, f, k; exit f > 0}' "$scratch/rows"
