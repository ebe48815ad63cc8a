#!/usr/bin/env bash
# Runs every unit test and every script of test/cases/<room>, each with a time limit, and counts.
#   BUILD=build-asan test/runner.sh [pattern]
#   NI_TEST_LOGS: where the logs of the tests go (default BUILD/test-logs)
#   NI_ONLY, NI_SKIP: extended regular expressions on names; sanitizer variants leave out what they cannot
#   find more in
#   NI_DRAWN=N: one test in N, another one with each commit; NI_NOT_DRAWN=N: beside those of NI_ONLY all
#   others. So two builds share the tests between them: the sanitizer's has one in N, and the plain one all
#   that it has not. NI_NOT_THERE: beside those of NI_ONLY all whose names it does not match: the other build
#   has those.
#   NI_LIST=1: runs nothing, prints the tests that would run, for whoever builds them alone; NI_COMMITS=N: as
#   if after N commits
#   NI_TURNS: an extended regular expression on names: of these one in two, for two commits, the others for
#   the next two: a sanitizer that has one commit in two meets all of them
# A test that fails is run again when all others have ended, and that is told; NI_SECOND_TRY=0: it is not.
# NI_LANES at a time: all lanes but one begin with the cases that take long or mostly wait for what they
# measure (a quarter of a core each), the last one with everything else. Default 4, also on two cores;
# NI_LANES=1: one after the other.
# Exit codes of a test: 0 passed, 77 skipped (its last line says why), anything else failed. A unit test
# program counts as one. LOGS/times has a line for each: CPU seconds (of all that it waited for), seconds,
# name. Its last lines are the dearest ones, "N second tries: NAMES" and "N passed, N failed, N skipped"; the
# exit status is 0 only without failures.
set -u
cd "$(dirname "$0")/.." || exit 2
export BUILD=${BUILD:-build}
export NI_CHECK_RUN=${NI_CHECK_RUN:-$$} # scripts/check.sh removes no files while others run tests
export NI_TEST_DATA=${NI_TEST_DATA:-../shared/data}
# for what never ends: load_burst takes 35 s on an idle machine, 300 and more beside a load of 20
limit=${NI_TEST_LIMIT:-600}
pattern=${1:-}
logs=${NI_TEST_LOGS:-$BUILD/test-logs}
passed=0 failed=0 skipped=0

run() { # first|last file: the last try counts
  local try=$1 test=$2 name started=$SECONDS rc again='' cpu TIMEFORMAT='%U %S'
  name=$(basename "$test" .sh)
  { time timeout --kill-after=10 "$limit" "$test" >"$logs/$name.log" 2>&1 </dev/null; } 2>"$logs/$name.cpu"
  rc=$?
  cpu=$(tail -n 1 "$logs/$name.cpu" | awk '{print $1 + $2}')
  rm -f "$logs/$name.cpu"
  echo "$cpu $((SECONDS - started)) $name" >>"$logs/times"
  if [ $rc != 0 ] && [ $rc != 77 ] && [ "$try" = first ]; then
    mv "$logs/$name.log" "$logs/$name.first.log"
    echo "$test" >>"$logs/second_tries"
    printf 'again %-40s exit %d\n' "$name" $rc
    return
  fi
  [ ! -e "$logs/$name.first.log" ] || again=" (second try; the first: $logs/$name.first.log)"
  case $rc in
    0) passed=$((passed + 1)); printf 'ok    %-40s %3d s, %s of CPU%s\n' "$name" $((SECONDS - started)) \
      "$cpu" "$again" ;;
    77) skipped=$((skipped + 1)); printf 'skip  %-40s %s%s\n' "$name" "$(tail -n 1 "$logs/$name.log")" \
      "$again" ;;
    *)
      failed=$((failed + 1))
      [ $rc = 124 ] && echo "no end after $limit s" >>"$logs/$name.log"
      printf 'FAIL  %-40s exit %d; the end of %s:\n' "$name" $rc "$logs/$name.log"
      tail -n 40 "$logs/$name.log" | sed 's/^/      /' ;;
  esac
}

