"""One fault at a time, planted into logs of loggen: what is good must be counted, what is lost must be named.

Usage: summary_faults.py NCCL_INSPECTOR LOGGEN WORK_DIR
"""
import csv
import glob
import gzip
import json
import os
import re
import shutil
import subprocess
import sys

inspector, loggen, work = sys.argv[1:4]
failures = []
RANKS, OPS = 4, 200
TOTAL = RANKS * OPS * 2  # two communicators


def make(name, *options):
    d = os.path.join(work, name)
    shutil.rmtree(d, ignore_errors=True)
    subprocess.run([loggen, d, "--ranks", str(RANKS), "--node", "4", "--ops", str(OPS), *options], check=True)
    return d


def run(d, *options, out=None):
    out = out or d + "-out"
    p = subprocess.run([inspector, "summary", d, "--output-dir", out, "--no-plots", "--no-html", *options],
                       capture_output=True, text=True)
    path = out + "/summary/summary.json"
    return p, json.load(open(path)) if os.path.exists(path) and p.returncode in (0, 2) else None


def check(name, condition, detail=""):
    print("%s %s %s" % ("ok  " if condition else "FAIL", name, "" if condition else detail))
    if not condition:
        failures.append(name)


def lines(d, n=0):
    path = sorted(glob.glob(d + "/*"))[n]
    return path, open(path, "rb").read().split(b"\n")[:-1]


def put(path, ls, end=b"\n"):
    open(path, "wb").write(b"\n".join(ls) + end)


def expect(name, d, records, code, options=(), **fields):
    p, s = run(d, *options)
    if s is None:
        check(name, False, p.stderr)
        return None
    ok = p.returncode == code and s["records"] == records
    for k, v in fields.items():
        ok = ok and s["input"][k] == v
    check(name, ok, "exit %d, records %d of %d, input %s" % (p.returncode, s["records"], records, s["input"]))
    return s


expect("clean", make("clean"), TOTAL, 0, bad_lines=0, gaps=0, duplicates=0)

# A bad line beside the good ones: nothing else is lost, and the place is told.
for name, bad, reason in (("garbage", b"hello", "bad_json"), ("number", b"5", "not_object"),
                          ("array", b"[1,2]", "not_object"), ("no_perf", b'{"header":{},"x":1}', None),
                          ("not_utf8", b'{"header":{"id":"0x1","rank":0,"n_ranks":1,"nnodes":1},"metadata":{"hostname":"\xff"}}',
                           None)):
    d = make("f-" + name)
    path, ls = lines(d)
    ls.insert(7, bad)
    put(path, ls)
    s = expect(name, d, TOTAL, 2, bad_lines=1)
    if s:
        check(name + " is placed", s["input"]["bad_lines_at"][0].startswith(path + ":8: "),
              s["input"]["bad_lines_at"])
        if reason:
            check(name + " has its reason", s["input"]["bad_by_reason"] == {reason: 1},
                  s["input"]["bad_by_reason"])

# A blank line is none.
d = make("f-blank")
path, ls = lines(d)
ls.insert(7, b"")
put(path, ls)
expect("blank", d, TOTAL, 0, bad_lines=0)

# A bad byte within a record costs that record, which shows as a gap too.
d = make("f-bad-byte")
path, ls = lines(d)
ls[10] = ls[10].replace(b"node-0", b"node-\xff")
put(path, ls)
expect("bad byte in a record", d, TOTAL - 1, 2, bad_lines=1, gaps=1)

d = make("f-cut-line")
path, ls = lines(d)
put(path, ls[:-1] + [ls[-1][:200]], end=b"")
expect("cut last line", d, TOTAL - 1, 2, bad_lines=0, files_cut=1)

