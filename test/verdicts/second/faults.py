"""What is planted: kinds, their strength and place by the seed, what they change in a run, and what the truth
says of them.

A Plan holds what machine.py asks for. `strength` multiplies how much a cause changes (--cost searches it);
everything else of a cause (who, when) stays as it was drawn.
"""

from draws import log_uniform, stream

KINDS = (
    "healthy",
    "noisy",
    "late",
    "intermittent",
    "onset",
    "gpu",
    "cpu",
    "nvlink",
    "nic",
    "rail",
    "pair",
    "congestion",
    "stage",
    "stages_differ",
    "uneven",
    "replica",
    "gc",
    "checkpoint",
    "evaluation",
    "pauses",
    "flap",
    "throttle",
    "two_jobs",
    "two_attempts",
    "inference",
    "two",
)
QUIET = ("healthy", "noisy", "stages_differ")  # nothing is to be found
PERIODIC = ("gc", "checkpoint", "evaluation")  # need many steps
LONG = PERIODIC + ("flap", "throttle", "pauses")
NOTES = ("checkpoint", "evaluation", "replica", "uneven")
TWO = ("late", "late", "onset", "intermittent", "cpu", "nvlink", "nic", "rail", "pauses", "gc")


class LinkFault:
    """A link, or some, that is `factor` times as slow, always or in spans (ns from the job's begin)."""

    def __init__(self, level, factor=1.0, host=None, nic=None, hosts=None, spans=None):
        self.level, self.factor, self.host, self.nic, self.hosts, self.spans = (
            level,
            factor,
            host,
            nic,
            hosts,
            spans,
        )

    def on_comm(self, job, comm):
        """Factors of its transfers within hosts and between hosts."""
        f = self.factor
        if self.level == "nvlink":
            members = sum(job.host_of[r] == self.host for r in comm.ranks)
            return (f, 1.0) if members > 1 else (1.0, 1.0)
        if not comm.nics:
            return 1.0, 1.0
        touched = (
            self.level == "fabric"
            or self.level == "nic"
            and self.host in comm.hosts
            or self.level == "rail"
            and self.nic in comm.nics
            or self.level == "pair"
            and self.hosts in comm.links
        )
        return 1.0, f if touched else 1.0

    def on_ranks(self, job, a, b):
        x, y = job.host_of[a], job.host_of[b]
        f = self.factor
        if x == y:
            return (f, 1.0) if self.level == "nvlink" and self.host == x else (1.0, 1.0)
        touched = (
            self.level == "fabric"
            or self.level == "nic"
            and self.host in (x, y)
            or self.level == "rail"
            and self.nic in (job.nic_of[a], job.nic_of[b])
            or self.level == "pair"
            and self.hosts == tuple(sorted((x, y)))
        )
        return 1.0, f if touched else 1.0


class Plan:
    """What differs from a job without a cause."""

    def __init__(self):
        self.links, self.scale, self.tokens, self.launch = [], {}, {}, {}
        self.comm_factor, self.rank_factor = {}, {}
        self.pauses, self.between, self.evaluations = {}, {}, {}
        self.slow = []  # (ranks, factor, steps as a set, or None: all)

    def compute_factors(self, step, world):
        f = [1.0] * world
        for ranks, much, steps in self.slow:
            if steps is None or step in steps:
                for r in ranks:
                    f[r] *= much
        return f

    def pause(self, step, place, rank, ns):
        self.pauses.setdefault(step, []).append((place, rank, ns))


class Cause:
    """One planted cause: `plant(plan, strength)` puts it into a plan; the rest is for the truth."""

    def __init__(
        self, kind, level, subject, plant, size, unit, onset=0, end=None, spans=None, extra=None, ranks=()
    ):
        self.kind, self.level, self.subject, self.plant, self.size, self.unit = (
            kind,
            level,
            subject,
            plant,
            size,
            unit,
        )
        self.onset, self.end, self.spans, self.extra, self.ranks = (
            onset,
            end,
            spans or [],
            extra or {},
            list(ranks),
        )


