#!/usr/bin/env python3
"""verify.py LOGS TRUTH [option ...]   compares every record of a log with what the host did (truth.h).

For each communicator: every value of every record; nothing twice; every operation that is known to be
finished is there, or lies in a gap line whose counts add up to the accounting; the accounting of the final
line closes exactly.
  --lost N|MIN-MAX    so many finished operations may be missing, all of them accounted for (default 0)
  --open              operations that the host calls "half" or "open" may have records (P2P whose count is unknown)
  --no-final          the process died: final lines may be missing, and what was not marked finished too
  --unflushed         ... and what was finished but not yet written
  --no-control        the log has no control lines
  --min-size N        smaller operations are filtered; --no-p2p: P2P are
  --sample N          NCCL_INSPECTOR_SAMPLE=1/N: exactly the operations that the rule names have records
  --no-rollup         there are no roll-ups; else they must agree with records and final line, always
  --kernel-only       operations without kernel time are filtered (mode self)
  --timing any        not only kernel_gpu (the default where channels are seen)
  --end WHY           comm_end of every communicator
  --stray K=N         strays of a cause, all communicators and the process together (default: none)
  --incomplete        half and open operations are reported incomplete, not in flight
  --unrefused         every communicator of the truth must be in the log (default; --refused N: N are not)
  --cut               a cut last member or line is no error
  --live FILE         the host was killed: FILE (its verb "live") says what had finished. A communicator whose init had not
                      returned, or had not been written down, may be in the log without records
  --files N           so many files
  --started-free      the host cannot know how many were started (threads that were running at the end)
Prints one line of figures; exit 1 with every difference otherwise.
"""
import argparse, glob, gzip, json, os, re, struct, sys, zlib

from verify_rollups import rollup_errors

FUNC = ["AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce"]
TYPE = [("ncclInt8", 1), ("ncclFloat16", 2), ("ncclFloat32", 4), ("ncclFloat64", 8)]
ALGO = ["RING", "TREE", "NVLS"]
PROTO = ["LL", "LL128", "SIMPLE"]
ap = argparse.ArgumentParser()
ap.add_argument("logs")
ap.add_argument("truth")
ap.add_argument("--lost", default="0")
for flag in ("open", "no-final", "unflushed", "no-control", "no-p2p", "kernel-only", "no-rollup",
             "incomplete", "cut", "started-free"):
    ap.add_argument("--" + flag, action="store_true")
ap.add_argument("--min-size", type=int, default=0)
ap.add_argument("--sample", type=int, default=1)
ap.add_argument("--timing", default="")
ap.add_argument("--end", default="")
ap.add_argument("--stray", action="append", default=[])
ap.add_argument("--refused", type=int, default=0)
ap.add_argument("--files", type=int, default=-1)
ap.add_argument("--live", default="")
A = ap.parse_args()
errors = []


def err(text):
    errors.append(text)
    if len(errors) > 30:
        report()


def report():
    for e in errors[:30]:
        print("verify:", e)
    print("verify: %d differences" % len(errors))
    sys.exit(1)


# ---- truth ----
class Comm:
    def __init__(self):
        self.init = None
        self.runs = {"c": [], "p": []}
        self.done = {"c": 0, "p": 0}
        self.records = {"c": {}, "p": {}}
        self.gaps, self.stats, self.ends, self.comm_lines, self.incomplete, self.late = [], [], [], [], [], []
        self.rollups = {"coll": [], "p2p": []}
        self.fin = False


comms = {}
for line in open(A.truth):
    w = line.split()
    c = comms.setdefault(int(w[1], 16), Comm())
    if w[0] == "I":
        name = None if w[5] == "-" else b"" if w[5] == "empty" else bytes.fromhex(w[5])
        c.init = (int(w[2]), int(w[3]), int(w[4]), name)
    elif w[0] == "R":
        c.runs[w[2]].append((int(w[3]), int(w[4]), w[5], int(w[6]), int(w[7])))
    elif w[0] == "D":
        c.done[w[2]] = max(c.done[w[2]], int(w[3]))
    elif w[0] == "F":
        c.fin = True


if A.live:
    data = open(A.live, "rb").read()
    for at in range(0, len(data), 80):  # struct comm of host_ops.h
        h, done_c, done_p = struct.unpack_from("<Q", data, at)[0], *struct.unpack_from("<QQ", data, at + 40)
        if h in comms:
            comms[h].done["c"] = max(comms[h].done["c"], done_c)
            comms[h].done["p"] = max(comms[h].done["p"], done_p)


def keeps(h, sn):
    """Has the operation a record under NCCL_INSPECTOR_SAMPLE? plugin/drain/sample.h."""
    m = (1 << 64) - 1
    x = (h + sn * 0x9E3779B97F4A7C15) & m
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & m
    x = (x ^ x >> 27) * 0x94D049BB133111EB & m
    return (x ^ x >> 31) % A.sample == 0


