"""Logs of ACCL, AMD's profiler plugin for RCCL, as its README.md and accl_profiler.cc have them.

    accl_log.py make DIR            DIR/NAME/accl_profiler_rank*.jsonl
    accl_log.py check NAME LOGS     exits with 1 and says what is not so
    accl_log.py read LOGS FILE...   compares count, function, number, bytes, algorithm and length of each collective

Two ranks on two hosts with two communicators each: the job's and one of its own. Hosts have underlines in
their names, pids are alike.
"""
import collections
import gzip
import json
import os
import sys

import kineto_cases
from kineto_cases import need

PROXY = ("proxy_gpu_wait_us", "proxy_network_us", "proxy_peer_wait_us", "proxy_flush_us",
         "proxy_gpu_recv_wait_us")
WORLD = 0xbeefcafe12345678


def coll(rank, n_ranks, func, sn, size, us, channels=4, reported=None, gpu=True, kernels=None, tick=123456,
         algo="Ring", proto="Simple"):
    kernels = channels if kernels is None else kernels
    source = "gpu_globaltimer" if gpu else "cpu_wallclock"
    bw = size / 1e9 / (us / 1e6)
    proxy = ",".join(f'"{k}":{900.0 + i:.2f}' for i, k in enumerate(PROXY))
    events = ",".join(f'{{"channel_id":{c},"kernel_start_ts":{tick if gpu else 0},"kernel_stop_ts":{tick + round(us * 100) if gpu else 0},"duration_us":{int(us)}}}'
                      for c in range(kernels))
    return (f'{{"header":{{"rank":{rank},"n_ranks":{n_ranks}}},"coll_perf":{{"coll":"{func}","coll_sn":{sn},"coll_msg_size_bytes":{size},'
            f'"coll_algo":"{algo}","coll_proto":"{proto}","coll_n_channels":{channels},"coll_n_channels_reported":{channels if reported is None else reported},'
            f'"coll_exec_time_us":{us:.2f},"coll_algobw_gbs":{bw:.6f},"coll_busbw_gbs":{bw:.6f},"coll_timing_source":"{source}",'
            f'"decomposition":{{"enqueue_to_kernel_us":5.20,"gpu_kernel_avg_us":{us:.2f},"gpu_kernel_min_us":{us:.2f},"gpu_kernel_max_us":{us:.2f},{proxy},'
            f'"n_proxy_ops":8,"n_send_ops":4,"n_recv_ops":4}},"event_trace_ts":{{"kernel_events":[{events}]}}}}}}\n')


def summary(dropped=0, leaked=0, proxy=0, old=False):
    complete = "false" if dropped or leaked or proxy else "true"
    if old:
        return f'{{"summary":{{"dropped_collectives":{dropped},"leaked_collectives":{leaked},"pool_size":256,"complete":{complete}}}}}\n'
    return (f'{{"summary":{{"dropped_collectives":{dropped},"leaked_collectives":{leaked},"dropped_proxy_ops":{proxy},"dropped_proxy_steps":0,'
            f'"overflow_proxy_ops":0,"coll_pool_size":256,"proxy_op_pool_size":4096,"proxy_step_pool_size":8192,"max_proxy_ops_per_coll":512,"complete":{complete}}}}}\n')


def write(folder, rank, comm, text, host="mi300_node{}", pid=4711):
    os.makedirs(folder, exist_ok=True)
    path = f"{folder}/accl_profiler_rank{rank}_{host.format(rank)}_pid{pid}_0x{comm:x}.jsonl"
    with open(path, "w") as f:
        f.write(text)
    os.utime(path, ns=(1790000000 * 10**9, 1790000000 * 10**9))


def job(folder, last=lambda rank: summary(), slow=0, n=2):
    for rank in range(n):
        text = ""
        for i in range(40):
            us = 150.30 + i + (0 if rank else slow)
            text += coll(rank, n, "AllReduce", i, 4194304, us, tick=10**9 + 20000 * i)
            if i % 4 == 0:
                text += coll(rank, n, "AllGather", i // 4, 1048576, 80.01 + i, channels=256, reported=0,
                             kernels=16, proto="LL128")
        text += coll(rank, n, "Broadcast", 0, 64, 7, gpu=False,
                     algo="Tree") + coll(rank, n, "Reduce", 0, 64, 3, gpu=False, kernels=0)
        write(folder, rank, WORLD, text + last(rank))
        write(folder, 0, 0x1234 + rank, coll(0, 1, "AllReduce", 5, 1024, 9.5) + summary(old=True),
              f"mi300_node{rank}")


