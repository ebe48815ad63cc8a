"""Plants one hang in a job of 4 hosts with 8 GPUs each, and writes the logs that its ranks leave: no black
boxes.

  hang_plant.py DIR KIND LAYOUT SEED     prints what is right, as JSON: hash, func, sn, rank, where (hang_planted.py)

LAYOUT: A is TP 8 in a host and DP 4, B is TP 8, PP 2, DP 2, C is TP 4, PP 4, DP 2. Each rank has a program:
micro-batches forth and back through the pipeline with collectives of its TP group in each, then its DP group,
then all (world). The host calls ahead of its GPU up to the next synchronisation: with an even seed at the end
of a step, with an odd one behind each micro-batch. The GPU runs what was called in order. So a plant spreads
as it does in a job: what is behind it is queued, was never called, or is waited for elsewhere.

KIND: never: a rank never calls a collective of its TP group; gone: its process was killed there, and what it
had not written is lost; other: it calls another function, or another size (odd seed); norecv: it leaves out a
Recv and goes on;
kernel: all are inside one, which does not end (TP; odd seed: DP); late: it never calls the collective of its
DP group.

As the plugin does, records are written every second, dump_stats lines beside them at most every 10 s, and
when the job stands nothing is written until each operation is 300 s old: then its stuck line, and a
dump_stats line of its communicator.
"""
import json
import pathlib
import random
import sys

import logs
from logs import T0

S = 10**9
STEPS, BATCHES, LAYERS, HURT = 4, 2, 2, 3 # the plant is in the last step
LAYOUTS = {"A": (8, 1, 4), "B": (8, 2, 2), "C": (4, 4, 2)}
BYTES = {"tp": 16777216, "dp": 67108864, "world": 4, "pp": 4194304}
KINDS = ("never", "gone", "other", "norecv", "kernel", "late")


class Op:
    def __init__(self, comm, func, peer=-1):
        self.comm, self.func, self.peer, self.bytes = comm, func, peer, BYTES[comm[0]]
        self.p2p = func in ("Send", "Recv")
        self.stopped = False # it never ends
        self.enqueue = self.end = None


