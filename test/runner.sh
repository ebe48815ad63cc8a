#!/usr/bin/env bash
# Runs every unit test and every script of test/cases/<room>, each with a time limit, and counts.
#   BUILD=build-asan test/runner.sh [pattern]
#   NI_ONLY, NI_SKIP: extended regular expressions on names; sanitizer variants leave out what they cannot find more in
# NI_SECOND_TRY=0: a test that fails is not run again.
# Two at a time: one lane begins with the cases that mostly wait for what they measure (fault_*, life_*, load_*), the other
# with everything else. NI_LANES=1: one after the other.
# Exit codes of a test: 0 passed, 77 skipped (its last line says why), anything else failed. A unit test program counts
# as one. The last line is "N passed, N failed, N skipped"; the exit status is 0 only without failures.
set -u
cd "$(dirname "$0")/.." || exit 2
export BUILD=${BUILD:-build}
export NI_TEST_DATA=${NI_TEST_DATA:-../shared/data}
limit=${NI_TEST_LIMIT:-300}
pattern=${1:-}
logs=$BUILD/test-logs
rm -rf "$logs" && mkdir -p "$logs"
passed=0 failed=0 skipped=0

run() { # name command...
  local name=$1 started=$SECONDS rc
  shift
  [[ $name =~ ${NI_ONLY:-.} ]] || return 0
  [ -z "${NI_SKIP:-}" ] || [[ ! $name =~ $NI_SKIP ]] || return 0
  timeout --kill-after=10 "$limit" "$@" >"$logs/$name.log" 2>&1 </dev/null
  rc=$?
  local again=
  if [ $rc != 0 ] && [ $rc != 77 ] && [ "${NI_SECOND_TRY:-1}" = 1 ]; then
    # Real time is measured on machines that others use too. What fails twice fails; a second try is always told.
    mv "$logs/$name.log" "$logs/$name.first.log"
    timeout --kill-after=10 "$limit" "$@" >"$logs/$name.log" 2>&1 </dev/null
    rc=$?
    again=" (second try; the first: $logs/$name.first.log)"
  fi
  case $rc in
    0) passed=$((passed + 1)); printf 'ok    %-40s %3d s%s\n' "$name" $((SECONDS - started)) "$again" ;;
    77) skipped=$((skipped + 1)); printf 'skip  %-40s %s\n' "$name" "$(tail -n 1 "$logs/$name.log")" ;;
    *)
      failed=$((failed + 1))
      [ $rc = 124 ] && echo "no end after $limit s" >>"$logs/$name.log"
      printf 'FAIL  %-40s exit %d; the end of %s:\n' "$name" $rc "$logs/$name.log"
      tail -n 40 "$logs/$name.log" | sed 's/^/      /' ;;
  esac
}

waits=() rest=()
for t in "$BUILD"/test/unit/test_* test/cases/*/*.sh; do
  case $t in *.d | *.o) continue ;; esac
  name=$(basename "$t" .sh)
  case $name in *"$pattern"*) ;; *) continue ;; esac
  [ -x "$t" ] || continue
  case $name in
    fault_* | life_* | load_*) waits+=("$t") ;;
    *) rest+=("$t") ;;
  esac
done

lane() { # number tests...: those that the other lane has not begun
  local number=$1 t name
  shift
  for t; do
    name=$(basename "$t" .sh)
    mkdir "$logs/begun.$name" 2>/dev/null && run "$name" "$t"
  done
  echo "$passed $failed $skipped" >"$logs/lane.$number"
}
reversed() { [ $# = 0 ] || printf '%s\n' "$@" | tac; }

if [ "${NI_LANES:-2}" = 1 ] || [ "$(nproc)" = 1 ]; then
  lane 0 "${rest[@]}" "${waits[@]}"
else
  mapfile -t from_the_end < <(reversed "${rest[@]}")
  lane 1 "${waits[@]}" "${from_the_end[@]}" &
  lane 2 "${rest[@]}"
  wait
fi
passed=0 failed=0 skipped=0
for f in "$logs"/lane.*; do
  read -r p n k <"$f"
  passed=$((passed + p)) failed=$((failed + n)) skipped=$((skipped + k))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
