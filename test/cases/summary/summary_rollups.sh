#!/usr/bin/env bash
# The summary tells what roll-ups count beside what the records say, adds neither to the other, and pairs no
# sampled P2P.
. "$(dirname "$0")/../../lib/sim.sh"
for n in 1 4; do
  run_logged NCCL_INSPECTOR_SAMPLE=1/$n p2p >"$TMP/out" 2>&1
  "$BUILD/nccl-inspector" summary "$TMP/logs" --output-dir "$TMP/out$n" >"$TMP/text$n" 2>&1 ||
    { cat "$TMP/text$n"; failures=$((failures + 1)); }
done
cp -r "$TMP/logs" "$TMP/thin"
python3 - "$TMP" <<'PY' || failures=$((failures + 1))
import csv, json, sys
tmp = sys.argv[1]
def table(n, name): return list(csv.DictReader(open("%s/out%d/summary/%s.csv" % (tmp, n, name))))
def ops(n):
    t = {}
    for r in table(n, "summary_rollups"):
        k = (r["kind"], r["func"], r["msg_size_bytes"])
        t[k] = t.get(k, 0) + int(r["operations"])
    return t
whole, thin = ops(1), ops(4)
# 540 operations in the scenario, whatever is kept
assert whole == thin and sum(whole.values()) == 540, (whole, thin)
j1, j4 = (json.load(open("%s/out%d/summary/summary.json" % (tmp, n))) for n in (1, 4))
assert (j1["records"] == 540 and j1["input"]["operations_in_rollups"] == 540 and
        j1["input"]["operations_without_record"] == 0)
assert j1["input"]["operations_not_in_rollups"] == 0 and j4["input"]["operations_not_in_rollups"] == 0
assert 60 < j4["records"] < 250 and j4["input"]["operations_in_rollups"] == 540
assert j4["records"] + j4["input"]["operations_without_record"] == 540 and j4["complete"]
# nothing left out: the same numbers on both sides
for r in table(1, "summary_rollups"):
    assert r["operations"] == r["records"], r
groups = {(g["kind"], g["func"], str(g["msg_size_bytes"]), g["timing_source"]): g for g in j1["groups"]}
for r in table(1, "summary_rollups"):
    g = groups[r["kind"], r["func"], r["msg_size_bytes"], r["timing_source"]]["exec_time_us"]
    for a, b in (("mean_us", "mean"), ("min_us", "min"), ("max_us", "max")):
        assert abs(float(r[a]) - g[b]) <= 1e-6 * g[b] + 1e-9, (r, g)
    for a, b in (("p50_us_at_most", "p50"), ("p99_us_at_most", "p99")):
        assert 0.999 * g[b] <= float(r[a]) <= g["max"] * 1.000001, (r, g)
assert any(int(p["matched"]) for p in j1["p2p_pairs"]) and not any(int(p["matched"]) for p in j4["p2p_pairs"])
assert ("440" not in open(tmp + "/text1").read() and
        "no record (sampled, expired or lost)" in open(tmp + "/text4").read())
print("ok")
PY
# Killed, and recovered: what it had counted since its last roll-ups is in none, and said to be in none.
cat >"$TMP/kill.scn" <<'S'
# 200 operations that are rolled up, and 200 that are not
set ranks=4
comm world label=world
coll world func=AllReduce bytes=64k repeat=50
sync world
sleep ms=1500
coll world func=AllReduce bytes=64k repeat=50
sync world
exit how=sigkill
S
{ run_logged NCCL_INSPECTOR_SAMPLE=1/4 NCCL_INSPECTOR_ROLLUP_SECONDS=1 "$TMP/kill.scn"; } >"$TMP/out" \
  2>&1 || true
"$BUILD/nccl-inspector" recover "$TMP/logs" --box-dir "$BOXES" -q ||
  { echo "recover ends with $?"; failures=$((failures + 1)); }
"$BUILD/nccl-inspector" summary "$TMP/logs" --output-dir "$TMP/killed" --no-plots >"$TMP/text" 2>&1 || true
grep -qE 'summary_rollups.csv has [0-9]+ of all 400 \(of the rest no' "$TMP/text" ||
  { cat "$TMP/text"; failures=$((failures + 1)); }
python3 - "$TMP/killed/summary/summary.json" <<'PY' || failures=$((failures + 1))
import json, sys
d = json.load(open(sys.argv[1]))
n = d["input"]
assert d["records"] + n["operations_without_record"] == 400, (d["records"], n)
assert (n["operations_in_rollups"] + n["operations_not_in_rollups"] == 400 and
        n["operations_not_in_rollups"] > 0), n
PY
for how in --since=+0s --approximate; do
  "$BUILD/nccl-inspector" summary "$TMP/thin" --output-dir "$TMP/none" $how >"$TMP/text" 2>&1 || [ $? = 2 ]
  grep -q 'the tables do not have them' "$TMP/text" && ! grep -q 'summary_rollups.csv' "$TMP/text" ||
    { echo "$how: summary names a file that it has not written"; head -n 4 "$TMP/text"; failures=$((failures + 1)); }
  [ ! -e "$TMP/none/summary/summary_rollups.csv" ] ||
    { echo "$how: roll-ups of whole minutes"; failures=$((failures + 1)); }
done
finish
