"""Logs of two ranks that worked for a while and then hang, as the plugin writes them where there are no black boxes.

  hang_logs.py DIR FUNC FUNC [MS [WORLD]]    what rank 0 and rank 1 are inside of; "-": nothing

A dump_stats line with nothing in flight, as comes every 10 s, and 300 s after the call a stuck line. With MS that was an attempt
which was killed and recovered, and MS after its last sign of life the ranks began again in a job of WORLD, worked and ended.
"""
import json
import pathlib
import sys

BEGIN = 1790000000 * 10**9
HANG = 312 * 10**9 # after the beginning: 300 s after the call
directory, *funcs = sys.argv[1:4]


def log(rank, pid, begin, func, how="", world=2):
    def line(at_ns, kind, value, about_comm=True):
        header = {"id": "0x5d1c7e90aa%04x" % pid, "comm_name": "world", "rank": rank, "n_ranks": 2, "nnodes": 2}
        if not about_comm:
            header = {"id": "0x0", "rank": rank, "n_ranks": 2, "nnodes": 0}
        metadata = {"inspector_output_format_version": "v4.0", "git_rev": "1a2b3c4d5", "rec_mechanism": "nccl_profiler_interface",
                    "dump_timestamp_us": at_ns // 1000, "hostname": "node-%d" % rank, "pid": pid + rank, "producer": "test"}
        return json.dumps({"header": header, "metadata": metadata, kind: value}, separators=(",", ":")) + "\n"

    def stats(final, about_comm=True):
        kind = {"started": 20, "written": 20, "filtered_by": {}, "dropped_by": {}, "incomplete": 0, "late": 0, "in_flight": 0,
                "timing_fallback_by": {}}
        none = dict(kind, started=0, written=0)
        x = {"%s_%s" % (k, what): 0 for k in ("coll", "p2p", "proxy")
             for what in ("records", "dropped_total", "dropped_since_last_dump")}
        x.update({"final": final, "coll": kind if about_comm else none, "p2p": none, "strays": {}})
        return line(begin + 10 * 10**9, "dump_stats", x, about_comm)

    process = {"start_ns": begin, "boot_id": "b", "exe": "python3", "rank": rank, "local_rank": 0, "world_size": world, "env": {},
               "nccl_version": 23007, "interface": "v6", "settings": {}}
    if how == "killed":
        process.update({"recovered_ns": begin + HANG, "recovered_live": False})
    text = line(begin, "process", process, False)
    text += line(begin, "comm", {"name": "world", "hash": "0x5d1c7e90aa%04x" % pid, "rank": rank, "n_ranks": 2, "nnodes": 2,
                 "gpu_index": 0, "gpu_uuid": None, "gpu_pci": "0000:1b:00.0", "init_ns": begin})
    for sn in range(20):
        text += line(begin + 10**9, "coll_perf", {
            "coll": "AllReduce", "coll_sn": sn, "coll_msg_size_bytes": 1048576, "coll_exec_time_us": 59,
            "coll_timing_source": "kernel_gpu", "coll_algobw_gbs": 17.7, "coll_busbw_gbs": 17.7, "coll_exec_time_ns": 59123,
            "coll_enqueue_ns": begin + sn * 10**6, "rec_sn": sn})
    text += stats(how == "ended")
    if func != "-":
        text += line(begin + HANG, "in_flight" if how == "killed" else "stuck", {
            "kind": "coll", "func": func, "sn": 20 if func == "AllReduce" else 0, "rec_sn": 20, "msg_size_bytes": 1048576,
            "channels_expected": 8, "channels_started": 8, "channels_stopped": 0, "enqueue_ns": begin + HANG - 300 * 10**9,
            "age_ms": 300000, "why": how or "stuck", "state": "kernel", "datatype": "ncclBfloat16", "root": 0,
            "channels_open": "0xff"})
    if how == "ended":
        text += stats(True, False)
    pathlib.Path(directory, "node-%d-pid%d.jsonl" % (rank, pid + rank)).write_text(text)


for rank, func in enumerate(funcs):
    if len(sys.argv) < 5:
        log(rank, 100, BEGIN, func)
    else:
        log(rank, 100, BEGIN, func, "killed")
        log(rank, 200, BEGIN + HANG + int(sys.argv[4]) * 10**6, "-", "ended", int((sys.argv + ["2"])[5]))
