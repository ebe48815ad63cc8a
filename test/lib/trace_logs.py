"""Logs of an invented job on hosts whose clocks are wrong by known amounts, and the times at which things
really happened.

    trace_logs.py DIR TRUTH.json [--hosts N] [--per-host N] [--ops N] [--seconds S] [--offset S,S,..] [--drift
    PPM,..]
                  [--gpu-drift PPM] [--step HOST:NS] [--full]

True time is that of host 0. Every rank writes AllReduces of the world and of its host; rank by rank the GPU's
clock has an offset of its own that drifts, and the plugin's fit of it lags behind, as clock lines say. --full
adds one of each of what else a timeline shows: calls, launches, network operations, marks, losses, what never
finished, Sends side by side.
"""
import argparse
import json
import os
import random

import logs
from logs import T0

WORLD = "0x1111"


class Rank:
    def __init__(self, o, rank):
        self.o, self.rank, self.host = o, rank, rank // o.per_host
        self.lines, self.rec, self.p2p_rec = [], {}, {}
        self.offset = float(o.offset[self.host % len(o.offset)]) * 1e9
        self.drift = float(o.drift[self.host % len(o.drift)]) * 1e-6
        self.stated = {}

    def clock(self, t):
        """True time -> this host's clock."""
        step = self.o.step[1] if self.o.step and self.o.step[0] == self.host and t > self.o.step_at else 0
        return t + int(self.offset) + int(self.drift * (t - T0)) + step

    def gpu(self, t):
        """What GPU offset a perfect fit would state for true time t (host - GPU)."""
        return int(1000 * self.rank + self.o.gpu_drift * 1e-6 * (t - T0))

    def add(self, kind, body, t, comm=None):
        h = self.about(comm) if comm else logs.own_header(self.rank, self.o.ranks)
        self.lines.append(logs.text(logs.line(h, logs.metadata(self.clock(t) // 1000, f"node-{self.host}", 1),
                                              kind, body)))

    def about(self, comm):
        return logs.header(comm["hash"], comm["ranks"].index(self.rank), len(comm["ranks"]), 1, comm["name"])

    def process(self):
        self.add("process", logs.process(self.clock(T0) + self.rank, self.rank, self.o.ranks,
                                         f"b-{self.host}", interface="v6"), T0)

    def comm(self, c, t):
        self.add("comm", logs.comm(self.about(c), self.clock(t)), t, c)

    def state_gpu(self, c, t, lag):
        """A clock line: the newest minimum, lag ns after a delivery that took no time."""
        at = t - lag
        self.stated[c["hash"]] = self.gpu(at)
        self.add("clock", logs.clock(1000 + t - T0, 1000 + t - T0, self.clock(t), 1.0, self.gpu(at),
                                     self.clock(at)), t, c)

    def number(self, table, c):
        n = table.get(c["hash"], 0)
        table[c["hash"]] = n + 1
        return n

    def delta(self, c, called, start):
        """GPU start as the plugin would state it: with the offset that the last clock line has."""
        return self.clock(start) - self.gpu(start) + self.stated.get(c["hash"], self.gpu(start)) - self.clock(called)

    def coll(self, c, sn, called, start, end, size=1048576, extra=None, skip=False):
        rec = self.number(self.rec, c)
        if skip:
            return rec
        self.add("coll_perf", logs.perf(
            "coll", "AllReduce", sn=sn, msg_size_bytes=size, exec_time_us=(end - start + 500) // 1000,
            timing_source="kernel_gpu", algobw_gbs=1.5, busbw_gbs=2.25, algo="RING", proto="SIMPLE",
            datatype="ncclBfloat16", root=0, nchannels=8, exec_time_ns=end - start,
            enqueue_ns=self.clock(called), gpu_start_delta_ns=self.delta(c, called, start), rec_sn=rec,
            nccl_tests_size_bytes=size, **(extra or {})), end, c)
        return rec

    def send(self, c, sn, peer, called, start, end, func="Send"):
        self.add("p2p_perf", logs.perf(
            "p2p", func, sn=sn, peer=peer, msg_size_bytes=65536, exec_time_us=12, timing_source="kernel_gpu",
            algobw_gbs=5.461333, busbw_gbs=5.461333, datatype="ncclFloat32", nchannels=2,
            exec_time_ns=end - start, enqueue_ns=self.clock(called),
            gpu_start_delta_ns=self.delta(c, called, start), rec_sn=self.number(self.p2p_rec, c),
            nccl_tests_size_bytes=65536), end, c)

    def end(self, t, comms=()):
        """The last lines: each communicator's account, then the process's own."""
        mine = [json.loads(l) for l in self.lines]
        for c in (*comms, None):
            lines = [x for x in mine if x["header"]["id"] == (c["hash"] if c else "0x0")]
            self.add("dump_stats", account(lines, self.rec.get(c["hash"], 0) if c else 0,
                                           self.p2p_rec.get(c["hash"], 0) if c else 0), t, c)


EVENTS = {"group": "group", "launch": "launch", "ce": "ce", "proxy_ctrl": "proxyctrl", "net": "net"}


def account(lines, started, p2p_started):
    """A final dump_stats line for what the lines hold."""
    def of(kind, key):
        return [x[key] for x in lines if key in x and x[key].get("kind", kind) == kind]
    def half(kind, key, n):
        lost = sum(g["count"] for g in of(kind, "gap"))
        return logs.counts(n, sum(key in x for x in lines), dropped_by={"pool_full": lost} if lost else {},
                           incomplete=len(of(kind, "incomplete")), in_flight=len(of(kind, "in_flight")))
    events = {}
    for x in lines:
        kind = next((EVENTS[k] for k in EVENTS if k in x), None)
        if "api" in x: kind = {"group": "groupapi", "coll": "collapi", "p2p": "p2papi"}[x["api"]["api"]]
        if "proxy_trace" in x:
            kind = {"proxy_op": "proxyop", "proxy_step": "steps"}[x["proxy_trace"]["record_type"]]
        if kind: events[kind] = events.get(kind, 0) + 1
    records = [sum(key in x for x in lines) for key in ("coll_perf", "p2p_perf", "proxy_trace")]
    stats = logs.dump_stats(half("coll", "coll_perf", started), half("p2p", "p2p_perf", p2p_started), True,
                            records)
    for key in ("coll_dropped_since_last_dump", "p2p_dropped_since_last_dump",
                "proxy_dropped_since_last_dump", "proxy_dropped_total"):
        del stats[key]  # a reader needs none of them
    return {**stats, "events": {k: {"started": n, "written": n, "dropped": 0, "in_flight": 0}
                                for k, n in events.items()}}


def job(o):
    rng = random.Random(o.seed)
    ranks = [Rank(o, r) for r in range(o.ranks)]
    world = {"hash": WORLD, "name": "world", "ranks": list(range(o.ranks))}
    local = [{"hash": hex(0x2200 + h), "name": "tp",
              "ranks": list(range(h * o.per_host, (h + 1) * o.per_host))}
             for h in range(o.hosts)]
    truth = []
    for r in ranks:
        r.process()
        r.comm(world, T0)
        r.comm(local[r.host], T0)
        for c in (world, local[r.host]):
            r.state_gpu(c, T0 + 1000000, 0)
    step = int(o.seconds * 1e9 / o.ops)
    for k in range(o.ops):
        for comms in ([world], local):
            for c in comms:
                base = T0 + 2000000 + k * step + (step // 2 if comms is local else 0)
                begin = {r: base + 1000 * rng.randrange(300) + (200000 if rng.random() < 0.1 else 0)
                         for r in c["ranks"]}
                done = max(begin.values()) + 20000 + rng.randrange(5000)
                for r in c["ranks"]:
                    x = ranks[r]
                    end = done + rng.randrange(2000)
                    if k % 20 == 7:
                        x.state_gpu(c, begin[r], rng.randrange(step // 2))
                    rec = x.coll(c, k, begin[r] - 5000, begin[r], end)
                    truth.append({"rank": r, "comm": c["hash"], "sn": k, "rec": rec, "start": begin[r],
                                  "end": end,
                                  "called": begin[r] - 5000})
    last = T0 + 2000000 + o.ops * step
    if o.full:
        everything(o, ranks, world, last)
    for r in ranks:
        r.end(last + 10**9, (world, local[r.host]))
    return ranks, truth, last


def everything(o, ranks, world, t):
    """On rank 0 (and 1): what the plugin writes beside operations, with times one can read off."""
    x, y = ranks[0], ranks[1]
    ms = 10**6
    at = lambda n: x.clock(t + n)
    # A call in a group, its launch, the bracket, the kernel, and a network operation with two steps.
    x.add("api", {"api": "group", "ev_sn": 0, "group_sn": 7, "depth": 2, "graph": False, "start_end_ns": 1000,
                  "end_begin_ns": 90000, "start_ns": at(1 * ms), "dur_ns": 150000}, t + 2 * ms, world)
    x.add("api", {"api": "coll", "ev_sn": 0, "func": "AllReduce", "call_sn": 500, "group_sn": 7,
                  "count": 524288, "datatype": "ncclBfloat16", "root": 0, "stream": "0x7f00c0",
                  "graph": False, "seen": "kernel",
                  "start_ns": at(1 * ms + 10000), "dur_ns": 2000}, t + 2 * ms, world)
    x.add("launch", {"ev_sn": 0, "group_sn": 7, "plan_sn": 40, "stream": "0x7f00c0",
                     "start_ns": at(1 * ms + 100000),
                     "dur_ns": 5000}, t + 2 * ms, world)
    x.add("group", {"ev_sn": 0, "plan_sn": 40, "start_ns": at(1 * ms + 110000), "dur_ns": 2000}, t + 2 * ms,
          world)
    rec = x.coll(world, o.ops, t + ms + 111000, t + ms + 120000, t + 2 * ms,
                 extra={"call_sn": 500, "plan_sn": 40})
    proxy = {"record_type": "proxy_op", "record_sn": 0, "parent_type": "coll", "parent_sn": o.ops,
             "proxy_op_sn": 3, "rank": 0, "channel_id": 2, "peer": 1, "direction": "send", "is_final": True,
             "n_steps": 2, "chunk_size_bytes": 524288, "n_steps_started": 2, "n_steps_completed": 2,
             "n_steps_dropped": 0, "trans_size_bytes": 1048576, "timing_source": "proxy_cpu",
             "total_us": 300.5, "gpu_produce_us": 100.25, "peer_credit_us": 0.0, "wire_us": 200.25,
             "op_bw_gbs": 3.5, "max_step_us": 180.0, "parent_func": "AllReduce", "parent_rec_sn": rec,
             "start_ns": at(ms + 150000), "progress_us": 0.5}
    x.add("proxy_trace", proxy, t + 2 * ms, world)
    x.add("proxy_trace", {**proxy, "record_sn": 1, "direction": "recv", "total_us": None, "state": "wire",
                          "start_ns": at(ms + 160000)}, t + 2 * ms, world)
    for s in range(2):
        x.add("proxy_trace", {"record_type": "proxy_step", "record_sn": s, "parent_type": "coll",
                              "parent_sn": o.ops, "proxy_op_sn": 3, "channel_id": 2, "peer": 1,
                              "direction": "send", "proxy_step_sn": s, "step": s, "trans_size_bytes": 524288,
                              "timing_source": "proxy_cpu", "total_us": 150.0, "wire_us": 100.0,
                              "start_ns": at(ms + 151000 + 60000 * s)}, t + 2 * ms, world)
    x.add("proxy_ctrl", {"ev_sn": 0, "what": "append", "appended": 4, "start_ns": at(ms + 140000),
                         "dur_ns": 900}, t + 2 * ms)
    x.add("net", {"ev_sn": 0, "type": "ib", "version": 1, "proxy_op_sn": 3, "step": 0, "device": 0,
                  "wr_id": 77, "opcode": 0, "qp": 412, "bytes": 524288, "updates": 0,
                  "start_ns": at(ms + 152000), "dur_ns": 18000}, t + 2 * ms, world)
    x.add("ce", {"ev_sn": 0, "ce_sn": 1, "func": "AllGather", "call_sn": 501, "count": 64,
                 "datatype": "ncclInt8", "root": 0, "sync_strategy": "UC", "stream": "0x7f00c0",
                 "start_ns": at(3 * ms), "dur_ns": 20000}, t + 4 * ms, world)
    # Sends to several at once need rows of their own.
    for i in range(4):
        x.send(world, i, 1, t + 5 * ms, t + 5 * ms + 1000 * i, t + 6 * ms)
    # Three lost between records, a mark, and two that hang: one goes on later, the other never ends.
    x.coll(world, o.ops + 1, t + 8 * ms, t + 8 * ms, t + 8 * ms + 1000)
    lost = [x.coll(world, 0, 0, 0, 0, skip=True) for _ in range(3)]
    x.add("gap", {"kind": "coll", "count": 3, "cause": "pool_full", "rec_sn_from": lost[0],
                  "rec_sn_to": lost[-1]}, t + 12 * ms, world)
    x.coll(world, o.ops + 5, t + 11 * ms, t + 11 * ms, t + 11 * ms + 1000)
    x.add("control", logs.mark("step 100", at(9 * ms), "mark step 100"), t + 12 * ms)
    stuck = logs.stuck("coll", "AllReduce", o.ops + 6, y.rec[WORLD], 1048576, (8, 8, 5), y.clock(t + 20 * ms),
                       300, "0xe0")
    y.add("stuck", stuck, t + 320 * ms, world)
    y.coll(world, o.ops + 6, t + 20 * ms, t + 20 * ms, t + 400 * ms)
    y.add("stuck", {**stuck, "sn": o.ops + 7, "rec_sn": y.rec[WORLD], "enqueue_ns": y.clock(t + 500 * ms)},
          t + 800 * ms, world)
    y.add("in_flight", {**stuck, "sn": o.ops + 7, "rec_sn": y.rec[WORLD], "enqueue_ns": y.clock(t + 500 * ms),
                        "age_ms": 450,
                        "why": "killed"}, t + 950 * ms, world)
    hung = {**proxy, "parent_sn": o.ops + 7, "parent_rec_sn": y.rec[WORLD], "rank": 1, "peer": 0,
            "total_us": None, "state": "wire",
            "start_ns": y.clock(t + 510 * ms)}
    y.add("proxy_trace", hung, t + 900 * ms, world)
    y.number(y.rec, world) # it was started
    y.add("note", {"text": "wrote early: three quarters of the pool's cap are in use"}, t + 30 * ms)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("out")
    a.add_argument("truth")
    for name, kind, default in (("hosts", int, 3), ("per-host", int, 2), ("ops", int, 200),
                                ("seconds", float, 120.0),
                                ("offset", str, "0,1.5,-0.04"), ("drift", str, "0,20,-5"),
                                ("gpu-drift", float, 0.0),
                                ("step", str, ""), ("seed", int, 1)):
        a.add_argument("--" + name, type=kind, default=default)
    a.add_argument("--full", action="store_true")
    o = a.parse_args()
    o.ranks, o.offset, o.drift = o.hosts * o.per_host, o.offset.split(","), o.drift.split(",")
    o.step_at = T0 + o.seconds * 5e8
    o.step = tuple(int(v) for v in o.step.split(":")) if o.step else None
    ranks, truth, last = job(o)
    os.makedirs(o.out, exist_ok=True)
    for r in ranks:
        half = len(r.lines) // 2
        # Rotated: what comes first is not the file that sorts first by name.
        name = logs.path(o.out, f"node-{r.host}", 1, T0 // 10**9 + r.rank)
        logs.write(name, r.lines[:half])
        logs.write(name + ".10", r.lines[:1] + r.lines[half:])
    with open(o.truth, "w") as f:
        json.dump({"ops": truth, "t0": T0, "last": last}, f)


if __name__ == "__main__":
    main()
