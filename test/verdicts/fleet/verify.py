#!/usr/bin/env python3
"""Checks that jobs are physically possible: verify.py JOB_DIR... (exit status 1: something cannot be)

What is checked on each job, as far as its weather allows:
- order: on a communicator of a rank, calls are enqueued in order and do not overlap on the GPU;
- enqueue: nothing starts on the GPU before its call;
- members: one call has the same function, number and size on all ranks, and none of them lacks it;
- last: no operation ends before its last member came (a small broadcast: before its root came);
- speed: no operation is faster than the narrowest link it has to use, and no link carries more than it can
  while anything is under way on it;
- messages: what one side sends, in order, is what the other side receives;
- numbers: rec_sn has no holes that the accounts do not explain;
- truth: costs, windows, ranks and hosts are within what can be.
"""

import collections
import glob
import json
import sys
import zlib

SMALL_BROADCAST = 4 << 20
APART = {"clock_skew_ms", "clock_skew_minutes", "clock_drift", "clock_step"}
INEXACT = {"coarse_gpu_clock", "noisy_stamps", "cpu_timing"}
LOSSY = {
    "missing_ranks",
    "missing_host",
    "sampled",
    "min_size",
    "no_p2p",
    "dropped_records",
    "truncated_files",
    "killed",
}


class Op:
    __slots__ = ("rank", "comm", "func", "size", "sn", "call", "peer", "enqueue", "start", "end", "root")


def read_lines(path):
    """Lines of a log; a cut one as far as it goes."""
    data = open(path, "rb").read()
    if path.endswith(".gz"):
        out = []
        while data:
            member = zlib.decompressobj(31)
            try:
                out.append(member.decompress(data))
            except zlib.error:
                break
            if not member.eof:
                break
            data = member.unused_data
        data = b"".join(out)
    return data.decode().splitlines()


class Logs:
    """All operations of the job that the truth is about."""

    def __init__(self, folder, truth):
        self.ops = []
        self.members = {}  # communicator -> number of ranks
        self.holes = 0
        self.world = {}  # (communicator, its rank) -> job rank
        self.problems = []
        start = truth["start_unix_ns"]
        files = glob.glob(folder + "/*.jsonl.gz") + glob.glob(folder + "/*.jsonl")
        # Another attempt or job is of an earlier time. Skew is four minutes at most.
        for path in files:
            began = int(path.split("-")[-1].split(".")[0])
            if abs(began - start / 1e9) < 3000:
                self.read(path, truth)

    def read(self, path, truth):
        try:
            lines = read_lines(path)
        except OSError as error:
            self.problems.append(str(error))
            return
        rank = None
        first = True
        mine = collections.defaultdict(list)
        for text in lines:
            try:
                line = json.loads(text)
            except json.JSONDecodeError:
                if "truncated_files" not in truth["weather"]:
                    self.problems.append("a line is no JSON in " + path)
                continue
            head = line["header"]
            if "process" in line:
                if not first:
                    self.problems.append("a process line is not the first in " + path)
                rank = line["process"]["rank"]
                if line["process"]["env"].get("TORCHELASTIC_RESTART_COUNT") == "0" and (
                    "earlier_attempt_in_folder" in truth["weather"]
                ):
                    return
            first = False
            perf = line.get("coll_perf") or line.get("p2p_perf")
            if head["n_ranks"] == truth["n_ranks"] and head["id"] != "0x0" and rank is None:
                rank = head["rank"]  # a communicator of all ranks
            if perf:
                mine[head["id"], "p2p" in perf].append((head, perf))
        if rank is None:
            self.problems.append("whose file is " + path + "?")
            return
        for key, records in mine.items():
            self.members[key[0]] = records[0][0]["n_ranks"]
            self.world[key[0], records[0][0]["rank"]] = rank
            self.take(rank, key, records)

    def take(self, rank, key, records):
        numbers = sorted(perf["rec_sn"] for _, perf in records)
        self.holes += numbers != list(range(len(numbers)))
        for _, perf in records:
            p = "p2p_" if key[1] else "coll_"
            op = Op()
            op.rank, op.comm = rank, key[0]
            op.func = perf["p2p" if key[1] else "coll"]
            op.size, op.sn, op.call = perf[p + "msg_size_bytes"], perf[p + "sn"], perf["call_sn"]
            op.peer = perf.get("p2p_peer")
            op.root = perf.get("coll_root")
            op.enqueue = perf[p + "enqueue_ns"]
            op.start = op.enqueue + perf.get(p + "gpu_start_delta_ns", 0)
            op.end = op.start + perf[p + "exec_time_ns"]
            self.ops.append(op)


