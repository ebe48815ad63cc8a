#!/usr/bin/env bash
# hang says of logs whose hosts disagree on the time what it says of the same logs with clocks that agree, and
# whose clock it is.
. "$(dirname "$0")/../../lib/case.sh"
cd "$TMP"
mkdir right none
python3 "$ROOT/test/lib/hang_logs.py" right AllReduce -
said() {
  local rc=0
  "$INSPECTOR" hang "$1" --box-dir none --no-index --json >"$1.json" || rc=$?
  echo $rc >"$1.rc"
}
said right
for s in 3 -40 317; do
  python3 "$ROOT/test/lib/shift_clock.py" right "by$s" node-1 $s
  said "by$s"
  cmp right.rc "by$s.rc" || fail "$s s: exit code $(cat "by$s.rc")"
done
python3 - <<'P' || failures=$((failures + 1))
import json, sys
def load(name):
    x = json.load(open(name))
    for k in x["waits"]: # files are others, and as old as they are
        for r in k["ranks"]: r.pop("file"), r.pop("file_age_s")
    return x
right, bad = load("right.json"), 0
for s in 3, -40, 317:
    x = load("by%d.json" % s)
    off = {h["hostname"]: h["ahead_ns"] / 1e9 for h in x["clocks"]["hosts"] if h["corrected"]}
    known = len(off) == 1 and abs(abs(list(off.values())[0]) - abs(s)) < 0.1
    same = all(right[k] == x[k] for k in ("answer", "verdict", "sentence", "ranks", "waits"))
    if not (known and same):
        print("FAIL %d s: %s; %s\n  %s" % (s, off, x["sentence"], right["sentence"]))
        bad += 1
sys.exit(bad > 0 or right["answer"] == "no_hang")
P
"$INSPECTOR" hang by317 --box-dir none --no-index >text || true
grep -qE '^CLOCKS: the clock of node-1 is 317 s ahead of node-0.s; times here are corrected' text ||
  fail "$(cat text)"
finish
