#!/usr/bin/env bash
# Dask reads the data set of convert, by folders of communicators and hosts: counts and sums are those of the
# logs.
. "$(dirname "$0")/../lib/case.sh"
python=$("$ROOT/test/foreign/setup.sh" "dask[dataframe]")
cd "$TMP"
python3 "$ROOT/test/lib/series_logs.py" logs
rc=0; "$BUILD/nccl-inspector" convert --dataset out --partition comm,host logs -q 2>/dev/null || rc=$?
[ $rc = 2 ] # these logs have no end
"$python" - <<'P'
import glob, json
from collections import Counter
import dask.dataframe as dd
count, time = Counter(), Counter()
for f in glob.glob("logs/*.jsonl"):
    for x in map(json.loads, open(f)):
        if "coll_perf" in x:
            key = x["metadata"]["hostname"], x["coll_perf"]["coll"]
            count[key] += 1
            time[key] += x["coll_perf"]["coll_exec_time_ns"]
t = dd.read_parquet("out/dataset")
g = t.groupby(["hostname", "coll"]).coll_exec_time_ns.agg(["count", "sum"]).compute()
assert {k: int(v["count"]) for k, v in g.iterrows()} == dict(count), g
assert {k: int(v["sum"]) for k, v in g.iterrows()} == dict(time), g
assert ((t.comm.astype(str) == t.id.astype(str)).all().compute() and
        (t.host.astype(str) == t.hostname.astype(str)).all().compute())
print(g)
P
