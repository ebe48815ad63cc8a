"""Logs of an invented job of two ranks on two hosts whose calls have tags, and of symmetric kernels in all
their forms.

    tag_logs.py DIR

Its AllReduces take 100 us each: ten with the tag 7, called layer.3, five with 9, which has no name, five
without; one has a tag of NCCL's own. Send and Recv have 12, called "expert 1". Then one symmetric kernel with
its parts, a fused one of three calls, and a captured one that is replayed four times, 2 ms apart; of the call
401 one replay is lost. Tag 7 is called `early` first.
"""
import argparse
import os

import logs
from logs import T0

WORLD, MS, US = "0x7a95", 10**6, 10**3
RANKS = 2


class Rank(logs.Log):
    def __init__(self, rank):
        super().__init__(rank, RANKS, "node-%d" % rank, 100 + rank)
        self.rank, self.rec, self.p2p_rec, self.sn, self.sends = rank, 0, 0, 0, 0
        self.comm = logs.header(WORLD, rank, RANKS, RANKS, "world")
        self.add(T0 // US, "process", logs.process(T0 + rank, rank, RANKS, "b-%d" % rank, interface="v7"))
        self.add(T0 // US, "comm", logs.comm(self.comm, T0), self.comm)

    def coll(self, at, func="AllReduce", exec_ns=100 * US, size=1 << 20, **keys):
        """Enqueued at T0 + at; its kernel begins 10 us later."""
        keys = {"sn": self.sn, "timing_source": "kernel_gpu", "algobw_gbs": 10.48576, "busbw_gbs": 10.48576,
                "algo": "RING", "proto": "SIMPLE", "nchannels": 8, "gpu_start_delta_ns": 10 * US,
                "call_sn": self.sn, **keys}
        keys = {k: v for k, v in keys.items() if v is not None}
        self.add((T0 + at + MS) // US, "coll_perf", logs.perf(
            "coll", func, msg_size_bytes=size, exec_time_us=exec_ns // US, datatype="ncclBfloat16", root=0,
            exec_time_ns=exec_ns, enqueue_ns=T0 + at, rec_sn=self.rec, nccl_tests_size_bytes=size, **keys),
            self.comm)
        self.sn += 1
        self.rec += 1

    def p2p(self, at, func, **keys):
        self.add((T0 + at + MS) // US, "p2p_perf", logs.perf(
            "p2p", func, sn=self.sends, peer=1 - self.rank, msg_size_bytes=65536, exec_time_us=20,
            timing_source="kernel_gpu", algobw_gbs=3.2768, busbw_gbs=3.2768, datatype="ncclFloat32",
            nchannels=2, exec_time_ns=20 * US, enqueue_ns=T0 + at, gpu_start_delta_ns=10 * US,
            rec_sn=self.p2p_rec, nccl_tests_size_bytes=65536, call_sn=self.sends, **keys), self.comm)
        self.sends += 1
        self.p2p_rec += 1

    def end(self, at):
        for comm in (self.comm, None):
            colls, sends = (self.rec, self.p2p_rec) if comm else (0, 0)
            self.add((T0 + at) // US, "dump_stats",
                     logs.dump_stats(logs.counts(colls, colls), logs.counts(sends, sends), True,
                                                                    (colls, sends, 0)), comm)


def symmetric(x, at, **keys):
    """One kernel; the rank that comes late waits less."""
    x.coll(at, **{"symmetric": True, "algo": "RSxLD_AGxST", "proto": None,
                  "coll_kernel": "AllReduce_RSxLD_AGxST", **keys})


def rank(r):
    x = Rank(r)
    x.add(T0 // US, "control", logs.tag_name(7, "early", T0))
    x.add(T0 // US, "control", logs.tag_name(12, "expert 1", T0))
    x.add((T0 + MS) // US, "control", logs.tag_name(7, "layer.3", T0 + MS, "file"))
    x.add((T0 + MS) // US, "control", logs.tag_name(9, "refused", T0 + MS, "file", "refused"))
    for i in range(20):
        tag = {"user_tag": 7} if i < 10 else {"user_tag": 9} if i < 15 else {"nccl_tag": 5} if i == 15 else {}
        x.coll(MS + i * MS, **tag)
    x.p2p(30 * MS, "Send" if r == 0 else "Recv", user_tag=12)
    wait = 30 * US - 20 * US * r
    symmetric(x, 40 * MS, exec_ns=50 * US + wait, user_tag=7, initial_sync_ns=wait, compute_ns=45 * US,
              final_sync_ns=5 * US)
    # Three calls of one kernel: the head has its channels, the tails none of their own. Enqueued one after
    # the other.
    for i in range(3):
        symmetric(x, 50 * MS + i * US, exec_ns=200 * US, gpu_start_delta_ns=10 * US - i * US,
                  shared_span=True, user_tag=9,
                  algobw_gbs=None, busbw_gbs=None, nchannels=0 if i else 4, plan_sn=77)
    # Replays: the bracket alone. prev_replay_ns is of the replay before.
    for i in range(4):
        more = {"prev_replay_ns": 2 * MS} if i else {}
        symmetric(x, 60 * MS + 2 * MS * i, exec_ns=3 * US, timing_source="collective_cpu", graph=True,
                  gpu_start_delta_ns=None,
                  algobw_gbs=None, busbw_gbs=None, call_sn=400, **more)
    for at, before in ((80, None), (84, 2), (87, 3)):  # the one at 82 ms was lost
        symmetric(x, at * MS, exec_ns=3 * US, timing_source="collective_cpu", graph=True,
                  gpu_start_delta_ns=None, algobw_gbs=None, busbw_gbs=None, call_sn=401,
                  **({"prev_replay_ns": before * MS} if before else {}))
    x.end(100 * MS)
    return x


def main():
    a = argparse.ArgumentParser()
    a.add_argument("out")
    o = a.parse_args()
    os.makedirs(o.out, exist_ok=True)
    for r in range(RANKS):
        rank(r).write(o.out)


if __name__ == "__main__":
    main()
