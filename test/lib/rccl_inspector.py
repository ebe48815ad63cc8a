"""Logs of RCCL's inspector, which is NVIDIA's with another clock below it: rccl_inspector.py DIR. v4.1 as
RCCL's documentation has it.

Two ranks on two hosts, HOST-pidN.log: collectives, a message each, and the dump_stats line that follows each
dump.
"""
import json
import os
import sys

os.makedirs(sys.argv[1], exist_ok=True)
for rank in (0, 1):
    def line(**body):
        return json.dumps({"header": {"id": "0x7f8c496ae9f661", "comm_name": "unknown", "rank": rank,
                                      "n_ranks": 2, "nnodes": 2},
                           "metadata": {"inspector_output_format_version": "v4.1", "git_rev": "",
                                        "rec_mechanism": "profiler_plugin",
                                        "dump_timestamp_us": 1790000000000000 + at,
                                        "hostname": f"mi300-{rank}", "pid": 900 + rank}, **body},
                                        separators=(",", ":")) + "\n"
    with open(f"{sys.argv[1]}/mi300-{rank}-pid{900 + rank}.log", "w") as f:
        for i in range(30):
            at = 1000000 * (i + 1)
            us = 412 + i + (0 if rank else 200)
            f.write(line(coll_perf={"coll": "AllReduce", "coll_sn": i, "coll_msg_size_bytes": 2097152,
                                    "coll_exec_time_us": us, "coll_timing_source": "kernel_gpu",
                                    "coll_algobw_gbs": round(2097.152 / us, 6),
                                    "coll_busbw_gbs": round(2097.152 / us, 6)}))
            f.write(line(p2p_perf={"p2p": "Recv" if rank else "Send", "p2p_sn": i, "p2p_peer": 1 - rank,
                                   "p2p_msg_size_bytes": 65536, "p2p_exec_time_us": 40,
                                   "p2p_timing_source": "kernel_cpu", "p2p_algobw_gbs": 1.6384,
                                   "p2p_busbw_gbs": 1.6384}))
            if i % 10 == 9:
                f.write(line(dump_stats={"coll_records": 10, "coll_dropped_total": 3 * (i // 10),
                                         "coll_dropped_since_last_dump": 3 if i > 9 else 0, "p2p_records": 10,
                                         "p2p_dropped_total": 0, "p2p_dropped_since_last_dump": 0}))
