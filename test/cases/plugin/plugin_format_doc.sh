#!/usr/bin/env bash
# docs/format.md says of every line what is written, and every key that it names is written: by runs that know
# all kinds.
. "$(dirname "$0")/../../lib/hang.sh"
S=NCCL_INSPECTOR

logs=()
logged() { # NAME, and as job
  local name=$1
  shift
  job "$@"
  wait "$JOB" || fail "$*: nccl-sim ended with $?"
  JOB=
  keep "$name"
}
keep() {
  mv "$TMP/logs" "$TMP/$1"
  logs+=("$TMP/$1")
}

# A mark whose number is still to come happens at once.
mkdir "$TMP/marked"
echo '@9000000000000000000 mark a name' >"$TMP/marked/nccl-inspector.control"
job net ${S}_DUMP_DIR="$TMP/marked" ${S}_EVENTS=trace ${S}_DUMP_VERBOSE=1
wait "$JOB" || fail "net: nccl-sim ended with $?"
JOB=
logs+=("$TMP/marked")
for scenario in ce hidden graph traps_events missing; do logged $scenario $scenario ${S}_EVENTS=trace; done
logged net net ${S}_EVENTS=trace
logs+=("$ROOT/test/data/nested") # by an earlier plugin
for scenario in symmetric replays tags; do logged $scenario $scenario ${S}_EVENTS=deep --nccl 2.31; done
printf '%s\n' 'set ranks=2 nccl=2.31' 'comm w label=w' 'alltoall w bytes=64k tag=0x8000000000000005' \
  >"$TMP/ours.scn"
logged ours "$TMP/ours.scn"
logged p2p p2p ${S}_EVENTS=deep --interface v4
logged late traps_unknown
logged gap pool_fixed ${S}_POOL_GROW=0
# Hangs, stated while they last; killed, and what recover writes of them.
for scenario in hang_network hang_pipeline; do
  stated='"stuck":'
  [ $scenario != hang_pipeline ] || stated='"stuck":.*"peer":' # a Recv, whatever comes before it
  job $scenario ${S}_EVENTS=deep ${S}_STUCK_SECONDS=1
  is_stated() { grep -q "$stated" <(zcat -f "$TMP"/logs/*.gz 2>/dev/null); }
  wait_for 20 is_stated || fail "$scenario: no line of what hangs"
  stop_job
  "$INSPECTOR" recover "$TMP/logs" --box-dir "$BOXES" >"$TMP/out" 2>&1 || [ $? = 2 ] ||
    fail "recover: $(cat "$TMP/out")"
  keep $scenario
done
python3 test/lib/format_doc.py docs/format.md "${logs[@]}" || fail "logs and docs/format.md disagree"
finish
