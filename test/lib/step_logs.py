"""Logs of a training job with one late rank: step_logs.py DIR [STEPS]

8 ranks on 2 hosts. In each step a rank computes twice for about 4 ms with an AllReduce of its node behind each, and the world's norm
ends the step. From the middle on rank 5 computes 12 % longer. An operation ends when its transfer has passed since the last rank came.
"""
import json
import pathlib
import random
import sys

out, steps = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 120
out.mkdir(parents=True, exist_ok=True)
draw, begin = random.Random(5), 1790000000 * 10**9
WORLD = ("0x5d1c7e90aa4101", "world", 8, 2)
node = lambda r: (f"0x77aa00000000100{r // 4}", f"tp{r // 4}", 4, 1)
lines = {r: [] for r in range(8)}
free, number = [begin] * 8, {}


def line(rank, comm, member, **more):
    lines[rank].append(json.dumps({"header": {"id": comm[0], "comm_name": comm[1], "rank": member, "n_ranks": comm[2], "nnodes": comm[3]}, "metadata": {
        "inspector_output_format_version": "v4.0", "git_rev": "1a2b3c4d5", "rec_mechanism": "nccl_profiler_interface", "dump_timestamp_us": free[rank] // 1000 + 1000,
        "hostname": f"node-{rank // 4}", "pid": 4000 + rank, "producer": "nccl-inspector-c 0.1.0"}, **more}))


def all_reduce(comm, ranks, size, transfer):
    end = max(free[r] for r in ranks) + transfer
    for member, r in enumerate(ranks):
        ns, sn = end - free[r], number.setdefault((comm[0], r), 0)
        line(r, comm, member, coll_perf={"coll": "AllReduce", "coll_sn": sn, "coll_msg_size_bytes": size, "coll_exec_time_us": ns // 1000, "coll_timing_source": "kernel_gpu",
             "coll_algobw_gbs": round(size / ns, 6), "coll_busbw_gbs": round(size / ns * 2 * (comm[2] - 1) / comm[2], 6), "coll_exec_time_ns": ns,
             "coll_enqueue_ns": free[r] - 10000, "coll_gpu_start_delta_ns": 10000, "rec_sn": sn})
        number[comm[0], r] += 1
        free[r] = end


for r in range(8):
    line(r, ("0x0", "", 8, 0), r, process={"start_ns": begin - 10**9, "boot_id": "b", "exe": "python3", "rank": r, "local_rank": r % 4, "world_size": 8,
         "env": {"SLURM_JOB_ID": "77"}, "nccl_version": 23007, "interface": "v4", "settings": {}})
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
    pathlib.Path(out, f"node-{r // 4}-pid{4000 + r}.jsonl").write_text("\n".join(lines[r]) + "\n")
