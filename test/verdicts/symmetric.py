#!/usr/bin/env python3
"""Jobs of symmetric kernels with phases, with and without late ranks, and whom `summary` names.

  symmetric.py --seeds 0-29 [--set held] [--verbose] [--plain]   a job a seed; odd seeds are kept back
  symmetric.py --make DIR --seeds 8                              one job, kept
  symmetric.py --host --seeds 0-29                               all ranks of a host are late, each by itself

Written from what NCCL 2.31 stamps, not from the judge (docs/verdicts.md): `initial_sync` of a barrier kernel
is the wait for the last peer of the barrier plus its latency, of an LL kernel it holds the first exchange of
data, too. Each host's clock is off by 10 ms or more, each rank's a little more, and drifts. --plain leaves
the phases
out: what is told without them.
"""
import argparse
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import concurrent.futures

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
US, MS, S = 10**3, 10**6, 10**9
T0 = 1790000000 * S
BARRIER = {"AllReduce": "RSxLDMC_AGxSTMC", "AllGather": "STMC", "ReduceScatter": "LDMC"}
RAIL = {"AllGather": "RailRing_LsaSTMC", "ReduceScatter": "RailA2A_LsaLDMC"}
LL = {"AllReduce": "AGxLL_R", "AllGather": "LL", "ReduceScatter": "LL"}


class Job:
    """What a seed draws: ranks on hosts, a step of operations, who is late, how much everything differs."""

    def __init__(self, seed, late_host=False):
        rnd = self.random = random.Random("symmetric/%d" % seed)
        self.kind = rnd.choice(("late", "late", "late", "two", "healthy", "noisy"))
        if late_host:
            self.kind = "host"
        self.layout = rnd.choice(("flat", "flat", "tp_dp"))
        self.hosts, self.per_host = rnd.choice(((2, 4), (1, 8), (4, 4), (2, 8)))
        if self.layout == "tp_dp":
            self.hosts = max(2, self.hosts)
        if late_host:
            self.hosts = max(2, self.hosts)
        self.n = self.hosts * self.per_host
        self.transfer = 50 * US * math.exp(rnd.random() * math.log(100))  # of a kernel: 50 us to 5 ms
        self.gap = self.transfer * rnd.uniform(0.5, 4) + 30 * US  # what is computed between two
        self.jitter = rnd.uniform(0.005, 0.04)
        self.launch = rnd.uniform(1, 6) * US  # how much a start differs for no reason
        self.pauses = {"noisy": 0.004, "healthy": 0.0005}.get(self.kind, 0.0005)
        self.layers = rnd.choice((2, 4, 8))
        self.steps = rnd.choice((150, 300))
        self.ll = rnd.random() < 0.25  # small calls between, whose kernels have no barrier
        self.speed = [1 + rnd.gauss(0, 0.002) for _ in range(self.n)]
        self.late = {}
        if self.kind in ("late", "two"):
            for r in rnd.sample(range(self.n), 2 if self.kind == "two" else 1):
                self.late[r] = (rnd.choice((0.05, 0.1, 0.2, 0.4, 0.8)),
                                100 * US * math.exp(rnd.random() * math.log(50)))
        if late_host:  # as a slow CPU is: in many operations, and each rank by itself
            often, by = rnd.choice((0.1, 0.2, 0.4, 0.8)), 100 * US * math.exp(rnd.random() * math.log(20))
            host = rnd.randrange(self.hosts)
            self.late = {r: (often, by) for r in range(self.n) if self.host(r) == host}
        self.host_off = [i * 10 * MS + rnd.uniform(-3, 3) * MS for i in range(self.hosts)]
        rnd.shuffle(self.host_off)
        self.rank_off = [rnd.uniform(-2, 2) * MS for _ in range(self.n)]
        self.drift = [rnd.uniform(-20e-6, 20e-6) for _ in range(self.n)]

    def host(self, r):
        return r // self.per_host

    def comms(self):
        """name -> ranks"""
        if self.layout == "flat":
            return {"tp": list(range(self.n))}
        h, g = self.hosts, self.per_host
        out = {"tp%d" % i: list(range(i * g, i * g + g)) for i in range(h)}
        out.update({"dp%d" % k: [i * g + k for i in range(h)] for k in range(g)})
        return out

    def step(self):
        """Calls of a step: family of communicators, function, bytes, share of the transfer, form."""
        size = int(self.transfer / 1000 * 4096) // 4096 * 4096
        out = []
        for layer in range(self.layers):
            if self.ll:
                out.append(("tp", "AllReduce", 16384, 0.15, "ll"))
            out.append(("tp", "AllReduce", size, 1.0, "barrier"))
        if self.layout == "tp_dp":
            out.append(("dp", "ReduceScatter", size, 1.2, "rail"))
            out.append(("dp", "AllGather", size, 1.1, "rail"))
        out.append(("tp", "AllGather", 2 * size, 0.6, "barrier"))
        return out