def background(job, kind):
    """Pauses of CPUs that every job has: few; many in a noisy one. The same with and without a cause."""
    plan = Plan()
    rng = stream(job.noise, "background")
    rate = rng.choice((0.0, 0.0003, 0.001, 0.002))
    longest = 20e6
    if kind == "noisy":
        rate, longest = log_uniform(rng, 0.008, 0.04), 40e6
    n = int(rate * job.steps * job.world + rng.random())
    for _ in range(n):
        plan.pause(
            rng.randrange(job.steps),
            rng.randrange(4),
            rng.randrange(job.world),
            log_uniform(rng, 4e6, longest),
        )
    return plan


def intervals(rng, total, n, low, high, share=0.4):
    """n intervals in [0.04, 0.96] of the total that do not touch, of low to high ns, at most `share` of it
    in all."""
    lengths = [log_uniform(rng, low, high) for _ in range(n)]
    most = share * total
    if sum(lengths) > most:
        lengths = [x * most / sum(lengths) for x in lengths]
    free = 0.92 * total - sum(lengths)
    cuts = sorted(rng.random() * free for _ in range(n))
    out, shift = [], 0.04 * total
    for cut, length in zip(cuts, lengths):
        out.append((cut + shift, cut + shift + length))
        shift += length
    return out


def slow_ranks(ranks, x, steps=None):
    """Their kernels take x more of their time."""
    return lambda plan, k: plan.slow.append((list(ranks), 1.0 + x * k, steps))


def slow_link(level, x, **where):
    return lambda plan, k: plan.links.append(LinkFault(level, 1.0 + (x - 1.0) * k, **where))


def a_link(job, rng, level, moved=None):
    """Where a fault of this level is: (LinkFault's arguments, subject). `moved`: the rank whose link it is to be."""
    h = rng.randrange(job.n_hosts)
    if moved is not None:
        h = job.host_of[moved]
    if level == "rail":
        nic = (h, rng.randrange(job.n_nics))
        nic = nic if moved is None else job.nic_of[moved]
        return {"nic": nic}, {"host": h, "nic": nic}
    if level == "pair":
        ring = [(a, (a + 1) % job.n_hosts) for a in range(job.n_hosts)]
        if job.layout == "P" and rng.random() < 0.5:
            crossing = [
                tuple(sorted((job.host_of[a], job.host_of[b])))
                for c in job.pipe.values()
                if c
                for a, b in zip(c.ranks, c.ranks[1:])
                if job.host_of[a] != job.host_of[b]
            ]
            ring = crossing or ring
        if moved is not None:
            ring = [p for p in ring if h in p] or [(h, (h + 1) % job.n_hosts)]
        hosts = tuple(sorted(rng.choice(ring)))
        return {"hosts": hosts}, {"hosts": hosts}
    return ({"host": h}, {"host": h}) if level != "fabric" else ({}, {})


