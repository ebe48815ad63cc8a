#!/usr/bin/env bash
# A rank that stops in the middle of a step, logs alone: of the operations that it owes the one to which its
# program comes first.
. "$(dirname "$0")/../../lib/case.sh"
need python3
score() { # PART OF THE KIND'S NAME, FIRST-LAST SEED
  test/hangs/score.py --exporter "$INSPECTOR" --part open --only "$1" --seeds "$2" --held "" --verbose \
    --least 100,100,100,100 \
    >"$TMP/said" || fail "$(cat "$TMP/said")"
}
score "middle of a step: a pipeline" 8
score "middle of a step: sharding" 5-7
finish
