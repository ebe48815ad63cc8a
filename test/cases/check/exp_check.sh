#!/bin/bash
# `nccl-inspector check`: sound logs pass, and every single fault in them is found, counted and named.
. "$(dirname "$0")/../../lib/case.sh"
BIN=${NI_BIN:-$BUILD/nccl-inspector}
need python3
[ -x "$BIN" ] || { echo "no $BIN: make first"; exit 1; }
python3 - "$BIN" "$TMP" <<'PY'
import gzip, json, os, shutil, subprocess, sys
sys.path.insert(0, "test/lib")
from exp_logs import Rank, dumps, job, T0
from agree import differences

BIN, DIR = sys.argv[1], sys.argv[2]
cases = failed = 0


def run(*args):
    p = subprocess.run([BIN, "check", *args], capture_output=True, text=True)
    return p.returncode, p.stdout, p.stderr


def case(name, ranks, want, args=(), gz=False, notes=None, after=None):
    """want: {code: count} of problems. {} is COMPLETE."""
    global cases, failed
    cases += 1
    d = os.path.join(DIR, name.replace(" ", "_").replace("/", "_"))
    os.makedirs(d)
    for x in ranks:
        if isinstance(x, Rank):
            x.write(d, gz)
        else:
            with open(os.path.join(d, x[0]), "wb") as f:
                f.write(x[1])
    if after:
        after(d)
    rc, out, err = run("--json", *args, d)
    got = {}
    try:
        doc = json.loads(out)
        got = {p["code"]: p["count"] for p in doc["problems"]}
        got_notes = {p["code"] for p in doc["notes"]}
        ok = (got == want and rc == (2 if want else 0) and
              doc["verdict"] == ("INCOMPLETE" if want else "COMPLETE"))
        ok = ok and (notes is None or got_notes == notes)
        rc2, text, _ = run(*args, d)
        last = text.strip().split("\n")[-1]
        ok = ok and rc2 == rc and (last == "COMPLETE" if not want else last.startswith("INCOMPLETE: "))
        rc3, quiet, _ = run("-q", *args, d)
        ok = ok and rc3 == rc and quiet.strip() == last
    except ValueError as e:
        ok = False
        out = "%s: %s %s" % (e, out[:500], err[:2000])
    if ok and not args:
        for text in differences(BIN, d):
            ok = False
            print("FAILED", text)
    if not ok:
        failed += 1
        print("FAILED %s: rc %d, problems %s, wanted %s\n%s" % (name, rc, got, want, out[-1500:]))


def edited(n, f, **kw):
    j = job(**kw)
    f(j[n])
    return j


def sub(i, a, b):
    def f(x):
        assert a in x.lines[i], x.lines[i]
        x.lines[i] = x.lines[i].replace(a, b)
    return f


# 3 control lines first, then ops 3..22, p2p 23..26, clock, stats -3, end -2, the process's last line -1.
case("sound", job(), {}, notes=set())
case("sound gz", job(), {}, gz=True)
case("one rank only", job()[:1], {"ranks": 1})  # of the job: that its communicator lacks it follows
case("one rank only partial", job()[:1], {}, ["--partial"])
case("expected", job(), {}, ["--expect", "AllReduce=40", "--expect", "Send=8"])
case("not expected", job(), {"expect": 9}, ["--expect", "AllReduce=42", "--expect", "Recv=7"])
case("record lost", edited(0, lambda x: x.lines.pop(7)), {"written": 1, "missing": 1})
case("last record lost", edited(0, lambda x: x.lines.pop(22)), {"written": 1, "missing": 1})
case("record double", edited(1, lambda x: x.lines.insert(9, x.lines[9])), {"written": 1, "double": 1})
case("killed", edited(0, lambda x: [x.lines.pop() for _ in range(3)]), {"no_final": 1, "no_end": 1})
case("no last line", edited(0, lambda x: x.lines.pop()), {"no_end": 1})
case("nothing but the first line", edited(0, lambda x: [x.lines.pop() for _ in range(30)]),
     {"no_end": 1, "ranks": 1})
case("killed, recovered", edited(0, lambda x: [x.lines.pop(), x.process(), x.process_end()]), {})
case("killed with a hole", edited(0, lambda x: [x.lines.pop() for _ in range(3)] + [x.lines.pop(5)]),
     {"no_final": 1, "no_end": 1, "missing": 1})