def expected(c, h, kind, n, run):
    """The values that a record of operation n must have."""
    _, _, mode, chmax, base = run
    rank, ranks = c.init[0], c.init[1]
    dtype, elem = TYPE[n % 4]
    count = 1 + (n * 37 + h) % 100000
    size = count * elem
    exec_ns = base + (n * 31) % base
    nch = 0 if mode == "self" else 1 + n % chmax
    us = (exec_ns + 500) // 1000 or 1
    if kind == "c":
        func = FUNC[n % 5]
        tests = size * ranks if func in ("AllGather", "ReduceScatter") else size
        factor = {"AllReduce": 2 * (ranks - 1) / ranks, "AllGather": (ranks - 1) / ranks,
                  "ReduceScatter": (ranks - 1) / ranks}
        e = {"coll": func, "coll_sn": n // 5, "coll_algo": ALGO[n % 3], "coll_proto": PROTO[n // 3 % 3],
             "coll_root": n % ranks}
        f = factor.get(func, 1.0)
    else:
        func = "Recv" if n % 2 else "Send"
        tests, f = size, 1.0
        e = {"p2p": func, "p2p_sn": n, "p2p_peer": rank if mode == "self" else (rank + 1) % ranks}
    p = "coll_" if kind == "c" else "p2p_"
    e.update({p + "msg_size_bytes": size, p + "datatype": dtype, p + "nchannels": nch, "rec_sn": n,
              "nccl_tests_size_bytes": tests})
    if mode == "self":
        e.update({p + "timing_source": "collective_cpu", p + "algobw_gbs": None, p + "busbw_gbs": None})
    elif not A.timing:
        alg = tests / exec_ns
        e.update({p + "timing_source": "kernel_gpu", p + "exec_time_ns": exec_ns, p + "exec_time_us": us,
                  p + "algobw_gbs": alg, p + "busbw_gbs": alg * f})
    return e


# ---- log ----
def texts(path):
    data = open(path, "rb").read()
    if not path.endswith(".gz"):
        yield data
        return
    while data:
        z = zlib.decompressobj(31)
        try:
            out = z.decompress(data) + z.flush()
        except zlib.error as e:
            err("%s: %s" % (path, e))
            return
        if not z.eof:
            if not A.cut:
                err("%s: a cut gzip member" % path)
            elif A.live:  # what can be read of it counts as written (docs/internals/blackbox.md)
                yield out[: out.rfind(b"\n") + 1]
            return
        yield out
        data = z.unused_data


def file_key(path):
    m = re.match(r"(.*-pid\d+-\d+)(?:\.(\d+))?\.(?:jsonl|log)(?:\.gz)?$", path)
    return (m.group(1), int(m.group(2) or 0)) if m else (path, 0)


paths = []
for root, _, names in os.walk(A.logs):
    paths += [os.path.join(root, n) for n in names if re.search(r"\.(jsonl|log)(\.gz)?$", n)]
paths.sort(key=file_key)
if A.files >= 0 and len(paths) != A.files:
    err("%d files, not %d: %s" % (len(paths), A.files, paths))
strays, notes, n_lines, process_drops = {}, [], 0, {}
final_process = 0
for path in paths:
    first = True
    for block in texts(path):
        if block and not block.endswith(b"\n"):
            if not A.cut:
                err("%s: the last line is cut" % path)
            block = block[: block.rfind(b"\n") + 1]
        for raw in block.splitlines():
            n_lines += 1
            try:
                line = json.loads(raw.decode("utf-8"))
            except ValueError as e:
                err("%s: %s in %r" % (path, e, raw[:300]))
                continue
            kinds = [k for k in line if k not in ("header", "metadata", "event_trace_sn", "event_trace_ts")]
            if len(kinds) != 1:
                err("%s: kinds %s" % (path, kinds))
                continue
            k, v, h = kinds[0], line[kinds[0]], int(line["header"]["id"], 16)
            if first and not A.no_control and k != "process":
                err("%s: begins with %s" % (path, k))
            first = False
            if A.no_control and k not in ("coll_perf", "p2p_perf"):
                err("%s: control line %s" % (path, k))
            if k == "note":
                notes.append(v["text"])
            if k in ("note", "process", "clock") and h == 0:
                continue
            if k == "dump_stats" and v.get("strays"):
                if h == 0 or v["final"]:
                    for s, n in v["strays"].items():
                        if h:
                            strays[s] = strays.get(s, 0) + n
                        else:
                            strays["process." + s] = max(strays.get("process." + s, 0), n)
            if h == 0:
                if k == "dump_stats":
                    final_process += 1
                    for s, n in v["coll"]["dropped_by"].items():
                        process_drops[s] = process_drops.get(s, 0) + n
                continue
            c = comms.get(h)
            if (c is None or c.init is None) and A.live and k not in ("coll_perf", "p2p_perf"):
                continue
            if c is None or c.init is None:
                err("a line of communicator 0x%x, which the host does not know" % h)
                continue
            rank, ranks, _, name = c.init
            hd = line["header"]
            if (hd["rank"], hd["n_ranks"], hd["nnodes"]) != (rank, ranks, 2):
                err("header %s" % hd)
            if k in ("coll_perf", "p2p_perf"):
                kind = k[0]
                n = v["rec_sn"]
                if n in c.records[kind]:
                    err("0x%x %s %d is there twice" % (h, kind, n))
                c.records[kind][n] = v
            elif k == "gap":
                c.gaps.append(v)
            elif k == "dump_stats":
                c.stats.append(v)
            elif k == "comm_end":
                c.ends.append(v["why"])
            elif k == "comm":
                c.comm_lines.append((path, v))
            elif k == "incomplete":
                c.incomplete.append(v)
            elif k == "late":
                c.late.append(v)
            elif k == "rollup":
                c.rollups[v["kind"]].append(v)

