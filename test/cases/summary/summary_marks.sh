#!/usr/bin/env bash
# Steps from marks (ctl LOGS mark TEXT): marks with a rising number, or of one text, are the steps in place of
# the pattern in the operations, and the late rank is found as before; --step-by mark takes any marks, another
# --step-by none; odd marks change nothing.
. "$(dirname "$0")/../../lib/case.sh"
python3 test/lib/step_logs.py "$TMP/logs"
root=$PWD
cd "$TMP"
# they have no final lines
summary() {
  "$BUILD/nccl-inspector" summary "$@" --no-plots --no-parquet --no-csv --no-html >text || [ $? = 2 ]
}
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
    assert ([(x["kind"], x["ranks"]) for x in f] == [("late_rank", [5])] and
            0.4 * got[0] < f[0]["onset_step"] < 0.6 * got[0]), (what, f)
    assert 0.03 < f[0]["cost_s"] < 0.06, (what, f)
P
}
python3 "$root/test/lib/mark_logs.py" logs rising 40 "step #"
python3 "$root/test/lib/mark_logs.py" logs same 60 "next batch"
python3 "$root/test/lib/mark_logs.py" logs few 6 "checkpoint #"
python3 "$root/test/lib/mark_logs.py" logs clumps 40 "step #" 1
look "rising" rising 40 'the first one "step 7"'
look "one text" same 60 'the first one "next batch"'
look "too few" few 120 "AllReduce on world"
look "all at once" clumps 120 "AllReduce on world"
look "asked for" few 6 "checkpoint 7" --step-by mark
look "another" rising 120 "AllReduce on world" --step-by world
# No marks, or nothing but marks that say nothing of the operations.
look "none" logs 120 "AllReduce on world"
