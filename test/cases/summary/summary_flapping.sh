#!/usr/bin/env bash
# A link that drops to a tenth or a quarter of its speed a few times is named as that: once, which one it is,
# how often and when, and what it costs. Neither congestion nor a link that is always slow nor a rank that
# waits for it is named beside it.
. "$(dirname "$0")/../../lib/case.sh"
job() { # DIR LAYOUT SIZE SEED
  "$BUILD/test/ni-jobs" --stored --layout "$2" --kind flap --size "$3" --seed "$4" --steps 150 --out \
    "$TMP/$1" >/dev/null
  "$BUILD/nccl-inspector" summary "$TMP/$1" --no-plots --no-parquet --no-csv --no-html --json --output-dir \
    "$TMP/out" >"$TMP/$1.json" || [ $? = 2 ]
}
job nvlink A 10 433012
job nic B 4 433210
python3 - "$TMP" <<'P'
import json, sys
for d, level, subject in ("nvlink", "nvlink",
                          "transfers between its GPUs"), ("nic", "nic", "all transfers across its NICs"):
    said = json.load(open(f"{sys.argv[1]}/{d}.json"))
    truth = json.load(open(f"{sys.argv[1]}/{d}/truth.json"))
    culprit, = truth["culprits"]
    f, = said["findings"]
    assert (f["kind"], f["level"], f["hosts"]) == ("flapping_link", level, culprit["accept"][0]["hosts"]), f
    true = culprit["moments_s"]
    assert f["times"] == len(true) == len(f["moments"]), (f, true)
    begin = truth["epoch_ns"] / 1e9
    for m, (at, to) in zip(f["moments"], true):
        start = m["from_us"] / 1e6 - begin
        assert (abs(start - at) < 0.15 and abs(start + m["length_s"] - to) < 0.2 and
                m["step"] <= m["end_step"]), (m, at, to)
    assert (0.7 < f["cost_s"] / culprit["cost_s"] < 1.5 and
            f["cost_low_s"] <= f["cost_s"] <= f["cost_high_s"]), (f, culprit)
    n = len(true)
    times = f"{f['ratio']:.{0 if f['ratio'] >= 10 else 1}f}"
    assert f"{subject} were slow {n} times, then {times} times as long as like ones" in f["text"], f["text"]
    assert (f"; at step {f['moments'][0]['step']} (" in f["text"] and (
            n <= 3 or f" and {n - 3} more; it costs " in f["text"])), f["text"]
P

# One communicator of all ranks, which nothing is like: three of its operations stop while nobody is late.
# What is gathered for a checkpoint takes as long, and always does.
python3 "$ROOT/test/lib/stop_logs.py" "$TMP/stops"
"$BUILD/nccl-inspector" summary "$TMP/stops" --no-plots --no-parquet --no-csv --no-html --json --output-dir \
  "$TMP/out" >"$TMP/stops.json" || [ $? = 2 ]
python3 - "$TMP/stops.json" <<'P'
import json, sys
f, = (f for f in json.load(open(sys.argv[1]))["findings"] if f["class"] == "fault")
assert (f["kind"], f["level"], f["times"]) == ("flapping_link", "communicator", 3), f
assert [m["step"] for m in f["moments"]] == [30, 80, 95] and 0.5 < f["cost_s"] < 0.7, f
assert "times as long as otherwise, and none of its ranks came late" in f["text"], f["text"]
assert ("whether a NIC, an NVLink, a way between two hosts or the network is slow cannot be told"
        in f["text"]), f["text"]
P

# The end of one rank's log was lost: what it has is judged with the others' all the same.
log=$(find "$TMP/stops" -name '*.jsonl*' | sort | sed -n 2p)
lines=$(wc -l <"$log")
head -n $((lines * 8 / 10)) "$log" >"$TMP/cut"
mv "$TMP/cut" "$log"
"$BUILD/nccl-inspector" summary "$TMP/stops" --no-plots --no-parquet --no-csv --no-html --json --output-dir \
  "$TMP/out" >"$TMP/cut.json" || [ $? = 2 ]
python3 - "$TMP/cut.json" <<'P'
import json, sys
f, = (f for f in json.load(open(sys.argv[1]))["findings"] if f["class"] == "fault")
assert (f["kind"], f["level"], f["times"]) == ("flapping_link", "communicator", 3), f
P
finish
