#!/usr/bin/env bash
# The tests, on a fresh Debian or Ubuntu: installs what is missing, builds, runs. Ends with the stages' times
# and "N passed, N failed".
# What takes longer is in scripts/check-long.sh, also the tests that run only under sanitizers here on the
# plain build.
#   NI_TEST_DATA=DIR   recorded data (default ../shared/data); tests that want it are skipped without it
#   scripts/check.sh fast      lint, unit tests and cases on the plain build only
set -u
cd "$(dirname "$0")/.." || exit 1
scripts/install-deps.sh test
jobs=$(nproc)
export NI_TEST_DATA=${NI_TEST_DATA:-../shared/data}
# Of the tests that the address sanitizer can say something about one in three runs under it where it has its
# turn, another one with each commit; what no sanitizer runs with this commit runs on the plain build.
# check-long.sh runs them all.
export SANITIZER_SHARE=${SANITIZER_SHARE-3}
export PIP_NO_COMPILE=0 # pip takes that for "do not compile": what tests install is used once

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# One stage: a build variant and the tests that run on it. Its row, for the table: title, seconds, CPU,
# counts, second tries.
# The command has a shell of its own, whose `times` counts nothing else: this one's also counts the stages
# that run beside it.
stage() { # title command...
  local title=$1 out=$scratch/out.$BASHPID rc counts p=0 f=0 k=0 again cpu seconds=$SECONDS
  shift
  printf '\n== %s\n' "$title"
  {
    "$@" 2>&1
    rc=$?
    times >"$out.times"
    exit $rc
  } | tee "$out"
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
  cpu=$(awk -F '[ms ]' 'NR == 2 {print int(60 * $1 + $2 + 60 * $4 + $5)}' "$out.times")
  seconds=$((SECONDS - seconds))
  echo "$title: $seconds s, $cpu s of CPU"
  printf '%s|%d|%d|%d|%d|%d|%s\n' "$title" $seconds "$cpu" "$p" "$f" "$k" "$again" >>"$scratch/rows"
}

commits=$(git rev-list --count HEAD 2>/dev/null || echo 0)
is_turn() { # N REST: this commit has a turn that one commit in N has; without SANITIZER_SHARE each has
  [ -z "$SANITIZER_SHARE" ] || [ $((commits % $1)) = "$2" ]
}

# Three things at once, because half of the tests mostly wait: the tests of the plain build, which take
# longest; those under the address sanitizer with one commit in two, under the thread sanitizer with the
# others; and what computes all the time, which gets a little less of the cores.
under_sanitizers() {
  if is_turn 2 0; then
    stage "build, asan" make -s -j"$jobs" asan
    : >"$scratch/asan"
    stage "sanitizers: address and undefined" make -s -j"$jobs" check-asan
  fi
  if is_turn 2 1; then
    stage "build, tsan" make -s -j"$jobs" tsan
    stage "sanitizers: threads" make -s -j"$jobs" check-tsan
  fi
}
computing() {
  renice -n 4 $BASHPID >/dev/null # on a machine that others keep busy more would starve it
  stage "lint, rooms" scripts/lint.sh fast
  stage "gate: instructions, not seconds" make -s -j"$jobs" gate
  # beside the thread sanitizer, whose commits have less to do than those of the address sanitizer
  if is_turn 4 1; then
    stage "sanitizers: gcc's, on parsers and plugin" make -s -j"$jobs" check-gcc
  fi
  stage "models of pool and list" make -s check-model
  stage "aarch64 under emulation" make -s -j"$jobs" check-aarch64
  # One in four, another one with each commit; check-long.sh runs them all.
  stage "mutations: a broken rule must fail the suite" env \
    NI_MUTATION_SHARE="${NI_MUTATION_SHARE:-4}" make -s check-mutation
  if is_turn 2 0; then
    while [ ! -e "$scratch/asan" ] && kill -0 "$sanitizers" 2>/dev/null; do sleep 1; done
    stage "fuzzers, a few seconds each" make -s -j"$jobs" check-fuzz # of the objects of `make asan`
  fi
}

