"""Small exports of Nsight Systems, one for each rule of docs/import.md, and what must come of them.

    nsys_cases.py make DIR          DIR/NAME/*.sqlite
    nsys_cases.py check NAME LOGS   exits with 1 and says what is not so
"""
import collections
import gzip
import json
import os
import random
import sys

import kineto_cases
from kineto_cases import need
from nsys_export import Export

T0 = 1790000000 * 10**9
SEND = "ncclDevKernel_SendRecv"
BIG = 0xfedcba9876543210  # an id with the top bit set


def work(p, rank, comm=BIG):
    """Every way that a kernel comes by its call, 100 us apart."""
    at = lambda i: 1000000 + 100000 * i
    p.call("AllReduce", at(0), 10125, comm, 2000)
    p.call("AllGather", at(1), 11001, comm, 3000)
    p.call("ReduceScatter", at(2), 12500, comm, 4000)
    p.call("Broadcast", at(3), 13250, comm, 512, at=1)
    p.group([("Send" if rank == 0 else "Recv", comm, 128, 1 - rank)], [(SEND, at(4), 15000)], at(4) - 30000)
    p.group([("Send", comm, 64, 1 - rank), ("Recv", comm, 64, 1 - rank)], [(SEND, at(5), 16000)],
            at(5) - 30000)
    p.group([("AllReduce", comm, 800, 0)], [("ncclDevKernel_Generic_4", at(6), 17000)], at(6) - 30000)
    p.range(at(7) - 50000, at(7) - 5000, "nccl:all_to_all")
    p.group([("Send", comm, 32, 0), ("Recv", comm, 32, 0), ("Send", comm, 32, 1), ("Recv", comm, 32, 1)],
            [(SEND, at(7), 18000)], at(7) - 30000)
    p.call("AllGather", at(8), 19000, comm, 600, kernel="ncclDevKernel_Broadcast_RING_LL")
    p.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at(9), at(9) + 20000, at(9) - 40000, graph=3,
             api="cudaGraphLaunch_v10000")
    p.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at(10), at(10) + 21000, None)
    p.kernel("ampere_bf16_s16816gemm", at(11), at(11) + 5000, at(11) - 9000)
    p.call("AllReduce", at(12), 22000, comm, 20 << 20, blocks=24)


def words(folder, version=2026):
    """A host in one file: two processes whose ranks are those in the communicator of both."""
    os.makedirs(folder)
    e = Export(f"{folder}/report1.sqlite", version, T0, environment={"SLURM_PROCID": "5"})
    for rank in (1, 0):
        p = e.process(100 + rank)
        p.made(BIG, 2, rank, rank)
        work(p, rank)
    e.close()


def check_words(logs):
    need(set(logs) == {0, 1}, set(logs))
    for rank in (0, 1):
        got = logs[rank]["ops"]
        message = "Send" if rank == 0 else "Recv"
        want = [("AllReduce", 2000, 10125), ("AllGather", 3000, 11001), ("ReduceScatter", 4000, 12500),
                ("Broadcast", 512, 13250), (message, 128, 15000),
                ("SendRecv", 0, 16000), ("AllReduce", 800, 17000), ("AlltoAll", 0, 18000),
                ("Broadcast", 0, 19000), ("AllReduce", 0, 20000),
                ("AllReduce", 0, 21000), ("AllReduce", 20 << 20, 22000)]
        need([(x["func"], x["bytes"], x["ns"]) for x in got] == want, got)
        need(got[0]["comm"] == "0xfedcba9876543210" and got[5]["comm"] == got[0]["comm"] and
             got[0]["of"] == (rank, 2), got[0])
        need(got[3]["coll_root"] == 1 and got[4]["p2p_peer"] == 1 - rank and got[5]["p2p_peer"] == -1 and
             "coll_root" not in got[0], got)
        need(got[0]["coll_enqueue_ns"] == T0 + 960000 and got[0]["coll_gpu_start_delta_ns"] == 40000 and
             got[11]["coll_nchannels"] == 24, got[0])
        need(got[9]["graph"] and got[9]["of"] == (0, 0) and got[9]["comm"] != got[0]["comm"], got[9])
        need("coll_enqueue_ns" not in got[10] and "coll_algo" not in got[0] and "coll_datatype" not in got[0],
             got[10])
        p, meta = logs[rank]["process"], logs[rank]["meta"]
        need(p["rank"] == rank and p["world_size"] == 2 and p["nccl_version"] is None, p)
        need(meta["hostname"] == "node-x" and meta["pid"] == 100 + rank and meta["rec_mechanism"] == "nsys",
             meta)


