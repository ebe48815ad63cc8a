#!/usr/bin/env bash
# A late rank told by its own time: sentence, cost, steps and the command for more on the terminal (80
# columns) and in summary.json; what the run consists of; the steps; the same on the page. Logs that do not
# say when operations started say why not.
. "$(dirname "$0")/../../lib/case.sh"
python3 test/lib/step_logs.py "$TMP/logs"
cd "$TMP"
# they have no final lines
summary() { "$BUILD/nccl-inspector" summary "$@" --no-plots --no-parquet --no-csv >text || [ $? = 2 ]; }
stop() { cat text; fatal "$@"; }
summary logs --output-dir out
python3 - "$INSPECTOR" <<'P'
import json, re, sys
program = sys.argv[1] # as it was called: what is proposed can be pasted
text, s = open("text").read(), json.load(open("out/summary/summary.json"))
f, steps, run = s["findings"], s["steps"], s["run"]
part = text[text.index("what stands out:"):].split("\n\n")[0].splitlines()
assert all(len(l) <= 80 for l in part if not l.startswith("     next: ")), part
flat = " ".join(" ".join(part).replace("|", " ").split())
assert (s["findings_by"] == "own_time" and len(f) == 1 and
        (f[0]["kind"], f[0]["ranks"], f[0]["onset_step"]) == ("late_rank", [5], 60)), f
assert (part[1].startswith("  1  rank 5 on node-1") and part[2].startswith("     ") and
        " ".join(f[0]["text"].split()) in flat), part
# 0.96 ms in each of 60 steps, less what the slowest of the others would have been late.
assert 0.035 < f[0]["cost_s"] < 0.06 and f[0]["cost_low_s"] < f[0]["cost_s"] < f[0]["cost_high_s"], f
assert f"     next: {program} trace logs --rank 5" in part, part
assert re.search(r"the run: 1\.\d\d s = 1\.\d\d s computing, [0-9.]+ ms transfers on the critical path; without this finding 1\.\d\d s", flat), flat
assert abs(run["computing_s"] + run["transfer_s"] + run["pauses_s"] - run["run_s"]) < 1e-6 * run["run_s"]
assert re.search(r"120 steps of \S+ ms \(p10 \S+ ms, p90 \S+ ms\), marked by AllReduce on world \(0x5d1c7e90aa4101, 8 ranks\)", flat), flat
assert "80 %" not in flat and "a cost is what the run would save without it" in flat, flat
assert ((steps["n_steps"], steps["bin_steps"], len(steps["bins"])) == (120, 1, 120) and
        steps["mark"].startswith("AllReduce on world")), steps
starts = [b[0] for b in steps["bins"]]
assert starts == sorted(set(starts)) and starts[0] == s["first_us"], starts[:3]
# start, compute, exposed, waiting, hidden, outside: all but what is hidden are together as long as the step
# took.
for b, after in zip(steps["bins"], steps["bins"][1:]):
    assert abs(b[1] + b[2] + b[3] + b[5] - (after[0] - b[0])) < 0.05 * (after[0] - b[0]), (b, after)
    assert b[4] == b[5] == 0 and 200 < b[2] < 300, b
mean = lambda k, bins: sum(b[k] for b in bins) / len(bins)
assert mean(3, steps["bins"][60:119]) > 2 * mean(3, steps["bins"][:60]), "the others wait longer from the middle on"
assert steps["us_p10"] <= steps["us_p50"] <= steps["us_p90"]
P
if [ -e out/report.html ]; then
  python3 - <<'P'
import json
s = json.load(open("out/summary/summary.json"))
page = open("out/report.html").read()
d = json.loads(page.split('<script type="application/json" id="data">')[1].split("</script>")[0])
rows = [dict(zip(d["findings"]["cols"], r)) for r in d["findings"]["rows"]]
assert ([r["text"] for r in rows] == [f["text"] for f in s["findings"]] and rows[0]["from_step"] == 60 and
        rows[0]["next"] == "trace LOGS --rank 5"), rows
assert (d["steps"] == s["steps"] and abs(d["run"]["run_us"] - s["run"]["run_s"] * 1e6) < 1 and
        d["by_own_time"] is True)
assert all(x in page for x in ('id="findings"', 'id="c-parts"', 'id="c-steps"'))
P
fi
# The input as the user wrote it, as words of a shell.
cp -r logs "it's here"
summary "it's here" --output-dir quoted --no-html
grep -qF "     next: $INSPECTOR trace 'it'\\''s here' --rank 5" text || stop "the command for odd names"
# Without start times nothing of it is there, and one line says why.
mkdir dumps
for f in logs/*; do
  sed -E 's/, "coll_enqueue_ns": [0-9]+, "coll_gpu_start_delta_ns": [0-9]+//' "$f" >"dumps/${f#*/}"
done
summary dumps --output-dir plain
tr '\n|' '  ' <text | tr -s ' ' |
  grep -q "judged by durations, not by own time: its log does not say when operations started" || stop "why"
! grep -qE "the run:| steps of |a cost is" text || stop "there are no steps"
! grep -q '"steps"' plain/summary/summary.json || stop "steps in summary.json"
[ ! -e plain/report.html ] || ! grep -q '"steps":{' plain/report.html || stop "steps in the page"
# One host's clock is an hour ahead: its steps are the same ones, and as many.
cp -r logs ahead
python3 - <<'P'
import glob, re
for p in glob.glob("ahead/*node-1*"):
    t = open(p).read()
    t = re.sub(r'("coll_enqueue_ns": )(\d+)', lambda m: m[1] + str(int(m[2]) + 3600 * 10**9), t)
    open(p, "w").write(re.sub(r'("dump_timestamp_us": )(\d+)', lambda m: m[1] + str(int(m[2]) + 3600 * 10**6),
                              t))
P
summary ahead --output-dir apart --no-html
python3 - <<'P'
import json
s, was = (json.load(open(d + "/summary/summary.json")) for d in ("apart", "out"))
assert s["steps"]["n_steps"] == len(s["steps"]["bins"]) == 120, s["steps"]["n_steps"]
assert [(f["kind"], f["ranks"], f["onset_step"], f["class"])
        for f in s["findings"]] == [("late_rank", [5], 60, "fault")], s["findings"]
assert abs(s["findings"][0]["cost_s"] - was["findings"][0]["cost_s"]) < 0.2 * was["findings"][0]["cost_s"]
P
