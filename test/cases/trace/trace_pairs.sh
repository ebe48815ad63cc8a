#!/usr/bin/env bash
# Clocks of hosts that share Sends and Receives: pairs alone, beside collectives that wait, one way only,
# unlike times there and back, records that are missing on one side, clocks that step; never further off than
# is said.
. "$(dirname "$0")/../../lib/case.sh"
all=node-1,node-2,node-3
pairs() { # kind "how far off at most, us" "hosts that are to be aligned, so near" exit "text"
  local rc=0 n=$TMP/$1
  python3 test/lib/trace_pairs.py make "$n" "$n.truth" "$1" --steps 40 --seconds "${SECONDS_OF:-20}"
  "$BUILD/nccl-inspector" trace "$n" -o "$n.json.gz" >"$n.txt" 2>&1 || rc=$?
  { [ $rc = "$4" ] && python3 test/lib/trace_pairs.py check "$n.json.gz" "$n.truth" "$2" "$3" >"$n.out" 2>&1 &&
    [[ $(cat "$n.txt") == *$5* ]]; } || { fail "$1: exit $rc"; cat "$n.txt" "$n.out"; }
}
pairs pairs 5 $all 0 '(160 messages with node-2)'
pairs small 5 $all 0 'messages with node-0)'
pairs waits 50 $all 0 'messages with node-0)'
SECONDS_OF=300 pairs resized-gpu 5 $all 0 'messages with node-0)'
# Nobody waits for the last stage when all meet: with the messages the way is by the neighbours, all the same.
pairs world 5 $all 0 '(40 collectives and 160 messages with node-2)'
pairs slow 460 $all 0 'messages with node-0)'
pairs oneway 0 '' 0 'node-1, clock: its own, unaligned'
# What is counted is right up to the first number that is missing, and nothing beyond.
pairs lost 50 $all 2 '(38 messages with node-0)'
pairs head 0 '' 2 'node-1, clock: its own, unaligned'
pairs sampled 0 '' 2 'node-1, clock: its own, unaligned'
pairs step 0 '' 0 'CONTRADICTORY'
# A pair that contradicts itself is not left for one that is too loose to tell, and others do not lean on it.
pairs world-step 0 '' 0 'CONTRADICTORY'
[ "$(grep -c CONTRADICTORY "$TMP/world-step.txt")" = 1 ] || { fail "world-step"; cat "$TMP/world-step.txt"; }
finish
