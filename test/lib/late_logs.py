"""Logs of 4 ranks on 2 hosts x N AllReduce of 1 MiB, one each 10 ms; each kernel takes 1 ms, but rank 2 comes
0.8 ms late to all.

Usage: late_logs.py DIR [N=200]
"""
import os
import sys

import logs
from logs import T0

out, n = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200
os.makedirs(out, exist_ok=True)
SIZE = 1048576
for rank in range(4):
    log = logs.Log(rank, 4, "node-%d" % (rank // 2), 7000 + rank, git_rev="x")
    log.add(T0 // 1000, "process", logs.process(T0, rank, 4, "b", exe="p", local_rank=rank % 2))
    world = logs.header("0x5d1c7e90aa4101", rank, 4, 2, "world")
    for i in range(n):
        late = 800_000 if rank == 2 else 0
        exec_ns = 1_000_000 + 137 * (i % 7) - late  # all stop together
        log.add((T0 + i * 10_000_000) // 1000 + 5000, "coll_perf", logs.perf(
            "coll", "AllReduce", sn=i, msg_size_bytes=SIZE, exec_time_us=(exec_ns + 500) // 1000,
            timing_source="kernel_gpu", algobw_gbs=round(SIZE / exec_ns, 6),
            busbw_gbs=round(SIZE / exec_ns * 1.5, 6), algo="RING", proto="SIMPLE", datatype="ncclFloat32",
            root=0, nchannels=8, exec_time_ns=exec_ns, enqueue_ns=T0 + i * 10_000_000 + late,
            gpu_start_delta_ns=10_000, rec_sn=i, nccl_tests_size_bytes=SIZE), world)
    log.write(out)
