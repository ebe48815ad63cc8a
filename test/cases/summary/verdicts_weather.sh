#!/usr/bin/env bash
# Weather of simulated jobs (docs/verdicts.md): logs stay complete and say what was left out, a step of a
# clock moves Unix times alone, the same seed gives the same bytes; and the scorer knows notes from faults,
# periods and moments.
. "$(dirname "$0")/../../lib/case.sh"
inspector=$BUILD/nccl-inspector jobs=$BUILD/test/ni-jobs

job() {
  "$jobs" --stored --layout "$2" --kind "$3" --seed 8 --steps \
    "${STEPS:-12}" --out "$TMP/$1" "${@:4}" >/dev/null
}
complete() {
  "$inspector" check "$TMP/$1" >"$TMP/check" || fail "$1: check exits $?"
  grep -q '^COMPLETE$' "$TMP/check" || { fail "$1 is not complete"; tail -n 3 "$TMP/check"; }
}
clocks=(--overlap-us 20 --timer-ns 1024 --drift-ppm 100 --host-offset-s 300)
job clean A healthy "${clocks[@]}"
job stepped A healthy "${clocks[@]}" --clock-step-s -2
job sampled A healthy --with sample=4 --with min-bytes=65536
job symmetric A late --with symmetric
job alone B late --with alone=t --with no-p2p
job weather B flap --weather
job again B flap --weather
STEPS=40 job checkpoint A checkpoint --size 600
STEPS=40 job flap A flap
for dir in clean stepped sampled symmetric alone checkpoint; do complete "$dir"; done
diff -r "$TMP/weather" "$TMP/again" || fail "another outcome of the same seed"

python3 - "$TMP" <<'P' || fail "logs or scores are not as they should be"
import glob, gzip, json, os, sys
sys.path.insert(0, "test/verdicts")
import judge
work = sys.argv[1]
truth = lambda n: json.load(open(os.path.join(work, n, "truth.json")))
def lines(n):
    for path in sorted(glob.glob(os.path.join(work, n, "*.gz"))):
        yield from (json.loads(l) for l in gzip.open(path))
colls = lambda n: [(l["metadata"]["hostname"], l["coll_perf"]) for l in lines(n) if "coll_perf" in l]

# A step: the same operations, and of one host those behind it are two seconds earlier.
host = truth("stepped")["weather"]["clock_step_host"]
moved = set()
for (h, a), (_, b) in zip(colls("clean"), colls("stepped")):
    assert (a["coll_exec_time_ns"],
            a["coll_gpu_start_delta_ns"]) == (b["coll_exec_time_ns"], b["coll_gpu_start_delta_ns"])
    moved.add((h == host, b["coll_enqueue_ns"] - a["coll_enqueue_ns"]))
assert moved == {(False, 0), (True, 0), (True, -2000000000)}, moved
assert all(c["coll_exec_time_ns"] % 1024 == 0 for _, c in colls("clean"))
offs = [h["clock_offset_ns"] for h in truth("clean")["hosts"]]
assert max(offs) - min(offs) > 1e9

kinds = [l["dump_stats"]["coll"] for l in lines("sampled")
         if l.get("dump_stats", {}).get("coll", {}).get("started")]
assert sum(k["written"] for k in kinds) == len(colls("sampled")) > 0
assert all(k["started"] == k["written"] + sum(k["filtered_by"].values()) for k in kinds)
assert {w for k in kinds for w in k["filtered_by"]} == {"sampled", "min_size"}

phased = [c for _, c in colls("symmetric") if c.get("symmetric")]
assert (phased and
        all(c["initial_sync_ns"] + c["compute_ns"] + c["final_sync_ns"] == c["coll_exec_time_ns"]
            for c in phased))
recorded = {int(l["header"]["id"], 16) for l in lines("alone") if "coll_perf" in l or "p2p_perf" in l}
assert recorded == {int(c["id"], 16) for c in truth("alone")["communicators"] if c["role"] == "t"}

# A checkpoint is a note about its ranks: a fault accuses them, a note about another one is counted apart.
t = truth("checkpoint")
c = t["culprits"][0]
assert (c["class"], c["finding"], t["job_s"] > t["job_without_s"] + 1) == ("note", "periodic_work", True)
ranks = c["accept"][0]["ranks"]
def said(t, **f):
    return judge.judge(t, {"complete": True,
                           "findings": [dict({"text": "", "level": "rank", "cost_s": t["cost_s"]}, **f)]})
periodic = {"kind": "periodic_work", "period_steps": c["period_steps"], "length_s": 0.7, "class": "note"}
def outcome(o): return [o["named_exactly"], o["innocents"], o["wrong_notes"]]
right = said(t, ranks=ranks, **periodic)
assert outcome(right) == [1, 0, 0] and right["about"]["period"] and right["about"]["length"], right
assert outcome(said(t, ranks=[31], **periodic)) == [0, 0, 1]
assert outcome(said(t, ranks=ranks, **dict(periodic, **{"class": "fault"}))) == [0, 1, 0]
assert not said(t, ranks=ranks,
                **dict(periodic, period_steps=2 * c["period_steps"], length_s=1))["about"]["period"]

t = truth("flap")
c = t["culprits"][0]
assert len(c["spans"]) == len(c["moments_s"]) >= 2 and all(0 <= a <= b <= t["steps"] for a, b in c["spans"])
moment = {"step": int(c["spans"][0][0]), "end_step": int(c["spans"][0][1])}
subject = c["accept"][0]
flap = dict(subject, kind="flapping_link", times=len(c["spans"]))
assert said(t, **flap, moments=[moment])["about"] == {"right_kind": True, "period": None, "length": None,
                                                      "times": 1, "moments": 1}
far = next(i for i in range(t["steps"]) if all(i + 1 < a - 1 or i > b + 1 for a, b in c["spans"]))
assert said(t, **flap, moments=[{"step": far, "end_step": far}])["about"]["moments"] == 0
P
finish "weather and scores"
