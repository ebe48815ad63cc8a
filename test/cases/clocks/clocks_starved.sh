#!/usr/bin/env bash
# CPUs were starved in the first half of a run: clock lines state offsets of GPUs' clocks that are 5 to 60 ms
# too large, and GPU times are as much too late, until a stamp is delivered in time. What summary finds of the
# late rank, what it costs, who waited and how long the run took are as without that, and no host's clock is
# said to have been set; so it is for shards, threads and the index, and for files that end, or are cut into
# parts, in the middle of it. Where it is no delivery but a clock that somebody set, times stay as the log has
# them.
. "$(dirname "$0")/../../lib/case.sh"
"$BUILD/test/ni-jobs" --layout A --kind late --size 10 --seed 4 --steps 24 --stored --out "$TMP/right" \
  >/dev/null
cd "$TMP"
starve() { python3 "$ROOT/test/lib/starve_clock.py" "$@"; }
starve right starved 0.45
starve right cut 0.45 cut
starve right set 0.45 set
summary() {
  "$INSPECTOR" summary "$1" --no-plots --no-html --no-parquet --output-dir "$2" "${@:3}" >"$2.txt"
}
summary right out-right --no-index
for d in starved cut; do
  summary $d out-$d --no-index --jobs 1
  ! grep -q CLOCKS out-$d.txt || fail "$d: $(grep CLOCKS out-$d.txt)"
  ! "$INSPECTOR" check $d | grep CLOCKS || fail "$d: check says that a clock was set"
  summary $d out-four --no-index --jobs 4
  "$INSPECTOR" index -q $d
  summary $d out-indexed
  summary $d since --since +0.2s --no-index
  summary $d since-indexed --since +0.2s
  for i in 1 2 3; do
    "$INSPECTOR" summary $d --shard "$i/3" --partial "p$i" --no-parquet --quiet >/dev/null
  done
  "$INSPECTOR" merge --output-dir m123 --no-plots --no-html p1 p2 p3 >/dev/null
  "$INSPECTOR" merge --output-dir m312 --no-plots --no-html p3 p1 p2 >/dev/null
  for x in out-four out-indexed m123 m312; do
    cmp out-$d/summary/summary.json $x/summary/summary.json || fail "$d: summary.json: $x"
    diff -rq out-$d/summary $x/summary || fail "$d: tables: $x"
  done
  cmp since/summary/summary.json since-indexed/summary/summary.json || fail "$d: --since with the index"
  rm -r out-four out-indexed m123 m312 since since-indexed p1 p2 p3
done
summary set out-set --no-index
python3 - <<'P' || failures=$((failures + 1))
import json, sys
def load(d): return json.load(open("out-%s/summary/summary.json" % d))
TIMES = "first_us", "last_us", "run", "steps", "findings", "outliers", "clocks_disagree", "clocks", "ranks", "groups"
def said(s, keys):
    return {k: json.loads(json.dumps(s[k])) for k in keys if k in s}
def without_files(x):
    if isinstance(x, dict):
        return {k: without_files(v) for k, v in x.items() if k not in ("file", "command", "next")}
    return [without_files(v) for v in x] if isinstance(x, list) else x
right, bad = load("right"), 0
if not right["findings"]:
    sys.exit("FAIL nothing was found in the job as it was")
for d in "starved", "cut":
    s = load(d)
    for k, v in said(right, TIMES).items():
        if without_files(v) != without_files(s[k]):
            print("FAIL %s: %s is other than without starved CPUs: %.300s" % (d, k, s[k]))
            bad += 1
took = [(x["last_us"] - x["first_us"]) / 1e6 for x in (right, load("set"))]
if abs(took[1] - took[0]) > 0.1: # 60 ms of those that are late; 2 s, had they been put right
    print("FAIL a clock that was set: the run takes %.3f s instead of %.3f" % (took[1], took[0]))
    bad += 1
sys.exit(bad > 0)
P
finish
