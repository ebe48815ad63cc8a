"""Pictures of sums by time against the tables: the lines of the scripts, worked out again from series.csv and the others. Usage: series_pictures.py OUT"""
import csv, os, re, sys
from collections import defaultdict

out = sys.argv[1] + "/summary"
table = lambda name: list(csv.DictReader(open("%s/%s.csv" % (out, name))))
rows, hosts, rolled = table("series"), table("series_hosts"), table("series_rollups")
buckets = max(int(r["bucket"]) for r in rows) + 1
each = -(-buckets // 400)
columns = -(-buckets // each)
near = lambda a, b: abs(a - b) <= 6e-5 * max(abs(a), abs(b), 1e-9)


def panels(name):
    """Of each panel: what its lines are called and {column: mean}."""
    assert os.path.getsize("%s/%s.svg" % (out, name)) > 5000, name
    text = open("%s/gnuplot/%s.svg.gp" % (out, name)).read()
    found = []
    parts = text.split("set title")
    for before, part in zip(parts, parts[1:]):  # a panel's data come before its title, which says the unit that fits them
        lines = {}
        for n, title in re.findall(r"\$(l\d|r) using 1:2 .*? title '(.*?)'", part[part.index("\nplot "):]):
            data = re.search(r"\$%s << EOD\n(.*?)EOD" % n, before[before.find("\nplot ") + 1:], re.S).group(1)
            lines[title] = {int(float(x.split()[0])): float(x.split()[1]) for x in data.splitlines() if x}
        found.append(lines)
    return found


def same(lines, want, what):
    assert set(lines) == set(want), (what, set(lines), set(want))
    for name, line in lines.items():
        value = {c: num / den for c, (num, den) in want[name].items() if den}
        assert set(line) == set(value), (what, name, len(line), len(value))
        assert all(near(line[c], value[c]) for c in line), (what, name)
    return sum(len(x) for x in lines.values())


def add(to, name, bucket, num, den):
    x = to[name][int(bucket) // each]
    x[0] += num
    x[1] += den


new = lambda: defaultdict(lambda: defaultdict(lambda: [0, 0]))
n = 0
for func in ("AllReduce", "AllGather"):
    bandwidth, time, marks = new(), new(), {}
    for r in rows:
        if r["func"] != func: continue
        with_bandwidth = int(r["records"]) if r["busbw_gbs"] else 0  # of one bucket all or none in these logs but one record's
        add(time, "%s %s" % (r["comm_name"], r["id"]), r["bucket"], float(r["exec_time_us"]), int(r["records"]))
        add(bandwidth, "%s %s" % (r["comm_name"], r["id"]), r["bucket"], float(r["busbw_gbs"] or 0) * with_bandwidth, with_bandwidth)
    first, second = panels("series_" + func)
    for r in rolled:
        if r["func"] == func and 0 <= int(r["bucket"]) < buckets: marks[int((int(r["bucket"]) + 0.5) / each)] = [float(r["mean_us"]), 1]
    if marks: time["roll-ups: all operations"] = marks
    n += same(first, bandwidth, func) + same(second, time, func)
ops = new()
for r in rows: add(ops, "%s %s" % (r["func"], r["timing_source"]), r["bucket"], int(r["operations"]), 0)
for line in ops.values():
    for x in line.values(): x[1] = each * 7e-3
n += same(panels("series_of_functions")[1], ops, "functions")
rates = new()
for r in hosts:
    if r["counter"] == "rx_bytes" and 0 <= int(r["bucket"]) // each < columns and int(r["bucket"]) >= 0:
        add(rates, "%s %s" % (r["hostname"], r["device"]), r["bucket"], int(r["delta"]) / 1e9, int(r["delta"]) / float(r["per_second"]))
(received,) = panels("series_of_hosts")
n += same(received, rates, "hosts")
assert each > 1 and n > 50, (each, n)
print(n, "points of the pictures agree,", each, "buckets a column")
