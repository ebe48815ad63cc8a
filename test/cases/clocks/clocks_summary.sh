#!/usr/bin/env bash
# A host's clock is off by 0.05 s to 317 s, or is set by 2 s in the middle of the run: what summary finds,
# what it costs and how long the run took are as they were, and one line says whose clock it is. Where clocks
# agree nothing is said. So it is where each message has another size: few records of one size say nothing of
# their order.
. "$(dirname "$0")/../../lib/case.sh"
"$BUILD/test/ni-jobs" --layout A --kind late --size 10 --seed 4 --steps 30 --stored --out "$TMP/right" \
  >/dev/null
cd "$TMP"
summary() {
  "$INSPECTOR" summary "$1" --no-index --no-plots --no-html --no-parquet --no-csv --output-dir "out-$1" \
    >"$1.txt"
}
shift_clock() { python3 "$ROOT/test/lib/shift_clock.py" right "$@"; }
summary right
! grep -q CLOCKS right.txt || fail "clocks that agree are worth no line"
shift_clock ahead05 node-1 0.05
shift_clock ahead5 node-1 0.5
shift_clock behind3 node-1 -3
shift_clock ahead317 node-1 317
shift_clock forward node-1 2 2.6
shift_clock back node-1 -2 2.6
for d in ahead05 ahead5 behind3 ahead317 forward back; do summary $d; done
"$BUILD/test/ni-jobs" --layout C --kind stage --size 15 --seed 50253400 --steps 24 --with tokens=0.02 \
  --stored --out sizes >/dev/null
python3 "$ROOT/test/lib/shift_clock.py" sizes sizes_back node-1 -1 2.4
for d in sizes sizes_back; do summary $d; done
# Set back by half a step, a clock shows no time that runs back where operations are far apart. Some
# communicators join two hosts alone, which cannot say whose clock it was.
"$BUILD/test/ni-jobs" --layout M --kind healthy --seed 28 --steps 30 --host-offset-s 1.5 \
  --clock-step-s -0.0255 --stored --out half >/dev/null
summary half
grep -q '^no rank, host or communicator stands out$' half.txt || fail "half a step: $(head -12 half.txt)"
[ "$(grep -o 'was set' half.txt | wc -l)" = 1 ] || fail "half a step: $(grep CLOCKS half.txt)"
grep -qE '^CLOCKS: the clock of node-1 was set back by (1 s|1000 ms) at ' sizes_back.txt ||
  fail "sizes: $(grep CLOCKS sizes_back.txt)"
grep -qE '^CLOCKS: the clock of node-1 is 4[0-9](\.[0-9]+)? ms ahead of node-[023].s; times here are corrected, to within about [0-9.]+ us$' ahead05.txt || fail "0.05 s: $(grep CLOCKS ahead05.txt)"
grep -qE '^CLOCKS: the clock of node-1 is 3\.00[0-9]* s behind node-[023].s;' behind3.txt ||
  fail "3 s: $(grep CLOCKS behind3.txt)"
grep -qE '^CLOCKS: the clock of node-1 is (317|316\.99[0-9]*) s ahead of node-[023].s;' ahead317.txt ||
  fail "317 s: $(grep CLOCKS ahead317.txt)"
grep -qE '^CLOCKS: the clock of node-1 was set forward by 2 s at 20[0-9-]+ [0-9:]+Z;' forward.txt ||
  fail "forward: $(grep CLOCKS forward.txt)"
grep -qE '^CLOCKS: the clock of node-1 was set back by 2 s at ' back.txt ||
  fail "back: $(grep CLOCKS back.txt)"
python3 - right/truth.json <<'P' || failures=$((failures + 1))
import json, sys
def load(d): return json.load(open("out-%s/summary/summary.json" % d))
def key(f): return f["kind"], f["ranks"], f["class"] if "class" in f else ""
truth = {h["name"]: h for h in json.load(open(sys.argv[1]))["hosts"]}
bad = 0
cases = [("right", d) for d in ("ahead05", "ahead5", "behind3", "ahead317", "forward",
                                "back")] + [("sizes", "sizes_back")]
for of, d in cases:
    right, s = load(of), load(d)
    if not (right["findings"] and s["findings"]):
        print("FAIL %s: %d findings, %d" % (d, len(right["findings"]), len(s["findings"])))
        bad += 1
        continue
    a, b = right["findings"][0], s["findings"][0]
    took = [(x["last_us"] - x["first_us"]) / 1e6 for x in (right, s)]
    clock = {h["hostname"]: h for h in s["clocks"]["hosts"]}
    same = (key(a) == key(b) and len(s["findings"]) == len(right["findings"]) and
            abs(b["cost_s"] / a["cost_s"] - 1) < 0.1)
    whole = abs(took[1] - took[0]) < 0.001 and s["clocks_disagree"] == right["clocks_disagree"]
    known = s["clocks"]["corrected"] and clock["node-1"]["corrected"] and clock["node-1"]["compared"]
    if not (same and whole and known):
        print("FAIL %s: %s, %s; %s" % (d, (key(a), a["cost_s"], took[0]), (key(b), b["cost_s"], took[1]),
                                       clock))
        bad += 1
# How well: the truth is known to the ns. Drift of clocks is up to 20 ppm, the run takes about a second.
c = {h["hostname"]: h for h in load("ahead317")["clocks"]["hosts"]}
r = next(h["reference"] for h in c.values())
want = 317e9 + truth["node-1"]["clock_offset_ns"] - truth[r]["clock_offset_ns"]
off = abs(c["node-1"]["ahead_ns"] - want)
if not (off < 60000 and off < c["node-1"]["error_ns"]):
    print("FAIL the clock of node-1 is off by %d ns, %d are stated" % (off, c["node-1"]["error_ns"]))
    bad += 1
sys.exit(bad > 0)
P
finish
