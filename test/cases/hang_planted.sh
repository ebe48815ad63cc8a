#!/usr/bin/env bash
# Every planted hang of the simulator is named right: who is missing, from which operation of which communicator.
. "$(dirname "$0")/../lib/hang.sh"
test/lib/hang_sources.sh >"$TMP/sources" 2>&1 &
SOURCES=$!

job hang_late
hangs "late rank" world "ReduceScatter 0" never_called=2 inside=0,1,3
job hang_dead
hangs "dead rank" world "AllReduce 50" gone=2 inside=0,1,3
job hang_mismatch
hangs "another function" world "AllReduce 50" mismatch=function other_call=2 inside=0,1,3
job hang_size
hangs "another size" world "AllReduce 50" mismatch=size inside=0,1,2,3
grep -q 'rank 2 ([^)]*) called it with 2097152 bytes, others with 4194304 bytes' "$TMP/said" || fail "the sizes are not named"
job hang_deadlock
hangs "deadlock of two communicators" a "AllReduce 30" ring=2 never_called=1 inside=0
job hang_network NCCL_INSPECTOR_EVENTS=deep
hangs "lost peer" world "AllReduce 50" inside=0,1,2,3
grep -q 'rank 2 ([^)]*) waits on the network for rank 1 ' "$TMP/said" || fail "the lost peer is not named: $(cat "$TMP/said")"
job hang_pipeline
hangs "pipeline whose first stage is missing" pp p2p never_called=0 inside=1,2,3
job hang_chain
hangs "a communicator that waits for another" tp1 "AllReduce 20" never_called=3 inside=2 consequences=1
wait $SOURCES || { fail "sources of a verdict"; }
cat "$TMP/sources"
finish