def plain(folder):
    """2022: no payloads. Function and time alone; the rank is in the name, before what the launcher's
    environment says of another."""
    os.makedirs(folder)
    for rank in (3, 4):
        e = Export(f"{folder}/job_rank{rank}.sqlite", 2022, T0, environment={"SLURM_JOB_ID": "9"})
        work(e.process(100 + rank), rank - 3, 0)
        e.close()


def check_plain(logs):
    need(set(logs) == {3, 4}, set(logs))
    funcs = [x["func"] for x in logs[3]["ops"]]
    need(funcs == ["AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Send", "SendRecv", "AllReduce",
                   "AlltoAll", "Broadcast"] + ["AllReduce"] * 3, funcs)
    need(all(x["bytes"] == 0 and x["of"] == (0, 0) for r in (3, 4) for x in logs[r]["ops"]), logs[3]["ops"])
    need(not {x["comm"] for x in logs[3]["ops"]} & {x["comm"] for x in logs[4]["ops"]},
         "communicators of two ranks")


def old(folder):
    """2020: kernels without a process, no date; names of NCCL 2.7."""
    os.makedirs(folder)
    e = Export(f"{folder}/out_7.sqlite", 2020)
    p = e.process(4242)
    for i in range(4):
        p.kernel("ncclAllReduceRingLLKernel_sum_f16", 1000000 * i + 5000, 1000000 * i + 35000, 1000000 * i)
        p.kernel("ncclSendRecvKernel_copy_i8", 1000000 * i + 105000, 1000000 * i + 135000,
                 1000000 * i + 100000)
    e.close()


def check_old(logs):
    need(set(logs) == {7}, set(logs))
    need(collections.Counter(x["func"] for x in logs[7]["ops"]) == {"AllReduce": 4, "SendRecv": 4},
         logs[7]["ops"])
    need(logs[7]["ops"][0]["coll_enqueue_ns"] == 1577836800 * 10**9 and logs[7]["meta"]["pid"] == 4242,
         logs[7])


