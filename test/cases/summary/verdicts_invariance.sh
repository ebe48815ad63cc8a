#!/usr/bin/env bash
# The same job has the same findings whatever the clocks of its hosts and the timers of its GPUs do
# (test/verdicts/invariance.py): coarse stamps, drift, hosts minutes apart, clocks that are set.
. "$(dirname "$0")/../../lib/case.sh"
need "$BUILD/test/ni-jobs" "$INSPECTOR"
same() {
  python3 test/verdicts/invariance.py --exporter "$INSPECTOR" --tool "$BUILD/test/ni-jobs" --steps 30 "$@" \
    >"$TMP/text" 2>&1 || fail "$*: $(cat "$TMP/text")"
}
same --layouts AM --kinds late --seeds 7700 --weather timer,drift,symmetric,step+0.02,step-2
same --layouts M --kinds healthy --seeds 28,50015422 --weather step-0.026
python3 test/verdicts/invariance.py --exporter "$INSPECTOR" --tool "$BUILD/test/ni-jobs" --layouts A \
  --kinds late --steps 30 --weather none >"$TMP/text" 2>&1 && fail "a weather that there is not: $(cat "$TMP/text")"
grep -q -- '--weather none: accepted are timer, drift' "$TMP/text" || fail "$(cat "$TMP/text")"
finish "invariance"