def make(job, kind, rng, base, avoid=(), moved=None):
    """A cause of this kind, or None for quiet kinds. `base`: the outcome without it. `avoid`: hosts that are
    taken. `moved`: the rank whose cause it is to be, or its host's, stage's, replica's, link's; all else stays."""
    steps, world = job.steps, job.world
    total = base.end
    step_ns = total / steps
    free = [r for r in range(world) if job.host_of[r] not in avoid] or list(range(world))
    rank = rng.choice(free)
    rank = rank if moved is None else moved
    host = job.host_of[rank]
    on_host = [r for r in range(world) if job.host_of[r] == host]
    if kind in QUIET or kind == "inference" and rng.random() < 0.5:
        return None
    if kind in ("late", "inference", "two_jobs", "two_attempts", "onset"):
        x = log_uniform(rng, 0.04, 0.4)
        who, level = ([rank], "rank")
        if rng.random() < 0.15 and job.n_hosts > 1 and kind != "inference":
            who, level = on_host, "host"
        onset = rng.randrange(steps // 5, steps * 4 // 5) if kind == "onset" else 0
        active = set(range(onset, steps)) if onset else None
        return Cause(
            kind,
            level,
            {"rank": rank, "host": host},
            slow_ranks(who, x, active),
            100 * x,
            "%",
            onset,
            ranks=who,
        )
    if kind == "intermittent":
        ns = log_uniform(rng, 5e6, 60e6)
        hit = {s for s in range(steps) if rng.random() < 0.1} or {steps // 2}
        return Cause(
            kind,
            "rank",
            {"rank": rank, "host": host},
            slow_ranks([rank], ns / step_ns, hit),
            ns / 1e6,
            "ms",
            ranks=[rank],
        )
    if kind == "gpu":
        x = log_uniform(rng, 0.04, 0.3)

        def plant(plan, k):
            plan.slow.append(([rank], 1.0 + x * k, None))
            plan.rank_factor[rank] = 1.0 + 0.3 * x * k
            for c in job.comms:
                if rank in c.ranks:
                    plan.comm_factor[c.number] = 1.0 + 0.3 * x * k

        return Cause(kind, "rank", {"rank": rank, "host": host}, plant, 100 * x, "%", ranks=[rank])
    if kind == "cpu":
        x = log_uniform(rng, 1.5, 6.0)
        who, level = (on_host, "host") if rng.random() < 0.7 else ([rank], "rank")

        def plant(plan, k):
            for r in who:
                plan.launch[r] = 1.0 + (x - 1.0) * k

        return Cause(kind, level, {"rank": rank, "host": host}, plant, x, "x", ranks=who)
    if kind in ("nvlink", "nic", "rail", "pair"):
        x = log_uniform(rng, 1.3, 4.0)
        where, subject = a_link(job, rng, kind, moved)
        while moved is None and avoid and subject.get("host") in avoid:
            where, subject = a_link(job, rng, kind)
        return Cause(kind, kind, subject, slow_link(kind, x, **where), x, "x")
    if kind == "congestion":
        x = log_uniform(rng, 1.8, 5.0)
        n = rng.randrange(1, 5)
        spans = intervals(rng, total, n, 0.03 * total, 0.12 * total)
        return Cause(kind, "fabric", {}, slow_link("fabric", x, spans=spans), x, "x", spans=spans)
    if kind == "stage":
        x = log_uniform(rng, 0.05, 0.4)
        stage = rng.randrange(job.pp)
        stage = stage if moved is None else job.stage_of(moved)
        who = [r for r in range(world) if job.stage_of(r) == stage]
        return Cause(kind, "stage", {"stage": stage}, slow_ranks(who, x), 100 * x, "%", ranks=who)
    if kind == "uneven":
        x = log_uniform(rng, 0.1, 0.6)

        def plant(plan, k):
            plan.slow.append(([rank], 1.0 + x * k, None))
            if job.layout == "M":
                plan.tokens[rank] = 1.0 + x * k

        return Cause(kind, "rank", {"rank": rank, "host": host}, plant, 100 * x, "%", ranks=[rank])
    if kind == "replica":
        x = rng.uniform(0.05, 0.2)
        d = rng.randrange(job.dp)
        d = d if moved is None else job.replica_of(moved)
        who = [r for r in range(world) if job.replica_of(r) == d]

        def plant(plan, k):
            plan.slow.append((who, 1.0 + x * k, None))
            for c in job.comms:
                if c.role in "tp" and c.ranks[0] in who:
                    plan.scale[c.number] = 1.0 + x * k

        return Cause(kind, "replica", {"replica": d}, plant, 100 * x, "%", ranks=who)
    period = rng.randrange(20, max(21, min(100, steps // 3)))
    first = rng.randrange(3, max(4, period))
    times = list(range(first, steps, period))
    if kind == "gc":
        ns = log_uniform(rng, 100e6, 400e6)
        draws = [(s, rng.randrange(4), rng.uniform(0.85, 1.15)) for s in times]

        def plant(plan, k):
            for s, place, f in draws:
                plan.pause(s, place, rank, ns * f * k)

        return Cause(
            kind,
            "rank",
            {"rank": rank, "host": host},
            plant,
            ns / 1e6,
            "ms",
            ranks=[rank],
            extra={"period_steps": period, "steps": times},
        )
    if kind == "checkpoint":
        ns = log_uniform(rng, 0.5e9, 5e9)
        way = rng.choice(("rank 0", "rank 0", "hosts", "replicas"))
        who = [moved or 0]
        if way == "hosts":
            who = [h * job.gpus for h in range(job.n_hosts)]
        elif way == "replicas" and job.layout in "TP":
            who = sorted(job.rank_at(0, d, 0) for d in range(job.dp))
        lengths = [[(r, ns * rng.uniform(0.8, 1.2)) for r in who] for _ in times]

        def plant(plan, k):
            for s, some in zip(times, lengths):
                for r, x in some:
                    plan.between.setdefault(s, []).append(([r], x * k))

        return Cause(
            kind,
            "rank",
            {"rank": who[0], "host": job.host_of[who[0]]},
            plant,
            ns / 1e6,
            "ms",
            ranks=who,
            extra={"period_steps": period, "steps": times},
        )
    if kind == "evaluation":
        ns = log_uniform(rng, 1e9, 5e9)
        together = rng.random() < 0.35
        batches = max(2, min(12, int(ns / (0.3 * step_ns))))

        def plant(plan, k):
            for s in times:
                if together:
                    plan.between.setdefault(s, []).append((list(range(world)), ns * k))
                else:
                    plan.evaluations[s] = max(1, int(batches * k))

        return Cause(
            kind,
            "job",
            {},
            plant,
            ns / 1e6,
            "ms",
            ranks=list(range(world)),
            extra={"period_steps": period, "steps": times, "pause_together": together},
        )
    if kind == "pauses":
        n = rng.randrange(3, 16)
        who, level = (on_host, "host") if rng.random() < 0.35 and job.n_hosts > 1 else ([rank], "rank")
        draws = [(rng.randrange(1, steps), rng.randrange(4), log_uniform(rng, 10e6, 1e9)) for _ in range(n)]

        def plant(plan, k):
            for s, place, ns in draws:
                for r in who:
                    plan.pause(s, place, r, ns * k)

        return Cause(
            kind,
            level,
            {"rank": rank, "host": host},
            plant,
            n,
            "times",
            ranks=who,
            extra={"steps": sorted(d[0] for d in draws)},
        )
    if kind == "flap":
        levels = ["nic", "rail", "rail"] + ["pair"] * (job.n_hosts > 2) + ["nvlink"] * (job.gpus > 1)
        level = rng.choice(levels)
        where, subject = a_link(job, rng, level, moved)
        x = log_uniform(rng, 2.0, 10.0)
        spans = intervals(rng, total, rng.randrange(2, 9), 0.3e9, 3e9)
        return Cause(kind, level, subject, slow_link(level, x, spans=spans, **where), x, "x", spans=spans)
    if kind == "throttle":
        x = rng.uniform(0.15, 0.5)
        who, level = (on_host, "host") if rng.random() < 0.3 and job.n_hosts > 1 else ([rank], "rank")
        wanted = rng.uniform(0.05, 0.4) * steps
        hit, bursts = set(), []
        for _ in range(60):
            length = int(log_uniform(rng, 2, 60))
            if len(hit) + length > max(4, wanted) or length > steps // 3:
                continue
            at = rng.randrange(1, steps - length)
            if any(s in hit for s in range(at - 3, at + length + 3)):
                continue
            hit |= set(range(at, at + length))
            bursts.append([at, at + length])
        if not bursts:
            bursts, hit = [[steps // 2, steps // 2 + 4]], set(range(steps // 2, steps // 2 + 4))
        return Cause(
            kind,
            level,
            {"rank": rank, "host": host},
            slow_ranks(who, x, hit),
            100 * x,
            "%",
            ranks=who,
            extra={"bursts": sorted(bursts)},
        )
    raise ValueError("no kind %s" % kind)


def causes(job, kind, base, moved=None, which=0):
    """`moved`: a rank that the cause of this number is to be of."""
    rng = stream(job.seed, "cause", kind)
    if kind != "two":
        c = make(job, kind, rng, base, moved=moved)
        return [c] if c else []
    kinds = rng.sample(TWO, 2)
    while kinds[0] == kinds[1] or not set(kinds) <= possible(job):
        kinds = rng.sample(TWO, 2)
    first = make(job, kinds[0], rng, base, moved=None if which else moved)
    taken = {first.subject["host"]} if "host" in first.subject else set()
    return [first, make(job, kinds[1], rng, base, taken, moved if which else None)]


def possible(job):
    out = {"late", "onset", "intermittent", "cpu", "pauses", "gc"}
    if job.gpus > 1:
        out.add("nvlink")
    if job.n_hosts > 1:
        out |= {"nic", "rail"}
    return out
