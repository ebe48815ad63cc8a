#!/usr/bin/env bash
# Jobs with planted causes (docs/verdicts.md): their logs are complete, a cause costs time and changes no
# other draw, the same seed gives the same bytes; and the scorer knows who is named rightly, who is close and
# who is innocent.
. "$(dirname "$0")/../../lib/case.sh"
inspector=$BUILD/nccl-inspector jobs=$BUILD/test/ni-jobs

while read -r layout kind size; do
  dir=$TMP/$layout-$kind-${size:-0}-7
  "$jobs" --layout "$layout" --kind "$kind" ${size:+--size "$size"} --seed 7 --steps 60 --out "$dir" \
    >/dev/null
  "$inspector" check "$dir" >"$TMP/check" ||
    { fail "$layout $kind: check exits $?"; tail -n 3 "$TMP/check"; exit 1; }
  grep -q '^COMPLETE$' "$TMP/check"
done <<'END'
A healthy
A late 30
B nic 4
C stage 30
F intermittent 20
M uneven 60
END
"$jobs" --layout A --kind late --size 30 --seed 7 --steps 60 --out "$TMP/again" >/dev/null
diff -r "$TMP/A-late-30-7" "$TMP/again"
rm -r "$TMP/again"
[ "$("$jobs" --layout Z 2>&1 >/dev/null; echo $?)" = "ni-jobs: there is no layout Z (ni-jobs --help)
64" ]
"$jobs" --layout A --kind late --cost 4..5 --seed 7 --steps 60 | grep -qE 'cost 4\.[0-9]+ %'

python3 - "$TMP" "$inspector" <<'P'
import json, os, subprocess, sys
sys.path.insert(0, "test/verdicts")
import judge, plan, table
work, inspector = sys.argv[1:]
truth = {n: json.load(open(os.path.join(work, n, "truth.json"))) for n in os.listdir(work)
         if os.path.isdir(os.path.join(work, n))}
assert len(truth) == 6
for n, t in truth.items():
    assert (t["cost_s"] == 0) == (t["kind"] == "healthy") and t["cost_s"] >= 0, (n, t["cost_s"])
    assert t["step_begin_s"] == sorted(t["step_begin_s"]) and len(t["step_begin_s"]) == 60, n
    assert all(0 < sum(x["step_ns"]) / 1e9 < t["job_s"] for x in t["exposed"]), n
# The fault moves nothing but itself.
assert truth["A-late-30-7"]["job_without_s"] == truth["A-healthy-0-7"]["job_s"]
assert truth["F-intermittent-20-7"]["incidents"] and truth["C-stage-30-7"]["culprits"][0]["level"] == "stage"
assert not any("world" in c["role"] and c["ranks"] != list(range(32))
               for c in truth["A-late-30-7"]["communicators"])

late = truth["A-late-30-7"]
rank, host = late["culprits"][0]["rank"], late["culprits"][0]["host"]
def said(*findings):
    return judge.judge(late, {"complete": True,
                              "findings": [dict({"kind": "late_rank", "text": "",
                                                 "lost_us": 1e6 * late["cost_s"]}, **f) for f in findings]})
def outcome(o): return [o["first"], o["exactly"], o["named"], o["innocents"]]
assert (outcome(said({"rank": rank, "hostname": host})) == [True, True, 1, 0] and
        abs(said({"rank": rank})["lost"] - 1) < 1e-9)
assert outcome(said({"rank": (rank + 1) % 32}, {"rank": rank})) == [False, True, 1, 1]
assert outcome(said({"level": "host", "hosts": [host]})) == [True, False, 1, 0]
assert outcome(said({"kind": "undecided", "level": "job"})) == [False, False, 0, 0]
assert outcome(said({"level": "rank", "ranks": [rank, (rank + 1) % 32]})) == [False, False, 0, 1]
assert judge.judge(truth["A-healthy-0-7"],
                   {"complete": True, "findings": [{"kind": "undecided", "text": ""}]})["innocents"] == 1

got = []
for n in ("A-late-30-7", "A-healthy-0-7"):
    layout, kind, asked, seed = n.split("-")
    got.append(dict(judge.score(inspector, os.path.join(work, n), os.path.join(work, "out-" + n)),
                    row=plan.row(kind, float(asked)), job=n))
assert all(o["complete"] for o in got)
assert [r.split("|")[1].strip()
        for r in table.markdown(got).split("\n\n")[1].split("\n")[2:]] == ["late +30 %", "healthy"]
assert table.totals(got)[-1][1:3] == ["100.0 % of 1"] * 2, table.totals(got)
names = [plan.name(j) for j in plan.jobs(True, 4, layouts="AC")]
assert (len(set(names)) == len(names) and all(int(n.rsplit("-", 1)[1]) % 2 for n in names) and
        "C-stage-cost-" in " ".join(names))
P
echo "6 jobs"
