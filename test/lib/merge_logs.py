"""Logs whose figures lie on a border. Usage: merge_logs.py DIR VALUES [huge]

4 ranks in one communicator, a log each, and VALUES records of one AllReduce in all, no two of which take equally long: so a
group has VALUES distinct values, a rank a quarter of them. huge: durations up to an hour and bandwidths up to 10 TB/s,
so that sums of squares pass 2^64 by far.
"""
import os, sys

out, n, huge = sys.argv[1], int(sys.argv[2]), len(sys.argv) > 3
os.makedirs(out)
T0 = 1790000000 * 10**9
size = 1 << 20
line = ('{"header":{"id":"0x5d1c7e90aa4101","comm_name":"world","rank":%d,"n_ranks":4,"nnodes":2},"metadata":{'
        '"inspector_output_format_version":"v4.0","git_rev":"x","rec_mechanism":"m","dump_timestamp_us":%d,"hostname":"node-%d",'
        '"pid":%d,"producer":"nccl-inspector-c 0.1.0"},"coll_perf":{"coll":"AllReduce","coll_sn":%d,"coll_msg_size_bytes":%d,'
        '"coll_exec_time_us":%d,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":%.6f,"coll_busbw_gbs":%.6f,'
        '"coll_exec_time_ns":%d,"coll_enqueue_ns":%d,"coll_gpu_start_delta_ns":1000,"rec_sn":%d}}\n')
for rank in range(4):
    with open("%s/node-%d-pid%d.jsonl" % (out, rank // 2, 7000 + rank), "w") as f:
        for i in range(rank, n, 4):
            ns = 3_600_000_000_000 - i * 1_234_567_891 % 3_599_999_999_000 if huge else 50_000 + i * 7
            gbs = 10_000 - i % 977 / 1000 if huge else size / ns
            start = T0 + i // 4 * 1_000_000
            f.write(line % (rank, start // 1000 + 5000, rank // 2, 7000 + rank, i // 4, size, ns // 1000, gbs, gbs, ns, start, i // 4))
