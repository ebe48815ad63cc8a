#!/usr/bin/env bash
# Every planted hang of the simulator is named right: who is missing, from which operation of which
# communicator.
. "$(dirname "$0")/../../lib/hang.sh"
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
names "the sizes" 'rank 2 ([^)]*) called it with 2,097,152 bytes, others with 4,194,304 bytes'
job hang_deadlock
hangs "deadlock of two communicators" a "AllReduce 30" ring=2 never_called=1 inside=0
job hang_network NCCL_INSPECTOR_EVENTS=deep
hangs "lost peer" world "AllReduce 50" inside=0,1,2,3
names "the lost peer" 'rank 2 ([^)]*) waits on the network for rank 1 '
job hang_pipeline
hangs "pipeline whose first stage is missing" pp p2p never_called=0 inside=1,2,3
job hang_chain
hangs "a communicator that waits for another" tp1 "AllReduce 20" never_called=3 inside=2 consequences=1
# What a GPU does not start explains why its rank does not come elsewhere, not the other way round.
job hang_queued
hangs "a kernel that two GPUs never start" k "AllGather 0" queued=1,2 inside=0,3 consequences=1

# A call whose group is never launched: made, and no kernel follows. It is not taken for finished, though it
# has a number.
cat >"$TMP/api.scn" <<'S'
# rank 2 calls it and launches nothing
set ranks=4 nodes=2 procs=1
comm world label=world
coll world func=AllReduce bytes=1m repeat=10
sync world
coll world func=AllReduce bytes=1m skip=2
coll world func=AllReduce bytes=1m only=2 nonblocking=60000
sleep ms=600000
S
job "$TMP/api.scn"
hangs "a call without a launch" world "AllReduce 10" called=2 inside=0,1,3
names "the call" 'rank 2 ([^)]*) called it, and nothing was launched'
sleep 1.5 # until the call is in the log, and counted as an operation without a kernel
hangs "a call without a launch, later" world "AllReduce 10" called=2 inside=0,1,3

# A Send and its Recv that both are there and move nothing.
cat >"$TMP/p2p.scn" <<'S'
# both sides are inside, with different sizes
set ranks=2 nodes=2 procs=1
comm pp label=pp
p2p pp from=0 to=1 bytes=1m repeat=10
p2p pp from=0 to=1 bytes=1m skip=1
p2p pp from=0 to=1 bytes=2m skip=0
sleep ms=600000
S
job "$TMP/p2p.scn"
hangs "a pair that moves nothing" pp p2p inside=0,1
names "the pair" 'rank 0 ([^)]*) is in Send to rank 1, 1,048,576 bytes; rank 1 ([^)]*) is in Recv from rank 0, 2,097,152 bytes'

# More waiting ranks than are named one by one: the others are counted.
cat >"$TMP/many.scn" <<'S'
# rank 0 never sends to the others
set ranks=7 nodes=1 procs=1
comm pp label=pp
coll pp func=AllReduce bytes=1k repeat=5
p2p pp from=0 to=1 bytes=1m skip=0
p2p pp from=0 to=2 bytes=1m skip=0
p2p pp from=0 to=3 bytes=1m skip=0
p2p pp from=0 to=4 bytes=1m skip=0
p2p pp from=0 to=5 bytes=1m skip=0
p2p pp from=0 to=6 bytes=1m skip=0
sleep ms=600000
S
job "$TMP/many.scn"
hangs "six that wait for one" pp p2p never_called=0 inside=1,2,3,4,5,6
names "how many more wait" 'rank 4 ([^)]*) waits in Recv from rank 0; and 2 more ranks; '
wait $SOURCES || { fail "sources of a verdict"; }
cat "$TMP/sources"
finish
