"""Logs whose operations lie on the borders of buckets. Usage: series_logs.py DIR

Two hosts with two ranks each, a world and a communicator a host. Starts are 0.3 s past a full second, steady at 50 a second for
4 s; then k W and k W - 1 ns for widths of 1 ms to 1 h, over 5 h. One record states its dump alone, one has no bandwidth, one is
there twice; roll-ups end on a border; counters of both hosts are sampled each 0.5 s.
"""
import json, os, sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "counters"))
from counter_series_write import Series

out = sys.argv[1]
os.makedirs(out)
S = 10**9
T0 = 1790000000 * S  # 2026-09-21T14:13:20Z: no full hour, no full minute
START = T0 + 3 * S // 10
starts = [START + i * S // 50 for i in range(200)]
for w in (S // 1000, 7 * S // 1000, S, 60 * S, 3600 * S):
    k = (T0 + 5 * S) // w + 1
    for n in (k, k + 1, k + 3):
        starts += [n * w - 1, n * w, n * w + 1]
starts.sort()
for rank in range(4):
    host, pid = "node-%d" % (rank // 2), 7000 + rank
    meta = {"inspector_output_format_version": "v4.0", "git_rev": "x", "rec_mechanism": "nccl_profiler_interface",
            "dump_timestamp_us": T0 // 1000, "hostname": host, "pid": pid, "producer": "nccl-inspector-c 0.1.0"}
    with open("%s/%s-pid%d.jsonl" % (out, host, pid), "w") as f:
        def line(header, key, value):
            f.write(json.dumps({"header": header, "metadata": meta, key: value}, separators=(",", ":")) + "\n")
        world = {"id": "0x5d1c7e90aa4101", "comm_name": "world", "rank": rank, "n_ranks": 4, "nnodes": 2}
        node = {"id": "0x5d1c7e90aa4%03x" % (rank // 2 + 0x200), "comm_name": host, "rank": rank % 2, "n_ranks": 2, "nnodes": 1}
        line({"id": "0x0", "rank": rank, "n_ranks": 4, "nnodes": 0}, "process",
             {"start_ns": T0, "boot_id": "b", "exe": "p", "rank": rank, "local_rank": rank % 2, "world_size": 4, "env": {},
              "nccl_version": 23007, "interface": "v4", "settings": {}})
        for i, at in enumerate(starts):
            late = 700_000 if (i % 9 == 0 and rank == 2) else 0  # of 1 ms
            exec_ns = 1_000_000 + 1371 * (i * 7 % 13) - late
            for n, (header, func, size) in enumerate(((world, "AllReduce", 1 << 20), (node, "AllGather", 4096 << i % 2))):
                perf = {"coll": func, "coll_sn": i, "coll_msg_size_bytes": size, "coll_exec_time_us": (exec_ns + 500) // 1000,
                        "coll_timing_source": "kernel_gpu", "coll_algobw_gbs": round(size / exec_ns, 6),
                        "coll_busbw_gbs": round(size / exec_ns * 1.5, 6), "coll_exec_time_ns": exec_ns,
                        "coll_enqueue_ns": at + late - 10_000, "coll_gpu_start_delta_ns": 10_000, "rec_sn": 2 * i + n}
                meta["dump_timestamp_us"] = (at + 777_000_000) // 1000
                if i == 60: del perf["coll_enqueue_ns"], perf["coll_gpu_start_delta_ns"]
                if i == 61: perf["coll_busbw_gbs"] = None
                line(header, "coll_perf", perf)
                if i == 62: line(header, "coll_perf", perf)
        for n, (a, b) in enumerate(((T0, T0 + 60 * S), (T0 + 60 * S, T0 + 100 * S - T0 % (100 * S)))):
            line(world, "rollup", {"kind": "coll", "func": "AllReduce", "msg_size_bytes": 1 << 20, "timing_source": "kernel_gpu",
                                   "from_ns": a, "to_ns": b, "count": 100 + n, "sum_bytes": (100 + n) << 20, "sum_ns": 10**8 + n,
                                   "min_ns": 900, "max_ns": 2_000_000 + rank})
for h in range(2):
    entity = {"source": "eth", "name": "eth0", "metrics": [
        {"name": "rx_bytes", "width": 64, "unit": "bytes"}, {"name": "temp", "kind": "gauge", "unit": "C"}]}
    s = Series("%s/node-%d-counters-1790000000.jsonl.gz" % (out, h), "node-%d" % h, [entity], S // 2)
    for i in range(13):
        s.sample(T0 + i * S // 2, [1000 * (h + 1) * (i if i < 4 else max(4, i - 6)) ** 2, 40 + 10 * h + i // 3])
    s.close()
