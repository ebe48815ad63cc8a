#!/usr/bin/env python3
"""Takes records out of a log of trace_logs.py, as a full pool would have: those of communicator "world" from
FROM to TO of its numbers, told by one gap line behind each EACH of them. trace_lose.py LOG FROM TO EACH"""
import json, sys

path, first, last, each = sys.argv[1], *map(int, sys.argv[2:])
with open(path) as f:
    lines = f.read().splitlines()
out, lost = [], []


def tell():
    if lost:
        o = {"header": lost[-1]["header"], "metadata": lost[-1]["metadata"],
             "gap": {"kind": "coll", "count": len(lost), "cause": "pool_full",
                     "rec_sn_from": lost[0]["coll_perf"]["rec_sn"],
                     "rec_sn_to": lost[-1]["coll_perf"]["rec_sn"]}}
        out.append(json.dumps(o, separators=(",", ":")))
        lost.clear()


for l in lines:
    o = json.loads(l)
    if "coll_perf" in o and o["header"]["comm_name"] == "world" and first <= o["coll_perf"]["rec_sn"] <= last:
        lost.append(o)
        if len(lost) == each:
            tell()
        continue
    if "coll_perf" in o and o["header"]["comm_name"] == "world":
        tell()
    out.append(l)
tell()
with open(path, "w") as f:
    f.write("\n".join(out) + "\n")
print(len(lines) - len(out), "lines less")
