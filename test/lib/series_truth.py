"""Sums by time worked out again, line by line, beside what the summary wrote. Usage: series_truth.py LOGS OUT
WIDTH_NS [FIRST LAST | groups]

FIRST, LAST: the records that pass the filter, in us, both ends included."""
import csv, glob, gzip, json, statistics, sys
from collections import defaultdict

logs, out, w = sys.argv[1], sys.argv[2], int(sys.argv[3])
first, last = (int(x) for x in sys.argv[4:6]) if len(sys.argv) > 5 else (0, 2**62)
grouped = len(sys.argv) == 5
part = lambda rank: (["first", "first", "late", "rest of it"][rank] if grouped else "",)
records, rolled, samples = {}, defaultdict(lambda: [0, 0, 0, 0]), []
for path in sorted(glob.glob(logs + "/*")):
    for x in map(json.loads, gzip.open(path, "rt") if path.endswith("gz") else open(path)):
        if "coll_perf" in x:
            o = x["coll_perf"]
            t = o["coll_enqueue_ns"] + o["coll_gpu_start_delta_ns"] if "coll_enqueue_ns" in o else x["metadata"]["dump_timestamp_us"] * 1000
            records.setdefault((x["header"]["id"], o["coll"], o["coll_msg_size_bytes"], o["coll_sn"],
                                x["header"]["rank"]), (t, o, x["metadata"]["pid"] - 7000))
        if "rollup" in x:
            r = x["rollup"]
            s = rolled[(r["to_ns"] - 1) // w]
            s[0] += r["count"]; s[1] += r["sum_bytes"]; s[2] += r["sum_ns"]; s[3] = max(s[3], r["max_ns"])
origin = min(v[0] for v in records.values())
ops = defaultdict(list)
for k, v in records.items():
    if first <= v[0] // 1000 <= last: ops[k[:4]].append(v)
# operations, records, bytes, ns, max, busbw, late, late ns
want = defaultdict(lambda: [0, 0, 0, 0, 0, [], 0, 0])
for (comm, func, size, sn), parts in ops.items():
    t, _, rank = min(parts, key=lambda v: v[0])  # the first rank of those that came at once
    want[(t // w - origin // w, comm, func) + part(rank)][0] += 1
    for t, o, rank in parts:
        x, ns = want[(t // w - origin // w, comm, func) + part(rank)], o["coll_exec_time_ns"]
        x[1] += 1; x[2] += size; x[3] += ns; x[4] = max(x[4], ns)
        if o["coll_busbw_gbs"] is not None: x[5].append(o["coll_busbw_gbs"])
        peers = [q["coll_exec_time_ns"] for _, q, _ in parts if q is not o]
        if peers and ns * 10 < statistics.median(peers) * 8:
            x[6] += 1; x[7] += int(2 * statistics.median(peers)) // 2 - ns
near = lambda a, b: abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1e-9)
rows = list(csv.DictReader(open(out + "/summary/series.csv")))
assert len(rows) == len(want), (len(rows), len(want))
for r in rows:
    x = want[int(r["bucket"]), r["id"], r["func"], r["log_group"]]
    assert (int(r["start_ns"]) == (origin // w + int(r["bucket"])) * w and
            int(r["since_ms"]) * 10**6 == int(r["bucket"]) * w), r
    assert [int(r[k]) for k in ("operations", "records", "bytes", "late")] == [x[0], x[1], x[2], x[6]], (r, x)
    assert (near(float(r["exec_time_us"]), x[3] / 1e3) and near(float(r["max_us"]), x[4] / 1e3) and
            near(float(r["late_us"]), x[7] / 1e3)), (r, x)
    assert (near(float(r["busbw_gbs"]), sum(x[5]) / len(x[5])) if x[5] else r["busbw_gbs"] == ""), (r, x)
s = json.load(open(out + "/summary/summary.json"))
total = lambda k: sum(int(r[k]) for r in rows)
assert (total("records"), total("operations"),
        total("late")) == (s["records"], s["operations"], sum(p["late"] for p in s["ranks"]))
assert s["series"]["origin_ns"] == origin and s["series"]["first_bucket_ns"] == origin // w * w
for j, r in zip(s["series"]["records"], rows):
    assert (all(str(j[k]) == r[k] for k in ("bucket", "start_ns", "records", "func", "late")) and
            j["mean_us"] == float(r["mean_us"]))
print(w, len(rows), "rows agree",
      [sum(int(r["records"]) // 4 * 2 for r in rows if r["id"].endswith("101") and int(r["bucket"]) == b)
       for b in range(6)])
if len(sys.argv) > 4: sys.exit()
if grouped:
    for g in s["log_groups"]:
        mine = [(v[1], k) for k, v in records.items() if part(v[2]) == (g["log_group"],)]
        assert (g["records"] == len(mine) and
                near(g["exec_time_us"], sum(o["coll_exec_time_ns"] for o, k in mine) / 1e3)), g
        table = [r for r in csv.DictReader(open(out + "/summary/summary_by_log_group.csv"))
                 if r["log_group"] == g["log_group"]]
        for r in table:
            us = [o["coll_exec_time_ns"] / 1e3 for o, k in mine if k[1] == r["func"] and
                  k[2] == int(r["msg_size_bytes"]) and o["coll_timing_source"] == r["timing_source"]
                  and (r["comm_type"] == "nvlink-only") == (k[0][-3] == "2")]
            assert (int(r["records"]) == len(us) and
                    near(float(r["exec_time_us_mean"]), sum(us) / len(us)) and
                    near(float(r["exec_time_us_max"]), max(us))), r
        assert sum(int(r["records"]) for r in table) == len(mine)
    assert ([g["log_group"] for g in s["log_groups"]] == ["late", "first", "rest of it"] and
            sum(g["records"] for g in s["log_groups"]) == s["records"])
rows = list(csv.DictReader(open(out + "/summary/series_rollups.csv")))
got = {int(r["bucket"]) + origin // w: [int(r["operations"]), int(r["bytes"]),
                                        round(float(r["exec_time_us"]) * 1e3),
                                        round(float(r["max_us"]) * 1e3)] for r in rows}
assert got == dict(rolled), (got, dict(rolled))
host = defaultdict(lambda: [0, 0, []])
for h in range(2):
    for i in range(1, 13):
        t = 1790000000 * 10**9 + i * 5 * 10**8
        x = host[(t - 1) // w - origin // w, "node-%d" % h, "rx_bytes"]
        rise = lambda i: (i if i < 4 else max(4, i - 6)) ** 2
        x[0] += 1; x[1] += 1000 * (h + 1) * (rise(i) - rise(i - 1))
        x = host[t // w - origin // w, "node-%d" % h, "temp"]
        x[0] += 1; x[2].append(40 + 10 * h + i // 3)
host = {k: x for k, x in host.items() if x[1] or x[2]}  # a counter that stood still has no row
rows = list(csv.DictReader(open(out + "/summary/series_hosts.csv")))
assert len(rows) == len(host), (len(rows), len(host))
for r in rows:
    x = host[int(r["bucket"]), r["hostname"], r["counter"]]
    assert int(r["samples"]) == x[0], (r, x)
    if r["kind"] == "gauge":
        assert (near(float(r["mean"]), sum(x[2]) / len(x[2])) and float(r["max"]) == max(x[2]) and
                float(r["min"]) == min(x[2])), (r, x)
    else: assert int(r["delta"]) == x[1] and near(float(r["per_second"]), x[1] / x[0] * 2), (r, x)
