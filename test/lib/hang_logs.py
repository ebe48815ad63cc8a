"""Logs of two ranks that worked for a while and then hang, as the plugin writes them where there are no black
boxes.

  hang_logs.py DIR FUNC FUNC [MS [WORLD]]    what rank 0 and rank 1 are inside of; "-": nothing

A dump_stats line with nothing in flight, as comes every 10 s, and 300 s after the call a stuck line. With MS
that was an attempt which was killed and recovered, and MS after its last sign of life the ranks began again
in a job of WORLD, worked and ended.
"""
import sys

import logs

BEGIN = logs.T0
HANG = 312 * 10**9 # after the beginning: 300 s after the call
directory, *funcs = sys.argv[1:4]


def log(rank, pid, begin, func, how="", world=2):
    x = logs.Log(rank, 2, "node-%d" % rank, pid + rank, producer="test")
    about = logs.header("0x5d1c7e90aa%04x" % pid, rank, 2, 2, "world")

    def line(at_ns, kind, value, header=about):
        x.add(at_ns // 1000, kind, value, header)

    def stats(final, header=about):
        none = logs.counts(0, 0)
        line(begin + 10 * 10**9, "dump_stats",
             logs.dump_stats(logs.counts(20, 20) if header else none, none, final), header)

    process = logs.process(begin, rank, world, "b", local_rank=0, interface="v6")
    if how == "killed":
        process.update({"recovered_ns": begin + HANG, "recovered_live": False})
    line(begin, "process", process, None)
    line(begin, "comm", logs.comm(about, begin, gpu_index=0, gpu_pci="0000:1b:00.0"))
    for sn in range(20):
        line(begin + 10**9, "coll_perf", logs.perf(
            "coll", "AllReduce", sn=sn, msg_size_bytes=1048576, exec_time_us=59, timing_source="kernel_gpu",
            algobw_gbs=17.7,
            busbw_gbs=17.7, exec_time_ns=59123, enqueue_ns=begin + sn * 10**6, rec_sn=sn))
    stats(how == "ended")
    if func != "-":
        line(begin + HANG, "in_flight" if how == "killed" else "stuck", logs.stuck(
            "coll", func, 20 if func == "AllReduce" else 0, 20, 1048576, (8, 8, 0),
            begin + HANG - 300 * 10**9, 300000, "0xff",
            why=how or "stuck"))
    if how == "ended":
        stats(True, None)
    x.write(directory)


for rank, func in enumerate(funcs):
    if len(sys.argv) < 5:
        log(rank, 100, BEGIN, func)
    else:
        log(rank, 100, BEGIN, func, "killed")
        log(rank, 200, BEGIN + HANG + int(sys.argv[4]) * 10**6, "-", "ended", int((sys.argv + ["2"])[5]))
