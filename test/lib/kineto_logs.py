"""Traces as torch.profiler (Kineto) exports them, of a job of trace_logs.py, on a clock that is wrong by a
known amount.

    kineto_logs.py TRUTH.json DIR [--ranks 0,1] [--offset S] [--drift PPM] [--noise US] [--from K] [--to K]
    [--every N] [--lost N]
                   [--extra N] [--chaos] [--wide] [--nameless] [--absolute] [--plain]

--from, --to: kernels of the truth before and after are missing; --every: only each so many-th; --lost: so
many of 100 are not in the file; --extra: as many kernels of groups that no log knows; --chaos: starts that
have nothing to do with the truth;
--wide: numbers in all arguments that neither 64 bits nor a double can hold;
--nameless: no distributedInfo; --absolute: Unix us and no baseTimeNanoseconds, as before 2024.
"""
import argparse
import gzip
import json
import os
import random

BASE = 1789990000 * 10**9
WIDE = f'"id": {2**64}, "handles": [{-2**63 - 1}, {10**40}, {2**64 - 1}], "flops": 1.5e400, "mean": NaN, "text": "1e400 \\" NaN"'


def us(ns):
    return f"{ns // 1000}.{ns % 1000:03d}"


class File:
    """Text as Kineto lays it out: a member or an event on several lines, times with three decimals."""
    def __init__(self, o, rank):
        self.o, self.rank, self.out, self.correlation = o, rank, [], 100

    def event(self, body):
        self.out.append("  {\n    " + body + "\n  }")

    def meta(self, what, pid, tid, args):
        self.event(f'"name": "{what}", "ph": "M", "ts": 0.000, "pid": {pid}, "tid": {tid},\n    "args": {{\n      {args}\n    }}')

    def slice(self, cat, name, pid, tid, t, d, args, arrow=""):
        base = 0 if self.o.absolute else BASE
        self.event(f'"ph": "X", "cat": "{cat}", "name": {json.dumps(name)}, "pid": {pid}, "tid": {tid},\n'
                   f'    "ts": {us(t - base)}, "dur": {us(d)},\n    "args": {{\n      {args}\n    }}')
        if arrow:
            self.event(f'"ph": "{arrow}", "id": {self.correlation}, "pid": {pid}, "tid": {tid}, "ts": {us(t - base)},\n'
                       f'    "cat": "ac2g", "name": "{"async_gpu" if self.o.absolute else "ac2g"}"' +
                       (', "bp": "e"' if arrow == "f" else ""))

    def kernel(self, t, d, stream, name, group, called, true=None):
        self.correlation += 1
        c = f'"External id": {self.correlation}, "correlation": {self.correlation}'
        if self.o.wide:
            c += ', ' + WIDE
        self.slice("cpu_op", "c10d::allreduce_", 4000 + self.rank, 4000 + self.rank, called - 30000, 29000,
                   c + ', "Input Dims": [[[1024, 512]], []]')
        self.slice("cpu_op", "record_param_comms", 4000 + self.rank, 4000 + self.rank, called - 29000, 27000,
                   c)
        self.slice("cuda_runtime", "cudaLaunchKernelExC", 4000 + self.rank, 4000 + self.rank, called - 20000,
                   9000, c + ', "cbid": 430', "s")
        name += f" true_ns={true}" if true is not None else ""
        self.slice("kernel", name, self.rank, stream, t, d,
                   c + f', "device": {self.rank}, "stream": {stream}, "grid": [24, 1, 1], "Collective name": "allreduce", '
                   f'"Process Group Name": "{group}", "Process Group Description": "default_pg"', "f")

    def text(self):
        o = self.o
        info = {"backend": "nccl", "rank": self.rank, "world_size": 6, "pg_count": 2,
                "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl",
                               "pg_size": 6, "ranks": [0, 1]}]}
        head = ['  "schemaVersion": 1', '  "deviceProperties": [\n    {"id": 0, "name": "NVIDIA H100, \\"{[", "totalGlobalMem": 85520809984}\n  ]']
        if not o.nameless:
            head.append('  "distributedInfo": ' + json.dumps(info))
        head.append('  "displayTimeUnit": "ms"')
        if not o.absolute:
            head.append(f'  "baseTimeNanoseconds": {BASE}')
        return "{\n" + ",\n".join(head) + ',\n  "traceEvents": [\n' + ",\n".join(self.out) + '\n  ],\n  "traceName": "x.json"\n}\n'


