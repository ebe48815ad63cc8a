"""Logs of 4 ranks on 2 hosts x N AllReduce of 1 MiB, one each 10 ms; each kernel takes 1 ms, but rank 2 comes 0.8 ms late to all.

Usage: late_logs.py DIR [N=200]
"""
import json, os, sys

out, n = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200
os.makedirs(out, exist_ok=True)
T0 = 1790000000_000000000
for rank in range(4):
    host, pid = "node-%d" % (rank // 2), 7000 + rank
    meta = {"inspector_output_format_version": "v4.0", "git_rev": "x", "rec_mechanism": "nccl_profiler_interface",
            "dump_timestamp_us": T0 // 1000, "hostname": host, "pid": pid, "producer": "nccl-inspector-c 0.1.0"}
    with open("%s/%s-pid%d.jsonl" % (out, host, pid), "w") as f:
        def line(header, key, value):
            f.write(json.dumps({"header": header, "metadata": meta, key: value}, separators=(",", ":")) + "\n")
        line({"id": "0x0", "rank": rank, "n_ranks": 4, "nnodes": 0}, "process",
             {"start_ns": T0, "boot_id": "b", "exe": "p", "rank": rank, "local_rank": rank % 2, "world_size": 4, "env": {},
              "nccl_version": 23007, "interface": "v4", "settings": {}})
        for i in range(n):
            late = 800_000 if rank == 2 else 0
            exec_ns = 1_000_000 + 137 * (i % 7) - late  # all stop together
            meta["dump_timestamp_us"] = (T0 + i * 10_000_000) // 1000 + 5000
            line({"id": "0x5d1c7e90aa4101", "comm_name": "world", "rank": rank, "n_ranks": 4, "nnodes": 2}, "coll_perf",
                 {"coll": "AllReduce", "coll_sn": i, "coll_msg_size_bytes": 1048576, "coll_exec_time_us": (exec_ns + 500) // 1000,
                  "coll_timing_source": "kernel_gpu", "coll_algobw_gbs": round(1048576 / exec_ns, 6),
                  "coll_busbw_gbs": round(1048576 / exec_ns * 1.5, 6), "coll_algo": "RING", "coll_proto": "SIMPLE",
                  "coll_datatype": "ncclFloat32", "coll_root": 0, "coll_nchannels": 8, "coll_exec_time_ns": exec_ns,
                  "coll_enqueue_ns": T0 + i * 10_000_000 + late, "coll_gpu_start_delta_ns": 10_000, "rec_sn": i,
                  "nccl_tests_size_bytes": 1048576})
