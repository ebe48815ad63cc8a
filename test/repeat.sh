#!/usr/bin/env bash
# Runs tests again and again beside a load, each without a second try: what fails now and then fails here.
#   BUILD=build test/repeat.sh TIMES LOAD NAME...     NAME: a whole name of a unit test or case
# The load is LOAD processes that compute; they end with this script, at the latest after an hour. A log of
# each failure is kept in BUILD/repeat.PID. Ends with "N passed, N failed".
set -u
cd "$(dirname "$0")/.." || exit 2
[ $# -ge 3 ] || { echo "usage: $0 TIMES LOAD NAME..." >&2; exit 64; }
export BUILD=${BUILD:-build}
times=$1 load=$2 passed=0 failed=0 pids=()
shift 2
logs=$BUILD/repeat.$$
export NI_TEST_LOGS=$logs/last
rm -rf "$logs" && mkdir -p "$logs"
for ((i = 0; i < load; i++)); do
  timeout 3600 sh -c 'while :; do :; done' &
  pids+=($!)
done
trap 'kill "${pids[@]}" 2>/dev/null; wait 2>/dev/null' EXIT
for name; do
  ok=0 began=$SECONDS
  for ((i = 1; i <= times; i++)); do
    if NI_SECOND_TRY=0 NI_LANES=1 NI_ONLY="^$name\$" test/runner.sh >"$logs/out" 2>&1; then
      passed=$((passed + 1)) ok=$((ok + 1))
    else
      failed=$((failed + 1))
      cp "$NI_TEST_LOGS/$name.log" "$logs/$name.$i.log" 2>/dev/null || cp "$logs/out" "$logs/$name.$i.log"
      echo "FAIL  $name, time $i: $(tail -n 1 "$logs/$name.$i.log")"
    fi
  done
  echo "$name: $ok of $times, $((SECONDS - began)) s"
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