class Play:
    """The operations in true time: (rank) -> records."""

    def __init__(self, job, plain):
        self.job, self.plain = job, plain
        self.records = {r: [] for r in range(job.n)}
        self.free = [job.random.random() * MS for _ in range(job.n)]  # when a rank's stream is free
        self.count = {}
        self.lost = {r: 0.0 for r in job.late}
        for _ in range(job.steps):
            for call in job.step():
                self.operation(*call)

    def arrivals(self):
        job, rnd = self.job, self.job.random
        out = []
        for r in range(job.n):
            gap = job.gap * job.speed[r] * (1 + rnd.gauss(0, job.jitter)) + rnd.random() * job.launch
            if rnd.random() < job.pauses / len(job.step()):
                gap += rnd.uniform(4, 20) * MS
            late = 0.0
            if r in job.late and rnd.random() < job.late[r][0]:
                late = job.late[r][1] * rnd.uniform(0.7, 1.3)
            out.append((self.free[r] + max(gap, 0) + late, late))
        return out

    def operation(self, family, func, size, share, form):
        job, rnd = self.job, self.job.random
        at = self.arrivals()
        for name, ranks in job.comms().items():
            if not name.startswith(family):
                continue
            sn = self.count[name, func] = self.count.get((name, func), -1) + 1
            last = max(at[r][0] for r in ranks)
            for r in job.late:
                if r in ranks:
                    beside = [i for i in ranks if i != r and (job.kind != "host" or i not in job.late)]
                    others = max((at[i][0] for i in beside), default=at[r][0])
                    self.lost[r] += max(0, min(at[r][1], at[r][0] - others))
            work = job.transfer * share * (1 + rnd.gauss(0, 0.01))
            for r in ranks:
                begin = at[r][0]
                begins = last + rnd.uniform(2, 5) * US  # the barrier opens: its own latency
                if form == "rail" and func == "ReduceScatter":  # the barrier is the host's alone
                    mine = max(at[i][0] for i in ranks if job.host(i) == job.host(r))
                    opens = mine + rnd.uniform(2, 5) * US
                    end = begins + work
                elif form == "ll":  # the first data come with the wait
                    opens = begins + work * rnd.uniform(0.7, 0.95)
                    end = max(opens, begins + work)
                else:
                    opens, end = begins, begins + work
                closing = rnd.uniform(1, 4) * US if form != "ll" else 0
                self.record(r, name, ranks, func, sn, size, form, begin, opens, end, end + closing)
                self.free[r] = end + closing

    def record(self, r, name, ranks, func, sn, size, form, begin, opens, computed, end):
        algo = {"barrier": BARRIER, "rail": RAIL, "ll": LL}[form][func]
        host = self.job.host(r)
        off = self.job.host_off[host] + self.job.rank_off[r] + self.job.drift[r] * begin
        start, run = int(T0 + begin + off), int(end - begin)
        ahead = int(30 * US + 10 * US * self.job.random.random())
        sync = int(opens - begin)
        body = {
            "coll": func, "coll_sn": sn, "coll_msg_size_bytes": size,
            "coll_exec_time_us": max(1, (run + 500) // 1000),
            "coll_timing_source": "kernel_gpu", "coll_algobw_gbs": round(size / run, 6),
            "coll_busbw_gbs": round(size / run, 6), "coll_algo": algo,
            "coll_datatype": "ncclBfloat16", "coll_root": 0,
            "coll_nchannels": 8, "coll_exec_time_ns": run, "coll_enqueue_ns": start - ahead,
            "coll_gpu_start_delta_ns": ahead, "rec_sn": len(self.records[r]), "nccl_tests_size_bytes": size,
            "symmetric": True, "coll_kernel": func + "_" + algo,
        }
        if not self.plain:
            body.update(initial_sync_ns=sync, compute_ns=int(computed) - int(opens),
                        final_sync_ns=run - sync - (int(computed) - int(opens)))
        self.records[r].append((end, name, ranks, start + run, body))

    def write(self, folder):
        job = self.job
        codes = {n: "0x%x" % (0xA000 + i) for i, n in enumerate(sorted(job.comms()))}
        for r, records in self.records.items():
            host, pid = "node-%d" % job.host(r), 4000 + r
            meta = ('"metadata":{"inspector_output_format_version":"v4.0","git_rev":"1a2b3c4d5",'
                    '"rec_mechanism":'
                    '"nccl_profiler_interface","dump_timestamp_us":%%d,"hostname":"%s","pid":%d,'
                    '"producer":"nccl-inspector-c 0.1.0"}' % (host, pid))
            begun = T0 - S + int(job.host_off[job.host(r)])
            out = ['{"header":{"id":"0x0","rank":%d,"n_ranks":%d,"nnodes":0},%s,"process":%s}' % (
                r, job.n, meta % (begun // 1000), json.dumps({
                    "start_ns": begun, "boot_id": "b%d" % job.host(r), "exe": "python3", "rank": r,
                    "local_rank": r % job.per_host, "world_size": job.n, "env": {}, "nccl_version": 23102,
                    "interface": "v7", "settings": {}}))]
            for _, name, ranks, said, body in records:
                nodes = len({job.host(i) for i in ranks})
                head = '{"id":"%s","comm_name":"%s","rank":%d,"n_ranks":%d,"nnodes":%d}' % (
                    codes[name], name, ranks.index(r), len(ranks), nodes)
                about = head, meta % (said // 1000), json.dumps(body)
                out.append('{"header":%s,%s,"coll_perf":%s}' % about)
            with open(os.path.join(folder, "%s-pid%d.jsonl" % (host, pid)), "w") as f:
                f.write("\n".join(out) + "\n")


def named(exporter, logs, out):
    subprocess.run([exporter, "summary", logs, "--output-dir", out, "--no-plots", "--no-html", "--no-parquet",
                    "--no-csv", "--no-index", "-q"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                    check=False)
    with open(os.path.join(out, "summary", "summary.json")) as f:
        d = json.load(f)
    found = []
    for x in d["findings"]:
        ranks = x.get("ranks") or ([x["rank"]] if x.get("rank") is not None else [])
        found.append((x["kind"], sorted(ranks), x["text"]))
    return found, d


def play(o, seed):
    folder = tempfile.mkdtemp(prefix="symmetric-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    try:
        logs = os.path.join(folder, "logs")
        os.makedirs(logs)
        job = Job(seed, o.host)
        p = Play(job, o.plain)
        p.write(logs)
        found, d = named(o.exporter, logs, os.path.join(folder, "out"))
        run = max(p.free)
        truth = {r: lost / run for r, lost in p.lost.items()}
        return seed, job, truth, found, d
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def span(text):
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--seeds", default="0-29", help="first-last")
    ap.add_argument("--set", choices=["tune", "held", "all"], default="all", help="even or odd ones")
    ap.add_argument("--exporter", default=os.path.join(ROOT, "build", "nccl-inspector"))
    ap.add_argument("--host", action="store_true")
    ap.add_argument("--plain", action="store_true")
    ap.add_argument("--verbose", action="store_true")
    ap.add_argument("--make")
    ap.add_argument("--least", type=float, default=0, help="per cent of those that cost 1 %% to be named")
    ap.add_argument("-j", type=int, default=2)
    o = ap.parse_args()
    o.exporter = os.path.abspath(o.exporter)
    seeds = [s for s in span(o.seeds) if o.set == "all" or s % 2 == (o.set == "held")]
    if o.make:
        os.makedirs(o.make, exist_ok=True)
        Play(Job(seeds[0], o.host), o.plain).write(o.make)
        return 0
    hit = {"1 % and more": [0, 0], "0.3 to 1 %": [0, 0], "less": [0, 0]}
    jobs = innocent = well = alarms = 0
    with concurrent.futures.ProcessPoolExecutor(o.j) as pool:
        for seed, job, truth, found, d in pool.map(play, [o] * len(seeds), seeds):
            accusing = ("slow_host", "throttling") if o.host else ("late_rank", "rank_pauses")
            who = {r for kind, ranks, _ in found for r in ranks if kind in accusing}
            others = [f for f in found if f[0] not in accusing + ("undecided",)]
            if o.host and len(found) > 1:
                others = found  # one cause, said once
            for r, cost in truth.items():
                row = hit["1 % and more" if cost >= 0.01 else "0.3 to 1 %" if cost >= 0.003 else "less"]
                row[1] += 1
                row[0] += r in who
            wrong = who - set(truth) or others
            if truth:
                jobs += 1
                innocent += bool(wrong)
            else:
                well += 1
                alarms += bool(who or others)
            missed = [r for r, c in truth.items() if c >= 0.01 and r not in who]
            if o.verbose and (wrong or missed or (not truth and found)):
                print("seed %d: %s, %s, %d ranks on %d hosts, kernels of %.0f us, gaps %.0f us; late: %s" % (
                    seed, job.kind, job.layout, job.n, job.hosts, job.transfer / US, job.gap / US,
                    {r: "%.0f %% by %.0f us, costs %.2f %%" % (100 * s, by / US, 100 * truth[r])
                     for r, (s, by) in job.late.items()}))
                for f in found:
                    print("   ", f[0], f[1], f[2][:200])
    for name, (n, of) in hit.items():
        print("late ranks that cost %s: %d of %d named" % (name, n, of))
    print("jobs with late ranks that accuse others, too: %d of %d" % (innocent, jobs))
    print("healthy and noisy jobs that accuse somebody: %d of %d" % (alarms, well))
    n, of = hit["1 % and more"]
    return 1 if o.least and (alarms or innocent or 100 * n < o.least * of) else 0


if __name__ == "__main__":
    sys.exit(main())
