#!/usr/bin/env bash
# A job of four nodes hangs, and nobody asks: readers on its nodes, which share the log folder alone, name the
# rank that is missing.
. "$(dirname "$0")/../../lib/hang_turn.sh"

# One rank a node. Rank 2 never calls: on its node nothing is stuck, and it copies because another one leads.
cat >"$TMP/late.scn" <<'S'
# rank 2 never calls a collective that the others are inside of
set ranks=4 nodes=4 procs=1
comm world label=world
coll world func=AllReduce bytes=1m repeat=20
coll world func=ReduceScatter bytes=8m skip=2
sync world
sleep ms=600000
S
job "$TMP/late.scn" NCCL_INSPECTOR_STUCK_SECONDS=1
boxes 4
nodes 4
H=$TMP/logs/nccl-inspector-hang
mkdir -p "$H"
# of an earlier hang; another's
touch "$H/nccl-inspector-sim-node1-pid1-0011223344556677.1600000000000000000.box" \
  "$H/mine.1600000000000000000.box"
for i in 0 1 2 3; do reader $i py-spy; done
for i in 0 1 2 3; do until_said 40 $i '^likely .*/nccl-inspector-hang/verdict.json HANG \(likely\): ReduceScatter 0 of communicator world: rank 2 \(sim-node2\) never called it; everyone else \(3 ranks\) is inside'; done
[ "$(jq -r .verdict "$H/verdict.json")" = likely ] || fail "verdict.json: $(head -c 300 "$H/verdict.json")"
[ "$(find "$H" -name 'lease*' | wc -l)" = 1 ] || fail "leases: $(ls "$H")"
[ ! -e "$H/nccl-inspector-sim-node1-pid1-0011223344556677.1600000000000000000.box" ] ||
  fail "a copy of an earlier hang is still there"
[ -e "$H/mine.1600000000000000000.box" ] || fail "a file of another name is gone"
PID=$(jq -r '.waits[0].ranks[] | select(.rank == 2).pid' "$H/verdict.json")
wait_for 10 test -e "$H/stack-sim-node2-pid$PID.txt" || fail "no stack of process $PID"
[ "$(head -n 1 "$H/stack-sim-node2-pid$PID.txt")" = "stack of dump --pid $PID" ] ||
  fail "the stack: $(ls "$H")"
[ "$(stat -c %s "$H/stack-sim-node2-pid$PID.txt")" = 1048576 ] ||
  fail "the stack is not cut: $(stat -c %s "$H"/stack*)"
[ "$(find "$H" -name 'stack*' | wc -l)" = 1 ] || fail "stacks: $(ls "$H")"
# The folder is passed over by who reads the logs.
"$INSPECTOR" hang "$TMP/logs" --box-dir "$BOXES/node2" --json --stuck-after 1 >"$TMP/verdict" || true
[ "$(jq -r .black_boxes "$TMP/verdict")" = 1 ] ||
  fail "copies of the agents count for a look of now: $(jq -r .sentence "$TMP/verdict")"
# What a stuck line said of a rank is not taken for now when its machine is silent.
for i in 1 2 3; do
  "$INSPECTOR" snapshot "$TMP/logs" --box-dir "$BOXES/node$i" --output "$TMP/without0" -q ||
    fail "snapshot of node $i"
done
"$INSPECTOR" hang "$TMP/without0" "$TMP/logs" --stuck-after 1 >"$TMP/out" || true
grep -q '^HANG (likely): ReduceScatter 0 of communicator world: rank 2 (sim-node2) never called it; nothing has been heard of rank 0 (sim-node0) for [0-9]* s: ' "$TMP/out" ||
  fail "without node 0: $(head -n 1 "$TMP/out")"
# What is beyond --most is not copied, and named.
RC=0
"$INSPECTOR" snapshot "$TMP/logs" --box-dir "$BOXES/node2" --output "$TMP/copies" --most 1K >"$TMP/out" \
  2>&1 || RC=$?
{ [ "$RC" = 1 ] && grep -q 'sim-node2-.*: not copied: beyond --most' "$TMP/out" && [ -z "$(ls "$TMP/copies")" ]; } || fail "--most: $RC $(cat "$TMP/out")"
# Who leads dies, and lets the lease grow old: exactly one takes it over.
LEADER=$(cut -d' ' -f1 "$H/lease.1")
kill -9 "${READERS[${LEADER#sim-node}]}"
touch -d '-2 minutes' "$H/lease.1"
wait_for 10 test -e "$H/lease.2" || fail "nobody takes over"
[ "$(cut -d' ' -f1 "$H/lease.2")" != "$LEADER" ] || fail "no other one leads: $(ls "$H")"
sleep 1
[ ! -e "$H/lease.3" ] || fail "two took over: $(cat "$H"/lease.*)"
readers_end
[ ! -e "$H/lease.2" ] || fail "the lease was not given back: $(ls "$H")"
# A folder that others may write into: nothing in it is believed, and that is said.
rm -rf "$H"
mkdir -m 777 "$H"
chmod 777 "$H"
echo "HANG (certain): FORGED" >"$H/verdict.txt"
echo "x 1" >"$H/lease.1"
touch -d '+50 minutes' "$H/verdict.txt" "$H/lease.1"
reader 0
wait_for 10 grep -q 'may write there' "$TMP/err.0" || fail "nothing is said"
grep -q 'nccl-inspector-hang: another user made it, or may write there' "$TMP/err.0" ||
  fail "a forged folder is not refused: $(cat "$TMP/err.0")"
! grep -q FORGED "$TMP/said.0" || fail "a forged verdict is told"
readers_end
finish
