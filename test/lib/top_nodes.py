"""Documents of schema nccl-inspector-now-1 for tests of `top` (fake_agents.py serves them).

  top_nodes.py FOLDER NODES RANKS_PER_NODE [stuck]

n0, n1, ...: a job "77" of NODES x RANKS ranks in one communicator. Every value differs from rank to rank, so
that a mistaken column shows. stuck: rank 1 and the last one have not come to call 900, in which all others
are for 40 s; the last one is stuck elsewhere.
"""
import json
import os
import sys

root, nodes, per = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
stuck = len(sys.argv) > 4
n_ranks = nodes * per
os.makedirs(root, exist_ok=True)
for n in range(nodes):
    ranks = []
    for g in range(per):
        r = n * per + g
        row = {"job_id": "77", "attempt": "0", "rank": r, "pid": 4000 + r, "alive": True, "gpu": g,
               "comm": "dp0", "comm_id": "0x5d1c", "comm_rank": r, "n_ranks": n_ranks,
               "collectives": 1204 + r, "in_flight": 1, "stuck": 0, "function": "AllReduce", "sn": 511,
               "call": 1203 + r, "bytes": 1 << 20, "state": "kernel", "age_s": 0.012 + r / 1000,
               "operations_s": 812 + r,
               "bus_bytes_s": (182 + r) * 1e9, "late_share": (10 + r) / 1000}
        if stuck:
            behind = r in (1, n_ranks - 1)
            row.update(collectives=900 if behind else 901, call=899 if behind else 900, age_s=40.0 + r,
                       stuck=1,
                       operations_s=0, bus_bytes_s=0)
            if r == 1:
                row.update(in_flight=0, function=None, state=None, call=None, age_s=None, stuck=0)
        ranks.append(row)
    doc = {"schema": "nccl-inspector-now-1", "node": f"n{n}", "time_ns": 1790000000000000000,
           "version": "0.1.0", "jobs": [{"job_id": "77", "attempt": "0", "uid": 1001,
                                         "state": "stuck" if stuck else "running", "processes": per,
                     "hang": "AllReduce 900 of dp0 waits for rank 1, which has not called it" if stuck
                     else None}],
           "ranks": ranks,
           "gpus": [{"gpu": g, "utilization": 0.9 + g / 100, "power_w": 640 + g, "sm_hz": 1.98e9 + g * 1e6,
                     "temperature_c": 61 + g,
                     "throttled": ["power", "thermal"] if g == 1 else []} for g in range(per)],
           "nics": [{"nic": f"cxi{g}", "source": "cxi", "rx_bytes_s": (1 + g) * 1e9,
                     "tx_bytes_s": (2 + g) * 1e9,
                     "link_bytes_s": 25e9, "held": 0.01 * g} for g in range(min(per, 2))]}
    with open(os.path.join(root, f"n{n}"), "w") as f:
        json.dump(doc, f)
