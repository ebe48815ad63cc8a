#!/usr/bin/env python3
"""Jobs whose logs (docs/format.md) lie in one folder: are their runs told apart (docs/exporter.md)?

Usage: run_logs.py EXPORTER DIR [PART OF A NAME]
       run_logs.py --write NAME DIR      one of the folders; a line for each job: "PROCESSES OPERATIONS"
Each process of the i-th job writes so many operations that no mixture of jobs has the sums of whole ones.
Prints what is wrong; exit code 1 then.
"""
import json
import os
import shutil
import subprocess
import sys

import logs

S = 10**9
OPS = (3, 5, 11)  # of a communicator and process, by the job


class Job:
    """ranks on hosts, hosts.count(h) of them on each. salt: of communicators' hashes; jobs of one salt have
    the same ones. layout: "world" of all, "tp" of two each, "both", or "late": both, and the world's first
    line behind 100 others."""

    def __init__(self, hosts, pid=4000, at=0, salt=0, layout="both", launcher=True, job=None, attempt=None,
                 skew=None, gpus=None, nvidia=False, left_out=(), pids=None):
        self.__dict__.update(locals())

    def seats(self, r):
        n, out = len(self.hosts), []
        if self.layout != "world":
            out.append(("tp%d" % (r // 2), 0x100 + r // 2, r % 2, 2))
        if self.layout != "tp":
            out.append(("world", 0x99, r, n))
        return out

    def log(self, folder, r, ops):
        host = self.hosts[r]
        pid = self.pids[r] if self.pids else self.pid + r
        t = logs.T0 + self.at * S + (self.skew or {}).get(host, 0) * S + r * S // 50
        t = int(t)
        n = len(self.hosts)
        env = {"RANK": str(r)} if self.launcher else {}
        if self.job:
            env["SLURM_JOB_ID"] = self.job
        if self.attempt is not None:
            env["SLURM_RESTART_COUNT"] = str(self.attempt)
        rank, world = (r, n) if self.launcher else (None, None)
        out = logs.Log(r if self.launcher else -1, n if self.launcher else 0, host, pid,
                       **({"producer": None} if self.nvidia else {}))
        us = t // 1000
        if not self.nvidia:
            out.add(us, "process", logs.process(t, rank, world, "b-" + host, env=env))
        for name, code, rank, n_ranks in self.seats(r):
            about = logs.header("0x%x" % (code + (self.salt << 16)), rank, n_ranks, 1, name)
            gpu = None if self.gpus is None else "0000:%02x:00.0" % self.gpus[r]
            if not self.nvidia:
                out.add(us, "comm", logs.comm(about, t + S // 10, gpu_pci=gpu))
            for sn in range(ops):
                out.add(us, "coll_perf", logs.perf(
                    "coll", "AllReduce", sn=sn, msg_size_bytes=1024, exec_time_us=9,
                    timing_source="kernel_gpu", algobw_gbs=1.0, busbw_gbs=1.0, algo="RING", proto="LL",
                    datatype="ncclInt8", root=0, nchannels=1, exec_time_ns=9000,
                    enqueue_ns=t + S + sn * S // 100, rec_sn=sn), about)
        out.write(folder, t // S)
        return ops * len(self.seats(r))

    def write(self, folder, i):
        ops = OPS[i] + (100 if self.layout == "late" else 0)
        ranks = [r for r in range(len(self.hosts)) if r not in self.left_out]
        return len(ranks), sum(self.log(folder, r, ops) for r in ranks)


def runs(exporter, folder):
    """[(processes, operations)] of each run, and what `check` says of them."""
    out = []
    said = subprocess.run([exporter, "check", folder, "--no-index"], stdout=subprocess.PIPE, text=True).stdout
    for n in range(1, 9):
        p = subprocess.run([exporter, "check", folder, "--no-index", "--run", str(n), "--json"],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if not p.stdout.startswith("{"):
            break
        d = json.loads(p.stdout)
        out.append((d["files"]["read"] if isinstance(d["files"], dict) else d["files"], d["operations"]))
    return out, said


AB, CD = ["a"] * 4 + ["b"] * 4, ["c"] * 4 + ["d"] * 4
ONE = ["a"] * 8


def two(same_hosts=True, **how):
    """Two jobs of eight ranks that begin in the same second."""
    other = {"hosts": AB if same_hosts else CD, "pid": 5000 if same_hosts else 4000, "at": 0.013, "salt": 1}
    return [Job(AB, **how), Job(**{**other, **{k: v for k, v in how.items() if k != "job"}})]


CASES = {  # name: jobs, True: it may be said that nothing tells
    "same hosts": (two(), False),
    "other hosts": (two(False), False),
    "same hosts, no launcher's ranks": (two(launcher=False), False),
    "other hosts, no launcher's ranks": (two(False, launcher=False), False),
    "NVIDIA's logs, same hosts": (two(nvidia=True), False),
    "NVIDIA's logs, other hosts": (two(False, nvidia=True), False),
    "world seen late": (two(layout="late"), False),
    "world seen late, no launcher's ranks": (two(False, layout="late", launcher=False), False),
    "with job ids": ([Job(AB, job="1"), Job(AB, pid=5000, at=0.01, job="2")], False),
    "with job ids, the same hashes, late": (
        [Job(AB, job="1", layout="tp"), Job(AB, pid=5000, at=0.01, job="2", layout="tp")], False),
    "one with a job id": ([Job(AB, job="1"), Job(CD, at=0.01, salt=1)], False),
    "ranks missing": ([Job(AB, left_out=(0, 3, 5)), Job(CD, at=0.01, salt=1, left_out=(1, 2, 7))], False),
    "ranks missing, no launcher's ranks": (
        [Job(AB, left_out=(0, 3, 5), launcher=False),
         Job(CD, at=0.01, salt=1, left_out=(1, 2, 7), launcher=False)], False),
    "of other sizes": ([Job(AB), Job(["a"] * 2 + ["b"] * 2, pid=6000, at=0.005, salt=1)], False),
    "three jobs": ([Job(AB), Job(AB, pid=5000, at=0.01, salt=1), Job(CD, at=0.02, salt=2)], False),
    "two attempts": ([Job(AB, job="7"), Job(AB, pid=5000, at=70, salt=1, job="7")], False),
    "two attempts, no job id": ([Job(AB), Job(AB, pid=5000, at=70, salt=1)], False),
    "two attempts, the same hashes": ([Job(AB), Job(AB, pid=5000, at=70)], False),
    "two attempts, the same hashes, a host 317 s ahead": (
        [Job(AB, skew={"b": 317}), Job(AB, pid=5000, at=70, skew={"b": 317})], False),
    "two attempts, a host 317 s ahead": (
        [Job(AB, skew={"b": 317}), Job(AB, pid=5000, at=70, salt=1, skew={"b": 317})], False),
    "two attempts of tp alone, a host 317 s behind": (
        [Job(AB, skew={"b": -317}, layout="tp"),
         Job(AB, pid=5000, at=70, salt=1, skew={"b": -317}, layout="tp")], False),
    "three attempts, counted": (
        [Job(AB, job="7", attempt=i, pid=4000 + 1000 * i, at=20 * i, layout="tp") for i in range(3)], False),
    "an attempt on other hosts": ([Job(AB, job="7"), Job(CD, at=70, salt=1, job="7")], False),
    "one job, a host 317 s ahead": ([Job(AB, skew={"b": 317})], False),
    "one job, a host 317 s ahead, no world": ([Job(AB, skew={"b": 317}, layout="tp")], False),
    "one job without a world": ([Job(AB, layout="tp")], False),
    "one job of a job id, no world, no ranks": ([Job(AB, layout="tp", launcher=False, job="7")], False),
    "the same hashes on other hosts": ([Job(AB), Job(CD, at=0.5)], True),
    "the same hashes on the same hosts": ([Job(ONE), Job(ONE, pid=5000, at=0.01)], False),
    "... that nothing tells": (
        [Job(ONE, pids=range(4000, 4016, 2)), Job(ONE, pids=range(4001, 4017, 2), at=0.001)], True),
    "tp alone on the same hosts": (
        [Job(AB, layout="tp"), Job(AB, layout="tp", pid=5000, at=0.01, salt=1)], True),
}


def engines():
    """One batch job with two engines of four ranks each, and launchers' numbers of their own."""
    a = Job(["a"] * 4, job="9", gpus=range(4))
    b = Job(["a"] * 4, job="9", pid=5000, at=1, salt=1, gpus=range(4, 8))
    return [a, b]


def write(name, folder):
    for i, job in enumerate(CASES[name][0]):
        print("%d %d" % job.write(folder, i))


def main():
    if sys.argv[1] == "--write":
        return write(*sys.argv[2:4])
    exporter, base = sys.argv[1:3]
    part = sys.argv[3] if len(sys.argv) > 3 else ""
    wrong = mixed = 0
    cases = dict(CASES)
    cases["two engines of one job"] = (engines(), None)
    for name, (jobs, may_doubt) in cases.items():
        if part not in name:
            continue
        folder = os.path.join(base, "runs")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        want = [j.write(folder, i) for i, j in enumerate(jobs)]
        if may_doubt is None:
            want = [(sum(n for n, _ in want), sum(o for _, o in want))]
        got, said = runs(exporter, folder)
        doubt = "for sure" in said or "or several jobs" in said
        right = sorted(got) == sorted(want)
        if right and (may_doubt or not doubt):
            continue
        mixed += not doubt
        if doubt and may_doubt:
            continue
        wrong += 1
        doubted = ", said to be open" if doubt else ""
        print("%s: want %s, got %s%s" % (name, sorted(want), sorted(got), doubted))
        print("    " + " / ".join(x.strip() for x in said.splitlines() if "run " in x and "(" in x))
    print("%d of %d wrong, %d mixed without a word" % (wrong, len(cases), mixed))
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
