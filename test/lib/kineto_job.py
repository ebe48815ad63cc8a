"""The traces that torch.profiler would have exported of a job, from the logs of one (of ni-jobs, nccl-sim or
the plugin).

    kineto_job.py LOGS DIR [--cut S] [--seed N] [--plain] [--no-launch] [--no-meta] [--no-seq | --seq]
    [--no-host] [--steps N]
                       [--cycles N]

One file a rank, laid out as Kineto's output_json.cpp does: distributedInfo, then events in no order of time:
record_param_comms and cudaLaunchKernelExC on the CPU, an NCCL kernel with PyTorch's metadata on the GPU. Of
the logs only what PyTorch knows is used:
function, size, datatype, group, start, duration and launch; no sequence numbers.

--cut: each rank's trace begins somewhere in the first S seconds; --seq: with PyTorch's own numbers ("Seq",
since 2.8);
--steps: the job has so many, as long in operations: ProfilerStep#N around each; --no-host: the file's name
says the rank alone;
--cycles: the profiler's schedule repeats: so many files a rank, each of the first four fifths of its part of
the time.
"""
import argparse
import collections
import gzip
import json
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

BASE = 1789990000 * 10**9
TORCH = {"ncclFloat32": "Float", "ncclBfloat16": "BFloat16", "ncclFloat16": "Half", "ncclFloat64": "Double",
         "ncclInt8": "Char",
         "ncclUint8": "Byte", "ncclInt32": "Int", "ncclInt64": "Long"}
BYTES = {"Float": 4, "BFloat16": 2, "Half": 2, "Double": 8, "Char": 1, "Byte": 1, "Int": 4, "Long": 8}
CALLED = {"AllReduce": "allreduce", "AllGather": "_allgather_base", "ReduceScatter": "_reduce_scatter_base",
          "Broadcast": "broadcast", "Reduce": "reduce", "AlltoAll": "all_to_allv", "Send": "send",
          "Recv": "recv", "Gather": "gather", "Scatter": "scatter"}
KERNEL = {"AllReduce": "AllReduce_Sum_bf16_RING_LL", "AllGather": "AllGather_RING_LL",
          "ReduceScatter": "ReduceScatter_Sum_bf16_RING_LL",
          "Broadcast": "Broadcast_RING_LL", "Reduce": "Reduce_Sum_bf16_RING_LL"}
SHOWN = 30  # ranks of a group that PyTorch lists


def us(ns):
    return f"{ns // 1000}.{ns % 1000:03d}"


def open_log(path):
    return gzip.open(path, "rt") if open(path, "rb").read(2) == b"\x1f\x8b" else open(path)


def read_logs(folder):
    """{rank: {"host", "pid", "world", "ops": [(start, line)]}} and {communicator: {rank in it: rank of the
    job}}."""
    ranks, groups = {}, collections.defaultdict(dict)
    for name in sorted(os.listdir(folder)):
        if not name.endswith((".jsonl", ".jsonl.gz")):
            continue
        with open_log(os.path.join(folder, name)) as f:
            me = None
            for text in f:
                line = json.loads(text)
                head, meta = line["header"], line["metadata"]
                if "process" in line:
                    me = ranks.setdefault(line["process"]["rank"],
                                          {"host": meta["hostname"], "pid": meta["pid"],
                                                                    "rank": line["process"]["rank"],
                                                                    "world": line["process"]["world_size"],
                                                                    "ops": []})
                op = line.get("coll_perf") or line.get("p2p_perf")
                if not op:
                    continue
                k = "coll" if "coll_perf" in line else "p2p"
                enqueue = op[k + "_enqueue_ns"]
                groups[head["id"]][head["rank"]] = me["rank"]
                me["ops"].append({"start": enqueue + op.get(k + "_gpu_start_delta_ns", 0), "launch": enqueue,
                                  "dur": op[k + "_exec_time_ns"], "func": op[k],
                                  "bytes": op[k + "_msg_size_bytes"],
                                  "dtype": TORCH.get(op.get(k + "_datatype"), "Byte"),
                                  "peer": op.get("p2p_peer"), "root": op.get("coll_root", 0),
                                  "comm": head["id"], "name": head.get("comm_name"),
                                  "n_ranks": head["n_ranks"], "channels": op.get(k + "_nchannels", 8)})
    return ranks, groups


def shown_ranks(of):
    text = [str(r) for r in of]
    return "[" + ", ".join(text if len(text) <= SHOWN else text[:SHOWN] + ["...", text[-1]]) + "]"