# ---- comparison ----
total = lost = n_open = stated = 0
refused = 0
for h, c in sorted(comms.items()):
    if c.init is None:
        err("0x%x has no init in the truth" % h)
        continue
    if not c.comm_lines and not c.records["c"] and not c.records["p"] and refused < A.refused:
        refused += 1
        continue
    if not A.no_control and not A.unflushed:
        if not c.comm_lines:
            err("0x%x: no comm line" % h)
        for path, v in c.comm_lines:
            name = c.init[3]
            if ((v["name"] is None) != (name is None) or v["rank"] != c.init[0] or
                abs(v["init_ns"] - c.init[2]) > 10**10):
                err("0x%x: comm line %s, truth %s" % (h, v, c.init))
        if len({v["init_ns"] for _, v in c.comm_lines}) > 1:
            err("0x%x: its comm lines differ" % h)
    finals = [s for s in c.stats if s["final"]]
    if not A.no_control and not A.no_final and len(finals) != 1:
        err("0x%x: %d final lines" % (h, len(finals)))
    if A.end and c.ends != [A.end]:
        err("0x%x: comm_end %s, not %s" % (h, c.ends, A.end))
    if c.late:
        err("0x%x: late %s" % (h, c.late[:3]))
    for kind, name in (("c", "coll"), ("p", "p2p")):
        p = "coll_" if kind == "c" else "p2p_"
        recs, missing, filtered, unfinished, started = c.records[kind], [], 0, 0, 0
        allowed, counted, uncertain = set(), [], False
        for run in c.runs[kind]:
            first, n_run, mode = run[0], run[1], run[2]
            started = max(started, first + n_run)
            upto = n_run if mode in ("open", "half") else min(n_run, max(c.done[kind] - first, 0))
            # Beyond what is known to be finished: a record may be there, never must.
            top = min(first + n_run, max([first + upto] + [n + 1 for n in recs if n < first + n_run]))
            for n in range(first, top):
                e = expected(c, h, kind, n, run)
                r = recs.get(n)
                allowed.add(n)
                if mode in ("open", "half"):
                    unfinished += 1
                    if r is not None and not A.open:
                        err("0x%x %s %d never finished and has a record" % (h, kind, n))
                    continue
                if ((A.no_p2p and kind == "p") or e[p + "msg_size_bytes"] < A.min_size or (
                    A.kernel_only and mode == "self")):
                    filtered += 1
                    if r is not None:
                        err("0x%x %s %d should be filtered" % (h, kind, n))
                    continue
                if A.sample > 1 and not keeps(h, e[p + "sn"]):
                    if n >= first + upto:
                        uncertain = True
                        continue
                    filtered += 1
                    counted.append((e[p[:-1]], e[p + "msg_size_bytes"], e.get(p + "timing_source"),
                                    e.get(p + "exec_time_ns")))
                    if r is not None:
                        err("0x%x %s %d should be sampled away" % (h, kind, n))
                    continue
                if r is None:
                    if n < first + upto:
                        missing.append(n)
                    continue
                total += 1
                for key, want in e.items():
                    got = r.get(key)
                    if isinstance(want, float):
                        if got is None or abs(got - want) > 1e-6 + 1e-9 * want:
                            err("0x%x %s %d: %s is %s, not %.6f" % (h, kind, n, key, got, want))
                    elif got != want:
                        err("0x%x %s %d: %s is %s, not %s" % (h, kind, n, key, got, want))
                enq = r[p + "enqueue_ns"]
                if not c.init[2] - 10**9 < enq < c.init[2] + 600 * 10**9:
                    err("0x%x %s %d: enqueued at %d, init at %d" % (h, kind, n, enq, c.init[2]))
        for n in recs:
            if n not in allowed:
                err("0x%x %s %d was never started" % (h, kind, n))
        n_open += unfinished
        lost += len(missing)
        if A.no_control:
            continue
        if A.unflushed:
            continue
        gaps = [g for g in c.gaps if g["kind"] == name]
        by_cause = {}
        for g in gaps:
            by_cause[g["cause"]] = by_cause.get(g["cause"], 0) + g["count"]
            if g["rec_sn_to"] - g["rec_sn_from"] + 1 < g["count"]:
                err("0x%x: gap %s is shorter than its count" % (h, g))
        if not (A.no_final and not finals):
            f = finals[0][name] if finals else None
            if f is None:
                continue
            dropped = f["dropped_by"]
            for why, n in dropped.items():
                if by_cause.get(why, 0) != n and why != "expired":
                    err("0x%x %s: gaps of %s add up to %d, dropped_by says %d" %
                        (h, name, why, by_cause.get(why, 0), n))
            for why in by_cause:
                if why not in dropped:
                    err("0x%x %s: a gap of %s, dropped_by has none" % (h, name, why))
            flt = sum(f["filtered_by"].values())
            if A.no_rollup:
                if c.rollups[name]:
                    err("0x%x %s: roll-ups %s" % (h, name, c.rollups[name][:2]))
            elif (not dropped.get("write_error") and
                  not A.live):  # the last minute's roll-ups go with the process
                for n, r in recs.items():
                    counted.append((r[p[:-1]], r[p + "msg_size_bytes"], r[p + "timing_source"],
                                    r[p + "exec_time_ns"]))
                known = (not process_drops and not uncertain and not dropped.get("expired") and
                         all(x[3] is not None for x in counted))
                for e in rollup_errors(h, name, c.rollups[name], counted if known else None, f):
                    err(e)
            left = f["started"] - f["written"] - flt - sum(dropped.values()) - f["incomplete"] - f["in_flight"]
            if left:
                err("0x%x %s: the accounting misses %d: %s" % (h, name, left, f))
            if not A.started_free and f["started"] != started:
                err("0x%x %s: started %d, the host started %d" % (h, name, f["started"], started))
            if (f["written"] != len(recs) + sum(v for k, v in dropped.items() if k == "expired") and
                not process_drops):
                err("0x%x %s: written %d, %d records in the files" % (h, name, f["written"], len(recs)))
            if flt != filtered and not A.started_free:
                err("0x%x %s: filtered %d, not %d" % (h, name, flt, filtered))
            exact = len(missing) <= sum(dropped.values()) if A.started_free else len(missing) == sum(dropped.values())
            if not exact and not process_drops:
                err("0x%x %s: %d missing (%s..), dropped_by says %s" %
                    (h, name, len(missing), missing[:5], dropped))
            stated += sum(dropped.values())
            if not A.started_free and not A.open and not dropped:
                if ((f["incomplete"] if A.incomplete else f["in_flight"]) != unfinished or (
                    A.incomplete and f["in_flight"])):
                    err("0x%x %s: %d unfinished, the log says %s" % (h, name, unfinished, f))
                if A.incomplete and len([i for i in c.incomplete if i["kind"] == name]) != f["incomplete"]:
                    err("0x%x %s: %d incomplete lines" % (h, name, len(c.incomplete)))
            if sum(s[name + "_records"] for s in c.stats) != f["written"] and not process_drops:
                err("0x%x %s: %s_records add up to %d, written %d" %
                    (h, name, name, sum(s[name + "_records"] for s in c.stats), f["written"]))
        if not process_drops:
            for n in missing:
                if not any(g["rec_sn_from"] <= n <= g["rec_sn_to"] for g in gaps):
                    err("0x%x %s %d is missing and in no gap line" % (h, name, n))
if (not A.no_control and not A.no_final and not A.unflushed and not (A.open or A.started_free) and
    lost != stated + sum(process_drops.values())):
    err("%d lost, the final lines state %d and of the process %s" % (lost, stated, process_drops))
want_strays = {k: int(v) for k, v in (s.split("=") for s in A.stray)}
if not A.no_control and strays != want_strays and not A.unflushed:
    err("strays %s, expected %s" % (strays, want_strays))
lo, _, hi = A.lost.partition("-")
if not int(lo) <= lost <= int(hi or lo) and not A.unflushed:
    err("%d finished operations are not in the log, %s expected" % (lost, A.lost))
if refused != A.refused:
    err("%d communicators are not in the log, %d expected" % (refused, A.refused))
if errors:
    report()
print("verified: %d records of %d communicators in %d files, %d lost, %d unfinished, %d lines, strays %s, notes %s"
      % (total, len(comms), len(paths), lost, n_open, n_lines, strays, notes))
