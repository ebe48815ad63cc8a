#!/usr/bin/env bash
# Engines that serve requests: no step is like another, so ranks are compared operation by operation and
# transfers at equal sizes. The first rank of an engine, for which the others wait until a request comes, is
# not accused; a slow GPU, a rank that stops, a slow link and a host whose GPUs are slow are named.
. "$(dirname "$0")/../../lib/case.sh"
cd "$TMP"
for cause in none gpu gc nvlink hot contexts; do
  python3 "$ROOT/test/lib/request_logs.py" "$cause" "$cause"
  "$BUILD/nccl-inspector" summary "$cause" --no-plots --no-parquet --no-csv --no-html \
    --output-dir "out-$cause" >"$cause.text" || [ $? = 2 ]
done
mkdir missing
cp nvlink/*node-0* missing
cp nvlink/*node-1* missing
rm "$(ls missing/*node-1* | tail -n 1)"
"$BUILD/nccl-inspector" summary missing --no-plots --no-parquet --no-csv --no-html --output-dir out-missing \
  >missing.text || [ $? = 2 ]
mkdir across # each engine has a rank on a third host: nobody knows whose link it is, but whose communicator
cp nvlink/*.jsonl across
sed -i 's/"node-[01]"/"node-2"/g' across/*pid4003.jsonl across/*pid4007.jsonl
"$BUILD/nccl-inspector" summary across --no-plots --no-parquet --no-csv --no-html --output-dir out-across \
  >across.text || [ $? = 2 ]
python3 - <<'P' || { cat ./*.text; fatal findings; }
import json
missing = json.load(open("out-missing/summary/summary.json"))
assert missing["findings"] == [], "who has no log may have come last, and what the others waited is no transfer"
cases = ("none", "gpu", "gc", "nvlink", "hot", "contexts")
said = {c: json.load(open(f"out-{c}/summary/summary.json")) for c in cases}
for c, s in said.items():
    assert (s["findings_by"] == "durations" and
            "requests of inference" in s["findings_by_durations_since"]), (c, s["findings_by"])
    assert "steps" not in s and len(s["findings"]) == (c not in ("none", "contexts")), (c, s["findings"])
    assert not any(o["func"] == "Broadcast" for o in s["outliers"] if o["kind"] == "late"), c
gpu, gc, nvlink, hot = (said[c]["findings"][0] for c in ("gpu", "gc", "nvlink", "hot"))
assert (gpu["kind"], gpu["class"], gpu["rank"]) == ("late_rank", "fault", 5), gpu
assert (gc["kind"], gc["class"], gc["rank"]) == ("rank_pauses", "fault", 6), gc
assert 0.5 < gc["lost_us"] / 1e6 / 0.6 < 1.1, gc
assert 0.8 < gc["cost_s"] / 0.6 < 1.05 and abs(gc["cost_percent"] - 100 * gc["cost_s"] * 1e6 / (
    said["gc"]["last_us"] - said["gc"]["first_us"])) < 0.01, gc
assert 0 < gpu["cost_s"] < gpu["lost_us"] / 1e6, ("the run ends with the other engine then", gpu)
assert ((nvlink["kind"], nvlink["hostname"]) == ("slow_nvlink", "node-1") and
        2.5 < nvlink["transfer_ratio"] < 3.1), nvlink
assert (hot["kind"], hot["level"], hot["hostname"]) == ("slow_host", "host", "node-1"), hot
assert hot["ranks"] == [4, 5, 6, 7], hot
assert 0 < hot["cost_s"] <= hot["lost_us"] / 1e6, hot
across, = json.load(open("out-across/summary/summary.json"))["findings"]
assert (across["kind"], across["ranks"],
        across["hosts"]) == ("slow_communicator", [4, 5, 6, 7], ["node-1", "node-2"]), across
P
tr -s "\n " " " <gpu.text | grep -Eq "waited at most [0-9.]+ ms for it in all, [0-9.]+ % of their time; it costs about [0-9.]+ ms, [0-9.]+ % of the run" ||
  fail "what it costs"
tr -s "\n " " " <hot.text |
  grep -q "compute 1.20 times as long as others between operations of the same size" ||
  fail "by how much a host is slow"
grep -q "at equal sizes" nvlink.text || fail "what it is compared with"
finish