d = make("f-cut-gz", "--gzip", "--member-lines", "50")
path = sorted(glob.glob(d + "/*"))[0]
whole = open(path, "rb").read()
open(path, "wb").write(whole[: len(whole) * 3 // 4])
z = subprocess.run("gzip -dc '%s' 2>/dev/null | grep -c '}}$'" % path, shell=True, capture_output=True,
                   text=True)
p, s = run(d)
kept = s["records"] - TOTAL * (RANKS - 1) // RANKS
check("cut gzip keeps what can be read", p.returncode == 2 and s["input"]["files_cut"] == 1 and
      kept >= OPS * 2 * 3 // 4 - 60 and kept < OPS * 2,
      "%d kept, gzip has %s, %s" % (kept, z.stdout, s["input"]))

for name, spelling in (("nan text", b'"nan"'), ("NaN", b"NaN"), ("null", b"null"), ("inf", b"inf")):
    d = make("f-" + name.replace(" ", "-"))
    path, ls = lines(d)
    ls[3] = re.sub(rb'busbw_gbs":[0-9.]+', b'busbw_gbs":' + spelling, ls[3])
    put(path, ls)
    s = expect(name, d, TOTAL, 0, no_bandwidth=1, bad_lines=0)
    if s:
        check(name + " is in the times only", sum(g["exec_time_us"]["n"] for g in s["groups"]) == TOTAL and
              sum(g["busbw_gbs"]["n"] for g in s["groups"]) == TOTAL - 1)

d = make("f-all-null")
for i in range(RANKS):
    path, ls = lines(d, i)
    put(path, [re.sub(rb'busbw_gbs":[0-9.]+', b'busbw_gbs":null', x) if b'bytes":8192' in x else x
               for x in ls])
s = expect("all bandwidths of a size null", d, TOTAL, 0)
if s:
    g = [g for g in s["groups"] if g["msg_size_bytes"] == 8192]
    check("their times are there", g and all(x["busbw_gbs"]["n"] == 0 and x["busbw_gbs"]["mean"] is None and
                                            x["exec_time_us"]["p50"] > 0 for x in g))

for name, value, out_of_range, bad in (("negative", b"-5.0", 1, 0), ("no link", b"90000.5", 1, 0),
                                       ("1e200", b"1e200", 0, 1)):
    d = make("f-" + name.replace(" ", "-"))
    path, ls = lines(d)
    ls[3] = re.sub(rb'busbw_gbs":[0-9.]+', b'busbw_gbs":' + value, ls[3])
    put(path, ls)
    s = run(d)[1]
    check(name + " stays out", s["records"] == TOTAL - 1 and s["input"]["out_of_range"] +
          s["input"]["bad_lines"] == 1 and
          max(g["busbw_gbs"]["max"] for g in s["groups"]) < 2000 and
          min(g["busbw_gbs"]["min"] for g in s["groups"]) > 0,
          s["input"])

for name, value in (("time zero", b"0"), ("time of a day", b"86400000000")):
    d = make("f-" + name.replace(" ", "-"))
    path, ls = lines(d)
    ls[3] = re.sub(rb'exec_time_us":\d+', b'exec_time_us":' + value, ls[3])
    put(path, ls)
    expect(name, d, TOTAL - 1, 0, out_of_range=1)

d = make("f-twice")
path, ls = lines(d)
put(path, ls[:50] + ls[40:])
s = expect("lines twice", d, TOTAL, 2, duplicates=10, gaps=0)
rows = [r for f in glob.glob(d + "-out/summary/*/*.csv") for r in csv.DictReader(open(f))]
check("no operation has more records than ranks",
      rows and all(int(r["log_count"]) <= int(r["n_ranks"].strip("[]")) for r in rows))

d = make("f-copied")
os.mkdir(d + "/copy")
for f in glob.glob(d + "/*.log"):
    shutil.copy(f, d + "/copy")
expect("all files copied", d, TOTAL, 2, duplicates=TOTAL)

d = make("f-gap")
path, ls = lines(d)
put(path, ls[:20] + ls[25:])
s = expect("lines missing", d, TOTAL - 5, 2, gaps=5)

d = make("f-marker", "--format", "v4.3")
path, ls = lines(d)
for i, x in enumerate(ls):
    ls[i] = x.replace(b'"coll_dropped_total":0', b'"coll_dropped_total":3')
put(path, ls)
s = expect("NVIDIA's own losses", d, TOTAL, 2, stated_losses=6)
check("they have a cause", s and s["input"]["losses_by_cause"] == {"nvidia_ring_overwritten": 6})

d = make("f-orphans", "--format", "v4.3")
path, ls = lines(d)
put(path, [x for x in ls if b"dump_stats" not in x][:30])
expect("records without a marker", d, TOTAL * 3 // 4, 2, orphans=30)

d = make("f-no-rank")
os.unlink(lines(d)[0])
expect("a rank is missing", d, TOTAL * 3 // 4, 2, missing_ranks=1)  # in both communicators, and counted once

d = make("f-empty")
open(d + "/empty.log", "w").close()
expect("an empty file", d, TOTAL, 0, files_empty=1)
d = os.path.join(work, "f-all-empty")
shutil.rmtree(d, ignore_errors=True)
os.mkdir(d)
open(d + "/a.log", "w").close()
p, s = run(d)
check("all files empty", p.returncode == 1 and "nothing to read: 1 file, and not a line in it" in p.stderr,
      (p.returncode, p.stderr))
os.unlink(d + "/a.log")
p, s = run(d)
check("no file at all", p.returncode == 1 and "no log files" in p.stderr, p.stderr)

d = make("f-mixed", "--gzip")
path = sorted(glob.glob(d + "/*"))[0]
with gzip.open(path) as f:
    open(path[:-3], "wb").write(f.read())
os.unlink(path)
expect("plain and gzip together", d, TOTAL, 0)
p, s = run(d, "--compat")
check("--compat refuses them", p.returncode == 1 and "Appear to have mixed" in p.stderr, p.stderr)

d = make("f-crlf")
path, ls = lines(d)
put(path, [x + b"\r" for x in ls], end=b"\n")
expect("CRLF", d, TOTAL, 0, bad_lines=0)
d = make("f-utf8")
path, ls = lines(d)
put(path, [x.replace(b"node-0", "knoten-\u00e4\u4e2d".encode()) for x in ls])
s = expect("UTF-8 host", d, TOTAL, 0)
check("its name is kept", s and "knoten-\u00e4\u4e2d" in [h["hostname"] for h in s["hosts"]])

d = make("f-unknown-func")
for i in range(RANKS):
    path, ls = lines(d, i)
    put(path, [x.replace(b'"Reduce"', b'"All2AllV/x\\"y"') for x in ls])
s = expect("a function nobody knows", d, TOTAL, 0)
check("it has its table", s and any(g["func"] == 'All2AllV/x"y' for g in s["groups"]) and
      glob.glob(glob.escape(d) + "-out/summary/*/summary_*All2AllV%2Fx%22y*"))

d = make("f-p2p", "--p2p", "10")
s = expect("P2P", d, TOTAL + RANKS * OPS // 10, 0, bad_lines=0)
check("P2P by peer", s and [r for f in glob.glob(d + "-out/summary/*/*_Send_65536.csv")
                            for r in csv.DictReader(open(f))][0]["p2p_peer"] == "1")

# Two jobs whose files have the same names.
top = os.path.join(work, "f-two-jobs")
shutil.rmtree(top, ignore_errors=True)
os.mkdir(top)
for i, sub in enumerate(("a", "b")):
    subprocess.run([loggen, top + "/" + sub, "--ranks", str(RANKS), "--node", "4", "--ops", str(OPS),
                    "--seed", str(i + 1)], check=True)
expect("equal names in two folders", top, 2 * TOTAL, 0, duplicates=0)
check("each has its Parquet file", len(glob.glob(top + "-out/parquet_files/*.parquet")) == 2 * RANKS)

# The same output again: only the new logs count.
one, two = make("f-first"), make("f-second", "--seed", "2")
out = os.path.join(work, "f-again-out")
shutil.rmtree(out, ignore_errors=True)
run(one, out=out)
p, s = run(two, out=out)
check("an earlier result is replaced",
      s["records"] == TOTAL and len(glob.glob(out + "/parquet_files/*.parquet")) == RANKS and
      not glob.glob(out + "/.tmp-*"))
foreign = os.path.join(work, "f-foreign")
shutil.rmtree(foreign, ignore_errors=True)
os.mkdir(foreign)
open(foreign + "/thesis.tex", "w").write("x")
p, s = run(one, out=foreign)
check("a foreign folder is refused",
      p.returncode == 1 and os.listdir(foreign) == ["thesis.tex"] and "--force" in p.stderr, p.stderr)
p, s = run(one, "--force", out=foreign)
check("--force leaves the other files",
      p.returncode == 0 and os.path.exists(foreign + "/thesis.tex") and s["records"] == TOTAL)

# A size of its own for every operation: more cells than have points and time bins.
d = make("f-many-sizes", "--ops", "400")
for i in range(RANKS):
    path, ls = lines(d, i)
    put(path, [re.sub(rb'msg_size_bytes":\d+', b'msg_size_bytes":%d' % (1000 + k), x)
               for k, x in enumerate(ls)])
p, s = run(d)
check("800 sizes", p.returncode == 0 and s["records"] == 4 * 800 and len(s["groups"]) == 800 and
      all(g["records"] == 4 and g["operations"] == 1 and g["transfer_time_us"]["n"] == 1
          for g in s["groups"]) and
      len(glob.glob(d + "-out/summary/msg_size_*/*.csv")) == 800, (p.returncode, p.stderr))

print("%d failures" % len(failures))
sys.exit(1 if failures else 0)
