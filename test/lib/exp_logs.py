"""Writes logs in our format (docs/format.md) for tests of the exporter: a small job, written down by hand here and not
by the plugin, so that reader and writer are not checked against each other only.

Usage: exp_logs.py OUT_DIR [--ranks N] [--ops N] [--gzip]
"""
import argparse
import gzip
import json
import os

T0 = 1790000000000000000


def dumps(o):
    return json.dumps(o, separators=(",", ":"))


class Rank:
    def __init__(self, rank, ranks, hash_, name="tp"):
        self.rank, self.ranks, self.hash, self.name = rank, ranks, hash_, name
        self.lines = []
        self.t = T0 // 1000

    def head(self, process=False):
        self.t += 7
        h = {"id": "0x0", "rank": self.rank, "n_ranks": self.ranks, "nnodes": 0} if process else \
            {"id": self.hash, "comm_name": self.name, "rank": self.rank, "n_ranks": self.ranks, "nnodes": 1}
        m = {"inspector_output_format_version": "v4.0", "git_rev": "1a2b3c4d5", "rec_mechanism": "nccl_profiler_interface",
             "dump_timestamp_us": self.t, "hostname": "node-%d" % (self.rank // 8), "pid": 4000 + self.rank,
             "producer": "nccl-inspector-c 0.1.0"}
        return {"header": h, "metadata": m}

    def add(self, kind, body, process=False):
        self.lines.append(dumps({**self.head(process), kind: body}))

    def process(self):
        self.add("process", {"start_ns": T0, "boot_id": "b-1", "exe": "python3", "rank": self.rank, "local_rank": None,
                             "world_size": self.ranks, "env": {"RANK": str(self.rank)}, "nccl_version": 23007,
                             "interface": "v4", "settings": {}}, True)

    def comm(self):
        self.add("comm", {"name": self.name, "hash": self.hash, "rank": self.rank, "n_ranks": self.ranks, "nnodes": 1,
                          "gpu_index": self.rank % 8, "gpu_uuid": None, "gpu_pci": None, "init_ns": T0 + 5})

    def clock(self, i=0):
        self.add("clock", {"source": "tsc", "ticks": 1000000 + i * 2500000000, "monotonic_ns": 5000000 + i * 1000000000,
                           "realtime_ns": T0 + i * 1000000000, "ns_per_tick": 0.4, "gpu_offset_ns": 123,
                           "gpu_offset_at_ns": T0, "gpu_samples": 9})

    def coll(self, sn, rec_sn, size=1048576):
        ns = 59123 + sn % 1000
        algo = size / ns
        self.add("coll_perf", {"coll": "AllReduce", "coll_sn": sn, "coll_msg_size_bytes": size,
                               "coll_exec_time_us": (ns + 500) // 1000, "coll_timing_source": "kernel_gpu",
                               "coll_algobw_gbs": round(algo, 6),
                               "coll_busbw_gbs": round(algo * 2 * (self.ranks - 1) / self.ranks, 6),
                               "coll_algo": "RING", "coll_proto": "SIMPLE", "coll_datatype": "ncclBfloat16",
                               "coll_root": 0, "coll_nchannels": 8, "coll_exec_time_ns": ns,
                               "coll_enqueue_ns": T0 + sn * 100000, "coll_gpu_start_delta_ns": 12345,
                               "rec_sn": rec_sn, "nccl_tests_size_bytes": size})

    def p2p(self, sn, rec_sn, peer, func="Send"):
        self.add("p2p_perf", {"p2p": func, "p2p_sn": sn, "p2p_peer": peer, "p2p_msg_size_bytes": 65536,
                              "p2p_exec_time_us": 12, "p2p_timing_source": "kernel_gpu", "p2p_algobw_gbs": 5.461333,
                              "p2p_busbw_gbs": 5.461333, "p2p_datatype": "ncclFloat32", "p2p_nchannels": 2,
                              "p2p_exec_time_ns": 12000, "p2p_enqueue_ns": T0 + sn * 100000,
                              "p2p_gpu_start_delta_ns": 100, "rec_sn": rec_sn, "nccl_tests_size_bytes": 65536})

    @staticmethod
    def kind(started, written=None, filtered=None, dropped=None, incomplete=0, late=0, in_flight=0):
        lost = sum((filtered or {}).values()) + sum((dropped or {}).values()) + incomplete + in_flight
        return {"started": started, "written": started - lost if written is None else written,
                "filtered_by": filtered or {}, "dropped_by": dropped or {}, "incomplete": incomplete, "late": late,
                "in_flight": in_flight, "timing_fallback_by": {}}

    def stats(self, coll, p2p, coll_records=0, p2p_records=0, final=True, process=False):
        d = {}
        for name, k, n in (("coll", coll, coll_records), ("p2p", p2p, p2p_records), ("proxy", None, 0)):
            d[name + "_records"] = n
            d[name + "_dropped_total"] = sum(k["dropped_by"].values()) if k else 0
            d[name + "_dropped_since_last_dump"] = 0
        d.update({"final": final, "coll": coll, "p2p": p2p, "strays": {}})
        self.add("dump_stats", d, process)

    def end(self):
        self.add("comm_end", {"why": "destroy", "ns": T0 + 99})

    def process_end(self):
        self.stats(self.kind(0), self.kind(0), process=True)

    def write(self, folder, gz=False, member_lines=100):
        name = "%s/node-%d-pid%d-1790000000.jsonl" % (folder, self.rank // 8, 4000 + self.rank)
        if not gz:
            with open(name, "w") as f:
                f.write("".join(x + "\n" for x in self.lines))
            return name
        with open(name + ".gz", "wb") as f:
            for i in range(0, len(self.lines), member_lines):
                f.write(gzip.compress("".join(x + "\n" for x in self.lines[i:i + member_lines]).encode(), 1, mtime=0))
        return name + ".gz"


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
