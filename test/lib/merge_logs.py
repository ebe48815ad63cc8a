"""Logs whose figures lie on a border. Usage: merge_logs.py DIR VALUES [huge]

4 ranks in one communicator, a log each, and VALUES records of one AllReduce in all, no two of which take
equally long: so a group has VALUES distinct values, a rank a quarter of them. huge: durations up to an hour
and bandwidths up to 10 TB/s, so that sums of squares pass 2^64 by far.
"""
import os
import sys

import logs
from logs import T0

out, n, huge = sys.argv[1], int(sys.argv[2]), len(sys.argv) > 3
os.makedirs(out)
size = 1 << 20
line = logs.template(logs.line(
    logs.header("0x5d1c7e90aa4101", "%d", 4, 2, "world"),
    logs.metadata("%d", "node-%d", "%d", git_rev="x", mechanism="m"), "coll_perf",
    logs.perf("coll", "AllReduce", sn="%d", msg_size_bytes=size, exec_time_us="%d",
              timing_source="kernel_gpu", algobw_gbs="%.6f", busbw_gbs="%.6f", exec_time_ns="%d",
              enqueue_ns="%d", gpu_start_delta_ns=1000, rec_sn="%d")))
for rank in range(4):
    with open(logs.path(out, "node-%d" % (rank // 2), 7000 + rank), "w") as f:
        for i in range(rank, n, 4):
            ns = 3_600_000_000_000 - i * 1_234_567_891 % 3_599_999_999_000 if huge else 50_000 + i * 7
            gbs = 10_000 - i % 977 / 1000 if huge else size / ns
            start = T0 + i // 4 * 1_000_000
            f.write(line % (rank, start // 1000 + 5000, rank // 2, 7000 + rank, i // 4, ns // 1000, gbs, gbs,
                            ns, start, i // 4))
