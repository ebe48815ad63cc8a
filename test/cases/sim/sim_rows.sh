#!/usr/bin/env bash
# When an operation of NCCL 2.31 is done, row by row of the rule (docs/nccl-callbacks.md): each is in the logs
# once, with what is known of it and nothing else, and none is called stuck.
. "$(dirname "$0")/../../lib/sim.sh"
export NCCL_INSPECTOR_DUMP_FORMAT=jsonl NCCL_INSPECTOR_STUCK_SECONDS=2

scenario() { # LINE...: into $TMP/row.scn, for two ranks of a 2.31
  printf '%s\n' 'set ranks=2 nccl=2.31' 'comm w label=w' "$@" >"$TMP/row.scn"
}
row() { # NUMBER [NAME=value ...] SCENARIO [options]: verified, complete, nothing stuck
  local n=$1
  shift
  echo "row $n"
  verified NCCL_INSPECTOR_DUMP_FORMAT=jsonl NCCL_INSPECTOR_STUCK_SECONDS=2 "$@"
  complete "$n" "$@"
}
complete() { # NUMBER ...: of what was verified
  "$INSPECTOR" check --quiet "$TMP/logs" >"$TMP/check" 2>&1 ||
    { fail "row $1: check of ${*:2}"; cat "$TMP/check"; }
  ! grep -q '"stuck":{' "$TMP"/logs/*.jsonl ||
    fail "row $1: stuck: $(grep -h '"stuck":{' "$TMP"/logs/*.jsonl | head -n 2)"
}
# has NUMBER KEY COUNT: so many lines of the logs have it
has() {
  local n
  n=$(cat "$TMP"/logs/*.jsonl | grep -c -- "$2") || true
  [ "$n" = "$3" ] || fail "row $1: $n lines with $2, expected $3"
}

row 1 NCCL_INSPECTOR_EVENTS=-kernelch symmetric
verified NCCL_INSPECTOR_EVENTS=-kernelch graph --nccl 2.31 # of one communicator a rank alone is simulated
# 2 to 4: alone, fused, captured, through each interface that says what was captured
for v in v7 v6 v5; do
  row 2-4 symmetric --interface $v
  has 2 '"symmetric":true,.*"graph":true\|"graph":true.*"symmetric":true' 48
  has 4 '"shared_span":true' 24
done
row 2-4 NCCL_INSPECTOR_EVENTS=deep symmetric
has 3 '"initial_sync_ns"' 34
row 2-4 NCCL_INSPECTOR_EVENTS=deep symmetric --set one_pass=1
row 2-4 NCCL_INSPECTOR_EVENTS=deep symmetric_late
# 5: nobody says what was captured
row 5 symmetric --interface v4
row 5 symmetric --set rearch=1
# 6: the mask changed: tasks made under another one, and counts that are apart
verified NCCL_INSPECTOR_DUMP_FORMAT=jsonl mask --nccl 2.31
verified NCCL_INSPECTOR_DUMP_FORMAT=jsonl ras
row 7 NCCL_INSPECTOR_EVENTS=deep groups --nccl 2.32
verified graph --nccl 2.31
scenario 'coll w channels=4 algo=COLLNET_DIRECT repeat=5'
row 7 NCCL_INSPECTOR_EVENTS=deep "$TMP/row.scn"
scenario 'coll w channels=3 announced=0 repeat=5' 'coll w channels=3 announced=65 repeat=5' 'sleep ms=1300'
row 8 "$TMP/row.scn"
scenario 'self w channels=2' 'sendrecv w shift=1 channels=2' 'alltoall w channels=2 tag=5' 'gather w tag=6' \
  'scatter w root=1 tag=7'
for v in v7 v6 v5; do row 9 "$TMP/row.scn" --interface $v; done
row 10 "$TMP/row.scn" --interface v4 --set poison=aa
row 10 "$TMP/row.scn" --interface v4 --set poison=plausible
scenario 'coll w' 'coll w symmetric=1' 'ce w tag=8' 'put w' 'coll w func=Broadcast tag=3' 'coll w symmetric=1'
row 11 NCCL_INSPECTOR_EVENTS=coll,kernelch,ce,sync,batch "$TMP/row.scn"
has 11 '"coll_src":"api"' 2
has 11 '"coll_src":"ce"' 2
row 11 tags
# 12: what destroy throws away is incomplete, with a reason, and never stuck
for how in "" "--set destroy_open=1"; do
  # shellcheck disable=SC2086
  verified NCCL_INSPECTOR_DUMP_FORMAT=jsonl NCCL_INSPECTOR_STUCK_SECONDS=2 thrown $how
  has 12 '"incomplete":{' 4
  has 12 '"stuck":{' 0
done
finish
