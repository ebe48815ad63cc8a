"""Kinds of servers that replay CUDA graphs with symmetric kernels (NCCL 2.31 and later): NCCL shows when a
graph comes to one, and never that it runs or ends. Written from what NCCL does, not from the judge."""

import jobs
from case import BOXES, BOXES_AND_LOGS, COPIES, LOGS, Case, Cause, NotThisKind
from kinds import kind
from world import FOREVER, MS, S, Meet

LAYOUTS = [("serve", 4, 1, 2, 8), ("serve", 8, 1, 1, 8), ("serve", 2, 2, 2, 4), ("serve", 4, 1, 1, 4)]
BOXED = (BOXES_AND_LOGS, BOXES, COPIES)
UNTOLD = "cannot be told"


class Server(jobs.Job):
    """Tensor groups that replay a graph for each token, and an eager call of the whole job for each batch."""

    def __init__(self, random, batches=None, tokens=6, **how):
        self.batches, self.tokens = batches or random.choice((3, 6)), tokens
        self.every = random.choice((5, 20, 200)) * MS
        self.calls_of_graph = random.choice((1, 4, 30))
        super().__init__(random, random.choice(LAYOUTS), **how)

    def make_groups(self):
        tp = self.tp
        self.family("tp", tp, [[g * tp + t for t in range(tp)] for g in range(self.n // tp)])

    def program(self, r):
        tp, out = self.groups[r]["tp"], [("sleep", 20 * MS + r * 100_000)]
        for k in range(3):  # before the capture
            out += [("call", tp, "AllReduce", jobs.MB, 0, True), ("sync",)]
        for batch in range(self.batches):
            out += [("call", self.world, "AllGather", 4 * jobs.KB, 0, True), ("sync",)]
            for token in range(self.tokens):
                out += self.graph(tp) + [("sync",), ("sleep", self.every)]
        return out

    def graph(self, tp):
        out = []
        for call in range(self.calls_of_graph):
            how = "graph", 3 + call
            out += [("compute", MS // 4), ("call", tp, "AllReduce", 64 * jobs.KB, 0, True, how)]
        return out

    def first_calls(self, r):
        """Where its program comes to a graph: of each the first call's compute."""
        p = self.programs[r]
        return [i - 1 for i in range(len(p)) if is_replay(p[i]) and p[i][6][1] == 3 and i > len(p) // 3]


def is_replay(item):
    return item[0] == "call" and len(item) > 6 and isinstance(item[6], tuple)


class Served(Case):
    def __init__(self, maker, job):
        super().__init__(maker, job)
        self.nccl = maker.random.choice(((23102, "v7"), (23203, "v7"), (23102, "v6")))


def server(m, least_s=0, **how):
    job = Server(m.random, **how)
    if least_s:
        for p in job.programs.values():
            p[1:1] = [("sleep", least_s * S)]
    return job


def quiet(c, still, words=True):
    """Nobody can tell whether it hangs or is idle. Logs alone do not even show that its processes live."""
    c.now = still + c.random.randrange(20 * S, 48 * 3600 * S)
    c.answers = {"no_hang"} if c.source != LOGS else {"cannot_tell"}
    if words and c.source in (BOXES_AND_LOGS, COPIES):
        c.words = (UNTOLD,)
    return c


@kind("graph replays: an idle server", whens=("now",), group="quiet")
def idle(m):
    job = server(m, m.random.choice((0, 80)))
    return quiet(Served(m, job), job.run_until_still())


@kind("graph replays: it runs", whens=("now",), group="quiet")
def runs(m):
    job = server(m, m.random.choice((0, 80)))
    c = Served(m, job)
    still = job.run_until_still()
    first = min(o.enq for r in job.sim.ranks for o in r.ops)
    c.well(first + int((still - first) * m.random.uniform(0.2, 0.95)))
    return c


def seen_apart(m, c, now, least, most):
    """Boxes and logs of each rank are of another moment before the look."""
    c.now = now
    for r in c.job.sim.ranks:
        c.seen_at[r.number] = max(now - m.random.randrange(least, most), 1)
    return c


@kind(
    "graph replays: it runs, each rank seen at another moment",
    sources=(COPIES, LOGS),
    whens=("now",),
    group="quiet",
)
def runs_apart(m):
    c = runs(m)
    now = c.now
    seen_apart(m, c, now, 0, m.random.choice((30 * MS, 900 * MS)))
    c.answers |= {"not_yet", "cannot_tell"}
    return c


@kind(
    "graph replays: idle, some ranks last seen long before the end",
    sources=(COPIES, LOGS),
    whens=("now",),
    group="quiet",
)
def idle_apart(m):
    job = server(m, m.random.choice((0, 80)))
    still = job.run_until_still()
    c = quiet(Served(m, job), still, words=False)
    for n in m.random.sample(range(job.n), max(1, job.n // 3)):
        c.seen_at[n] = still - m.random.randrange(job.every, 4 * job.every)
    c.answers |= {"cannot_tell"}
    return c


@kind("graph replays: one rank misses one", sources=BOXED)
def missing(m):
    job = server(m, m.random.choice((0, 80)))
    r = m.random.randrange(job.n)
    job.stop(r, m.random.choice(job.first_calls(r)))
    job.run_until_still()
    c = Served(m, job)
    c.blame([r])
    c.look_at_wait()
    return c


@kind("graph replays: one rank misses one; logs alone", sources=(LOGS,), whens=("late",), group="blind")
def missing_logs(m):
    job = server(m)
    r = m.random.randrange(job.n)
    job.stop(r, m.random.choice(job.first_calls(r)))
    still = job.run_until_still()
    c = Served(m, job)
    c.now = still + m.random.randrange(20 * S, 900 * S)
    c.answers = {"cannot_tell", "hang"}  # where something eager of the whole job waits for it
    return c


@kind("graph replays: one rank is killed before one", sources=BOXED)
def killed(m):
    job = server(m, m.random.choice((0, 80)))
    r = m.random.randrange(job.n)
    job.insert(r, m.random.choice(job.first_calls(r)), ("end", "sigkill"))
    job.run_until_still()
    c = Served(m, job)
    c.blame([r])
    c.look_at_wait(dead=True)
    return c


def freeze(m, job, after=None):
    """The kernels of one replay never end on the ranks of one group. Returns its meeting place."""
    r = m.random.randrange(job.n)
    p, i = job.programs[r], m.random.choice(job.first_calls(r)) + 1
    tp = job.sim.comms[job.groups[r]["tp"]]
    i += 2 * m.random.randrange(job.calls_of_graph)
    n = sum(1 for x in p[:i] if x[0] == "call" and x[1] == tp.name)
    key = ("coll", tp.name, n)
    tp.meets[key] = Meet(key, len(tp.members))
    tp.meets[key].frozen = True
    for member in tp.members if after else ():
        job.programs[member][i + 1 : i + 1] = [after(tp.name)]
        del job.programs[member][i + 2 :]
    return tp, n


@kind("graph replays: hung in a kernel that all have come to", whens=("late",), group="quiet")
def hung(m):
    """One group alone: elsewhere nobody waits for it."""
    job = server(m, m.random.choice((0, 80)), batches=1)
    tp, _ = freeze(m, job)
    for r in job.sim.ranks:  # only that group is served
        if r.number not in tp.members:
            p = job.programs[r.number]
            del p[max(i for i in range(len(p)) if p[i][0] == "call" and p[i][1] == job.world) + 2 :]
    still = job.run_until_still()
    return quiet(Served(m, job), still)


@kind("graph replays: hung in a kernel, then an eager call behind it")
def hung_then_eager(m):
    job = server(m, m.random.choice((0, 80)), batches=1)
    tp, n = freeze(m, job, after=lambda name: ("call", name, "AllReduce", jobs.MB, 0, True))
    job.run_until_still()
    c = Served(m, job)
    op = [o for o in job.sim.ranks[tp.members[0]].of[tp.name] if o.number == n + 1]
    if not op or op[0].replay is not None:
        raise NotThisKind
    meet = op[0].meet
    c.meets = [meet]
    c.causes = [Cause(tp.name, {(o.func, o.sn) for o in meet.ops.values()}, set())]
    c.waits_from = max(o.enq for o in meet.ops.values())
    c.look_at_wait()
    if "hang" in c.answers and len(c.answers) == 1 and c.source in (BOXES_AND_LOGS, COPIES):
        c.words = ("CUDA graph",)
    return c


@kind("graph replays: a rank works elsewhere while its peers are quiet in one", sources=BOXED, whens=("now",),
      group="quiet")
def works_elsewhere(m):
    job = Server(m.random)
    if len(job.sim.comms) < 3:
        raise NotThisKind
    pair = job.sim.comm("pair", [0, job.tp])
    job.sim.join(pair, at=0)
    at = {r: job.first_calls(r)[0] for r in pair.members}
    for r in pair.members:
        for _ in range(400):
            job.insert(r, at[r], ("call", "pair", "AllReduce", jobs.MB, 0, True), ("sync",), ("sleep", S))
    job.run_until_still()
    began = min(o.enq for o in job.sim.ranks[0].of["pair"])
    c = Served(m, job)
    c.well(began + m.random.randrange(20 * S, 380 * S))
    c.answers |= {"not_yet"}
    return c


@kind("graph replays by an older plugin: in flight for ever", whens=("now", "later"), group="quiet")
def old_plugin(m):
    job = server(m, 80, batches=1, tokens=40)
    for p in job.programs.values():
        p[:] = [("sleep", S) if x[0] == "sleep" and x[1] < S else x for x in p]
    still = job.run_until_still()
    c = Served(m, job)
    c.nccl, c.old_plugin = (23102, "v6"), True
    if m.when == "later":
        quiet(c, still, words=False)
    else:
        c.well(still - m.random.randrange(S, 10 * S))
    c.stuck_s = 10
    return c


@kind(
    "the end in order on 2.31: what is queued is thrown away",
    sources=(BOXES_AND_LOGS, LOGS),
    whens=("after",),
    group="quiet",
)
def thrown_away(m):
    job = server(m)
    for r in range(job.n):
        tp = job.groups[r]["tp"]
        job.programs[r] += [("call", tp, "AllReduce", 64 * jobs.MB, 0, True)] * 3
        job.programs[r] += [("destroy", n) for n in job.sim.ranks[r].comms] + [("end", "final")]
    still = job.run_until_still()
    c = Served(m, job)
    c.now = still + m.random.randrange(5 * S, 600 * S)
    c.answers = {"ended"}
    c.not_words = ("in flight then",)
    return c
