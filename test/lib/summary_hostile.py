"""Forged logs against the tables of `summary` that say who is slow: summary_hostile.py KIND DIR N

A loop of 4 ranks: in each step three AllReduces of a pair and one of all. KIND says what is odd; about N
records a rank.
"""
import pathlib
import sys

import logs
from logs import T0

kind, out, n = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
out.mkdir(parents=True)
RANKS = 4


def line(rank, comm, member, n_ranks, kind, body):
    meta = logs.metadata(T0 // 1000, f"h{rank // 2}", 1 + rank, git_rev="g", producer="nccl-inspector-c t")
    return logs.text(logs.line(logs.header(comm, member, n_ranks, 1), meta, kind, body), spaced=True)


def coll(rank, comm, member, n_ranks, sn, size, start, ns):
    return line(rank, comm, member, n_ranks, "coll_perf", logs.perf(
        "coll", "AllReduce", sn=sn, msg_size_bytes=size, exec_time_us=max(1, min(ns // 1000, 2**62)),
        timing_source="kernel_gpu", algobw_gbs=1.0, busbw_gbs=1.0, exec_time_ns=ns, enqueue_ns=start,
        gpu_start_delta_ns=0, rec_sn=sn))


def p2p(rank, comm, member, n_ranks, sn, size, start, ns, func, peer):
    x = logs.perf("p2p", func, sn=sn, msg_size_bytes=size, exec_time_us=ns // 1000,
                  timing_source="kernel_gpu")
    x["p2p_peer"] = peer # the keys of an object have no order: here it comes later than ours has it
    x.update(logs.perf("p2p", func, algobw_gbs=1.0, busbw_gbs=1.0, exec_time_ns=ns, enqueue_ns=start,
                       gpu_start_delta_ns=0, rec_sn=sn))
    return line(rank, comm, member, n_ranks, "p2p_perf", x)


def loop(rank):
    """(communicator, rank in it, its ranks, sn, size, start, ns) of each operation."""
    numbers, t = {}, T0
    for i in range(n):
        world = i % 4 == 3
        comm = "0xfff" if world else hex(0xaaa + rank // 2)
        sn = numbers[comm] = numbers.get(comm, -1) + 1
        t += 1200000 + (rank == 2) * 100000 + i * 7919 % 10000
        yield comm, rank if world else rank % 2, RANKS if world else 2, sn, 4 if world else 1 << 20, t, 100000
        t += 100000


def forged(rank):
    for i, (comm, member, n_ranks, sn, size, t, ns) in enumerate(loop(rank)):
        if kind == "communicators":    # ten operations each, in all places of the step
            comm, sn = (comm, sn) if i % 4 == 3 else (hex(0x10000 + i // 10 * 4 + rank // 2), i % 10)
        elif kind == "peers":          # each message to another one
            if i % 4 == 1: yield p2p(rank, comm, member, 2**31 - 1, i, 8, t, ns, "Send", i); continue
            if i % 4 == 2:
                yield p2p(rank, comm, member, 2**31 - 1, i, 8, t, ns, "Recv", 2**31 - 2 - i)
                continue
        elif kind == "equal":
            t = T0
        elif kind == "back":
            t = T0 - i * 10**6
        elif kind == "zero":
            t = 0
        elif kind == "huge":           # ends beyond what 64 bits hold, sizes, gaps of years
            t, ns, size = (2**63 - 1 - i, 2**63 - 1,
                           2**63 - 1) if i % 8 == 7 else (t + i % 5 * 10**17, ns * 10**9, size << (i % 40))
        elif kind == "single":
            comm, member, n_ranks, sn, size, t = "0xfff", rank, RANKS, i, 4, T0 + i * 50 * 10**6
        elif kind == "lies": member, n_ranks = (rank % 2, 2**31 - 1 - i % 3) if i % 4 == 3 else (0, 1 + i % 5)
        elif kind == "repeats": sn = sn // 3
        elif kind == "numbers": sn = [sn, 2**31 + sn, 2**63 + sn, 2**64 - 1][i % 4]
        elif kind == "sizes": size = size + i if i % 4 < 3 else 4
        elif kind == "crossed" and rank % 2 and i % 4 < 3: sn = (n - sn) if i // 64 % 2 else sn
        elif kind == "pauses": t += i * i * 10**4
        yield coll(rank, comm, member, n_ranks, sn, size, t, ns)


for r in range(RANKS):
    logs.write(logs.path(out, f"h{r // 2}", 1 + r, 1790000000), list(forged(r)))
