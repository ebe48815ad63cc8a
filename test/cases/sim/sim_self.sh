#!/usr/bin/env bash
# nccl-sim without our plugin: every scenario against a plugin that does nothing and one that records, the
# counts that follow from the scenario, and messages for what cannot be read.
. "$(dirname "$0")/../../lib/sim.sh"
noop=$BUILD/test/noop.so rec=$BUILD/test/recorder.so
[ -e "$noop" ] && [ -e "$rec" ] || skip "$noop and $rec are not built"
count() { # events line of a run: name expected
  grep -qE "^events:.* $1 $2( |\$)" "$TMP/out" || { fail "$3: $1 $2 expected"; cat "$TMP/out"; }
}
for s in test/scenarios/*.scn; do
  name=$(basename "$s" .scn)
  head -n 1 "$s" | grep -q '^# .' || fail "$name: its first line must say what it is for"
  case $name in
    hang_*) continue ;; # they never end: hang_planted plays them
    many_comms) more=(--set n=200) ;;
    burst | pool_fixed) more=(--set ops=500) ;;
    paced) more=(--set ops=500) ;;
    traps) more=(--set queue_ms=50) ;;
    *) more=() ;;
  esac
  NI_NOOP_MASK=0x7f7f timeout 30 "$SIM" --plugin "$noop" --scenario "$s" --truth "$TMP/truth" \
    "${more[@]}" >"$TMP/out" 2>&1 ||
    { fail "$name"; tail -n 5 "$TMP/out"; }
  grep -q '"t":"op"' "$TMP/truth" || fail "$name: no operation in its truth"
done
"$SIM" --plugin "$noop" --scenario groups >"$TMP/out" 2>&1
count Group 160 groups; count Coll 240 groups; count P2p 80 groups; count KernelCh 1600 groups; count \
  CollApi 240 groups
"$SIM" --plugin "$noop" --scenario groups --interface v4 >"$TMP/out" 2>&1
count Coll 240 "groups v4"
grep -q CollApi "$TMP/out" && fail "v4 must not see CollApi"
NI_NOOP_MASK=0x1046 "$SIM" --plugin "$noop" --scenario ce >"$TMP/out" 2>&1
count CeColl 80 ce
NI_NOOP_MASK=0x1046 "$SIM" --plugin "$noop" --scenario ce --interface v5 >"$TMP/out" 2>&1
grep -q CeColl "$TMP/out" && fail "v5 must not see CeColl"
# A plugin that gives no handle: a native 2.27 raises no operation without a Group's handle, later cores do.
NI_NOOP_NULL=1 "$SIM" --plugin "$noop" --scenario multirank --nccl 2.27 >"$TMP/out" 2>&1
count Group 660 "NULL Group on 2.27"; grep -q 'Coll' "$TMP/out" &&
  fail "2.27 must not raise Coll without a Group"
NI_NOOP_NULL=1 "$SIM" --plugin "$noop" --scenario multirank --interface v4 >"$TMP/out" 2>&1
count Coll 660 "NULL Group on 2.30"
NI_NOOP_NULL=0x42 "$SIM" --plugin "$noop" --scenario multirank --truth "$TMP/truth" >"$TMP/out" 2>&1
grep -q 'without a handle: Coll 660' "$TMP/out" || fail "NULL Coll and KernelCh"
# Only the two states of each GroupApi are left.
grep -q '^callbacks:.* record 1320 ' "$TMP/out" || fail "a NULL KernelCh must get no state"
# init fails: 2.27 gives up for the whole process, later releases for nobody.
NI_NOOP_FAIL_INIT=2 "$SIM" --plugin "$noop" --scenario split_share --set ranks=1 --nccl 2.28 >"$TMP/out" \
  2>&1 || fail "init failed on 2.28"
[ "$(NI_NOOP_FAIL_INIT=1 "$SIM" --plugin "$noop" --scenario allreduce --nccl 2.27 2>&1 | grep -c 'profiling is off for the whole process')" = 1 ] || fail "a failed init on 2.27"
NI_NOOP_FAIL_INIT=1 "$SIM" --plugin "$noop" --scenario allreduce --nccl 2.30 >"$TMP/out" 2>&1 ||
  fail "init failed on 2.30"
NI_NOOP_FAIL_INIT=1 "$SIM" --plugin "$noop" --scenario allreduce --nccl 2.28 --interface v4 >"$TMP/out" \
  2>&1 || fail "init failed, v4 on 2.28"
grep -q 'would call a null pointer' "$TMP/out" ||
  fail "NCCL 2.28 with v4 and no good init would crash: it must be said"
# The same seed gives the same job.
plan() { "$SIM" --quiet --plugin "$noop" --scenario multirank --seed "$1" --truth "$TMP/p" && sed -n 's/.*"rank":\([0-9]*\),"kind":"\([a-z0-9]*\)","func":"\([A-Za-z]*\)","sn":\([0-9]*\).*"bytes":\([0-9]*\).*/\1 \2 \3 \4 \5/p' "$TMP/p" | sort; }
[ "$(plan 5)" = "$(plan 5)" ] || fail "two runs with one seed differ"
NI_RECORDER_FILE=$TMP/r-%p.rec "$SIM" --quiet --plugin "$rec" --scenario p2p --interface v4 ||
  fail "recorder v4"
