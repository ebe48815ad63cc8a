"""Writes logs in our format (docs/format.md) for tests of the exporter: a small job, line by line
(test/lib/logs.py).

Usage: exp_logs.py OUT_DIR [--ranks N] [--ops N] [--gzip]
"""
import argparse
import os

import logs
from logs import T0, text as dumps


class Rank:
    def __init__(self, rank, ranks, hash_, name="tp"):
        self.rank, self.ranks, self.hash, self.name = rank, ranks, hash_, name
        self.lines = []
        self.t = T0 // 1000

    def head(self, process=False):
        self.t += 7
        h = logs.own_header(self.rank, self.ranks) if process else self.of_comm()
        return {"header": h, "metadata": logs.metadata(self.t, "node-%d" % (self.rank // 8),
                                                       4000 + self.rank)}

    def of_comm(self):
        return logs.header(self.hash, self.rank, self.ranks, 1, self.name)

    def add(self, kind, body, process=False):
        self.lines.append(dumps({**self.head(process), kind: body}))

    def process(self):
        self.add("process", logs.process(T0, self.rank, self.ranks, "b-1", env={"RANK": str(self.rank)}),
                 True)

    def comm(self):
        self.add("comm", logs.comm(self.of_comm(), T0 + 5, gpu_index=self.rank % 8))

    def clock(self, i=0):
        self.add("clock", logs.clock(1000000 + i * 2500000000, 5000000 + i * 1000000000, T0 + i * 1000000000,
                                     0.4, 123, T0))

    def coll(self, sn, rec_sn, size=1048576):
        ns = 59123 + sn % 1000
        algo = size / ns
        self.add("coll_perf", logs.perf(
            "coll", "AllReduce", sn=sn, msg_size_bytes=size, exec_time_us=(ns + 500) // 1000,
            timing_source="kernel_gpu", algobw_gbs=round(algo, 6),
            busbw_gbs=round(algo * 2 * (self.ranks - 1) / self.ranks, 6), algo="RING", proto="SIMPLE",
            datatype="ncclBfloat16", root=0, nchannels=8, exec_time_ns=ns, enqueue_ns=T0 + sn * 100000,
            gpu_start_delta_ns=12345, rec_sn=rec_sn, nccl_tests_size_bytes=size))

    def p2p(self, sn, rec_sn, peer, func="Send"):
        self.add("p2p_perf", logs.perf(
            "p2p", func, sn=sn, peer=peer, msg_size_bytes=65536, exec_time_us=12, timing_source="kernel_gpu",
            algobw_gbs=5.461333, busbw_gbs=5.461333, datatype="ncclFloat32", nchannels=2, exec_time_ns=12000,
            enqueue_ns=T0 + sn * 100000, gpu_start_delta_ns=100, rec_sn=rec_sn, nccl_tests_size_bytes=65536))

    @staticmethod
    def kind(started, written=None, filtered=None, dropped=None, incomplete=0, late=0, in_flight=0):
        lost = sum((filtered or {}).values()) + sum((dropped or {}).values()) + incomplete + in_flight
        return logs.counts(started, started - lost if written is None else written, filtered, dropped,
                           incomplete, late, in_flight)

    def stats(self, coll, p2p, coll_records=0, p2p_records=0, final=True, process=False):
        dropped = [sum(k["dropped_by"].values()) for k in (coll, p2p)]
        self.add("dump_stats", logs.dump_stats(coll, p2p, final, (coll_records, p2p_records, 0),
                                               (*dropped, 0)), process)

    def end(self):
        self.add("comm_end", {"why": "destroy", "ns": T0 + 99})

    def process_end(self):
        self.stats(self.kind(0), self.kind(0), process=True)

    def write(self, folder, gz=False, member_lines=100):
        name = logs.path(folder, "node-%d" % (self.rank // 8), 4000 + self.rank, 1790000000)
        return logs.write(name, self.lines, gz, member_lines)


def job(ranks=2, ops=20, p2p=4, hash_="0x5d1c7e90aa41b2"):
    out = []
    for r in range(ranks):
        x = Rank(r, ranks, hash_)
        x.process()
        x.comm()
        x.clock()
        for i in range(ops):
            x.coll(i, i)
        for i in range(p2p):
            x.p2p(i, i, (r + 1) % ranks)
        x.clock(1)
        x.stats(x.kind(ops), x.kind(p2p), ops, p2p)
        x.end()
        x.process_end()
        out.append(x)
    return out


def main():
    a = argparse.ArgumentParser()
    a.add_argument("out")
    a.add_argument("--ranks", type=int, default=2)
    a.add_argument("--ops", type=int, default=20)
    a.add_argument("--gzip", action="store_true")
    o = a.parse_args()
    os.makedirs(o.out, exist_ok=True)
    for x in job(o.ranks, o.ops):
        x.write(o.out, o.gzip, 1000)


if __name__ == "__main__":
    main()