class Trace:
    def __init__(self, o, me, groups, names):
        self.o, self.me, self.groups, self.names, self.out, self.id = o, me, groups, names, [], 100
        self.seq = collections.Counter()

    def slice(self, cat, name, pid, tid, t, d, args):
        self.out.append('{"ph": "X", "cat": "%s", "name": %s, "pid": %d, "tid": %d,\n    "ts": %s, "dur": %s,\n    "args": {%s}}'
                        % (cat, json.dumps(name), pid, tid, us(t - BASE), us(d), args))

    def collective(self, op):
        """What PyTorch says of it, the same of call and kernel; then what it says of the call alone."""
        group = self.groups[op["comm"]]
        ranks = [group[r] for r in sorted(group)]
        n = op["bytes"] // BYTES[op["dtype"]]
        size = op["n_ranks"]
        into = n * size if op["func"] in ("ReduceScatter", "AlltoAll") else n
        out = n * size if op["func"] in ("AllGather", "AlltoAll") else n
        a = {"Collective name": CALLED[op["func"]], "In msg nelems": into, "Out msg nelems": out,
             "Group size": size, "dtype": op["dtype"], "In split size": "[]", "Out split size": "[]",
             "Process Group Name": str(self.names[op["comm"]]),
             "Process Group Description": op["name"] or "undefined",
             "Process Group Ranks": shown_ranks(ranks)}
        if op["peer"] is not None:
            a["Dst Rank" if op["func"] == "Send" else "Src Rank"] = group[op["peer"]]
        if self.o.seq:
            a["Seq"] = op["seq"]
        even = len(ranks) > 1 and all(b - x == ranks[1] - ranks[0] for x, b in zip(ranks, ranks[1:]))
        call = dict(a, **{"Rank": op["root"], "Global rank start": ranks[0],
                          "Global rank stride": ranks[1] - ranks[0] if even else 0})
        return a, call

    def operation(self, op):
        o, me = self.o, self.me
        self.id += 1
        meta, call = self.collective(op)
        text = lambda d: "".join(f', {json.dumps(k)}: {json.dumps(v)}' for k, v in d.items())
        ids = f'"External id": {self.id}'
        if not o.no_launch:
            self.slice("cpu_op", "record_param_comms", me["pid"], me["pid"], op["launch"] - 60000, 130000,
                       ids + text({} if o.no_meta else call))
            self.slice("cuda_runtime", "cudaLaunchKernelExC", me["pid"], me["pid"], op["launch"], 5000,
                       f'{ids}, "correlation": {self.id + 7000}')
        self.slice("kernel", f'ncclDevKernel_{KERNEL.get(op["func"], "SendRecv")}(ncclDevKernelArgsStorage<4096ul>)', me["rank"] % 8, 20, op["start"], op["dur"],
                   f'{ids}, "device": {me["rank"] % 8}, "stream": 20, "correlation": {self.id + 7000}, "grid": [{op["channels"]}, 1, 1], "block": [544, 1, 1]'
                   + text({} if o.no_meta else meta))

    def text(self):
        info = {"backend": "nccl", "rank": self.me["rank"], "world_size": self.me["world"],
                "pg_count": len(self.groups), "nccl_version": "2.27.3"}
        return ('{\n  "schemaVersion": 1,\n  "distributedInfo": ' + json.dumps(info) +
                f',\n  "displayTimeUnit": "ms",\n  "baseTimeNanoseconds": {BASE},\n'
                '  "traceEvents": [\n' + ",\n".join(self.out) + "\n  ]\n}\n")


def number(ops):
    """As a process group does: its collectives from 1 on."""
    count = collections.Counter()
    for op in sorted(ops, key=lambda op: op["launch"]):
        if op["peer"] is None:
            count[op["comm"]] += 1
            op["seq"] = count[op["comm"]]
        else:
            op["seq"] = 0


def main():
    a = argparse.ArgumentParser()
    a.add_argument("logs")
    a.add_argument("out")
    a.add_argument("--cut", type=float, default=0)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--steps", type=int)
    a.add_argument("--cycles", type=int, default=1)
    for name in ("plain", "no-launch", "no-meta", "seq", "no-host"):
        a.add_argument("--" + name, action="store_true")
    o = a.parse_args()
    ranks, groups = read_logs(o.logs)
    names = {c: i for i, c in enumerate(sorted(groups))}
    os.makedirs(o.out, exist_ok=True)
    first = min(op["start"] for me in ranks.values() for op in me["ops"])
    last = max(op["start"] for me in ranks.values() for op in me["ops"])
    for cycle, (rank, me) in ((c, r) for c in range(o.cycles) for r in sorted(ranks.items())):
        rng, t = random.Random(o.seed * 1000 + rank), Trace(o, me, groups, names)
        begin = first + int(rng.random() * o.cut * 1e9) if o.cut else 0
        end = last
        if o.cycles > 1:
            begin = max(begin, first + (last - first) * cycle // o.cycles)
            end = first + (last - first) * (5 * cycle + 4) // (5 * o.cycles)
        number(me["ops"])
        if o.steps:
            by_launch = sorted(op["launch"] for op in me["ops"])
            at = [x - 100000 for x in by_launch[::len(by_launch) // o.steps]]
            for i, (x, y) in enumerate(zip(at, at[1:] + [by_launch[-1] + 100000])):
                if y > begin and x < end:
                    t.slice("user_annotation", f"ProfilerStep#{i}", me["pid"], me["pid"], x, y - x,
                            '"External id": 1')
        kept = [op for op in me["ops"] if begin <= op["start"] <= end]
        rng.shuffle(kept)  # Kineto writes thread by thread and stream by stream
        for op in kept:
            t.operation(op)
        stem = f"rank{rank}" + (f"-{cycle}" if o.cycles > 1 else "")
        name = stem + ".json" if o.no_host else f"{me['host']}_{me['pid']}.{1790000000123 + cycle}.pt.trace.json"
        with (open(f"{o.out}/{name}", "w") if o.plain else gzip.open(f"{o.out}/{name}.gz", "wt", 1)) as f:
            f.write(t.text())


if __name__ == "__main__":
    main()
