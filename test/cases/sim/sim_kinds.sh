#!/usr/bin/env bash
# What NCCL 2.31 raises for each kind of work: the simulator by itself, counted by a plugin that does nothing,
# and the orders of calls in a recording. What our plugin makes of it: sim_rows.
. "$(dirname "$0")/../../lib/sim.sh"
noop=$BUILD/test/noop.so rec=$BUILD/test/recorder.so
need "$noop" "$rec" python3

# all but ProxyCtrl, which comes as it likes, and KernelPhase, of which those without length are left out
MASK=0x7fdf
kind() { # NAME EVENTS LINE...: what two ranks raise for these lines of a scenario
  local name=$1 events=$2 got
  shift 2
  printf '%s\n' 'set ranks=2 nccl=2.31' 'comm w label=w' "$@" >"$TMP/kind.scn"
  NI_NOOP_MASK=$MASK timeout 30 "$SIM" --plugin "$noop" --scenario "$TMP/kind.scn" --truth "$TMP/truth" \
    >"$TMP/out" 2>&1 ||
    { fail "$name"; cat "$TMP/out"; }
  got=$(sed -n 's/^events: *//p' "$TMP/out")
  [ "$got" = "$events" ] || fail "$name: $got, expected $events"
}
api="GroupApi 2 CollApi 2 KernelLaunch 2"
kind classic "Group 2 Coll 2 KernelCh 8 $api" 'coll w channels=4'
kind "CollNet announces its channels" "Group 2 Coll 2 KernelCh 8 $api" 'coll w channels=4 algo=COLLNET_DIRECT'
grep -q '"desc_nch":4' "$TMP/truth" || fail "CollNet announces none"
kind symmetric "Group 2 Coll 2 KernelCh 8 $api" 'coll w channels=4 symmetric=1'
kind "fused symmetric" "Group 2 Coll 6 KernelCh 8 GroupApi 2 CollApi 6 KernelLaunch 2" 'group w' \
  'coll channels=4 symmetric=1' \
  'coll symmetric=1' 'coll symmetric=1' 'end'
kind "captured classic" "Group 6 Coll 6 KernelCh 24 $api" 'graph w as=g' 'coll channels=4' 'end' \
  'replay w graph=g times=3'
kind "captured symmetric" "Group 6 Coll 6 $api" 'graph w as=g' 'coll channels=4 symmetric=1' 'end' \
  'replay w graph=g times=3'
grep -q '"desc_nch":4' "$TMP/truth" || fail "a captured symmetric kernel announces its channels"
MASK=0xa02 kind "captured without KernelCh: one bracket at capture" "Group 2 Coll 2 $api" 'graph w as=g' \
  'coll channels=4' 'end' \
  'replay w graph=g times=3'
MASK=0xa02 kind "captured symmetric without KernelCh" "Group 2 Coll 2 $api" 'graph w as=g' \
  'coll symmetric=1' 'end' 'replay w graph=g times=3'
grep -q '"desc_nch":0' "$TMP/truth" || fail "without KernelCh a symmetric kernel announces no channels"
ce="GroupApi 2 CollApi 2 CeColl 2 CeSync 4 CeBatch 2"
kind "copy engine" "$ce" 'ce w'
kind "copy engine, captured" "$ce" 'ce w captured=1'
p2p="GroupApi 2 P2pApi 4 KernelLaunch 2"
kind P2P "Group 2 P2p 4 KernelCh 8 $p2p" 'sendrecv w shift=1 channels=2'
halves() { sed -n 's/.*"rank":0,"kind":"p2p".*"ch":\(.*\)/\1/p' "$TMP/truth" | sort -u | wc -l; }
[ "$(halves)" = 1 ] || fail "both halves of a pair have the same stamps"
kind "P2P with the own rank" "Group 2 P2p 4 KernelCh 8 $p2p" 'self w channels=2'
kind "put, signal, wait" "" 'put w'
kind "Broadcast" "$api" 'coll w func=Broadcast'
kind "Broadcast with a tag" "$api" 'coll w func=Broadcast tag=7'
kind "Broadcast with a config" "Group 2 Coll 2 KernelCh 8 $api" 'coll w func=Broadcast config=1 channels=4'
kind "Broadcast without AllGatherV" "Group 2 Coll 2 KernelCh 8 $api" 'set allgatherv=0' \
  'coll w func=Broadcast channels=4'
