"""Small traces as Kineto lays them out, one for each rule of docs/import.md, and what must come of them.

    kineto_cases.py make DIR          DIR/NAME/*.json
    kineto_cases.py check NAME LOGS   exits with 1 and says what is not so
"""
import collections
import gzip
import json
import os
import random
import sys

BASE = 1789990000 * 10**9
T0 = 1790000000 * 10**9


class Trace:
    def __init__(self, rank, world=2, base=BASE, info=True, groups=None):
        self.rank, self.base, self.events, self.id = rank, base, [], 10
        self.head = {"schemaVersion": 1}
        if info:
            self.head["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world,
                                            "nccl_version": "2.21.5"}
            if groups:
                self.head["distributedInfo"]["pg_config"] = groups
        if base:
            self.head["baseTimeNanoseconds"] = base

    def event(self, cat, name, pid, tid, at_us, dur_us, args):
        self.events.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid,
                            "ts": (T0 - self.base) / 1000 + at_us, "dur": dur_us, "args": args})

    def op(self, at_us, dur_us, kernel="ncclDevKernel_AllReduce_Sum_f32_RING_LL", said=None, call=None,
           launch=True, stream=7, **more):
        self.id += 1
        ids = {"External id": self.id, "correlation": self.id}
        self.event("kernel", kernel + "(ncclDevKernelArgsStorage<4096ul>)", 0, stream, at_us, dur_us,
                   {**ids, "device": 0, "stream": stream, "grid": [4, 1, 1], **(said or {}), **more})
        if call is not None:
            self.event("cpu_op", "record_param_comms", 100 + self.rank, 1, at_us - 90, 60,
                       {"External id": self.id, **(said or {}), **call})
        if launch:
            self.event("cuda_runtime", "cudaLaunchKernelExC", 100 + self.rank, 1, at_us - 40, 5,
                       {"cbid": 430, "correlation": self.id, "External id": self.id})

    def step(self, number, at_us, dur_us):
        self.event("user_annotation", f"ProfilerStep#{number}", 100 + self.rank, 1, at_us, dur_us,
                   {"External id": 1})

    def save(self, folder, name):
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, name), "w") as f:
            json.dump({**self.head, "traceEvents": self.events}, f, indent=1)


def said(name="allreduce", n=1000, out=None, size=2, ranks="[0, 1]", group="0", about="default_pg",
         dtype="Float", **more):
    return {"Collective name": name, "In msg nelems": n, "Out msg nelems": n if out is None else out,
            "Group size": size, "dtype": dtype, "In split size": "[]", "Out split size": "[]",
            "Process Group Name": group, "Process Group Description": about,
            "Process Group Ranks": ranks, **more}


def words(folder):
    for rank in (0, 1):
        t = Trace(rank)
        k = "ncclDevKernel_"
        t.op(1000, 10.125, k + "AllReduce_Sum_f32_RING_LL", said(dtype="BFloat16"))
        t.op(2000, 11.001, k + "AllGather_RING_LL", said("_allgather_base", 500, 1000))
        t.op(3000, 12.5, k + "ReduceScatter_Sum_f32_RING_LL", said("_reduce_scatter_base", 1000, 500))
        t.op(4000, 13.25, k + "Broadcast_RING_LL", said("broadcast", 64, dtype="Long"), call={"Rank": 1})
        t.op(5000, 14, k + "SendRecv", said("all_to_allv", 800))
        t.op(6000, 15, k + "SendRecv",
             said("send" if rank == 0 else "recv", 32, **({"Dst Rank": 1} if rank == 0 else {"Src Rank": 0})))
        t.op(7000, 16, k + "SendRecv", said("coalesced", 0))
        t.op(8000, 17, k + "Broadcast_RING_LL", said("allgather", 300, 600))
        t.op(9000, 18, k + "Generic_4", said("allreduce", 77, dtype="Double"))
        t.op(10000, 19, "ncclKernel_AllReduce_RING_LL_Sum_float", said("allreduce", 5, dtype="QInt8"))
        t.op(11000, 20, k + "AllReduce_Sum_f32_RING_LL", said(), launch=False)
        t.op(12000, 21, k + "AllReduce_Sum_f32_RING_LL", said(), **{"graph id": 3})
        t.save(folder, f"node-x_{100 + rank}.1790000000123.pt.trace.json")


