"""Logs whose operations lie on the borders of buckets. Usage: series_logs.py DIR

Two hosts with two ranks each, a world and a communicator a host. Starts are 0.3 s past a full second, steady
at 50 a second for 4 s; then k W and k W - 1 ns for widths of 1 ms to 1 h, over 5 h. One record states its
dump alone, one has no bandwidth, one is there twice; roll-ups end on a border; counters of both hosts are
sampled each 0.5 s.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "counters"))
import logs
from counter_series_write import Series
from logs import T0

out = sys.argv[1]
os.makedirs(out)
S = 10**9  # T0 is no full hour, no full minute
START = T0 + 3 * S // 10
starts = [START + i * S // 50 for i in range(200)]
for w in (S // 1000, 7 * S // 1000, S, 60 * S, 3600 * S):
    k = (T0 + 5 * S) // w + 1
    for n in (k, k + 1, k + 3):
        starts += [n * w - 1, n * w, n * w + 1]
starts.sort()
for rank in range(4):
    host = "node-%d" % (rank // 2)
    log = logs.Log(rank, 4, host, 7000 + rank, git_rev="x")
    us = T0 // 1000
    world = logs.header("0x5d1c7e90aa4101", rank, 4, 2, "world")
    node = logs.header("0x5d1c7e90aa4%03x" % (rank // 2 + 0x200), rank % 2, 2, 1, host)
    log.add(us, "process", logs.process(T0, rank, 4, "b", exe="p", local_rank=rank % 2))
    for i, at in enumerate(starts):
        late = 700_000 if (i % 9 == 0 and rank == 2) else 0  # of 1 ms
        exec_ns = 1_000_000 + 1371 * (i * 7 % 13) - late
        us = (at + 777_000_000) // 1000
        times = {} if i == 60 else {"enqueue_ns": at + late - 10_000, "gpu_start_delta_ns": 10_000}
        for n, (header, func, size) in enumerate(((world, "AllReduce", 1 << 20),
                                                  (node, "AllGather", 4096 << i % 2))):
            perf = logs.perf("coll", func, sn=i, msg_size_bytes=size, exec_time_us=(exec_ns + 500) // 1000,
                             timing_source="kernel_gpu", algobw_gbs=round(size / exec_ns, 6),
                             busbw_gbs=None if i == 61 else round(size / exec_ns * 1.5, 6),
                             exec_time_ns=exec_ns, rec_sn=2 * i + n, **times)
            for _ in range(2 if i == 62 else 1):
                log.add(us, "coll_perf", perf, header)
    for n, (a, b) in enumerate(((T0, T0 + 60 * S), (T0 + 60 * S, T0 + 100 * S - T0 % (100 * S)))):
        log.add(us, "rollup", logs.rollup("AllReduce", 1 << 20, a, b, 100 + n, (100 + n) << 20, 10**8 + n,
                                          900, 2_000_000 + rank), world)
    log.write(out)
for h in range(2):
    entity = {"source": "eth", "name": "eth0", "metrics": [
        {"name": "rx_bytes", "width": 64, "unit": "bytes"}, {"name": "temp", "kind": "gauge", "unit": "C"}]}
    s = Series("%s/node-%d-counters-1790000000.jsonl.gz" % (out, h), "node-%d" % h, [entity], S // 2)
    for i in range(13):
        s.sample(T0 + i * S // 2, [1000 * (h + 1) * (i if i < 4 else max(4, i - 6)) ** 2,
                                   40 + 10 * h + i // 3])
    s.close()
