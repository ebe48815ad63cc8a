#!/usr/bin/env bash
# A whole node is gone, with rank 0, its boxes and its agent: the readers of the other nodes judge, and say
# so.
. "$(dirname "$0")/../../lib/hang_turn.sh"

# Two ranks a node. The node of ranks 0 and 1 is gone whole: processes, boxes, agent. The verdict of before
# does not count.
cat >"$TMP/gone.scn" <<'S'
# a healthy job
set ranks=8 nodes=4 procs=1 rate=50
comm world label=world
comm tp0 ranks=0-1 label=tp0
coll world func=AllReduce bytes=1m repeat=100000
S
job "$TMP/gone.scn"
boxes 8
sleep 1
nodes 4
H=$TMP/logs/nccl-inspector-hang
mkdir -p "$H" # of an earlier hang, by a clock that this machine's need not agree with
echo "HANG (likely): of yesterday" >"$H/verdict.txt"
touch -d '-1 minute' "$H/verdict.txt"
touch -d '-10 minutes' "$H/lease.1"
for i in 1 2 3; do reader $i gdb; done
sleep 0.5
for box in "$BOXES"/node0/*; do kill -9 "$(sed 's/.*-pid\([0-9]*\)-.*/\1/' <<<"$box")"; done
rm -r "$BOXES/node0" "$BOXES"/*-sim-node0-*
for i in 1 2 3; do until_said 40 $i "^likely .* HANG \(likely\): AllReduce [0-9]+ of communicator world: nothing has been heard of rank 0 \(sim-node0\) and rank 1 \(sim-node0\) for [0-9]+ s: the machine or its agent is gone, or nobody copied its black boxes; everyone else \(6 ranks\) is inside"; done
[ "$(cat "$TMP"/said.[123] | grep -c yesterday || true)" = 0 ] ||
  fail "the verdict of an earlier hang was told"
jq -e '.missing[] | select(contains("data of rank 0"))' "$H/verdict.json" >/dev/null ||
  fail "what is missing: $(jq .missing "$H/verdict.json")"
readers_end
# A link in the folder's place is not followed.
rm -r "$H"
mkdir "$TMP/elsewhere"
ln -s "$TMP/elsewhere" "$H"
reader 1
sleep 2
[ -z "$(ls "$TMP/elsewhere")" ] || fail "a link was followed: $(ls "$TMP/elsewhere")"
finish
