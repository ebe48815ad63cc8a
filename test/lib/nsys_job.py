"""The exports that Nsight Systems would have made of a job, from the logs of one (of ni-jobs, nccl-sim or the
plugin).

    nsys_job.py LOGS DIR [--cut S] [--seed N] [--steps N] [--hosts] [--no-blobs] [--middle]

One file a rank with torchrun's environment, or with --hosts one a host, whose ranks only NCCL's communicators
tell. Of the logs only what NVTX and CUPTI know is used: function, size, communicator, start, duration and
launch; no sequence numbers.

--cut: each recording begins somewhere in the first S seconds; --steps: the job has so many, as long in
operations: NVTX ranges "iteration N"; --middle: the communicators were made before; --no-blobs: nsys export
without --include-blobs.
"""
import argparse
import collections
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kineto_job import read_logs  # noqa: E402
from nsys_export import Export  # noqa: E402

BASE = 1789990000 * 10**9
GROUPED = ("Send", "Recv")


def write_rank(p, me, groups, begin, o):
    rank_in = {c: next((r for r, job in ranks.items() if job == me["rank"]), None)
               for c, ranks in groups.items()}
    if not o.middle:
        for i, (c, rank) in enumerate(sorted(rank_in.items())):
            if rank is not None:
                p.made(int(c, 16), len(groups[c]), rank, me["rank"] % 8, at=1000 + 1000 * i)
    by_launch = sorted(op["launch"] for op in me["ops"])
    if o.steps:
        at = [x - 100000 for x in by_launch[::len(by_launch) // o.steps]]
        for i, (x, y) in enumerate(zip(at, at[1:] + [by_launch[-1] + 100000])):
            if x > begin:
                p.range(x - BASE, y - BASE, f"iteration {i}")
    kept = [op for op in me["ops"] if op["start"] >= begin]
    random.Random(me["rank"]).shuffle(kept)  # rows come in no order that can be relied upon
    for op in kept:
        launch, start = op["launch"] - BASE, op["start"] - BASE
        streams = {c: 20 + i for i, c in enumerate(sorted(groups))}
        more = {"device": me["rank"] % 8, "stream": streams[op["comm"]], "blocks": op["channels"]}
        at = op["peer"] if op["peer"] is not None else op["root"]
        # Calls of one thread do not overlap: a range around the launch alone.
        p.api(op["func"], launch - 20, launch + 20, int(op["comm"], 16), op["bytes"], at or 0)
        name = {"AllReduce": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
                "AllGather": "ncclDevKernel_AllGather_RING_LL", "ReduceScatter": "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL"}.get(op["func"], "ncclDevKernel_SendRecv")
        p.kernel(name, start, start + op["dur"], launch, **more)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("logs")
    a.add_argument("out")
    a.add_argument("--cut", type=float, default=0)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--steps", type=int)
    for name in ("hosts", "no-blobs", "middle"):
        a.add_argument("--" + name, action="store_true")
    o = a.parse_args()
    ranks, groups = read_logs(o.logs)
    os.makedirs(o.out, exist_ok=True)
    first = min(op["start"] for me in ranks.values() for op in me["ops"])
    files = collections.defaultdict(list)
    for rank, me in sorted(ranks.items()):
        files[me["host"] if o.hosts else f"report_{rank}"].append(me)
    for name, members in files.items():
        env = {} if o.hosts else {"RANK": members[0]["rank"], "WORLD_SIZE": members[0]["world"],
                                  "LOCAL_RANK": members[0]["rank"] % 8}
        e = Export(f"{o.out}/{name}.sqlite", 2022 if o.no_blobs else 2026, BASE, members[0]["host"], env)
        for me in members:
            begin = first + int(random.Random(o.seed * 1000 +
                                              me["rank"]).random() * o.cut * 1e9) if o.cut else 0
            write_rank(e.process(me["pid"]), me, groups, begin, o)
        e.close()


if __name__ == "__main__":
    main()
