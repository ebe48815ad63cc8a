#!/usr/bin/env python3
"""evidence_beside.py LOGS WHAT HOST [GPU]: plants counters of four hosts beside a job of ni-jobs, all alike
but for one thing.

WHAT: gpu (GPU number GPU of HOST is throttled), nic (the NICs of HOST wait 31 % of the time), cpu (HOST has
more threads to run than CPUs), none (nothing is off). Each host has itself, eight GPUs and eight NICs, each
NIC near the GPU of its number.
"""
import glob
import gzip
import json
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from counter_series_write import NS, Series

logs, what, odd_host = sys.argv[1:4]
odd_gpu = int(sys.argv[4]) if len(sys.argv) > 4 else -1
with open(logs + "/truth.json") as f:
    truth = json.load(f)
pci = {}
for path in glob.glob(logs + "/*.jsonl.gz"):
    with gzip.open(path, "rt") as f:
        for line in map(json.loads, f):
            if "comm" in line:
                pci[line["metadata"]["hostname"], line["comm"]["gpu_index"]] = line["comm"]["gpu_pci"]
                break
counter = lambda name, unit="", width=56: {"name": name, "width": width, "unit": unit}
gauge = lambda name, unit="": {"name": name, "kind": "gauge", "unit": unit}
for host in (h["name"] for h in truth["hosts"]):
    entities = [{"source": "host", "name": "host",
                 "metrics": [gauge("run_queue", "threads"), counter("pressure_cpu_some", "us", 64)]}]
    for i in range(8):
        entities.append({"source": "gpu", "name": "gpu%d" % i, "pci": pci[host, i],
                         "metrics": [gauge("clock_sm", "MHz"), gauge("throttle_reasons")]})
        entities.append({"source": "cxi", "name": "cxi%d" % i, "pci": "0000:e%d:00.0" % i,
                         "nearest": pci[host, i], "link_bytes_s": 25e9,
                         "metrics": [counter("hni_sts_tx_ok_octets", "bytes"),
                                     counter("hni_tx_paused_1", "cycles")]})
    begin = truth["epoch_ns"] - NS
    s = Series("%s/%s-counters-%d.jsonl.gz" % (logs, host, begin // NS), host, entities, NS // 4)
    for k in range(int(truth["job_s"] * 4) + 8):
        t, odd = k / 4, host == odd_host
        values = [96 if odd and what == "cpu" else 3, int((0.6 if odd and what == "cpu" else 0.01) * 1e6 * t)]
        for i in range(8):
            slow = odd and what == "gpu" and i == odd_gpu
            values += [1095 if slow else 1980, 4 if slow else 0, int(10e9 * t),
                       int((0.31 if odd and what == "nic" else 0.02) * 1e9 * t)]
        s.sample(begin + k * NS // 4, values)
    s.close()