case("bad line", edited(0, lambda x: x.lines.insert(4, "{bad")), {"bad_lines": 1})
case("blank line", edited(0, lambda x: x.lines.insert(4, "")), {})
case("bad byte", [job()[0], ("x.log",
                             "\n".join(job()[1].lines).encode().replace(b"AllReduce", b"AllRed\xff", 1) +
                             b"\n")],
     {"bad_lines": 1, "written": 1, "missing": 1}, notes={"mixed"})
case("future kind", edited(0, lambda x: x.add("future", {"a": [1]})), {}, notes={"unknown_kind"})
case("nothing but empty files", [("x.log", b""), ("y.log", b"")], {"nothing": 2}, notes={"empty"})
case("empty file", job() + [("z.log", b"")], {}, notes={"empty", "mixed"})


def stats(coll, p2p=None, n=20, final=True, before=None):
    def f(x):
        del x.lines[-3:]
        for b in before or []:
            x.add(*b)
        x.stats(coll, p2p or Rank.kind(4), n, 4, final)
        x.end()
        x.process_end()
    return f


def gap(n, cause="pool_full"):
    return ("gap", {"kind": "coll", "count": n, "cause": cause, "rec_sn_from": 20, "rec_sn_to": 19 + n})


def unfinished(sn):
    return ("incomplete", {"kind": "coll", "func": "AllReduce", "sn": sn, "rec_sn": sn, "msg_size_bytes": 8,
                           "channels_expected": None, "channels_started": 1, "channels_stopped": 0,
                           "enqueue_ns": T0,
                           "age_ms": 10, "why": "finalize"})


case("dropped", edited(0, stats(Rank.kind(23, dropped={"pool_full": 3}), before=[gap(3)])), {"dropped": 3},
     notes={"uneven"})
case("dropped untold", edited(0, stats(Rank.kind(23, dropped={"pool_full": 3}))), {"dropped": 3, "stated": 3})
case("new cause", edited(0, stats(Rank.kind(23, dropped={"meteor": 3}), before=[gap(3, "meteor")])),
     {"dropped": 3})
case("filtered", edited(0, stats(Rank.kind(25, filtered={"min_size": 5}))), {}, notes={"filtered", "uneven"})
case("incomplete", edited(0, stats(Rank.kind(21, incomplete=1), before=[unfinished(20)])), {"incomplete": 1})
case("in flight", edited(0, stats(Rank.kind(22, in_flight=2))), {"in_flight": 2})
case("late", edited(0, stats(Rank.kind(20, late=1))), {"late": 1})
case("wrong sum", edited(0, stats(Rank.kind(26, written=20))), {"sum": 6, "missing": 6})
case("more than started", edited(0, stats(Rank.kind(18, written=20))), {"sum": 4})
case("live line in the middle", edited(0, stats(Rank.kind(20), before=[
    ("dump_stats", {"coll_records": 0, "final": False, "coll": Rank.kind(5, written=1, in_flight=9),
                    "p2p": Rank.kind(0), "strays": {}})])), {})
case("flushes do not add up", edited(0, stats(Rank.kind(20), n=19)), {"stated": 1})
case("clock in 1970", edited(0, sub(2, str(T0), "5")), {"clock": 1})
case("clock backwards", edited(0, sub(27, '"ticks":2501000000', '"ticks":5')), {"clock": 1})
case("clock drifts", edited(0, sub(27, '"monotonic_ns":1005000000', '"monotonic_ns":1505000000')),
     {"clock": 1})
case("clock without rate", edited(0, sub(2, '"ns_per_tick":0.4', '"ns_per_tick":null')), {"clock": 1})


def no_control(x):
    x.lines = [l for l in x.lines if "_perf" in l]


case("no control lines", edited(0, no_control), {"no_accounting": 1})


def two_lives(x):
    """The communicator is destroyed and comes back with the same hash: numbers begin again."""
    n = len(x.lines)
    for l in [l for l in x.lines[1:n] if '"clock"' not in l]:
        x.lines.append(l.replace('"init_ns":%d' % (T0 + 5), '"init_ns":%d' % (T0 + 77)))


case("same hash again", edited(0, two_lives), {})


def cut(d):
    p = [os.path.join(d, f) for f in sorted(os.listdir(d))][0]
    b = open(p, "rb").read()
    open(p, "wb").write(b[:-100])


case("cut gz", job(), {"cut": 1, "no_end": 1}, gz=True, after=cut)
case("cut plain", job(), {"cut": 1, "no_end": 1}, after=lambda d: cut(d))