export NI_COMMITS=${NI_COMMITS:-$(git rev-list --count HEAD 2>/dev/null || echo 0)}
is_drawn() { # name N [COMMITS, if not each draws anew]
  local sum
  sum=$(cksum <<<"$1")
  [ $(((${sum%% *} + NI_COMMITS / ${3:-1}) % $2)) = 0 ]
}
is_wanted() { # name
  [ -z "${NI_TURNS:-}" ] || [[ ! $1 =~ $NI_TURNS ]] || is_drawn "$1" 2 2 || return
  [[ ! $1 =~ ${NI_ONLY:-.} ]] || { [ -z "${NI_DRAWN:-}" ] || is_drawn "$1" "$NI_DRAWN"; return; }
  [ -z "${NI_NOT_THERE:-}" ] || { [[ ! $1 =~ $NI_NOT_THERE ]]; return; }
  [ -n "${NI_NOT_DRAWN:-}" ] && ! is_drawn "$1" "$NI_NOT_DRAWN"
}

is_asked() { # name
  case $1 in *"$pattern"*) ;; *) return 1 ;; esac
  is_wanted "$1" || return
  [ -z "${NI_SKIP:-}" ] || [[ ! $1 =~ $NI_SKIP ]]
}
if [ -n "${NI_LIST:-}" ]; then
  for t in test/unit/*/test_*.c test/cases/*/*.sh; do
    name=${t##*/}
    ! is_asked "${name%.*}" || echo "${name%.*}"
  done
  exit 0
fi

rm -rf "$logs" && mkdir -p "$logs"
: >"$logs/second_tries"
waits=() rest=()
for t in "$BUILD"/test/unit/test_* test/cases/*/*.sh; do
  case $t in *.d | *.o) continue ;; esac
  name=$(basename "$t" .sh)
  [ -x "$t" ] || continue
  is_asked "$name" || continue
  case $name in
    attack_* | head_* | http_server | uplink | fault_* | hang_* | life_* | load_* | prom_dump | python_schemas_live | recover_* | pods_agent | helm_chart | slurm_* | sim_load | summary_truth | gpu_validate | test_core | test_judge) waits+=("$t") ;;
    *) rest+=("$t") ;;
  esac
done

try=last
[ "${NI_SECOND_TRY:-1}" != 1 ] || try=first
lane() { # number tests...: those that no other lane has begun
  local number=$1 t
  shift
  for t; do mkdir "$logs/begun.$(basename "$t" .sh)" 2>/dev/null && run $try "$t"; done
  echo "$passed $failed $skipped" >"$logs/lane.$number"
}
reversed() { [ $# = 0 ] || printf '%s\n' "$@" | tac; }

lanes=${NI_LANES:-$(($(nproc) > 1 ? 4 : 1))}
mapfile -t from_the_end < <(reversed "${rest[@]}")
for ((i = 1; i < lanes; i++)); do lane $i "${waits[@]}" "${from_the_end[@]}" & done
# Each lane is a process of its own: `time` counts all that a process has waited for, and this one waits for
# lanes.
(lane 0 "${rest[@]}" "${waits[@]}")
wait
# Real time is measured on machines that others use too. What failed is tried again with nothing of ours
# beside it; what fails twice fails, and a second try is always told.
passed=0 failed=0 skipped=0
while read -r t; do run last "$t"; done <"$logs/second_tries"
echo "$passed $failed $skipped" >"$logs/lane.again"
passed=0 failed=0 skipped=0
for f in "$logs"/lane.*; do
  read -r p n k <"$f"
  passed=$((passed + p)) failed=$((failed + n)) skipped=$((skipped + k))
done
echo "dearest: $(sort -rn "$logs/times" | head -n 12 | awk '{printf "%s%s %.0f s", n++ ? ", " : "", $3, $1}')"
echo "$(wc -l <"$logs/second_tries") second tries: $(sed 's,.*/,,; s,\.sh$,,' "$logs/second_tries" | sort | tr '\n' ' ')"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