kind "two communicators, one GroupApi" "Group 4 Coll 4 KernelCh 16 GroupApi 2 CollApi 4 KernelLaunch 4" \
  'comm v' \
  'coll w channels=4 with=v'
kind "non-blocking" "Group 2 Coll 2 KernelCh 8 $api" 'coll w channels=4 nonblocking=5'
kind "the new way of queueing" "Group 2 Coll 2 KernelCh 8 KernelLaunch 2" 'set rearch=1' \
  'coll w channels=4 tag=9'
grep -q '"tag":0,' "$TMP/truth" || fail "the new way of queueing loses the tag"
MASK=0xffdf
kind "phases of a barrier kernel" "Group 2 Coll 2 KernelCh 8 $api KernelPhase 24" \
  'coll w channels=4 bytes=64m symmetric=1'
kind "LL kernels have no final_sync" "Group 2 Coll 2 KernelCh 8 $api KernelPhase 16" \
  'coll w channels=4 variant=AllReduce_AGxLL_R'
kind "no phases of P2P" "Group 2 P2p 4 KernelCh 8 $p2p" 'sendrecv w shift=1 channels=2'
kind "no phases of replays" "Group 6 Coll 6 $api" 'graph w as=g' 'coll symmetric=1' 'end' \
  'replay w graph=g times=3'
MASK=0x7fdf
kind "one call, two operations" "Group 2 Coll 4 KernelCh 16 $api" 'coll w channels=4 parts=2'

record() { # SCENARIO [options]
  NI_RECORDER_FILE=$TMP/calls.rec NI_RECORDER_MASK=0xffff timeout 30 "$SIM" --quiet --plugin "$rec" \
    --scenario "$@" || fail "$*"
}
for how in symmetric symmetric_late tags "symmetric --set one_pass=1" "groups --nccl 2.32" "ras"; do
  # shellcheck disable=SC2086
  record $how
  python3 test/lib/sim_calls.py "$TMP/calls.rec" >"$TMP/out" || { fail "$how"; cat "$TMP/out"; }
done
# The recorder does not ask through an older table for what that does not have.
for v in 4 5 6 7; do
  NI_RECORDER_FILE=$TMP/v$v.rec "$SIM" --quiet --plugin "$rec" --scenario symmetric --interface v$v --truth \
    "$TMP/truth"
  want=$((v == 4 ? 0xef : v == 5 ? 0xfef : v == 6 ? 0x7fef : 0xffef))
  grep -q "\"mask\":$want," "$TMP/truth" ||
    fail "the recorder's mask through v$v: $(grep -o '"mask":[0-9]*' "$TMP/truth" | head -n 1)"
done
record tags
got=$(python3 test/lib/sim_calls.py --tags "$TMP/calls.rec" | awk '$3 != 0 {print $1 ":" $2 ":" $3 ":" $4}' |
  tr '\n' ' ')
want="CeColl:AllGather:8:9 Coll:AllGather:2:9 Coll:AllReduce:1:9 Coll:AllReduce:9223372036854775825:12 Coll:Broadcast:3:9 \
Coll:Reduce:18446744073709551615:9 CollApi:AllGather:2:9 CollApi:AllGather:8:9 CollApi:AllReduce:1:9 \
CollApi:AllReduce:9223372036854775825:3 CollApi:Broadcast:3:9 CollApi:Reduce:18446744073709551615:9 \
P2p:Recv:5:27 P2p:Recv:6:9 \
P2p:Recv:7:9 P2p:Send:5:27 P2p:Send:6:9 P2p:Send:7:9 P2pApi:Recv:5:27 P2pApi:Recv:6:9 P2pApi:Recv:7:9 \
P2pApi:Send:5:27 \
P2pApi:Send:6:9 P2pApi:Send:7:9 "
[ "$got" = "$want" ] || fail "tags: $got"