def check_job(logs):
    need(set(logs) == {0, 1}, set(logs))
    for rank in (0, 1):
        me = [x for x in logs[rank]["ops"] if x["of"] == (rank, 2)]
        need(len(me) == 52 and len(logs[rank]["ops"]) == 53, len(me))
        reduces = [x for x in me if x["func"] == "AllReduce"]
        need([x["coll_sn"] for x in reduces] == list(range(40)) and reduces[3]["ns"] == 153300 and
             reduces[3]["bytes"] == 4194304, reduces[3])
        need(reduces[0]["coll_algo"] == "RING" and reduces[0]["coll_proto"] == "SIMPLE" and
             reduces[0]["coll_timing_source"] == "kernel_gpu", reduces[0])
        gather = [x for x in me if x["func"] == "AllGather"]
        need(gather[1]["ns"] == 84010 and gather[1]["coll_nchannels"] == 16 and
             gather[1]["coll_proto"] == "LL128", gather[1])
        need([x["coll_timing_source"] for x in me[-2:]] == ["kernel_cpu", "collective_cpu"], me[-2:])
        need(not any(k in x for x in me
                     for k in ("coll_enqueue_ns", "event_trace_ts", "coll_gpu_start_delta_ns")), me[0])
        p, meta = logs[rank]["process"], logs[rank]["meta"]
        need(meta["hostname"] == f"mi300_node{rank}" and meta["pid"] == 4711 and
             meta["rec_mechanism"] == "accl" and p["world_size"] == 2, meta)


def stats(folder, comm=f"0x{WORLD:x}"):
    out = {}
    for name in os.listdir(folder):
        for text in gzip.open(os.path.join(folder, name), "rt"):
            line = json.loads(text)
            if "dump_stats" in line and line["header"]["id"] == comm:
                out[line["header"]["rank"]] = line["dump_stats"]
    return out


def died(folder):
    """With a communicator that nothing was recorded of, and a file of that process that somebody else
    wrote."""
    job(folder, lambda rank: "" if rank else summary())
    write(folder, 1, 0x77, "", "mi300_node{}")
    write(folder, 1, 0x78, "{}\n", "mi300_node{}")


CASES = {
    "whole": job,
    "died": died,
    "cut": lambda d: job(d, lambda rank: coll(1, 2, "AllReduce", 40, 1, 1)[:90] if rank else summary()),
    "lost": lambda d: job(d, lambda rank: summary(7, 2, 5) if rank else summary(proxy=3)),
    "slow": lambda d: job(d, slow=60, n=2),
}


def check(name, folder):
    if name != "slow":
        check_job(kineto_cases.read(folder))
    final = stats(folder)
    need(set(final) == ({0} if name in ("died", "cut") else {0, 1}), final)
    if name == "lost":
        c = final[1]["coll"]
        need((c["started"], c["written"], c["dropped_by"], c["in_flight"]) == (61, 52, {"pool_full": 7}, 2),
             c)


def of_logs(folder):
    out = collections.Counter()
    for me in kineto_cases.read(folder).values():
        for x in me["ops"]:
            out[(x["comm"], x["of"], x["func"], x["coll_sn"], x["bytes"], x["ns"], x.get("coll_algo"),
                 x.get("coll_proto"))] += 1
    return out


def of_files(paths):
    out = collections.Counter()
    for path in paths:
        for text in open(path):
            try:
                line = json.loads(text)
            except ValueError:
                continue
            p = line.get("coll_perf")
            if p:
                ns = int(p["coll_exec_time_us"] * 1000 + 0.5)
                out[("0x" + path.rsplit("_0x", 1)[1].split(".")[0],
                     (line["header"]["rank"], line["header"]["n_ranks"]), p["coll"], p["coll_sn"],
                     p["coll_msg_size_bytes"], ns,
                     p["coll_algo"].upper(), p["coll_proto"].upper())] += 1
    return out


def read(folder, paths):
    want, got = of_files(paths), of_logs(folder)
    print(f"{sum(got.values())} collectives, {sum(x[4] * n for x, n in got.items())} bytes, {sum(x[5] * n for x, n in got.items())} ns")
    for what, these in (("not in the logs", want - got), ("not in the files", got - want)):
        for x in list(these)[:5]:
            print(what + ":", x)
    sys.exit(want != got or not got)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        for case, make in CASES.items():
            make(os.path.join(sys.argv[2], case))
    elif sys.argv[1] == "check":
        check(sys.argv[2], sys.argv[3])
    else:
        read(sys.argv[2], sys.argv[3:])
