#!/usr/bin/env bash
# Jobs that began together, attempts of one job, hosts whose clocks are minutes off, in one folder: runs are told apart, or it is
# said that they cannot be.
. "$(dirname "$0")/../../lib/case.sh"
python3 test/lib/run_logs.py "$BUILD/nccl-inspector" "$TMP" >"$TMP/out" || fail "$(cat "$TMP/out")"
finish