def rotate(d, name=lambda p, i: p.replace(".jsonl", ".%d.jsonl" % i)):
    p = [os.path.join(d, f) for f in sorted(os.listdir(d))][0]
    lines = open(p).readlines()
    open(p, "w").writelines(lines[:10])
    for i in (1, 2, 10):
        a = {1: 10, 2: 15, 10: 20}[i]
        b = {1: 15, 2: 20, 10: len(lines)}[i]
        open(name(p, i), "w").writelines(lines[:1] + lines[a:b])


def as_others(p, i):
    return "%s.%d" % (p, i)


case("rotated", job(), {}, after=rotate)
case("rotated by others", job(), {}, after=lambda d: rotate(d, as_others))


def rotate_headless(d, which):
    rotate(d, as_others)
    p = sorted(f for f in os.listdir(d) if f.endswith(which))[0]
    lines = open(os.path.join(d, p)).readlines()
    assert '"process"' in lines[0]
    open(os.path.join(d, p), "w").writelines(lines[1:])


case("rotated without the first line", job(), {}, after=lambda d: rotate_headless(d, "jsonl"))
case("rotated without a later first line", job(), {}, after=lambda d: rotate_headless(d, ".2"))


def rotate_without_process_lines(d):
    rotate(d)
    for f in os.listdir(d):
        p = os.path.join(d, f)
        lines = [l for l in open(p) if '"process"' not in l]
        open(p, "w").writelines(lines)


case("rotated, without process lines", job(), {}, after=rotate_without_process_lines)


def link(d):
    os.symlink(d, os.path.join(d, "loop"))
    os.symlink(sorted(os.listdir(d))[1], os.path.join(d, "again.jsonl"))
    os.symlink("/nonexistent", os.path.join(d, "dead.log"))
    os.mkfifo(os.path.join(d, "pipe.log"))


case("links", job(), {"unreadable": 2}, after=link)


# NVIDIA's formats.
def nv(v, ops, drop=0, marker=False, bare=False, start=0):
    h = '{"header":{"id":"0xabc","rank":0,"n_ranks":1,"nnodes":1},"metadata":{"inspector_output_format_version":"%s","git_rev":"",' \
        '"rec_mechanism":"m","dump_timestamp_us":1790000000123456,"hostname":"a","pid":1}' % v
    out = []
    if marker is not False:
        out.append(h + ',"dump_stats":{"coll_records":%d,"coll_dropped_total":%d,"coll_dropped_since_last_dump":0,'
                   '"p2p_records":0,"p2p_dropped_total":0,"p2p_dropped_since_last_dump":0}}' % (marker, drop))
    for i in ops:
        out.append(("{" if bare else h + ",") +
                   '"coll_perf":{"coll":"AllReduce","coll_sn":%d,"coll_msg_size_bytes":8192,'
                   '"coll_exec_time_us":5,"coll_algobw_gbs":"nan","coll_busbw_gbs":1.000000}}' % (i + start))
    return "".join(l + "\r\n" for l in out).encode()


case("nvidia 4.0", [("a.log", nv("v4.0", range(9)))], {})
case("nvidia 4.0 from 1", [("a.log", nv("v4.0", range(1, 9)))], {})
case("nvidia 4.0 gap", [("a.log", nv("v4.0", [0, 1, 2, 5, 6]))], {"missing": 2})
case("nvidia 4.0 double", [("a.log", nv("v4.0", [0, 1, 1, 2]))], {"double": 1})
case("nvidia 4.1 drops", [("a.log", nv("v4.1", range(9), drop=7, marker=9))], {"dropped": 7})
case("nvidia 4.3", [("a.log", nv("v4.3", range(9), marker=9, bare=True) + nv("v4.3", [], marker=0))], {})
case("nvidia 4.3 short", [("a.log", nv("v4.3", range(9), marker=11, bare=True))], {"marker": 2})
case("nvidia 4.4 more", [("a.log",
                          nv("v4.4", range(9), marker=7, bare=True) +
                          nv("v4.4", range(7, 9), marker=2, bare=True))],
     {"orphans": 2})
case("nvidia 4.4 none announced", [("a.log", nv("v4.4", range(3), marker=0, bare=True))], {"orphans": 3})
case("nvidia 4.4 cut", [("a.log", nv("v4.4", range(9), marker=9, bare=True)[:-40])], {"marker": 1, "cut": 1})
case("nvidia 4.4 two communicators",
     [("a.log", b"".join(nv("v4.4", range(k, k + 3), marker=3, bare=True).replace(b"0xabc", c)
                         for k in (0, 3) for c in (b"0xabc", b"0xdef")))], {})