[ "$(head -c 7 "$TMP"/r-*.rec)" = NIREC01 ] || fail "the recording has no magic"
bad() { # text of a scenario, what the message must hold
  printf '%b' "$1" >"$TMP/bad.scn"
  local rc=0
  "$SIM" --plugin "$noop" --scenario "$TMP/bad.scn" >"$TMP/out" 2>&1 || rc=$?
  [ $rc = 64 ] && grep -q -- "$2" "$TMP/out" || { fail "bad scenario: exit $rc, message:"; cat "$TMP/out"; }
}
bad 'comm w\ncoll w func=Sum\n' 'bad.scn:2: func=Sum: accepted are'
bad 'comm w\ncoll x\n' 'bad.scn:2: communicator `x` is not declared'
bad 'comm w\ncoll w byts=1\n' 'bad.scn:2: `byts` is not a key of `coll`'
bad 'comm w\ngroup w\n coll bytes=1\n' '`end` is missing'
bad 'comm w\nend\n' 'bad.scn:2: `end` without'
bad 'set ranks=0\n' 'bad.scn:1: ranks=0: accepted is'
bad 'comm w ranks=0-9\n' 'the job has ranks 0 to 0'
bad 'comm w\ncoll w repeat=$n\n' '\$n: no `var n'
bad 'frob\n' '`frob`: no such directive'
bad '' 'empty\|no `comm`'
rc=0; "$SIM" --plugin "$noop" --scenario allreduce --set nosuch=1 >"$TMP/out" 2>&1 || rc=$?
[ $rc = 64 ] && grep -q 'neither a setting nor a' "$TMP/out" || fail "--set nosuch=1 must be refused"
rc=0; "$SIM" --plugin /nonexistent.so --scenario allreduce >"$TMP/out" 2>&1 || rc=$?
[ $rc = 1 ] || fail "a --plugin that cannot be loaded must be an error"
mkdir -p "$TMP/empty" "$TMP/allreduce"
sim=$(realpath "$SIM")
(cd "$TMP" && NCCL_PROFILER_PLUGIN=none "$sim" --quiet --scenario allreduce) >"$TMP/out" 2>&1 ||
  fail "a folder hides the scenario of its name: $(cat "$TMP/out")"
NCCL_PROFILER_PLUGIN=none "$SIM" --quiet --scenario allreduce --truth "$TMP/truth" >"$TMP/out" 2>&1 ||
  fail "no profiler is no error"
rc=0; "$SIM" --verify "$TMP/truth" "$TMP/empty" >"$TMP/out" 2>&1 || rc=$?
[ $rc = 1 ] || fail "--verify must not agree about nothing"
rc=0; "$SIM" --verify /nonexistent "$TMP" >"$TMP/out" 2>&1 || rc=$?
[ $rc = 1 ] || fail "--verify without a truth must fail"
finish
