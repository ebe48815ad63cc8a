#!/usr/bin/env bash
# Steps from marks (ctl LOGS mark TEXT): marks with a rising number, or of one text, are the steps in place of the pattern in the
# operations, and the late rank is found as before; --step-by mark takes any marks, another --step-by none; odd marks change nothing.
set -euo pipefail
cd "$(dirname "$0")/../../.."
BUILD=$(realpath "${BUILD:-build}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 test/lib/step_logs.py "$work/logs"
cd "$work"
cat >mark.py <<'P'
"""mark.py OUT N TEXT [EVERY]: the logs with N marks, evenly apart or so many ms, each seen by rank r about r * 100 us after rank 0."""
import json, pathlib, sys
out, n, text, every = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4]) if len(sys.argv) > 4 else None
out.mkdir()
begin, length = 1790000000 * 10**9, 1_100_000_000
for log in sorted(pathlib.Path("logs").iterdir()):
    lines = log.read_text().splitlines()
    head = json.loads(lines[-1])
    rank = int(log.name.split("pid")[1].split(".")[0]) - 4000
    for i in range(n):
        at = begin + int(every * 1e6 * i if every else length * i // n) + rank * 100_000 + 1
        lines.append(json.dumps({"header": {"id": "0x0", "rank": rank, "n_ranks": 8, "nnodes": 0}, "metadata": head["metadata"], "control": {
            "source": "file", "file": "nccl-inspector.control", "line": 1, "command": "mark x", "mark": text.replace("#", str(7 + i)),
            "result": "done", "why": None, "events": "coll,p2p,kernelch", "verbose": False, "sample": 1, "ns": at}}))
    (out / log.name).write_text("\n".join(lines) + "\n")
P
summary() { "$BUILD/nccl-inspector" summary "$@" --no-plots --no-parquet --no-csv --no-html >text || [ $? = 2 ]; } # they have no final lines
look() { # WHAT LOGS STEPS MARK [OPTION...]
  rm -rf out
  summary "$2" --output-dir out "${@:5}"
  python3 - "$@" <<'P'
import json, sys
s = json.load(open("out/summary/summary.json"))
what, _, steps, mark = sys.argv[1:5]
got = (s["steps"]["n_steps"], s["steps"]["mark"])
assert got[0] == int(steps) and mark in got[1], (what, got)
f = s["findings"]
if got[0] >= 40:
    assert [(x["kind"], x["ranks"]) for x in f] == [("late_rank", [5])] and 0.4 * got[0] < f[0]["onset_step"] < 0.6 * got[0], (what, f)
    assert 0.03 < f[0]["cost_s"] < 0.06, (what, f)
P
}
python3 mark.py rising 40 "step #"
python3 mark.py same 60 "next batch"
python3 mark.py few 6 "checkpoint #"
python3 mark.py clumps 40 "step #" 1
look "rising" rising 40 'the first one "step 7"'
look "one text" same 60 'the first one "next batch"'
look "too few" few 120 "AllReduce on world"
look "all at once" clumps 120 "AllReduce on world"
look "asked for" few 6 "checkpoint 7" --step-by mark
look "another" rising 120 "AllReduce on world" --step-by world
# No marks, or nothing but marks that say nothing of the operations.
look "none" logs 120 "AllReduce on world"
