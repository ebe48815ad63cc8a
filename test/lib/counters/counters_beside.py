#!/usr/bin/env python3
"""counters_beside.py LOGS: plants series of counters beside the logs of a job of nccl-sim, and prints what a
reader must find.

Host sim-node0 gets two Cassini NICs, each near one rank's GPU, and two GPUs; sim-node1 an InfiniBand port.
Everything moves by known amounts a second, from 5 s before the first operation to 5 s after the last one: one
rate while operations of the host run, another one outside of that span.
"""
import glob
import gzip
import json
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from counter_series_write import NS, Series

logs = sys.argv[1]
span, rank_of_gpu = {}, {}
for path in sorted(glob.glob(logs + "/*.jsonl.gz")):
    out = []
    for text in gzip.open(path, "rt"):
        line = json.loads(text)
        host, rank = line["metadata"]["hostname"], None
        if "coll_perf" in line and line["coll_perf"].get("coll_gpu_start_delta_ns") is not None:
            o = line["coll_perf"]
            start = o["coll_enqueue_ns"] + o["coll_gpu_start_delta_ns"]
            lo, hi = span.get(host, (start, start))
            span[host] = (min(lo, start), max(hi, start + o["coll_exec_time_ns"]))
        if "process" in line:
            rank = line["process"]["rank"]
            local = rank
        if "comm" in line:
            line["comm"]["gpu_pci"] = "00000000:%02X:00.0" % (0x10 + local)
            text = json.dumps(line) + "\n"
        out.append(text)
    with gzip.open(path, "wt") as f:
        f.writelines(out)

first = min(a for a, b in span.values())
last = max(b for a, b in span.values())
counter = lambda name, unit="", width=56, **more: {"name": name, "width": width, "unit": unit, **more}
gauge = lambda name, unit="": {"name": name, "kind": "gauge", "unit": unit}


def cxi(i):
    return {"source": "cxi", "name": "cxi%d" % i, "pci": "0000:%02x:00.0" % (0x20 + i),
            "nearest": "0000:%02x:00.0" % (0x10 + i), "link_bytes_s": 25e9,
            "metrics": [counter("hni_sts_tx_ok_octets", "bytes"), counter("hni_sts_rx_ok_octets", "bytes"),
                                              counter("hni_tx_paused_1", "cycles"),
                                              counter("pct_spt_timeouts")]}


def gpu(i):
    return {"source": "gpu", "name": "gpu%d" % i, "pci": "0000:%02x:00.0" % (0x10 + i), "about": "a GPU",
            "metrics": [gauge("clock_sm", "MHz"), gauge("throttle_reasons")]}


def write(host, entities, values):
    """values(t, inside): the counters' own at that time; inside: seconds of it within the job."""
    s = Series("%s/%s-counters-%d.jsonl.gz" % (logs, host, first // NS), host, entities, NS // 2)
    t = first - 5 * NS
    while t < last + 5 * NS:
        s.sample(t, values((t - first) / NS + 5, max(0, min(t, last) - first) / NS, first <= t <= last))
        t += NS // 2
    s.close()


wrap = 2 ** 56 - 10 ** 10  # passes its end within the first second of the job
n = [0]


def node0(t, inside, now):
    n[0] += 1
    return [(wrap + int(20e9 * inside)) % 2 ** 56, int(10e9 * inside), int(0.3e9 * inside),
            7 if inside > 1 else 0,
            1000 + int(1e9 * t), 5, 0, 0 if n[0] < 6 else None,
            1200 if now else 1980, 0x40 if now else 1, 1980, 0]


def node1(t, inside, now):
    n[0] += 1
    return [int(2e9 * inside / 4 * 4), int(1e9 * t) if n[0] < 10 else int(1e9 * t) % 1000]


write("sim-node0", [cxi(0), cxi(1), gpu(0), gpu(1)], node0)
n[0] = 0
write("sim-node1", [{"source": "ib", "name": "mlx5_0:1", "link_bytes_s": 50e9,
                     "metrics": [counter("port_xmit_data", "bytes", 64, scale=4),
                                 counter("packet_seq_err", "", 64)]}], node1)
print(json.dumps({"seconds": (last - first) / NS}))
