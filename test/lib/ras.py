#!/usr/bin/env python3
"""NCCL's RAS as a test needs it: answers as src/ras/client_support.cc writes them, and a server that gives
them.

As a module: Comm, rank(), missing(), answer(). As a program:

    ras.py PORT_FILE MODE FILE...    serves on a free port of loopback, which PORT_FILE then holds; each STATUS gets
                                     the next FILE, the last one again and again. Ends with its parent's
                                     SIGKILL.

Modes: fine; old (no SET FORMAT, as before 2.28.7); and hostile ones: cut, endless, drip, close, silent, http,
refuse """

import os
import socketserver
import sys
import threading
import time

FUNCS = ("Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce")


def text(value):
    """RAS escapes nothing."""
    return '"%s"' % value


def fields(depth, pairs):
    pad = "  " * depth
    return "{\n" + ",\n".join('%s"%s": %s' % (pad, k, v) for k, v in pairs) + "\n" + "  " * (depth - 1) + "}"


def rank(number, counts, host="10.0.0.1", pid=None, dev=0, init=0, error=0, finalize=False, destroy=False,
         abort=False):
    """counts: {function: number}; functions that are not in it are 0."""
    flag = {False: "false", True: "true"}
    state = [("init_state", init), ("async_error", error), ("finalize_called", flag[finalize])]
    state += [("destroy_flag", flag[destroy]), ("abort_flag", flag[abort])]
    return fields(5, [("rank", number), ("host", text(host)), ("pid", 1000 + number if pid is None else pid),
                      ("cuda_dev", dev), ("nvml_dev", dev), ("status", fields(6, state)),
                      ("collective_counts", fields(6, [(f, counts.get(f, 0)) for f in FUNCS]))])


def missing(number, host="10.0.0.1", pid=None, dev=0, unresponsive=False, dead=False):
    flag = {False: "false", True: "true"}
    state = [("unresponsive", flag[unresponsive]), ("considered_dead", flag[dead])]
    return fields(5, [("rank", number), ("host", text(host)), ("pid", 1000 + number if pid is None else pid),
                      ("cuda_dev", dev), ("nvml_dev", dev), ("status", fields(6, state))])


def comm(code, size, ranks, gone=(), ranks_count=None, missing_count=None):
    return fields(3, [("hash", text("0x%x" % code)), ("secondary_hash", text("0x5:0x3e8")), ("size", size),
                      ("ranks_count", len(ranks) if ranks_count is None else ranks_count),
                      ("missing_ranks_count", len(gone) if missing_count is None else missing_count),
                      ("ranks", "[\n        " + ",\n        ".join(ranks) + "\n      ]"),
                      ("missing_ranks", "[\n        " + ",\n        ".join(gone) + "\n      ]")])


def answer(comms, at=0, version="2.31.2", timeouts=0, took=0.004):
    """at: seconds since 1970, which RAS says as its local time."""
    return fields(1, [("nccl_version", text(version)), ("cuda_runtime_version", 13000),
                      ("cuda_driver_version", 13000),
                      ("timestamp", text(time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(1795860000 + at)))),
                      ("communicators_count", len(comms)),
                      ("communicators", "[\n    " + ",\n    ".join(comms) + "\n  ]"),
                      ("ras", fields(2, [("collection_time_sec", "%.3f" % took),
                                         ("timeouts_count", timeouts)]))]) + "\n"


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True

    def __init__(self, answers, mode="fine", port=0):
        self.answers, self.mode, self.asked, self.lock = list(answers), mode, 0, threading.Lock()
        super().__init__(("127.0.0.1", port), Talk)

    def next(self):
        with self.lock:
            self.asked += 1
            return self.answers[min(self.asked, len(self.answers)) - 1]


class Talk(socketserver.StreamRequestHandler):
    """One client: lines, case ignored, as rasClientEventLoop() takes them."""

    def put(self, what):
        self.wfile.write(what if isinstance(what, bytes) else what.encode("utf-8", "surrogateescape"))
        self.wfile.flush()

    def handle(self):
        try:
            self.talk()
        except (BrokenPipeError, ConnectionResetError):
            pass

    def talk(self):
        mode, json = self.server.mode, False
        if mode == "silent":
            time.sleep(60)
        if mode == "http":
            return self.put("HTTP/1.1 400 \033[31mBad Request\r\n\r\n")
        for raw in self.rfile:
            line = raw.rstrip(b"\r\n").decode("latin-1").lower()
            if line.startswith("client protocol "):
                self.put("SERVER PROTOCOL 2\n")
            elif line.startswith("timeout "):
                self.put("OK\n")
            elif line.startswith("set format ") and mode != "old":
                json = line.split()[2] == "json"
                self.put("OK\n")
            elif line in ("status", "verbose status"):
                return self.status(json, mode)
            else:
                self.put("ERROR: Unknown command %s\n" % line.upper())

    def status(self, json, mode):
        what = self.server.next() if json else b"NCCL version 2.31.2 compiled with CUDA 13.0\n"
        if isinstance(what, str):
            what = what.encode("utf-8", "surrogateescape")
        if mode == "cut":
            self.put(what[: len(what) // 2])
        elif mode == "endless":
            while True:
                self.put(b'{"communicators": [' + b" " * (1 << 20))
        elif mode == "drip":
            for i in range(len(what)):
                self.put(what[i : i + 1])
                time.sleep(0.2)
        elif mode != "close":
            self.put(what)


def main():
    port_file, mode, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    with Server([open(f, "rb").read() for f in files], mode) as s:
        with open(port_file + ".new", "w", encoding="ascii") as f:
            f.write("%d\n" % s.server_address[1])
        os.rename(port_file + ".new", port_file)
        s.serve_forever()


if __name__ == "__main__":
    main()
