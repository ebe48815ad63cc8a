#!/usr/bin/env bash
# Everything that decides how much is recorded at once, changing while the job runs: the accounts close all
# the same, and nothing that NCCL says is left without its operation.
. "$(dirname "$0")/../../lib/hang.sh"
S=NCCL_INSPECTOR
cat >"$TMP/mix.scn" <<'SCN'
# collectives, P2P, network, API-only and copy-engine collectives on three communicators, for some seconds
var rounds=10
set ranks=4 nodes=2 rate=1500 net_steps=2
comm world label=world
comm tp ranks=0-1 label=tp
comm pp ranks=2-3 label=pp
loop times=$rounds
  coll world func=AllReduce bytes=1m channels=2 repeat=60
  coll tp func=AllGather bytes=64k channels=2 repeat=60
  coll pp func=AllReduce bytes=512 channels=2 repeat=30
  sendrecv world shift=2 bytes=1m channels=2
  sendrecv world shift=1 bytes=2k channels=1
  coll world func=Broadcast bytes=64k root=1 repeat=10
  coll world func=AllReduce bytes=1m symmetric=1 repeat=10
  ce world func=AllGather bytes=8m
  sleep ms=300
end
exit how=$how
SCN

# combined NAME ENDING [NAME=value ...]
combined() {
  local name=$1 how=$2 rc=0
  shift 2
  sed -i "s/^exit how=.*/exit how=$how/" "$TMP/mix.scn"
  job "$TMP/mix.scn" ${S}_SAMPLE=1/5 ${S}_ROLLUP_SECONDS=1 ${S}_DUMP_MIN_SIZE_BYTES=1k \
    ${S}_FILE_MAX_BYTES=20k ${S}_EVENTS=light ${S}_DUMP_THREAD_INTERVAL_MICROSECONDS=100000 "$@"
  mkdir -p "$TMP/logs"
  local began=$EPOCHREALTIME
  for command in "preset deep" "sample 1/2" "verbose on" "flush" "events trace" "sample 1/1" "preset light" \
    "mark here"; do
    sleep 0.35
    rc=0
    "$INSPECTOR" ctl "$TMP/logs" $command >"$TMP/ctl" 2>&1 || rc=$?
    # 2: on a busy machine the job may be over by then.
    [ $rc = 0 ] || [ $rc = 2 ] || fail "$name: ctl $command: $(cat "$TMP/ctl")"
    rc=0
  done
  # How much longer than it should this took: what a busy machine does to the job, too.
  local slow
  slow=$(awk -v from="$began" -v to="$EPOCHREALTIME" 'BEGIN {print (to - from) / (8 * 0.35)}')
  wait "$JOB" || rc=$?
  JOB=
  [ "$how" = sigkill ] || [ $rc = 0 ] || fail "$name: nccl-sim ended with $rc"
  if [ "$how" = sigkill ]; then
    "$INSPECTOR" recover "$TMP/logs" --box-dir "$BOXES" -q || fail "$name: recover ends with $?"
  fi
  "$INSPECTOR" check "$TMP/logs" --partial --json >"$TMP/check" 2>&1 || true
  python3 - "$TMP/check" "$how" "$slow" "$TMP"/logs/*.gz "$TMP/truth" <<'P' || fail "$name"
import gzip, json, sys
doc = json.load(open(sys.argv[1]))
# What a kill cuts off is in flight: what was under way, and API-only operations, which no slot holds.
# What leaves without finalize may be within one or two; hundreds were a fault.
may = {"in_flight", "cut", "damaged"} if sys.argv[2] == "sigkill" else {"in_flight"}
assert {p["code"] for p in doc["problems"]} <= may, doc["problems"]
assert doc["bad_lines"] == 0 and not doc["unknown_keys"], doc
# Without KernelCh an operation waits 100 ms for its network. Where the machine does not get on for so long
# the network comes later:
# the simulator counts that (late_net). Nor does an operation wait where a flush is asked for, or where the
# process ends: none on a quiet machine, and 60 were a fault. Where the machine is slow more of them are on
# their way then.
slow = float(sys.argv[3])
may_be_stale = 40 if slow < 1.5 else 40 * slow + 100
strays = dict(doc["strays"])
stale, late = strays.pop("stale_handle",
                         0), sum(l.get("late_net", 0) for l in map(json.loads, open(sys.argv[-1])))
assert sys.argv[2] == "sigkill" or (not strays and stale <= late + may_be_stale), (doc["strays"], late, slow)
done = [l for p in sys.argv[4:-1] for l in map(json.loads, gzip.open(p, "rt")) if "control" in l and
        l["control"]["source"] == "file"]
assert done and all(l["control"]["result"] != "refused" for l in done), done
left = sum(p["count"] for p in doc["problems"] if p["code"] == "in_flight")
assert left <= (doc["operations"] // 4 if sys.argv[2] == "sigkill" else 4), "%d in flight" % left
print("ok  ", sys.argv[2], left, "in flight,", doc["operations"], "records,",
      doc["filtered_by"].get("sampled"), "sampled,", len(done), "commands,", stale, "stale,", late, "late")
P
}
combined "left without finalize" exit
combined "left at once" quick_exit
combined "killed" sigkill
finish
