#!/usr/bin/env bash
# test/runner.sh counts a test's CPU seconds, not those of a lane that ends beside it: a test that waits and
# one that computes.
. "$(dirname "$0")/../../lib/case.sh"
mkdir -p "$TMP/build/test/unit"
cat >"$TMP/build/test/unit/test_lanes_waits" <<'END'
#!/bin/sh
until [ -e "$NI_TEST_LOGS/lane.1" ]; do sleep 0.1; done
sleep 0.5
END
cat >"$TMP/build/test/unit/test_lanes_works" <<'END'
#!/bin/bash
until [ -e "$NI_TEST_LOGS/begun.test_lanes_waits" ]; do sleep 0.1; done # by the other lane
for ((i = 0; i < 500000; i++)); do :; done
END
chmod +x "$TMP"/build/test/unit/*
env -u NI_ONLY -u NI_SKIP -u NI_DRAWN -u NI_NOT_DRAWN -u NI_NOT_THERE -u NI_TURNS -u NI_LIST \
  BUILD="$TMP/build" NI_LANES=2 \
  NI_TEST_LOGS="$TMP/logs" NI_TEST_LIMIT=60 test/runner.sh test_lanes_ >"$TMP/said" ||
  fatal "$(cat "$TMP/said")"
[[ $(tail -n 1 "$TMP/said") == "2 passed, 0 failed, 0 skipped" ]] || fail "$(cat "$TMP/said")"
cpu() { awk -v name="$1" '$3 == name {print int(1000 * $1)}' "$TMP/logs/times"; }
waits=$(cpu test_lanes_waits)
works=$(cpu test_lanes_works)
[ "$works" -ge 100 ] && [ $((waits * 2)) -lt "$works" ] ||
  fail "$waits ms of CPU of the test that waits, $works of the one that works"
finish "$waits and $works ms"
