#!/usr/bin/env bash
# SIGKILL at random instants under load, then recover: what had finished is in the log once, with its values.
# 1,000 of them:
# make torture.
. "$(dirname "$0")/../../host/lib.sh"
skip_under asan "a killed process has no report, and the load is too slow to be caught in the act"
skip_under tsan "as under asan"
[ "$BOXES" != 0 ] || skip "no /dev/shm to keep a black box in"
need "$BUILD/nccl-inspector"
python3 test/fault/kill.py "$BUILD" "${KILLS:-20}" "${SEED:-$((RANDOM + 1))}" | cut -c1-400
exit "${PIPESTATUS[0]}"