def check_words(logs):
    for rank in (0, 1):
        got = logs[rank]["ops"]
        op = lambda i: got[i]
        want = [("AllReduce", 2000, 10125), ("AllGather", 2000, 11001), ("ReduceScatter", 2000, 12500),
                ("Broadcast", 512, 13250), ("AlltoAll", 1600, 14000),
                ("Send" if rank == 0 else "Recv", 128, 15000), ("SendRecv", 0, 16000),
                ("Broadcast", 0, 17000), ("AllReduce", 616, 18000),
                ("AllReduce", 0, 19000), ("AllReduce", 4000, 20000), ("AllReduce", 4000, 21000)]
        need([(x["func"], x["bytes"], x["ns"]) for x in got] == want, got)
        need(op(0)["coll_datatype"] == "ncclBfloat16" and op(0)["coll_nchannels"] == 4 and
             op(0)["coll_gpu_start_delta_ns"] == 40000, op(0))
        need(op(3)["coll_root"] == 1 and "coll_root" not in op(0), op(3))
        need(op(5)["p2p_peer"] == 1 - rank and op(6)["p2p_peer"] == -1 and op(7)["coll_algobw_gbs"] is None,
             got)
        need(not any(k in x for x in got for k in ("coll_algo", "coll_proto", "call_sn", "user_tag")), got)
        need("coll_enqueue_ns" not in op(10) and
             op(10)["event_trace_ts"]["kernel_events"][0]["kernel_start_ts"] == T0 // 1000 + 11000, op(10))
        need(op(11)["graph"] and "graph" not in op(0), op(11))
        need([x["coll_sn"] for x in got if x["func"] == "AllReduce"] == [0, 1, 2, 3, 4], got)
        p = logs[rank]["process"]
        need(p["rank"] == rank and p["world_size"] == 2 and p["nccl_version"] == 22105 and
             p["interface"] is None and p["boot_id"] is None, p)
        need(logs[rank]["meta"]["hostname"] == "node-x" and logs[rank]["meta"]["pid"] == 100 + rank and
             logs[rank]["meta"]["rec_mechanism"] == "kineto", logs[rank]["meta"])


def old(folder):
    """Before PyTorch 2.3: no metadata; before 2024: Unix us. The rank is in the name."""
    for rank in (3, 4):
        t = Trace(rank, base=0, info=False)
        for i in range(5):
            t.op(1000 * i, 100, "ncclKernel_AllReduce_RING_LL_Sum_float", stream=20)
            t.op(1000 * i + 500, 100, "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", stream=21)
        t.save(folder, f"trace_rank_{rank}.json")


def check_old(logs):
    need(set(logs) == {3, 4}, set(logs))
    need(collections.Counter(x["func"] for x in logs[3]["ops"]) == {"AllReduce": 5, "SendRecv": 5},
         logs[3]["ops"])
    need(all(x["bytes"] == 0 for x in logs[3]["ops"]) and logs[3]["meta"]["hostname"] == "unknown-rank3",
         logs[3]["meta"])
    comms = [{x["comm"] for x in logs[r]["ops"]} for r in (3, 4)]
    need(all(len(c) == 2 for c in comms) and not comms[0] & comms[1], comms)
    need(all(x["of"] == (0, 0) for r in (3, 4) for x in logs[r]["ops"]), logs[3]["ops"])


def cut(folder):
    """Lists of ranks that PyTorch cuts. Each group has another way to be known, the last one none."""
    some = "[" + ", ".join(str(2 * i) for i in range(30)) + ", ..., 126]"
    for rank in (58, 100, 126):
        whole = {"pg_name": "listed", "pg_desc": "listed", "pg_size": 64, "ranks": list(range(0, 128, 2))}
        t = Trace(rank, world=128, groups=[whole])
        t.op(1000, 10, said=said(size=128, ranks="[" + ", ".join(map(str, range(30))) + ", ..., 127]",
                                 group="world"))
        t.op(2000, 10, said=said(size=64, ranks=some, group="listed"))
        t.op(3000, 10, said=said(size=64, ranks=some, group="stride"),
             call={"Global rank start": 0, "Global rank stride": 2})
        t.op(4000, 10, said=said(size=64, ranks=some, group="unknown"))
        t.save(folder, f"rank{rank}.json")


def check_cut(logs):
    for rank in (58, 100, 126):
        of = [x["of"] for x in logs[rank]["ops"]]
        need(of[:3] == [(rank, 128), (rank // 2, 64), (rank // 2, 64)], (rank, of))
        need(of[3] == ((0, 0) if rank == 100 else (rank // 2, 64)), (rank, of))
    need(logs[58]["ops"][1]["comm"] == logs[126]["ops"][1]["comm"] and
         logs[58]["ops"][3]["comm"] == logs[126]["ops"][3]["comm"], "hashes")
    need(logs[100]["ops"][3]["comm"] != logs[58]["ops"][3]["comm"], "a rank that is not known is nobody's")


def series(folder, skips, seq=False, steps=False, jitter=True, clock=0, drop=None):
    """Two ranks, 12 operations a step that are all alike, 20 steps; rank 1 begins `skips` operations
    later."""
    jumps = [random.Random(i).randrange(97) for i in range(240)]
    for rank in (0, 1):
        t = Trace(rank)
        for i in range(240):
            end = 10000 * (i // 12) + 700 * (i % 12) + (jumps[i] if jitter else 0) + (clock if rank else 0)
            if jitter is False:
                end = 1000 * i + (clock if rank else 0)
            if steps and i % 12 == 0:
                t.step(i // 12 + 5, end - 500, 9990)
            if (rank and i < skips) or (drop == i and rank):
                continue
            dur = 50 + (i * 31 + rank * 17) % 40
            t.op(end - dur, dur, said=said(**({"Seq": 1000 + i} if seq else {})))
        t.save(folder, f"rank{rank}.json")


def check_series(logs, first):
    for rank in (0, 1):
        sn = [x["coll_sn"] for x in logs[rank]["ops"]]
        want = first if rank else 0
        need(sn == list(range(want, want + len(sn))), (rank, sn[:5], want))


def check_apart(logs):
    need(not {x["coll_sn"] for x in logs[0]["ops"]} & {x["coll_sn"] for x in logs[1]["ops"]},
         "numbers of one operation on both ranks")


def check_steps(logs):
    check_series(logs, 17)
    need([m["mark"] for m in logs[0]["marks"]] == [f"ProfilerStep#{n}" for n in range(5, 25)] and
         logs[0]["marks"][0]["ns"] > T0 - 10**6, logs[0]["marks"][:2])


def side(folder):
    """Two groups of two ranks that run the same program of 5 operations a step; their traces begin at other
    ones."""
    jumps = [random.Random(i).randrange(97) for i in range(100)]
    for rank, skip in enumerate((3, 4, 8, 6)):
        t = Trace(rank, world=4)
        group = rank // 2
        for i in range(100):
            at = 10000 * (i // 5) + 1500 * (i % 5) + jumps[i]
            if i % 5 == 0 and (i // 5 + 1) * 5 > skip:
                t.step(i // 5, at - 300, 9000)
            if i >= skip:
                t.op(at, 50, said=said(n=1000 + i % 5, ranks=f"[{2 * group}, {2 * group + 1}]",
                                       group=str(group), about="tp"))
        t.save(folder, f"rank{rank}.json")


def check_side(logs):
    """One number is one place of the program in both groups."""
    for rank, skip in enumerate((3, 4, 8, 6)):
        sn = [x["coll_sn"] for x in logs[rank]["ops"]]
        need(sn == list(range(sn[0], sn[0] + len(sn))) and sn[0] - skip == logs[0]["ops"][0]["coll_sn"] - 3,
             (rank, sn[:3]))


SKIPPED = (7, 34)  # messages before the traces of rank 0 and rank 1 begin


def messages(folder, steps=False, jitter=True, clock=0):
    """Two stages, 25 steps of 8 messages: there and back in turn, all alike; the clock of rank 1 is off, and
    its trace begins later."""
    jumps = [random.Random(i).randrange(97) for i in range(200)]
    for rank in (0, 1):
        t = Trace(rank)
        for i in range(200):
            end = (10000 * (i // 8) + 1100 * (i % 8) + jumps[i] if jitter
                   else 1000 * i) + (clock if rank else 0)
            if steps and i % 8 == 0 and i >= SKIPPED[rank]:
                t.step(i // 8 + 5, end - 400, 9990)
            if i < SKIPPED[rank]:
                continue
            sends = (i % 2 == 0) == (rank == 0)
            dur = 50 + (i * 31 + rank * 17) % 40
            t.op(end - dur, dur, "ncclDevKernel_SendRecv",
                 said("send" if sends else "recv", **{"Dst Rank" if sends else "Src Rank": 1 - rank}))
        t.save(folder, f"rank{rank}.json")


def check_messages(logs, first):
    """first: the first message's number of Sends and of Recvs of both ranks, as the later one of the two is
    counted from the other."""
    for rank in (0, 1):
        for func in ("Send", "Recv"):
            ops = [x for x in logs[rank]["ops"] if x["func"] == func]
            sn = [x["pair_sn"] for x in ops]
            need(sn == list(range(sn[0], sn[0] + len(sn))) and sn[0] == first[rank, func],
                 (rank, func, sn[:3], first[rank, func]))
        own = [x["p2p_sn"] for x in logs[rank]["ops"]]
        need(own == list(range(len(own))), (rank, own[:5], "p2p_sn counts the rank's own"))


# Of 0 to 1 they are the even ones, of 1 to 0 the odd ones: rank 0 begins with the 4th of the former and the
# 3rd of the latter.
LAID = {(0, "Send"): 0, (0, "Recv"): 0, (1, "Send"): 14, (1, "Recv"): 13}
# With steps both directions count alike up to the first one that both ranks recorded from its begin on.
LAID_BY_STEPS = {(0, "Send"): 1, (0, "Recv"): 0, (1, "Send"): 14, (1, "Recv"): 14}
NOBODYS = {(0, "Send"): 0, (0, "Recv"): 0, (1, "Send"): 1 << 30, (1, "Recv"): 2 << 30}


CASES = {
    "messages": (lambda d: messages(d, clock=2.5e6), lambda l: check_messages(l, LAID)),
    "messages_steps": (lambda d: messages(d, steps=True, jitter=False, clock=2.5e6),
                       lambda l: check_messages(l, LAID_BY_STEPS)),
    "messages_apart": (lambda d: messages(d, jitter=False, clock=2.5e6),
                       lambda l: check_messages(l, NOBODYS)),
    "side": (side, check_side),
    "words": (words, check_words), "old": (old, check_old), "cut": (cut, check_cut),
    "same": (lambda d: series(d, 0), lambda l: check_series(l, 0)),
    "ends": (lambda d: series(d, 17, clock=2.5e6), lambda l: check_series(l, 17)),
    "steps": (lambda d: series(d, 17, steps=True, jitter=False), check_steps),
    "seq": (lambda d: series(d, 17, seq=True, jitter=False, drop=100),
            lambda l: need([x["coll_sn"] for x in l[1]["ops"]] == [i for i in range(17, 240) if i != 100],
                           "Seq")),
    "apart": (lambda d: series(d, 17, jitter=False, clock=2.5e6), check_apart),
}


def need(truth, what):
    if not truth:
        print("not so:", what)
        sys.exit(1)


def read(folder):
    logs = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".jsonl.gz"):
            continue
        me = {"ops": [], "marks": []}
        for text in gzip.open(os.path.join(folder, name), "rt"):
            line = json.loads(text)
            head = line["header"]
            if "process" in line:
                me.update(process=line["process"], meta=line["metadata"])
                logs[line["process"]["rank"]] = me
            if "control" in line:
                me["marks"].append(line["control"])
            for k in ("coll", "p2p"):
                p = line.get(k + "_perf")
                if p:
                    me["ops"].append({**p, "func": p[k], "bytes": p[k + "_msg_size_bytes"],
                                      "ns": p[k + "_exec_time_ns"], "comm": head["id"],
                                      "of": (head["rank"], head["n_ranks"])})
    return logs


if __name__ == "__main__":
    if sys.argv[1] == "make":
        for name, (write, _) in CASES.items():
            write(os.path.join(sys.argv[2], name))
    else:
        CASES[sys.argv[2]][1](read(sys.argv[3]))
