"""arrow.py BUILD TMP: tables and records of a job's logs by pyarrow, against the JSON and against what the
job wrote."""
import glob
import gzip
import json
import os
import subprocess
import sys

import nccl_inspector as ni

BUILD, TMP = sys.argv[1:]
LOGS = TMP + "/logs"
subprocess.run([BUILD + "/nccl-sim", "--job", "2x2", "--procs", "--quiet"],
               env={**os.environ, **ni.env(LOGS, blackbox=0)}, check=True, cwd=TMP)
s = ni.summary(LOGS)
t = ni.tables(s)
assert {"groups", "communicators", "ranks", "hosts", "p2p_pairs", "findings", "outliers"} <= set(t), t.keys()
assert t["p2p_pairs"].num_rows == 0 and t["groups"].num_rows == len(s["groups"]) > 0
assert t["groups"]["exec_time_us.p50"].to_pylist() == [g["exec_time_us"]["p50"] for g in s["groups"]]
assert t["ranks"]["hostname"].to_pylist() == [r["hostname"] for r in s["ranks"]]
# A key that only a later row has is a column, null in the others.
assert ni.tables({"rows": [{"a": 1}, {"a": 2, "b": {"c": 3}}],
                  "no": [1, 2]})["rows"].to_pylist() == [{"a": 1, "b.c": None}, {"a": 2, "b.c": 3}]
assert list(ni.tables({"no": [1, 2], "text": "x"})) == []
assert ni.tables(ni.check(LOGS))["communicators"].num_rows == len(s["communicators"])

said = []
for path in glob.glob(LOGS + "/*.gz"):
    with gzip.open(path, "rt") as f:
        said += [(d["header"]["rank"], d["coll_perf"]["coll"], d["coll_perf"]["coll_sn"],
                  d["coll_perf"]["coll_exec_time_ns"])
                                              for d in map(json.loads, f) if "coll_perf" in d]
r = ni.records(LOGS)
rows = list(zip(*(r[k].to_pylist() for k in ("rank", "coll", "coll_sn", "coll_exec_time_ns"))))
assert sorted(rows) == sorted(said) and len(rows) == 880, (len(rows), len(said))
some = ni.records(LOGS, coll=["AllReduce"], columns=["rank", "coll_sn"])
assert some.column_names == ["rank", "coll_sn"] and some.num_rows == 80, some
assert not glob.glob(TMP + "/nccl-inspector-*")
print("%d records, %d tables" % (len(rows), len(t)))