def main():
    a = argparse.ArgumentParser()
    a.add_argument("truth")
    a.add_argument("out")
    a.add_argument("--ranks", default="0,3")
    for name, kind, default in (("offset", float, 0.0), ("drift", float, 0.0), ("noise", float, 1.0),
                                ("from", int, 0), ("to", int, 10**9),
                                ("every", int, 1), ("lost", int, 0), ("extra", int, 0), ("seed", int, 1)):
        a.add_argument("--" + name, type=kind, default=default)
    for name in ("chaos", "wide", "nameless", "absolute", "plain"):
        a.add_argument("--" + name, action="store_true")
    o = a.parse_args()
    truth = json.load(open(o.truth))
    os.makedirs(o.out, exist_ok=True)
    for rank in map(int, o.ranks.split(",")):
        rng, f = random.Random(o.seed * 100 + rank), File(o, rank)
        clock = lambda t: t + int(o.offset * 1e9) + int(o.drift * 1e-6 * (t - truth["t0"]))
        f.slice("user_annotation", 'ProfilerStep#3 \x1b[31m "</script>" \u00e9', 4000 + rank, 4000 + rank,
                clock(truth["t0"]), truth["last"] - truth["t0"], '"External id": 1')
        mine = [x for x in truth["ops"] if x["rank"] == rank][vars(o)["from"]:o.to:o.every]
        for x in mine:
            if rng.randrange(100) < o.lost:
                continue
            t = x["start"] + int(rng.uniform(-1, 1) * o.noise * 1000)
            if o.chaos:
                t = rng.randrange(truth["t0"], truth["last"])
            f.kernel(clock(t), x["end"] - x["start"], 24 if x["comm"] == "0x1111" else 28,
                     "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", x["comm"],
                     clock(t) - 20000, true=t)
            for _ in range(o.extra):
                t = x["start"] + rng.randrange(10**7)
                f.kernel(clock(t), 50000, 32, rng.choice(["ncclDevKernel_AllReduce_Sum_f32_TREE_LL(x)",
                                                          "ncclKernel_AllGather_RING_LL_Sum_int8_t",
                                                           "ncclDevKernel_Generic_4(x)", "void at::native::elementwise_kernel<128, 4>"]), "9", clock(t) - 20000)
        f.event(f'"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": {4000 + rank}, "tid": {4000 + rank},\n'
                f'    "ts": {us(clock(truth["t0"]) - (0 if o.absolute else BASE))}, "args": {{"Total Allocated": 1024, "Addr": 140000000000000}}')
        f.event('"ph": "b", "cat": "x", "name": "async", "id": 7, "pid": 1, "tid": 1, "ts": 1.000')
        for pid, label in ((4000 + rank, "CPU"), (rank, f"GPU {rank}")):
            f.meta("process_name", pid, 0, '"name": "python"')
            f.meta("process_labels", pid, 0, f'"labels": "{label}"')
        f.meta("thread_name", 4000 + rank, 4000 + rank, f'"name": "thread {4000 + rank} (python3)"')
        for s in (24, 28, 32):
            f.meta("thread_name", rank, s, f'"name": "stream {s} "')
        name = f"{o.out}/node_rank{rank}.pt.trace.json" if o.nameless else f"{o.out}/node_77{rank}.1790000000.pt.trace.json"
        with (open(name, "w") if o.plain else gzip.open(name + ".gz", "wt", 1)) as out:
            out.write(f.text())


if __name__ == "__main__":
    main()