def nv_proxy(count, kinds):
    """A marker of so many records, and such lines behind it."""
    out = nv("v4.4", [], marker=0).replace(b'_last_dump":0}}', b'_last_dump":0,"proxy_records":%d}}' % count,
                                           1)
    for kind in kinds:
        steps = b',"is_final":true,"steps":[{"proxy_step_sn":1,"step":0,"trans_size_bytes":100,"total_us":4,"wire_us":1}]'
        out += (b'{"proxy_trace":{"record_type":"%s","record_sn":1,"parent_type":"coll","parent_sn":0,"proxy_op_sn":3,"channel_id":0,'
                b'"peer":1,"direction":"send","timing_source":"proxy_cpu"%s}}\r\n' % (kind.encode(), steps if kind == "proxy_op" else b""))
    return out


nested = ["proxy_op_start", "proxy_op_segment", "proxy_op"]
case("nvidia 4.4 proxies", [("a.log", nv_proxy(3, nested))], {})
case("nvidia 4.4 proxies, flat", [("a.log", nv_proxy(3, ["proxy_step", "proxy_step", "proxy_op"]))], {})
case("nvidia 4.4 a proxy more", [("a.log", nv_proxy(2, nested))], {"orphans": 1})
case("nvidia 4.4 a proxy less", [("a.log", nv_proxy(4, nested))], {"marker": 1})
case("nvidia 4.3 headless", [("a.log", nv("v4.3", range(3), bare=True))], {"orphans": 3})
def two_jobs(d, hash):
    os.mkdir(d + "/job2")
    with open(d + "/job2/a.log", "wb") as f:
        f.write(nv("v4.0", range(9)).replace(b"0xabc", hash))

case("nvidia same name twice", [("a.log", nv("v4.0", range(9)))], {}, after=lambda d: two_jobs(d, b"0xdef"))
case("nvidia copied", [("a.log", nv("v4.0", range(9)))], {"double": 9}, after=lambda d: two_jobs(d, b"0xabc"))
case("nvidia gz two members", [("a.log.gz",
                                gzip.compress(nv("v4.0", range(4))) +
                                gzip.compress(nv("v4.0", range(4, 9))))], {})
case("nvidia gz damaged", [("a.log.gz",
                            gzip.compress(nv("v4.0", range(4))) + b"not gzip" +
                            gzip.compress(nv("v4.0", range(4, 9))))],
     {"damaged": 1})
case("long line", [("a.log", nv("v4.0", range(9)) + b'{"x":"' + b"y" * 3000000 + b'"}\n')], {"bad_lines": 1})

# Usage and failures.
for args, want in ((["--nonsense"], 64), ([], 64), (["--expect", "AllReduce", DIR], 64),
                   (["--expect", "=5", DIR], 64),
                   (["--expect", "A=-5", DIR], 64), ([DIR + "/nowhere"], 1), (["--help"], 0)):
    cases += 1
    rc, out, err = run(*args)
    if rc != want or (want and not err):
        failed += 1
        print("FAILED %s: rc %d, wanted %d\n%s" % (args, rc, want, err))
for args, want in ((["--version"], 0), (["--help"], 0), ([], 64), (["nonsense"], 64)):
    cases += 1
    p = subprocess.run([BIN, *args], capture_output=True)
    if p.returncode != want:
        failed += 1
        print("FAILED %s: rc %d, wanted %d" % (args, p.returncode, want))
# Both spellings, a pattern, and a full disk.
cases += 1
d = os.path.join(DIR, "sound")
if any(run(*a)[0] for a in (["--input_dir", d], ["--input-dir=" + d], [d + "/*.jsonl"])):
    failed += 1
    print("FAILED: spellings of the input")
cases += 1
with open("/dev/full", "w") as full:
    if subprocess.run([BIN, "check", d], stdout=full, stderr=subprocess.DEVNULL).returncode != 1:
        failed += 1
        print("FAILED: a full disk went unnoticed")
print("%d cases, %d failed" % (cases, failed))
sys.exit(1 if failed else 0)
PY

# Many hosts are counted, not estimated.
"$BUILD/test/host/loggen" "$TMP/many" --ranks 120 --node 2 --ops 20 --format ours
"$BIN" check "$TMP/many" >"$TMP/out" && grep -q '120 processes on 60 hosts$' "$TMP/out" ||
  { echo "FAILED many hosts"; head -n 3 "$TMP/out"; exit 1; }