# A late rank waits for nobody: its barrier kernels' initial_sync is small, the others' about as long as it
# was late.
NI_NOOP_MASK=0xffff "$SIM" --quiet --plugin "$noop" --scenario symmetric_late --truth "$TMP/truth"
python3 - "$TMP/truth" <<'P' || failures=$((failures + 1))
import json, sys
ops = [o for o in map(json.loads, open(sys.argv[1])) if o["t"] == "op" and o["sn"] > 0]
def share(kernel, late):
    of = [o for o in ops if o["kernel"] == kernel and (o["rank"] == 2) == late and o["exec_ns"] > 0]
    return sorted(o["initial_ns"] for o in of)[len(of) // 2] / 1e6
for kernel in ("AllReduce_RSxLDMC_AGxSTMC", "AllGather_TmaST", "AllGather_RailRing_LsaSTMC"):
    if not (share(kernel, True) < 0.5 and share(kernel, False) > 1.5):
        sys.exit(f"FAIL {kernel}: initial_sync {share(kernel, True)} of the late rank, {share(kernel, False)} of the others (ms)")
classic = [o for o in ops if not o["sym"]]
if not classic or any(o["phases"] for o in classic) or not all(o["phased"] for o in classic):
    sys.exit("FAIL classic collectives have phases, and nobody is to use them")
P

# Shifted counters: the next works' KernelCh come 64 works later; with fewer they never do and destroy throws
# them away.
shifted() { grep -c "\"out\":\"$1\".*\"shifted\":1" "$TMP/truth" || true; }
shifts() { # "DONE THROWN" WHAT: so many shifted operations got their KernelCh, and so many never did
  local got
  got="$(shifted "done") $(shifted "thrown")"
  [ "$got" = "$1" ] || fail "$2: done and thrown $got, expected $1"
}
NI_NOOP_MASK=0xffff "$SIM" --quiet --plugin "$noop" --scenario shift --truth "$TMP/truth"
shifts "200 0" "100 works after a shift"
NI_NOOP_MASK=0xffff "$SIM" --quiet --plugin "$noop" --scenario shift --truth "$TMP/truth" --set n=30
shifts "54 6" "30 works after a shift of 3"
NI_NOOP_MASK=0xffff "$SIM" --quiet --plugin "$noop" --scenario shift --truth "$TMP/truth" \
  --set shift_stamps=1 --set n=30
shifts "60 0" "shift_stamps=1"
NI_NOOP_MASK=0xffff "$SIM" --quiet --plugin "$noop" --scenario shift --truth "$TMP/truth" --set allgatherv=0
shifts "0 0" "NCCL_ALLGATHERV_ENABLE=0: nothing shifts"
NI_NOOP_MASK=0x46 "$SIM" --quiet --plugin "$noop" --scenario ras --truth "$TMP/truth"
shifts "80 0" "KernelCh off and on"
NI_NOOP_MASK=0x46 "$SIM" --quiet --plugin "$noop" --scenario ras --truth "$TMP/truth" --set mask_shifts=0
shifts "0 0" "mask_shifts=0: nothing shifts"
# The init of `later` wrote RAS's mask once more: 0x42.
[ "$(grep -c '"mask":66,' "$TMP/truth")" = 90 ] ||
  fail "RAS's mask holds for the communicator made after it, too"

NI_NOOP_MASK=0xffff "$SIM" --plugin "$noop" --scenario thrown --truth "$TMP/truth" >"$TMP/out"
[ "$(grep -c '"out":"thrown"' "$TMP/truth")" = 4 ] || fail "destroy must throw away four operations"
calls() { sed -n 's/^callbacks:.* start \([0-9]*\) stop \([0-9]*\) .*/\1 \2/p' "$TMP/out"; }
read -r starts stops <<<"$(calls)"
[ $((starts - stops)) = 2 ] || fail "two KernelCh are started and never stopped, not $((starts - stops))"
finish
