#!/usr/bin/env python3
"""Logs of a job whose step is written down: pattern_logs.py DIR < SPEC

SPEC, as JSON: steps; comms: {"tp0": [global ranks], ...}; programs: a list of {"ranks": [...], "calls":
[...]}; and, if wanted, hosts (1), gap_us (between steps, 2000), sample (records of one in so many), seed,
start_ns. A call is [function, communicator, bytes, options]: the communicator without its number ("tp") is
the one of them that the rank is in; options:
peer (of Send and Recv: how many ranks on), algo, proto, datatype, us (duration, 100), beside (it does not
hold up what follows), every (in each so manieth step alone), timing (collective_cpu, ...), no_start.
"""
import json
import pathlib
import random
import sys

import logs

spec = json.load(sys.stdin)
out = pathlib.Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
draw, begin = random.Random(spec.get("seed", 1)), spec.get("start_ns", logs.T0)
comms = spec["comms"]
ranks = sorted({r for p in spec["programs"] for r in p["ranks"]})
hosts, per_host = spec.get("hosts", 1), (len(ranks) + spec.get("hosts", 1) - 1) // spec.get("hosts", 1)
host_of = lambda r: ranks.index(r) // per_host


def comm_of(name, r):
    found = [c for c in comms if (c == name or c.rstrip("0123456789") == name) and r in comms[c]]
    assert len(found) == 1, (name, r, found)
    return found[0]


def header(name, r):
    members = comms[name]
    number = spec.get("job", 0) * 1000 + list(comms).index(name) + 1
    return logs.header("0x%x" % (0x5d1c7e90aa410000 + number), members.index(r), len(members),
                       len({host_of(m) for m in members if m in ranks}),
                       None if spec.get("unnamed") else name)


for p in spec["programs"]:
    for r in p["ranks"]:
        log = logs.Log(r, len(ranks), "node-%d" % (host_of(r) + 10 * spec.get("job", 0)), 4000 + r)
        log.add(begin // 1000, "process",
                logs.process(begin - 10**9, r, len(ranks), "b", local_rank=ranks.index(r) % per_host,
                                                       env={"SLURM_JOB_ID": str(77 + spec.get("job", 0))}))
        now, number, written = begin, {}, 0
        for step in range(spec["steps"]):
            for func, name, size, *more in p["calls"]:
                o = more[0] if more else {}
                if step % o.get("every", 1): continue
                comm = comm_of(name, r)
                kind = "p2p" if func in ("Send", "Recv") else "coll"
                sn = number[comm, kind] = number.get((comm, kind), -1) + 1
                ns = int(o.get("us", 100) * 1000 * draw.gauss(1, 0.01))
                keys = {"sn": sn, "msg_size_bytes": size, "exec_time_us": ns // 1000,
                        "timing_source": o.get("timing", "kernel_gpu"), "algobw_gbs": round(size / ns, 6),
                        "busbw_gbs": round(size / ns, 6), "datatype": o.get("datatype", "ncclBfloat16"),
                        "exec_time_ns": ns, "enqueue_ns": now - 10000, "gpu_start_delta_ns": 10000,
                        "rec_sn": sn}
                if kind == "p2p": keys["peer"] = comms[comm].index(r) + o["peer"]
                else: keys.update(algo=o.get("algo", "RING"), proto=o.get("proto", "SIMPLE"))
                if o.get("no_start"): del keys["enqueue_ns"], keys["gpu_start_delta_ns"]
                written += 1
                if draw.random() * spec.get("sample", 1) < 1:
                    log.add((now + ns) // 1000 + 1000, kind + "_perf", logs.perf(kind, func, **keys),
                            header(comm, r))
                now += (20000 if o.get("beside") else ns + 20000) + int(abs(draw.gauss(0, 1000)))
            now += int(spec.get("gap_us", 2000) * 1000 * draw.gauss(1, 0.01))
        log.write(out)
