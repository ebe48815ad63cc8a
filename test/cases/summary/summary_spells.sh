#!/usr/bin/env bash
# What comes and goes, by jobs with one planted cause each: garbage collection is a fault with its rank,
# period, length and cost; a checkpoint of rank 0 and an evaluation of all ranks are notes, on the terminal
# below "also seen"; long pauses without a period and a GPU that is throttled in bursts are faults. Healthy
# and noisy ones have nothing. Steps are as many as there were, whatever pauses they have.
. "$(dirname "$0")/../../lib/case.sh"
inspector=$BUILD/nccl-inspector jobs=$BUILD/test/ni-jobs
look() { # layout kind seed steps: prints what is wrong
  "$jobs" --stored --layout "$1" --kind "$2" --seed "$3" --steps "$4" --out "$TMP/job" >/dev/null
  "$inspector" summary "$TMP/job" --output-dir "$TMP/out" --no-plots --no-html --no-parquet --no-csv -j1 \
    >"$TMP/text"
  python3 - "$TMP/job/truth.json" "$TMP/out/summary/summary.json" "$TMP/text" <<'P' || fail "$*"
import json, sys
truth, s, text = json.load(open(sys.argv[1])), json.load(open(sys.argv[2])), open(sys.argv[3]).read()
found, kind = s["findings"], truth["kind"]
print(truth["layout"], kind, [(f["class"], f["text"]) for f in found])
def ok(what, so):
    if not so:
        sys.exit("FAIL " + what)
ok("%s steps for %d" % (s["steps"]["n_steps"], truth["steps"]),
   abs(s["steps"]["n_steps"] - truth["steps"]) <= 1)
if kind in ("healthy", "noisy"):
    ok("nothing", not found and "no rank, host or communicator stands out" in text)
    sys.exit(0)
c = truth["culprits"][0]
f = found[0]
ok("one finding, %s, %s" % (c["finding"], c["class"]),
   len(found) == 1 and (f["kind"], f["class"]) == (c["finding"], c["class"]))
ok("level and ranks", f["level"] == c["level"] and
   (f["ranks"] == [c["rank"]] if "rank" in c else len(f["ranks"]) == truth["world"]))
ok("what it costs", 0.7 < f["cost_s"] / c["cost_s"] < 1.5 and
   f["cost_low_s"] <= f["cost_s"] <= f["cost_high_s"])
ok("notes come below their own head", ("also seen:" in text) == (f["class"] == "note"))
ok("faults as well", ("what stands out:" in text) == (f["class"] == "fault"))
if c["finding"] == "periodic_work":
    ok("period", abs(f["period_steps"] - c["period_steps"]) <= 1 and
       f["times"] == sum(1 for k in range(c["first_step"], truth["steps"], c["period_steps"])))
    ok("length", 0.8 < f["length_s"] / c["length_s"] < 1.2)
if c["finding"] == "throttling":
    ok("bursts", f["times"] == len(c["spans"]) and 0.7 < f["share_of_steps"] / c["share"] < 1.4 and
       0.2 < f["ratio"] - 1 < 0.4)
P
  rm -rf "$TMP/job" "$TMP/out"
}
look D gc 6 200
look A checkpoint 6 130
look D evaluation 6 220
look A throttle 6 120
look F pauses 6 150
look D noisy 6 101
look A healthy 6 43
finish "7 jobs"
