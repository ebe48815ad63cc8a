#!/usr/bin/env bash
# Detail while the job runs: control files, names of tags, verbose records; whatever changes, every operation
# stays accounted for.
. "$(dirname "$0")/../../host/lib.sh"
S=NCCL_INSPECTOR
US=${S}_DUMP_THREAD_INTERVAL_MICROSECONDS
CTL="$BUILD/nccl-inspector ctl"

# lines PYTHON: k is the list of control lines in order, f(line) whatever helps; must not raise.
lines() {
  python3 - "$TMP/logs" "$1" <<'PY' >"$TMP/lines" 2>&1 || { fail "$CASE: $1"; tail -n 3 "$TMP/lines"; }
import glob, gzip, json, sys
records, k, rolls = [], [], []
for path in sorted(glob.glob(sys.argv[1] + "/*.gz")):
    for l in gzip.open(path, "rt"):
        o = json.loads(l)
        if "control" in o: k.append(o["control"])
        if "coll_perf" in o: records.append(o["coll_perf"])
        if "rollup" in o: rolls.append(o["rollup"])
told = [(c["source"], c["command"], c["result"]) for c in k]
print(told)
exec(sys.argv[2])
PY
}

# For the host's scripts: until so many lines of the log hold the text. How soon a busy machine looks is not
# what is tested; what never comes is missed by those who ask for it. A "/" stands as two bytes there.
cat >"$TMP/until" <<'S'
#!/bin/sh
# until DIR TIMES TEXT
for i in $(seq 250); do
  [ "$(zcat "$1"/*.gz 2>/dev/null | grep -c -- "$3")" -lt "$2" ] || exit 0
  sleep 0.1
done
S
chmod +x "$TMP/until"
UNTIL="$TMP/until $TMP/logs"
BEGUN="$UNTIL 1 '\"process\"'" # the log has: what is asked for before is of an earlier run

# By hand, all ranks: each line acknowledged, bad ones named and ignored. Verbose from there on, KernelCh off.
run "a file by hand" init 0 bg paced 0 2800 1000 \
  sh "$BEGUN; printf '# for all\nverbose on\nbogus\nmark step 7\nevents coll,p2p\nflush now\nmark cut' >$TMP/logs/nccl-inspector.control; $UNTIL 1 'mark cut'" \
  join ops 0 100 fin 0
verify --timing any
checked 0 --partial
lines 'assert [t[1:] for t in told] == [("verbose on", "done"), ("bogus", "refused"), ("mark step 7", "done"),
  ("events coll,p2p", "done"), ("flush now", "done"), ("mark cut", "refused")], told
