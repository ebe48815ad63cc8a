"""A case: a job with an ending, how it is looked at, and the truth. Kinds (kinds.py, kept/) make cases of
these parts."""

import jobs
from world import MS, S

BOXES_AND_LOGS, BOXES, LOGS, COPIES, DUMPS = "boxes and logs", "boxes", "logs", "copies", "dumps"
LIVE_SOURCES = (BOXES_AND_LOGS, BOXES, LOGS, COPIES)
STUCK_AFTER = 300 * S


class NotThisKind(Exception):
    """What was drawn does not become a case of its kind: it is drawn anew."""


class Cause:
    """What an answer may name: an operation (of `comm`; several, where a message has two sides), and the
    ranks
    who are to blame."""

    def __init__(self, comm, ops, ranks):
        self.comm, self.ops, self.ranks = comm, set(ops), set(ranks)

    def __repr__(self):
        return "%s of %s, ranks %s" % (sorted(self.ops), self.comm, sorted(self.ranks))


def cause_of(meet, ranks):
    ops = list(meet.ops.values())
    return Cause(ops[0].comm.name, {(o.func, o.sn) for o in ops}, ranks)


class Case:
    def __init__(self, maker, job, kind_of="hang"):
        self.random, self.job = maker.random, job
        self.source, self.when = maker.source, maker.when
        self.answers = set()  # that are right
        self.causes = []  # of which one has to be named first; empty: nothing is asked
        self.blamed = set()  # all who are to blame for anything: may be named beside those of the first cause
        self.now = 0
        self.stuck_s = maker.random.choice((10, 30, 60, 300))
        self.clocks = {}  # host -> (skew, at, step)
        self.seen_at = {}  # by rank: when its box was copied and its log was written last, where not at `now`
        self.lag, self.full, self.frozen = {}, {}, {}  # by rank, as record.Look takes them
        self.no_log, self.no_box, self.broken = set(), set(), {}  # ranks; of boxes: how they are broken
        self.other_boot = False  # boxes lie there raw, of a machine that booted since
        self.others = []  # (job, when it began by this one's clock, options): in the same folder
        self.skip_dumps, self.dump_how = set(), {}
        self.old_nccl = self.old_box = False
        self.words = ()  # that the sentence has to hold
        self.not_words = ()  # and those that it must not
        self.nccl = None  # its version and the interface, where the case needs some
        self.old_plugin = False  # one that takes replays of symmetric kernels for in flight
        self.faint = (
            False  # what is there hardly tells of the culprits: fewer of them may be named, not others
        )
        self.any_of_ranks = False  # some of a cause's ranks are enough
        self.must_name = None  # a rank: others may be named beside it

    def blame(self, ranks, also=()):
        """Finds by the programs what the ranks owe, and takes it for the truth."""
        sim = self.job.sim
        found = {}
        self.blamed = set(ranks)
        for n in ranks:
            meet = jobs.owed(sim, sim.ranks[n])
            if meet is not None:
                found.setdefault(id(meet), (meet, set()))[1].add(n)
        self.causes = [cause_of(m, who) for m, who in found.values()] + list(also)
        for c, (m, _) in zip(self.causes, found.values()):
            if m.key[0] == "p2p":
                c.ops |= self.messages(c)
        self.meets = [m for m, _ in found.values()]
        return self.begun()

    def messages(self, cause):
        """Sends and receives of a communicator in which others wait for the same ranks: an answer takes them
        together."""
        comm = self.job.sim.comms[cause.comm]
        peers = {comm.place[n] for n in cause.ranks}
        ops = [
            o
            for o in self.job.sim.inside(cause.comm)
            if o.p2p and o.peer in peers and o.rank not in cause.ranks
        ]
        return {(o.func, o.sn) for o in ops}

    def begun(self):
        """When the first wait for a culprit began."""
        self.waits_from = min(
            (o.start for m in self.meets for o in m.ops.values() if jobs.waiting(o)), default=0
        )
        return self.waits_from

    def limit(self, since):
        """From when on a wait that nobody is dead in is a hang, by docs/hang.md: 4 times the longest pause or
        operation."""
        if since < 60 * S:
            return STUCK_AFTER
        longest = 0
        for r in self.job.sim.ranks:
            ops = [o for o in r.ops if o.enq <= since]
            starts = [0] + sorted(o.enq for o in ops)
            longest = max(
                [longest]
                + [b - a for a, b in zip(starts, starts[1:])]
                + [o.end - o.enq for o in ops if o.end is not None and o.end <= since]
            )
        return min(STUCK_AFTER, max(10 * S, 4 * longest))

    def look_at_wait(self, since=None, dead=False):
        """Sets `now` and the right answers of a job that hangs, as its form asks. dead: somebody is, who is
        waited for."""
        since = self.waits_from if since is None else since
        rnd = self.random
        far = self.job.still_since() if self.when != "before" else since
        if self.when == "before":
            self.now = max(
                [since] + [self.moved(n, since) for c in self.causes for n in c.ranks]
            ) + rnd.randrange(5600 * MS, 7600 * MS)
            self.answers = {"hang"} if dead else {"not_yet"}
            if dead:
                self.now = since + rnd.randrange(4 * S, 9 * S)
            if self.source == LOGS and self.stuck_s * S + 2 * S > self.now - since:
                self.answers, self.causes = {"cannot_tell"}, []
            elif self.source == LOGS:
                self.answers |= {"cannot_tell", "not_yet"}
        elif self.when == "at":
            limit = self.limit(max(since, far))
            self.now = max(since, far) + limit + rnd.randrange(2 * S, 4 * S)
            if (
                self.source == LOGS
            ):  # they tell of a wait when it is stuck_s old, and then every 10 s how things are
                self.now = max(self.now + 12 * S, max(since, far) + self.stuck_s * S + 14 * S)
            self.answers = {"hang"}
        else:
            self.now = max(since, far) + rnd.randrange(340 * S, 700 * S)
            self.answers = {"hang"}
        if self.source == DUMPS:
            self.now = max(since, far) + 600 * S + rnd.randrange(30 * S)
            self.answers = {"hang"}
        self.allow_for_the_unseen()
        if self.when == "killed":
            self.kill_all(self.now)
            self.now += rnd.randrange(20 * S, 600 * S)

    def draw_releases(self, random):
        """Some jobs run with an older NCCL, or with an older plugin, where that takes nothing away that the
        answer needs."""
        calls = any(o.called_only for r in self.job.sim.ranks for o in r.ops)
        self.old_nccl = random.random() < 0.15 and not calls and self.nccl is None
        self.old_box = random.random() < 0.1 and self.when in ("late", "killed") and not self.full

    def unseen(self, n):
        """Does nothing that is looked at tell of rank n?"""
        r = self.job.sim.ranks[n]
        ended = r.died is not None and r.died <= self.now and r.how not in ("sigkill", "_exit", "crash")
        box = n not in self.no_box and n not in self.broken and (not ended or n in self.full)
        over = all(c[1] is not None and c[1] <= self.now for c in r.comms.values())
        box = box and not over
        return {BOXES: not box, LOGS: n in self.no_log, DUMPS: n in self.skip_dumps}.get(
            self.source, n in self.no_log and not box
        )

    def allow_for_the_unseen(self):
        """Where nothing tells of a culprit it cannot be named, and often nothing can be told."""
        if any(self.unseen(n) for c in self.causes for n in c.ranks):
            self.faint = True
            if self.answers & {"hang", "not_yet"}:
                self.answers |= {"cannot_tell"}
            if self.when == "before":
                self.answers |= {"not_yet"}

    def moved(self, n, until):
        """When a rank called, began or finished something last, up to then."""
        return max(
            (t for o in self.job.sim.ranks[n].ops for t in (o.enq, o.start or 0, o.end or 0) if t <= until),
            default=0,
        )

    def torch_ops(self, cause):
        """The operations of a cause as PyTorch numbers them: all collectives of a group, from 1."""
        out = set()
        for r in self.job.sim.ranks:
            for o in r.of.get(cause.comm, ()):
                if (o.func, o.sn) in cause.ops and not o.p2p:
                    out.add((o.func, o.number + 1))
        return out

    def kill_all(self, at, how="sigkill", spread=300 * MS):
        for r in self.job.sim.ranks:
            if r.died is None or r.died > at:
                r.died, r.how = at + self.random.randrange(spread), how

    def well(self, now):
        """A look at a job in which nothing is wrong."""
        self.now = now
        self.answers = {"no_hang"} if self.source != LOGS else {"cannot_tell"}
        if any(
            o.replay is None and o.enq < now - 4 * S and (o.end is None or o.end > now)
            for r in self.job.sim.ranks for o in r.ops
        ):
            self.answers.add("not_yet")  # somebody waits for seconds, as is usual in this job


class Maker:
    """What a kind is made with: its random numbers, and the form that is asked for."""

    def __init__(self, random, source, when):
        self.random, self.source, self.when = random, source, when

    def job(self, layouts=None, least_s=0, **kw):
        """A job of one of the layouts; its compute is stretched so that it takes least_s seconds or more."""
        layout = self.random.choice(layouts or list(jobs.LAYOUTS))
        kw.setdefault("steps", self.random.choice((6, 8, 10)))
        job = jobs.Job(self.random, layout, **kw)
        stretch = (
            self.random.choice((1, 10, 100)) if not least_s else max(1, least_s * S // (20 * MS * job.steps))
        )
        if self.when in ("before", "during"):
            stretch = min(
                stretch, 10
            )  # where a pipeline's pauses take seconds, nobody can tell them from a wait of some seconds
        if stretch > 1:
            for p in job.programs.values():
                for i, item in enumerate(p):
                    if item[0] == "compute":
                        p[i] = ("compute", item[1] * stretch)
        return job
