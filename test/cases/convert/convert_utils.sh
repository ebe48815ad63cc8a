#!/usr/bin/env bash
# dftracer-utils reads what `convert --pfw` writes, and our raw logs by contrib/dftracer/nccl-inspector.yaml:
# counts, times and bytes are those of the logs.
. "$(dirname "$0")/../../lib/case.sh"
python=$("$ROOT/test/foreign/setup.sh" dftracer-utils==0.0.14)
cd "$TMP"
python3 "$ROOT/test/lib/late_logs.py" late
gzip late/*
rc=0; "$BUILD/nccl-inspector" convert --pfw pfw late -q 2>/dev/null || rc=$?
[ $rc = 2 ] # these logs have no end
view() { "$(dirname "$python")/dftracer_view" --log-level error "$@" 2>/dev/null | grep '^{'; }
view -d pfw --group-by cat,name,pid --agg count,sum:dur,min:dur,max:dur,sum:size_sum >pfw.out
DFTRACER_SCHEMA_PATH=$ROOT/contrib/dftracer/nccl-inspector.yaml
export DFTRACER_SCHEMA_PATH
by=(--schema nccl_inspector --group-by "coll_perf.coll,header.rank" --agg "count,sum:coll_perf.coll_exec_time_ns")
view -d late "${by[@]}" >raw.out
view -d late --schema nccl_inspector --time-range 1790000000500000,1790000001000000 --agg count >range.out
"$python" - <<'P'
import glob, gzip, json
ops = [x for f in glob.glob("late/*.gz") for x in map(json.loads, gzip.open(f)) if "coll_perf" in x]
rank = lambda r: [x["coll_perf"] for x in ops if x["header"]["rank"] == r]
pfw = {int(x["pid"]): x for x in map(json.loads, open("pfw.out"))}
assert sorted(pfw) == [0, 1, 2, 3] and sum(x["count"] for x in pfw.values()) == 800, pfw
for r, x in pfw.items():
    us = [o["coll_exec_time_us"] for o in rank(r)]
    assert (x["cat"], x["name"], x["sum_dur"], x["min_dur"],
            x["max_dur"]) == ("comm", "AllReduce", sum(us), min(us), max(us)), x
    assert x["sum_size_sum"] == 200 << 20, x
assert min(pfw, key=lambda r: pfw[r]["sum_dur"]) == 2
raw = [x for x in map(json.loads, open("raw.out")) if x["coll_perf.coll"] == "AllReduce"]
assert len(raw) == 4, raw
for x in raw:
    o = rank(int(x["header.rank"]))
    assert (x["count"] == len(o) and
            x["sum_coll_perf.coll_exec_time_ns"] == sum(v["coll_exec_time_ns"] for v in o)), x
inside = sum(1790000000_500000_000 <= x["coll_perf"]["coll_enqueue_ns"] < 1790000001_000000_000 for x in ops)
assert ([json.loads(x)["count"] for x in open("range.out")] == [inside] and
        inside == 200), (open("range.out").read(), inside)
print("800 operations agree")
P