assert [c["line"] for c in k] == [2, 3, 4, 5, 6, 7] and k[2]["mark"] == "step 7" and "mark" not in k[0]
assert k[3]["events"] == "coll,p2p" and k[2]["events"] == "standard" and k[0]["verbose"] and not k[0]["why"]
assert "event_trace_ts" not in records[0] and "event_trace_ts" in records[-1]'
said 'line 3 is ignored: "bogus"'
# By the command, for one rank: others do not see it. A second call before the first was read loses nothing;
# each once.
run "ctl" RANK=3 WORLD_SIZE=8 init 0 bg paced 0 3000 1000 \
  sh "$BEGUN; { $CTL $TMP/logs mark first --rank 3 && $CTL $TMP/logs sample 1/5 --rank 3 && $CTL $TMP/logs preset deep --rank=4; } >$TMP/ctl 2>&1 || echo failed >>$TMP/ctl;
    $UNTIL 1 'sample 1..5'; zcat $TMP/logs/*.gz | grep -c coll_perf >$TMP/written; true" \
  join ops 0 1000 sh "$UNTIL \$((\$(cat $TMP/written) + 50)) coll_perf; $CTL $TMP/logs sample 1/1 --rank 3; $UNTIL 1 'sample 1..1'" ops 0 1000 fin 0
! grep -q failed "$TMP/ctl" || { fail "$CASE"; cat "$TMP/ctl"; }
lines 'assert told == [("file", "mark first", "done"), ("file", "sample 1\/5".replace("\\", ""), "done"), ("file", "sample 1/1", "done")], told
assert [c["sample"] for c in k] == [1, 5, 1] and all(c["file"] == "nccl-inspector.control.rank3" for c in k)
assert len(records) < 5000 and sum(r["count"] for r in rolls) == 5000, (len(records), rolls)'
checked 0 --partial
# A file that is there before: what holds is taken over, what happened then does not happen now.
mkdir -p "$TMP/kept"
run "a file of an earlier run" ${S}_DUMP_DIR="$TMP/kept/logs" sh "mkdir -p $TMP/kept/logs && printf 'sample 1/2\nmark old\nflush\n' >$TMP/kept/logs/nccl-inspector.control; touch -d '2 days ago' $TMP/kept/logs/nccl-inspector.control" \
  init 0 ops 0 10 sh "$TMP/until $TMP/kept/logs 1 'sample 1..2'" ops 0 1000 fin 0
mkdir -p "$TMP/logs"
cp "$TMP"/kept/logs/*.gz "$TMP/logs/"
lines 'assert told == [("file", "sample 1/2", "done")], told
assert sum(r["count"] for r in rolls) == 1010 and len(records) < 800'
# What must not be believed.
run "foreign or loose files" ${S}_DUMP_VERBOSE=1 init 0 bg paced 0 2800 1000 \
  sh "$BEGUN; echo preset deep >$TMP/logs/x; chmod 666 $TMP/logs/x; mv $TMP/logs/x $TMP/logs/nccl-inspector.control; $UNTIL 1 writable" \
  sh "ln -sf /etc/passwd $TMP/logs/nccl-inspector.control" join fin 0
lines 'assert len(k) >= 1 and all(c["result"] == "refused" for c in k), k
assert any("writable" in c["why"] for c in k)'
run "CONTROL_FILE=0" ${S}_CONTROL_FILE=0 init 0 ops 0 10 \
  sh "mkdir -p $TMP/logs; echo 'sample 1/2' >$TMP/logs/nccl-inspector.control" sleep 2100 ops 0 500 fin 0
verify
lines 'assert not k'

# Roll-ups so far, of more communicators than a tick looks at otherwise.
many=() some=()
for i in $(seq 300); do many+=(init $i); some+=(ops $i 5); done
run "flush, 300 communicators" init 0 ops 0 5 sh "$BEGUN" \
  "${many[@]}" "${some[@]}" sh "$CTL $TMP/logs flush; $UNTIL 301 '\"rollup\"'" \
  sh "zcat $TMP/logs/*.gz >$TMP/flushed" exit 0
n=$(awk -F'"count":' '/"rollup"/ {n += $2 + 0} END {print n + 0}' "$TMP/flushed")
[ "$n" = 1505 ] || fail "$CASE: $n of 1505 operations are in the roll-ups so far"
verify

# Settings of earlier releases that switched KernelCh: accepted, named, and nothing is switched.
run "KERNELCH_DUTY, MAX_OVERHEAD_PERCENT" ${S}_KERNELCH_DUTY=300ms/1s ${S}_MAX_OVERHEAD_PERCENT=0.001 init 0 \
  paced 0 2600 1000 fin 0
verify
lines 'assert not k'
said 'NCCL_INSPECTOR_KERNELCH_DUTY is accepted, no effect'
said 'NCCL_INSPECTOR_MAX_OVERHEAD_PERCENT is accepted, no effect'

# Names of tags, from a file and from a control file; what is no name is counted.
printf '# layers\n7 layer.7\nnonsense\n 8   two words # and a remark\n0 none\n9 %s\n' \
  "$(printf 'x%.0s' {1..64})" >"$TMP/tags"
run "tags" ${S}_TAGS="$TMP/tags" init 0 bg paced 0 2600 1000 sleep 200 \
  sh "mkdir -p $TMP/logs; printf 'tag 7 seventh\ntag 0 none\ntag 10\n' >$TMP/logs/nccl-inspector.control" sh \
  "$UNTIL 1 'tag 10'" join fin 0
verify
lines 'assert told == [("tags", "tag 7 layer.7", "done"), ("tags", "tag 8   two words", "done"), ("tags", "tag 9 " + "x" * 64, "done"),
  ("file", "tag 7 seventh", "done"), ("file", "tag 0 none", "refused"), ("file", "tag 10", "refused")], told
assert [c["line"] for c in k[:3]] == [2, 4, 6]'
said 'tags: 2 lines are no NUMBER'
run "tags that are not there" ${S}_TAGS="$TMP/none" init 0 ops 0 10 fin 0
verify
said 'No such file or directory; tags have no names'

# Verbose: every channel with its times and the order of its events.
run "verbose" ${S}_DUMP_VERBOSE=1 channels 24 base 3000 init 0 duet 0 3000 5000 p2p 0 200 self 0 20 fin 0
verify
lines 'for r in records:
  sn, ts, n = r["event_trace_sn"], r["event_trace_ts"], r["coll_nchannels"]
  assert len(sn["kernel_events"]) == len(ts["kernel_events"]) == n
  numbers = [sn["coll_start_sn"], sn["coll_stop_sn"]]
  for a, b in zip(sn["kernel_events"], ts["kernel_events"]):
    assert a["channel_id"] == b["channel_id"]
    numbers += [a["kernel_start_sn"], a["kernel_record_sn"], a["kernel_stop_sn"]]
    assert a["kernel_start_sn"] < a["kernel_record_sn"] < a["kernel_stop_sn"]
    assert ts["coll_start_ts"] <= b["kernel_start_ts"] <= b["kernel_record_ts"] <= b["kernel_stop_ts"] <= ts["coll_start_ts"] + 60000000
  assert sorted(numbers) == list(range(1, 3 * n + 3)), numbers
  assert abs(ts["coll_start_ts"] - r["coll_enqueue_ns"] // 1000) <= 1
assert len(records) == 3000'
run "verbose, no room for traces" ${S}_DUMP_VERBOSE=1 ${S}_POOL_MAX_BYTES=2m \
  ${S}_DUMP_THREAD_INTERVAL_MICROSECONDS=1000000 init 0 ops 0 3000 sleep 1200 ops 0 200 fin 0
verify
grep -q 'no memory for the channel traces' "$TMP/verify" || fail "$CASE: not said"
finish
