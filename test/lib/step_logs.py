"""Logs of a training job with one late rank: step_logs.py DIR [STEPS]

8 ranks on 2 hosts. In each step a rank computes twice for about 4 ms with an AllReduce of its node behind
each, and the world's norm ends the step. From the middle on rank 5 computes 12 % longer. An operation ends
when its transfer has passed since the last rank came.
"""
import pathlib
import random
import sys

import logs

out, steps = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 120
out.mkdir(parents=True, exist_ok=True)
draw, begin = random.Random(5), logs.T0
WORLD = ("0x5d1c7e90aa4101", "world", 8, 2)
node = lambda r: (f"0x77aa00000000100{r // 4}", f"tp{r // 4}", 4, 1)
log = [logs.Log(r, 8, f"node-{r // 4}", 4000 + r, spaced=True) for r in range(8)]
free, number = [begin] * 8, {}


def add(rank, comm, member, kind, body):
    log[rank].add(free[rank] // 1000 + 1000, kind, body,
                  logs.header(comm[0], member, comm[2], comm[3], comm[1]))


def all_reduce(comm, ranks, size, transfer):
    end = max(free[r] for r in ranks) + transfer
    for member, r in enumerate(ranks):
        ns, sn = end - free[r], number.setdefault((comm[0], r), 0)
        add(r, comm, member, "coll_perf", logs.perf(
            "coll", "AllReduce", sn=sn, msg_size_bytes=size, exec_time_us=ns // 1000,
            timing_source="kernel_gpu", algobw_gbs=round(size / ns, 6),
            busbw_gbs=round(size / ns * 2 * (comm[2] - 1) / comm[2], 6), exec_time_ns=ns,
            enqueue_ns=free[r] - 10000, gpu_start_delta_ns=10000, rec_sn=sn))
        number[comm[0], r] += 1
        free[r] = end


for r in range(8):
    add(r, ("0x0", "", 8, 0), r, "process",
        logs.process(begin - 10**9, r, 8, "b", local_rank=r % 4, env={"SLURM_JOB_ID": "77"}))
for step in range(steps):
    for part in range(2):
        for r in range(8):
            free[r] += int(4e6 * draw.gauss(1, 0.005) * (1.12 if r == 5 and step >= steps // 2 else 1))
        for first in (0, 4):
            all_reduce(node(first), range(first, first + 4), 4 << 20, int(1e5 * draw.gauss(1, 0.01)))
    for r in range(8):
        free[r] += int(1e6 * draw.gauss(1, 0.005))
    all_reduce(WORLD, range(8), 4, int(5e4 * draw.gauss(1, 0.01)))
for r in range(8):
    log[r].write(out)