# What this run began has its number in its environment, also where its parent is long gone.
export NI_CHECK_RUN=$$
is_below_us() { # pid: such as `tee`, which prints this stage
  local pid=$1
  while [ "${pid:-0}" -gt 1 ]; do
    [ "$pid" != $$ ] || return 0
    pid=$(awk '/^PPid:/ {print $2}' "/proc/$pid/status" 2>/dev/null)
  done
  return 1
}
begun_by() { # pattern of a number: processes that are not below us, a line each
  local pid words
  env -u NI_CHECK_RUN grep -lzsxE "NI_CHECK_RUN=$1" /proc/[0-9]*/environ 2>/dev/null |
    while IFS=/ read -r _ _ pid _; do
    ! is_below_us "$pid" || continue
    words=$({ tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null | cut -c1-150)
    [ -z "$words" ] || echo "$pid $words" # without words it has ended meanwhile
  done
}
shared() {
  find /dev/shm /tmp -maxdepth 1 \( -name 'ni-*' -o -name 'nccl-*' -o -name 'fuzz_*' \) 2>/dev/null | sort
}
shared >"$scratch/there"
# What tests have left: processes are ended, and each is a failure; files are told, and removed where nobody
# else runs tests on this machine. Of black boxes only those of simulated hosts go: any other may be a real
# job's, which waits for recover.
left_behind() {
  local n=0 files=0 others path pid words
  for _ in 1 2 3 4 5 6 7 8 9 10; do # what was just told to end may take a moment
    [ -n "$(begun_by $$)" ] || break
    sleep 0.5
  done
  while read -r pid words; do
    [ -n "$pid" ] || continue
    echo "FAIL  runs on: $pid $words"
    kill -9 "$pid" 2>/dev/null
    n=$((n + 1))
  done < <(begun_by $$)
  others=$(begun_by '[0-9]+' | wc -l)
  while read -r path; do
    files=$((files + 1))
    [ $files -gt 20 ] || echo "      lies there: $path"
    [ "$others" = 0 ] || continue
    case $path in
      /dev/shm/nccl-inspector-sim-node* | */ni-* | */fuzz_*) rm -rf "$path" ;;
    esac
  done < <(shared | comm -13 "$scratch/there" -)
  echo "$files files or folders lay in /dev/shm and /tmp; $others processes of other runs"
  echo "$((n == 0)) passed, $n failed"
  [ $n = 0 ]
}

if [ "${1:-}" = fast ]; then
  stage "build and all tests" make -s -j"$jobs" check
  stage "lint, rooms" scripts/lint.sh fast
else
  stage "build" make -s -j"$jobs" OPT="-O2 -g1" tests # the code of -g in less time
  export NI_LANES=${NI_LANES:-$((jobs > 1 ? 3 : 1))}
  under_sanitizers >"$scratch/sanitizers" 2>&1 &
  sanitizers=$!
  computing >"$scratch/computing" 2>&1 &
  echo "beside the tests: those under sanitizers; lint, gate, models, aarch64, mutations, fuzzers; told when they have ended"
  # One more at a time than under sanitizers: these end last, and half of them wait.
  beside=asan
  ! is_turn 2 1 || beside=tsan
  stage "tests" env NI_LANES=$((NI_LANES > 1 ? NI_LANES + 1 : 1)) make -s check-plain BESIDE=$beside
  wait
  cat "$scratch/sanitizers" "$scratch/computing"
fi
stage "nothing is left behind" left_behind
awk -F '|' -v took=$SECONDS '
  BEGIN {printf "\n%-46s %6s %6s %7s %7s %7s  %s\n", "stage", "seconds", "CPU", "passed", "failed", "skipped", "second tries"}
  {printf "%-46s %6d %6d %7d %7d %7d  %s\n", $1, $2, $3, $4, $5, $6, $7; cpu += $3; p += $4; f += $5; k += $6; again += split($7, names, " ")}
  END {printf "%d seconds, %d of CPU, %d second tries\n\n%d passed, %d failed, %d skipped\n", took, cpu, again, p, f, k; exit f > 0}' "$scratch/rows"
