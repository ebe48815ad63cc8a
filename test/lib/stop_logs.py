"""Logs of a data-parallel job with one communicator, whose link stops three times: stop_logs.py DIR

8 ranks on 2 hosts. In each step four buckets of gradients are reduced, and the ranks wait for each other in
turn. Three of these operations take 0.2 s on all ranks, though nobody comes late. Every 35 steps all state is
gathered for a checkpoint, which takes as long each time.
"""
import pathlib
import random
import sys

import logs

out, STEPS, RANKS = pathlib.Path(sys.argv[1]), 120, 8
out.mkdir(parents=True, exist_ok=True)
draw, begin = random.Random(7), logs.T0
COMM = ("0x5d1c7e90aa4101", "world", RANKS, 2)
log = [logs.Log(r, RANKS, f"node-{r // 4}", 4000 + r, spaced=True) for r in range(RANKS)]
free, number = [begin] * RANKS, {}


def collective(func, size, transfer):
    sn = number.setdefault(func, 0)
    number[func] += 1
    end = max(free) + transfer
    for r in range(RANKS):
        ns = end - free[r]
        log[r].add(free[r] // 1000 + 1000, "coll_perf", logs.perf(
            "coll", func, sn=sn, msg_size_bytes=size, exec_time_us=ns // 1000, timing_source="kernel_gpu",
            algobw_gbs=round(size / ns, 6), busbw_gbs=round(size / ns, 6), exec_time_ns=ns,
            enqueue_ns=free[r] - 10000, gpu_start_delta_ns=10000, rec_sn=sum(number.values()) - 1),
            logs.header(COMM[0], r, COMM[2], COMM[3], COMM[1]))
        free[r] = end


for r in range(RANKS):
    log[r].add(begin // 1000, "process",
               logs.process(begin - 10**9, r, RANKS, "b", local_rank=r % 4, env={"SLURM_JOB_ID": "77"}),
               logs.header("0x0", r, RANKS, 0, ""))
for step in range(STEPS):
    for bucket in range(4):
        for r in range(RANKS):
            free[r] += int(draw.uniform(4e6, 9e6))
        stops = (step, bucket) in ((30, 1), (80, 2), (95, 0))
        collective("AllReduce", 64 << 20, 200_000_000 if stops else int(3e5 * draw.gauss(1, 0.01)))
    for r in range(RANKS):
        free[r] += 1_000_000
    collective("AllReduce", 4, int(5e4 * draw.gauss(1, 0.01)))
    if step % 35 == 34:
        collective("AllGather", 8 << 30, 150_000_000)
for r in range(RANKS):
    log[r].write(out)