class Job:
    """comm: (name, number) -> ranks. program: of each rank, of Op and None: a synchronisation."""

    def __init__(self, kind, layout, seed):
        self.tp, self.pp, self.dp = LAYOUTS[layout]
        self.n, self.seed, self.random = self.tp * self.pp * self.dp, seed, random.Random("%s%s%d" % (kind, layout, seed))
        self.comm = {}
        for r in range(self.n):
            for c in self.comms(r):
                self.comm.setdefault(c, []).append(r)
        self.program = [self.steps(r) for r in range(self.n)]
        self.until = [len(p) for p in self.program] # the host calls nothing from here on

    def comms(self, r):
        t, p, d = r % self.tp, r // self.tp % self.pp, r // self.tp // self.pp
        c = [("world", 0), ("tp", r // self.tp), ("dp", p * self.tp + t)]
        return c + [("pp", d * self.tp + t)] if self.pp > 1 else c

    def steps(self, r):
        world, tp, dp, *pp = self.comms(r)
        stage, ops = r // self.tp % self.pp, []
        for _ in range(STEPS):
            for way in (1, -1):
                for _ in range(BATCHES):
                    if 0 <= stage - way < self.pp:
                        ops.append(Op(pp[0], "Recv", stage - way))
                    ops += [Op(tp, "AllReduce") for _ in range(LAYERS)]
                    if 0 <= stage + way < self.pp:
                        ops.append(Op(pp[0], "Send", stage + way))
                    if self.seed % 2:
                        ops.append(None)
            ops += [Op(dp, "ReduceScatter"), Op(dp, "AllGather"), Op(world, "AllReduce"), None]
        return ops

    def choose(self, r, chosen):
        """Place in r's program of one of those operations of the last step."""
        size = len(self.program[r]) // STEPS
        return self.random.choice([i for i, op in enumerate(self.program[r]) if i // size == HURT and op and
                                   chosen(op)])

    def run(self):
        n = self.n
        self.at, self.clock, self.begun = [0] * n, [T0 + S] * n, [-1] * n
        moved = True
        while moved:
            moved = False
            for r in range(n):
                moved |= self.advance(r)

    def head(self, r):
        """What the GPU of r runs, None: nothing, since nothing was called."""
        while self.at[r] < self.until[r] and self.program[r][self.at[r]] is None:
            self.at[r] += 1
        if self.at[r] >= self.until[r]:
            return None
        if self.begun[r] < self.at[r]: # its host calls what comes up to the next synchronisation
            i, now = self.at[r], self.clock[r] + self.random.randrange(40000000)
            while i < self.until[r] and self.program[r][i]:
                self.program[r][i].enqueue = now = now + 30000
                i += 1
            self.begun[r] = i
        return self.program[r][self.at[r]]

    def advance(self, r):
        op = self.head(r)
        if not op or op.stopped:
            return False
        ranks = self.comm[op.comm]
        if op.p2p:
            ranks = [r, ranks[op.peer]]
            other = self.head(ranks[1])
            if not other or not other.p2p or other.comm != op.comm or other.func == op.func:
                return False
            if self.comm[op.comm][other.peer] != r:
                return False
        heads = [self.head(x) for x in ranks]
        if any(not h or h.comm != op.comm or h.p2p != op.p2p or h.stopped for h in heads):
            return False
        if not op.p2p and any((h.func, h.bytes) != (op.func, op.bytes) for h in heads):
            return False
        end = max(max(self.clock[x], h.enqueue) for x, h in zip(ranks, heads)) + S // 4
        for x, h in zip(ranks, heads):
            h.end = self.clock[x] = end
            self.at[x] += 1
        return True


def plant(job, kind):
    """Breaks the job. What is right: the communicator, the rank that does it, and what is to be said of
    that."""
    r = job.random.randrange(job.n)
    at = job.choose(r, lambda op: op.comm[0] == ("dp" if kind == "late" or (kind == "kernel" and job.seed % 2)
                                                 else "tp"))
    op, where = job.program[r][at], "no_data"
    if kind in ("never", "gone", "late"):
        if kind == "late": # the first one of its DP group
            at = job.program[r].index(next(o for o in job.program[r][at - 1:] if o and
                                           o.func == "ReduceScatter"))
            op = job.program[r][at]
        job.until[r] = at
    elif kind == "other":
        where = "size" if job.seed % 2 else "other_call"
        job.program[r][at] = Op(op.comm, op.func if job.seed % 2 else "AllGather")
        job.program[r][at].bytes = 1024
    elif kind == "kernel":
        where = "inside"
        for x in job.comm[op.comm]:
            job.program[x][at].stopped = True
    else: # a stage that receives the last one on this way, which is not the one that is skipped
        r = job.random.choice([x for x in range(job.n)
                               if x // job.tp % job.pp != (job.pp - 1 if job.seed % 2 else 0)])
        stage = r // job.tp % job.pp
        sender = stage + (1 if job.seed % 2 else -1)
        del job.program[r][job.choose(r, lambda o: o.func == "Recv" and o.peer == sender)]
        job.until[r] = len(job.program[r])
        s = job.comm[job.comms(r)[3]][sender]
        return {"r": r, "s": s, "where": "norecv", "comm": job.comms(r)[3]}
    return {"r": r, "where": where, "comm": op.comm}


def hash_of(comm):
    return "0x%x" % (0x5d1c00 + 4096 * ("world", "tp", "dp", "pp").index(comm[0]) + comm[1])


class Log:
    """The log of one rank, as lines with their times."""

    def __init__(self, job, r, skew, end):
        self.job, self.r, self.skew, self.end, self.lines = job, r, skew, end, []
        self.host, self.comms = "node-%d" % (r // 8), {}
        self.put(T0, None, "process", logs.process(T0, r, job.n, "b%d" % (r // 8), local_rank=r % 8,
                                                   interface="v6"))
        for c in job.comms(r):
            self.put(T0, c, "comm", logs.comm(self.header(c), T0, gpu_index=0, gpu_pci="0000:1b:00.0"))
            self.comms[c] = {"func": {}, "rec": [0, 0], "done": [0, 0], "told": T0 - 20 * S, "ops": []}

    @staticmethod
    def nodes(ranks):
        return len({x // 8 for x in ranks})

    def put(self, at, comm, kind, value):
        header = self.header(comm) if comm else logs.own_header(self.r, self.job.n)
        meta = logs.metadata((at + self.skew) // 1000, self.host, 1000 + self.r, producer="test")
        self.lines.append((at, len(self.lines), logs.line(header, meta, kind, value)))

    def header(self, comm):
        ranks = self.job.comm[comm]
        header = logs.header(hash_of(comm), ranks.index(self.r), len(ranks), self.nodes(ranks))
        header["comm_name"] = comm[0] # the keys of an object have no order: here it comes last
        return header

    def stats(self, at, comm):
        """How much was started and is in flight now."""
        x = {"final": False, "strays": {}}
        for k, name in enumerate(("coll", "p2p")):
            ops = [o for o in self.comms[comm]["ops"] if o.p2p == bool(k) and o.enqueue <= at]
            done = sum(o.end is not None and o.end <= at for o in ops)
            x.update({name + "_records": done, name: logs.counts(len(ops), done, in_flight=len(ops) - done)})
        self.comms[comm]["told"] = at
        self.put(at, comm, "dump_stats", x)

    def fill(self):
        ops = [o for o in self.job.program[self.r] if o and o.enqueue]
        for o in ops:
            c = self.comms[o.comm]
            o.sn = c["func"].get(o.func, 0)
            c["func"][o.func] = o.sn + 1
            o.rec = c["rec"][o.p2p]
            c["rec"][o.p2p] += 1
            c["ops"].append(o)
        write = lambda at: (at // S + 1) * S # the block that holds it
        for at in sorted({write(o.end) for o in ops if o.end}):
            busy = [o for o in ops if o.end and write(o.end) == at]
            for o in busy:
                self.record(at, o)
            for c in sorted({o.comm for o in busy}):
                if at - self.comms[c]["told"] >= 10 * S:
                    self.stats(at, c)
        told = {}
        for o in ops:
            if not o.end:
                told.setdefault((o.enqueue + 300 * S) // 100000000 * 100000000 + 100000000, []).append(o)
        for at, stuck in sorted(told.items()):
            for o in stuck:
                self.stuck(at, o)
            for c in sorted({o.comm for o in stuck}):
                self.stats(at, c)

    def record(self, at, o):
        k = "p2p" if o.p2p else "coll"
        x = logs.perf(k, o.func, sn=o.sn, msg_size_bytes=o.bytes, exec_time_us=59, timing_source="kernel_gpu",
                      algobw_gbs=17.7, busbw_gbs=17.7, exec_time_ns=o.end - o.enqueue,
                      enqueue_ns=o.enqueue + self.skew, rec_sn=o.rec)
        if o.p2p:
            x["p2p_peer"] = o.peer
        self.put(at, o.comm, k + "_perf", x)

    def stuck(self, at, o):
        inside = self.job.head(self.r) is o
        self.put(at, o.comm, "stuck", logs.stuck(
            "p2p" if o.p2p else "coll", o.func, o.sn, o.rec, o.bytes, (8, 8 * inside, 0),
            o.enqueue + self.skew,
            (at - o.enqueue) // 1000000, "0xff" if inside else "0x0",
            state="kernel" if inside else "launched",
            peer=o.peer if o.p2p else None))

    def write(self, directory):
        lines = [logs.text(line) for at, _, line in sorted(self.lines, key=lambda x: x[:2]) if at <= self.end]
        logs.write(logs.path(directory, self.host, 1000 + self.r), lines)


def make(directory, kind, layout, seed):
    """Writes the logs; what is right, or None: the layout has no such hang."""
    job = Job(kind, layout, seed)
    if kind == "norecv" and job.pp == 1:
        return None
    right = plant(job, kind)
    job.run()
    skew = [job.random.randrange(-2000000, 2000000) for _ in range(4)]
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    for r in range(job.n):
        end = job.clock[r] - S // 2 if kind == "gone" and r == right["r"] else T0 + 10**6 * S
        log = Log(job, r, skew[r // 8], end)
        log.fill()
        log.write(directory)
    out = {"where": right["where"], "hash": hash_of(right["comm"]), "rank": right["r"],
           "members": job.comm[right["comm"]]}
    if right["where"] == "norecv":
        out["sender"] = right["s"]
        return out
    for x in job.comm[right["comm"]]: # the number that it has for one who called it
        waits = [o for o in job.program[x] if o and o.enqueue and not o.end and o.comm == right["comm"]]
        if waits and (x != right["r"] or right["where"] == "inside"):
            out.update(func=waits[0].func, sn=waits[0].sn)
            break
    return out


if __name__ == "__main__":
    print(json.dumps(make(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))))
