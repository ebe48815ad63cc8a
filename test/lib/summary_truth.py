"""Compares summary.json and the per-operation CSVs with what loggen says it wrote, at 1e-9 relative.

Usage: summary_truth.py OUT_DIR TRUTH.json [--exec-ns-rounding]   exit 0: equal; 1: the differences, one a line
"""
import csv
import glob
import json
import math
import sys

out, truth = sys.argv[1], json.load(open(sys.argv[2]))
got = json.load(open(out + "/summary/summary.json"))
wrong = []


def near(a, b, tol=1e-9):
    return a is not None and abs(a - b) <= tol * max(abs(a), abs(b), 1e-300)


key = lambda g: (g["comm_type"], g["kind"], g["func"], g["msg_size_bytes"], g["timing_source"])
mine = {key(g): g for g in got["groups"]}
theirs = {key(g): g for g in truth["groups"]}
if set(mine) != set(theirs):
    wrong.append("groups differ: only here %s, only in truth %s" %
                 (set(mine) - set(theirs), set(theirs) - set(mine)))
if got["records"] != truth["records"]:
    wrong.append("records %d, truth %d" % (got["records"], truth["records"]))
for k in set(mine) & set(theirs):
    m, t = mine[k], theirs[k]
    for f in ("records", "operations"):
        if m[f] != t[f]:
            wrong.append("%s %s: %s, truth %s" % (k, f, m[f], t[f]))
    for q in ("exec_time_us", "busbw_gbs"):
        if m[q].get("approx"):
            wrong.append("%s %s: approx" % (k, q))
        for f, v in t[q].items():
            if f == "stddev" and m[q][f] is None and t[q]["n"] == 1:
                continue
            # A standard deviation is a difference of large numbers in the truth's long doubles too.
            if (not near(m[q][f], v, 1e-9 if f != "stddev" else 1e-7) and
                not (v == 0 and abs(m[q][f]) < 1e-12)):
                wrong.append("%s %s %s: %r, truth %r" % (k, q, f, m[q][f], v))

rows = {}
for path in glob.glob(glob.escape(out) + "/summary/msg_size_*/*.csv"):
    last = None
    for row in csv.DictReader(open(path, newline="")):
        name = path.rsplit("/", 1)[1][len("summary_"):-len(".csv")].split("_")
        k = (name[0], name[1], int(row["coll_msg_size_bytes"]))
        order = (int(row["coll_sn"]), row["id"])
        if last is not None and order < last:
            wrong.append("%s: rows out of order at %s" % (path, order))
        last = order
        n, s, count = rows.get(k, (0, 0.0, 0))
        mean = float(row["mean_coll_busbw_gbs"]) if row["mean_coll_busbw_gbs"] else math.nan
        rows[k] = (n + 1, s + mean * int(row["log_count"]), count + int(row["log_count"]))
for t in truth["groups"]:
    k = (t["comm_type"], t["func"], t["msg_size_bytes"])
    n, s, count = rows.get(k, (0, 0, 0))
    if n != t["operations"] or count != t["records"] or not near(s / max(count, 1), t["busbw_gbs"]["mean"]):
        wrong.append("csv %s: %d rows, %d records, mean %r; truth %d, %d, %r" %
                     (k, n, count, s / max(count, 1), t["operations"], t["records"], t["busbw_gbs"]["mean"]))
for w in wrong[:40]:
    print(w)
print("%d groups compared, %d differences" % (len(theirs), len(wrong)))
sys.exit(1 if wrong or not theirs else 0)