def series(folder, skips, versions=(2026, 2026), steps=True, made=False, host="n{}", clock=0):
    """Two ranks, a file each, 12 AllReduces a step; rank 1 begins `skips` operations later; communicators
    were made before."""
    os.makedirs(folder)
    jumps = [random.Random(i).randrange(97) * 1000 for i in range(240)]
    for rank in (0, 1):
        e = Export(f"{folder}/report_{rank}.sqlite", versions[rank], T0 + clock * rank, host.format(rank),
                   {"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": 2, "LOCAL_RANK": 0})
        p = e.process(100 + rank)
        if made:
            p.made(77, 2, rank, 0)
        for i in range(240):
            end = 10**7 + 10**7 * (i // 12) + 700000 * (i % 12) + jumps[i]
            if steps and i % 12 == 0:
                p.range(end - 500000, end + 9490000, f"iteration {i // 12 + 5}")
                p.range(end - 400000, end + 100000, f"microbatch step {i // 12 % 3}")
            if not (rank and i < skips):
                dur = 50000 + (i * 31 + rank * 17) % 40 * 1000
                p.call("AllReduce", end - dur, dur, 77, 4000)
        e.close()


def check_series(logs, first, steps=True):
    for rank in (0, 1):
        sn = [x["coll_sn"] for x in logs[rank]["ops"]]
        need(sn == list(range(first * rank, 240)), (rank, sn[:5]))
        need(all(x["of"] == (rank, 2) and x["comm"] == "0x4d" for x in logs[rank]["ops"]),
             logs[rank]["ops"][0])
        need(logs[rank]["process"]["world_size"] == 2 and logs[rank]["meta"]["hostname"] == f"n{rank}",
             logs[rank]["process"])
        need([m["mark"] for m in logs[rank]["marks"]] == ([f"ProfilerStep#{n}" for n in range(5, 25)] if steps
                                                          else []), logs[rank]["marks"][:2])


def mpi(folder):
    """MPI_RANKS says the rank of each process of a file."""
    os.makedirs(folder)
    e = Export(f"{folder}/host.sqlite", 2024, T0)
    for rank, pid in ((6, 300), (9, 200)):
        p = e.process(pid)
        e.row("MPI_RANKS", p.tid + 5, rank)
        p.call("AllReduce", 1000000, 5000, 5, 64)
    e.close()


def check_mpi(logs):
    need({r: logs[r]["meta"]["pid"] for r in logs} == {6: 300, 9: 200}, logs)
    need([logs[r]["ops"][0]["of"] for r in (6, 9)] == [(0, 2), (1, 2)], "order of ranks")


def gpus(folder):
    """One process drives two GPUs: each is a rank of the communicator."""
    os.makedirs(folder)
    e = Export(f"{folder}/one.sqlite", 2026, T0)
    p = e.process(50)
    for rank in (0, 1):
        p.made(9, 2, rank, rank, at=1000 + 1000 * rank)
    for rank in (0, 1):
        p.call("AllReduce", 1000000 + 30000 * rank, 5000 + rank, 9, 64, device=rank,
               launch=900000 + 40000 * rank)
    e.close()


def check_gpus(logs):
    got = next(iter(logs.values()))["ops"]
    need([x["of"] for x in got] == [(0, 2), (1, 2)] and len({x["comm"] for x in got}) == 1, got)


def split(folder):
    """The job's communicator was made and never used: it says the ranks of processes all the same."""
    os.makedirs(folder)
    for host in (0, 1):
        e = Export(f"{folder}/host{host}.sqlite", 2026, T0, f"n{host}")
        for rank in (2 * host + 1, 2 * host):
            p = e.process(100 + rank)
            p.made(0xabc, 4, rank, rank % 2)
            p.made(0xd0 + rank % 2, 2, host, rank % 2, at=3000, name="ncclCommSplit")
            p.call("AllReduce", 1000000, 5000 + rank, 0xd0 + rank % 2, 64, device=rank % 2)
        e.close()


def check_split(logs):
    need({r: (x["process"]["world_size"], x["meta"]["hostname"], x["ops"][0]["ns"], x["ops"][0]["of"])
          for r, x in logs.items()}
         == {r: (4, f"n{r // 2}", 5000 + r, (r // 2, 2)) for r in range(4)}, logs)


def hosts(folder):
    """Hosts in a file each, recorded from the middle on: nobody says a rank, but where each one runs."""
    os.makedirs(folder)
    for host in ("b", "a"):
        e = Export(f"{folder}/{host}.sqlite", 2026, T0, host)
        for gpu in (1, 0):
            e.process(100 + 7 * gpu).call("AllReduce", 1000000, 5000 + gpu, 0xd0, 64, device=gpu)
        e.close()


def check_hosts(folder):
    got = {}
    for name in os.listdir(folder):
        for text in gzip.open(os.path.join(folder, name), "rt"):
            line = json.loads(text)
            if "coll_perf" in line:
                meta, head = line["metadata"], line["header"]
                got[(meta["hostname"], meta["pid"])] = (head["rank"], head["n_ranks"],
                                                        line["coll_perf"]["coll_exec_time_ns"])
    need(got == {("a", 100): (0, 4, 5000), ("a", 107): (1, 4, 5001), ("b", 100): (2, 4, 5000),
                 ("b", 107): (3, 4, 5001)}, got)


CASES = {
    "hosts": (hosts, None),
    "split": (split, check_split),
    "words": (words, check_words), "json": (lambda d: words(d, 2023), check_words),
    "plain": (plain, check_plain), "old": (old, check_old),
    "middle": (lambda d: series(d, 17), lambda l: check_series(l, 17)),
    "made": (lambda d: series(d, 0, (2023, 2026), steps=False, made=True),
             lambda l: check_series(l, 0, False)),
    "ends": (lambda d: series(d, 29, steps=False, made=True, clock=2500000),
             lambda l: check_series(l, 29, False)),
    "mpi": (mpi, check_mpi), "gpus": (gpus, check_gpus),
}


if __name__ == "__main__":
    if sys.argv[1] == "make":
        for name, (write, _) in CASES.items():
            write(os.path.join(sys.argv[2], name))
    else:
        check_hosts(sys.argv[3]) if sys.argv[2] == "hosts" else CASES[sys.argv[2]][1](kineto_cases.read(sys.argv[3]))