class Checks:
    def __init__(self, truth, logs):
        self.t = truth
        self.logs = logs
        self.weather = set(truth["weather"])
        self.found = collections.Counter()
        self.done = collections.Counter()
        self.busy = collections.defaultdict(list)  # link -> (begin, end, bytes)
        self.local = {}  # rank -> its place on its host

    def check(self, name, fine):
        self.done[name] += 1
        if not fine:
            self.found[name] += 1

    def host(self, rank):
        return self.t["host_of_rank"][rank]

    def nic(self, rank):
        on_host = [r for r in range(self.t["n_ranks"]) if self.host(r) == self.host(rank)]
        self.local.setdefault(rank, on_host.index(rank))
        return self.local[rank] * self.t["nics"] // max(len(on_host), self.per_host())

    def per_host(self):
        return 4 if "4 GPUs" in self.t["machine"] else 8

    def tolerance(self, ranks):
        """How far two stamps of these ranks may be off, in ns."""
        one_host = len({self.host(r) for r in ranks}) == 1
        return 15000 if one_host else 350000

    def order(self):
        by_stream = collections.defaultdict(list)
        for op in self.logs.ops:
            by_stream[op.rank, op.comm, op.peer is not None].append(op)
        exact = not self.weather & INEXACT and "clock_step" not in self.weather
        for key, ops in by_stream.items():
            ops.sort(key=lambda o: o.call)
            for a, b in zip(ops, ops[1:]):
                if "clock_step" not in self.weather:
                    self.check("enqueue order", a.enqueue <= b.enqueue)
                # Messages of one group run side by side.
                if exact and not key[2]:
                    drift = (2e-4 if "clock_drift" in self.weather else 2e-7) * (a.end - a.start)
                    self.check("overlap", a.end - b.start <= 100 + drift)
        if exact:
            for op in self.logs.ops:
                self.check("start before enqueue", op.start > op.enqueue)

    def collectives(self):
        calls = collections.defaultdict(list)
        for op in self.logs.ops:
            if op.peer is None:
                calls[op.comm, op.func, op.sn].append(op)
        exact = not self.weather & INEXACT
        for (comm, func, _), ops in calls.items():
            n = self.logs.members[comm]
            self.check("sizes or numbers differ", len({(o.size, o.call) for o in ops}) == 1)
            self.check("twice from one rank", len({o.rank for o in ops}) == len(ops))
            if not self.weather & LOSSY:
                self.check("lacks members", len(ops) == n)
            if not exact or len(ops) < n:
                continue
            ranks = [o.rank for o in ops]
            hosts = {self.host(r) for r in ranks}
            if self.weather & APART and len(hosts) > 1 or "clock_step" in self.weather:
                continue
            slack = self.tolerance(ranks)
            if func == "Broadcast" and ops[0].size < SMALL_BROADCAST:
                root = self.logs.world.get((comm, ops[0].root))
                came = max([o.start for o in ops if o.rank == root], default=0)
            else:
                came = max(o.start for o in ops)
            done = min(o.end for o in ops)
            self.check("ends before its last member came", done + slack >= came)
            if func != "Broadcast":
                self.speed(func, ops[0].size, n, ranks, hosts, came, done, slack)

    def speed(self, func, size, n, ranks, hosts, came, done, slack):
        bytes_moved = size * (2 * (n - 1) / n if func == "AllReduce" else n - 1)
        limits = self.t["limits_gbs"]
        on_host = collections.Counter(self.host(r) for r in ranks)
        if max(on_host.values()) > 1:
            # A switch that reduces halves what a port carries.
            needed = bytes_moved * (n / (2 * (n - 1)) if func == "AllReduce" and len(hosts) == 1 else 1)
            self.check("faster than its links", (done - came + slack) * limits["port"] >= needed)
        if len(hosts) < 2:
            return
        rails = collections.defaultdict(set)
        for r in ranks:
            rails[self.host(r)].add(self.nic(r))
        for host, nics in rails.items():
            share = bytes_moved / len(nics)
            self.check("faster than its links", (done - came + slack) * limits["nic"] >= share)
            for nic in nics:
                self.busy[host, nic, "out"].append((came - slack, done + slack, share))

    def messages(self):
        sides = collections.defaultdict(lambda: ([], []))
        for op in self.logs.ops:
            if op.peer is None:
                continue
            peer = self.logs.world.get((op.comm, op.peer))
            if peer is None:
                continue
            if op.func == "Send":
                sides[op.comm, op.rank, peer][0].append(op)
            else:
                sides[op.comm, peer, op.rank][1].append(op)
        if self.weather & LOSSY:
            return
        limits = self.t["limits_gbs"]
        for (_, a, b), (sent, got) in sides.items():
            sent.sort(key=lambda o: o.sn)
            got.sort(key=lambda o: o.sn)
            self.check("sides differ", [o.size for o in sent] == [o.size for o in got])
            across = self.host(a) != self.host(b)
            if self.weather & INEXACT or (self.weather & APART and across) or "clock_step" in self.weather:
                continue
            slack = self.tolerance([a, b])
            for s, g in zip(sent, got):
                came, done = max(s.start, g.start), min(s.end, g.end)
                self.check("ends before its last member came", done + slack >= came)
                limit = limits["nic" if across else "port"]
                self.check("faster than its links", (done - came + slack) * limit >= s.size)
                if across:
                    self.busy[self.host(a), self.nic(a), "out"].append((came - slack, done + slack, s.size))
                    self.busy[self.host(b), self.nic(b), "in"].append((came - slack, done + slack, s.size))

    def links(self):
        """While something is under way on a link, it carries no more than it can."""
        for ops in self.busy.values():
            ops.sort()
            open_ns, total, begin, end = 0, 0, None, None
            for a, b, size in ops:
                total += size
                if begin is None or a > end:
                    open_ns += 0 if begin is None else end - begin
                    begin, end = a, b
                end = max(end, b)
            open_ns += end - begin
            self.check("more than a link can carry", total <= open_ns * self.t["limits_gbs"]["nic"])

    def truth(self):
        t = self.t
        self.check("truth: run time", t["run_s"] >= t["healthy_run_s"] - 1e-6)
        for c in t["causes"]:
            self.check("truth: cost", 0.0095 <= c["cost"] <= 0.36)
            self.check("truth: cost of all", c["cost"] <= 1 - t["healthy_run_s"] / t["run_s"] + 0.02)
            self.check("truth: ranks", all(0 <= r < t["n_ranks"] for r in c["ranks"]))
            self.check("truth: hosts", set(c["hosts"]) <= set(t["hosts"]))
            if c["level"] in ("rank", "host", "nic", "nvlink"):
                on = {t["hosts"][self.host(r)] for r in c["ranks"]}
                self.check("truth: ranks on hosts", on == set(c["hosts"]))
            for w in c["windows"]:
                self.check("truth: windows", 0 <= w["begin_s"] <= w["end_s"] <= t["run_s"] + 1e-3)
                self.check("truth: windows", 0 <= w["begin_step"] <= w["end_step"] < t["steps"])
            self.check("truth: reasons", c["identifiable"] == (c["why_not"] == ""))
        if not self.weather & (LOSSY | APART):
            seen = (max(o.end for o in self.logs.ops) - min(o.enqueue for o in self.logs.ops)) / 1e9
            self.check("truth: run time in the logs", 0.5 * t["run_s"] < seen <= t["run_s"] * 1.001 + 0.01)


def verify(folder):
    """Prints what was found; false: something cannot be."""
    truth = json.load(open(folder + "/truth.json"))
    logs = Logs(folder, truth)
    checks = Checks(truth, logs)
    for problem in logs.problems:
        print("  " + problem)
    if not logs.ops:
        print(folder, "has no operations")
        return False
    if not set(truth["weather"]) & LOSSY:
        checks.check("holes in rec_sn", logs.holes == 0)
    checks.order()
    checks.collectives()
    checks.messages()
    checks.links()
    checks.truth()
    found = ", ".join(f"{name} {n} of {checks.done[name]}" for name, n in checks.found.items())
    causes = ", ".join(f"{c['kind']} {100 * c['cost']:.1f} %" for c in truth["causes"])
    print(
        f"{folder} {truth['shape']}: {len(logs.ops)} operations, "
        f"{sum(checks.done.values())} checks; {causes}; "
        f"{' '.join(truth['weather'])}: {found or 'possible'}"
    )
    return not found and not logs.problems


def main():
    possible = [verify(folder.rstrip("/")) for folder in sys.argv[1:]]
    print(f"{sum(possible)} of {len(possible)} jobs are possible")
    sys.exit(0 if all(possible) else 1)


if __name__ == "__main__":
    main()
