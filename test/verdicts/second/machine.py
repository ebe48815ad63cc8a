"""Runs a job: CPU threads that launch ahead, streams, kernels that wait for their last peer, links.

State of each rank: the time up to which its CPU has launched, when its compute stream and each of its
communication streams are free. A kernel of a collective begins on a rank when the CPU has launched it, its
stream is free and what it depends on is done; it ends on all ranks one transfer after the last one's begin.
Times are ns of true time from the job's begin.
"""

import collections

from draws import Noise, mix, stream, unit
from program import (
    ALLTOALL,
    BROADCAST,
    COLL,
    COMPUTE,
    FINISH,
    HOLD,
    HOST,
    JOIN,
    JOINALL,
    KERNELS,
    LIMIT,
    MARK,
    MOVE,
    REDUCE,
    START,
    SWAP,
    Builder,
    build,
    step_engine,
)

EVENT_NS = 2500.0  # from the end of a kernel until one of another stream that waits for it begins
LAUNCH_NS = 4500.0  # from a launch's return until the kernel can begin
TAIL_NS = 6000.0  # the last kernel of a block


def transfer(job, comm, func, size):
    """(latency, ns within hosts, ns between hosts) of a collective."""
    n = len(comm.ranks)
    lat = job.latency + 900.0 * (n - 1) * (1 if func != REDUCE else 1.3) + 4000.0 * (len(comm.hosts) - 1)
    if func == ALLTOALL:
        off = size * (n - comm.local)
        return (
            lat,
            size * (comm.local - 1) / job.nvlink,
            off * max(1.0, job.gpus / job.n_nics) / job.nic if comm.nics else 0.0,
        )
    moved = {REDUCE: 2.0 * (n - 1) / n, BROADCAST: 1.0}.get(func, float(n - 1)) * size
    inside = moved / job.nvlink if comm.local > 1 else 0.0
    between = moved * comm.sharing / (comm.n_nics * job.nic) if comm.nics else 0.0
    return lat, inside, between


def between_ranks(job, a, b, size):
    """(latency, ns within the host, ns between hosts) of a message between two ranks."""
    if job.host_of[a] == job.host_of[b]:
        return job.latency, size / job.nvlink, 0.0
    return job.latency + 4000.0, 0.0, size * max(1.0, job.gpus / job.n_nics) / job.nic


def stretch(begin, fast, slow, spans):
    """How long a transfer takes that would take `fast` outside and `slow` inside of the spans (None: always
    inside)."""
    if spans is None:
        return slow
    left, now = 1.0, begin
    for a, b in spans:
        if b <= now:
            continue
        if a > now:
            if now + left * fast <= a:
                break
            left -= (a - now) / fast
            now = a
        if now + left * slow <= b:
            return now + left * slow - begin
        left -= (b - now) / slow
        now = b
    return now + left * fast - begin


class Template:
    """A step's items with the times of their transfers, and those under each fault of a link."""

    def __init__(self, job, plan, builder):
        self.items, self.meta = [], []
        self.holds = max(1, builder.holds)
        self.streams, self.slots, self.kernels = len(builder.streams), builder.slots, builder.kernels
        self.n_coll = 0
        self.blocks = [0] * job.world
        for it in builder.items:
            if it[0] == COMPUTE:
                for r in it[1]:
                    self.blocks[r] += 1
            if it[0] == COLL:
                it = self.coll(job, plan, it)
            elif it[0] == MOVE:
                it = self.move(job, plan, it)
            elif it[0] == SWAP:
                it = (SWAP, job.comms[it[1]], it[2], it[3], it[4])
                self.n_coll += len(it[1].ranks) ** 2
            self.items.append(it)

    def slow(self, job, plan, lat, inside, between, touched):
        out = []
        for f in plan.links:
            i, o = touched(f)
            if i != 1.0 or o != 1.0:
                out.append((lat + max(inside * i, between * o), f.spans))
        return out

    def coll(self, job, plan, it):
        _, number, func, size, k, after, then, slot = it
        comm = job.comms[number]
        size = max(4, int(size * plan.scale.get(number, 1.0)) & ~3)
        lat, inside, between = transfer(job, comm, func, size)
        factor = plan.comm_factor.get(number, 1.0)
        fast = (lat + max(inside, between)) * factor
        slow = self.slow(job, plan, lat, inside, between, lambda f: f.on_comm(job, comm))
        self.meta.append((func, size))
        self.n_coll += 1
        return (COLL, comm, comm.ranks, fast, slow, k, after, then, slot, len(self.meta) - 1)

    def move(self, job, plan, it):
        _, number, a, b, size, ka, kb = it
        size = max(4, int(size * plan.scale.get(number, 1.0)) & ~3)
        lat, inside, between = between_ranks(job, a, b, size)
        comm = job.comms[number]
        slow = self.slow(job, plan, lat, inside, between, lambda f: f.on_ranks(job, a, b))
        self.n_coll += 1
        factor = max(plan.rank_factor.get(a, 1.0), plan.rank_factor.get(b, 1.0))
        fast = (lat + max(inside, between)) * factor
        return (MOVE, number, a, b, comm.ranks.index(a), comm.ranks.index(b), size, ka, kb, fast, slow)


class Log:
    """What ran: of each communicator its collectives, of each rank its messages."""

    def __init__(self, job):
        self.colls = [[] for _ in job.comms]
        self.messages = [[] for _ in range(job.world)]
        self.templates = []


DELAY_NS = 5e6  # what a rank computes longer than usual by more is told, as pauses are


class Outcome:
    def __init__(self):
        self.end, self.step_begin, self.incidents = 0.0, [], []


def run(job, plan, gap=1500.0, log=None, steps=None):
    """One run. The same draws whatever the plan."""
    world = job.world
    train = [Template(job, plan, build(job)) if job.layout != "I" else None]
    evaluation = Template(job, plan, build(job, "evaluate")) if plan.evaluations else None
    noise = Noise(mix(job.noise, "blocks"), job.jitter, 0.0004)
    wire = Noise(mix(job.noise, "wire"), 0.012, 0.001)
    still = [1.0 + job.spread * stream(job.noise, "gpu", r).gauss(0, 1) for r in range(world)]
    # CPUs of one job are alike: one that is not would be a cause.
    cpus = [
        plan.launch.get(r, 1.0) * (1.0 + 0.002 * stream(job.noise, "cpu", r).gauss(0, 1)) for r in range(world)
    ]
    same = [job.replica_of(r) for r in range(world)]
    coll_ns = [9000.0 * x for x in cpus]
    cpu = [2e6 * unit(job.noise, "start", r) for r in range(world)]
    comp = list(cpu)
    n_streams = 8
    streams = [[0.0] * world for _ in range(n_streams)]
    ahead = [collections.deque([0.0] * job.queue, maxlen=job.queue) for _ in range(world)]
    out = Outcome()
    every = [plan.compute_factors(s, world) for s in range(steps or job.steps)] if log else []
    usual = [sorted(f)[len(f) // 2] for f in zip(*every)] or [1.0] * world
    extra_holds = plan.pauses

    def play(t, step, turn):
        """Runs the items of one template."""
        slots = [[0.0] * world for _ in range(t.slots)]
        begun, done, called = [0.0] * t.kernels, [0.0] * t.kernels, [0.0] * t.kernels
        factors = plan.compute_factors(step, world)
        beyond = [0.0] * world  # of each rank since its last operation, longer than its blocks usually are

        def told(r):
            """A rank that computed longer before an operation, by chance or for a cause that comes and
            goes."""
            if beyond[r] > DELAY_NS:
                out.incidents.append((r, step, comp[r] - beyond[r], beyond[r], beyond[r], "delay"))
            beyond[r] = 0.0

        rows = [iter(noise.piece(max(1, t.blocks[r]), step, turn, r)) for r in range(world)]
        deviation = job.jitter_step
        # Sequences differ in length: ranks that work on the same ones differ alike.
        cf = [
            still[r] * factors[r] * (1.0 + deviation * (unit(job.noise, "step", step, same[r]) - 0.5))
            for r in range(world)
        ]
        launch = [cpus[r] * (0.97 + 0.06 * unit(job.noise, "launches", step, turn, r)) for r in range(world)]
        wires = iter(wire.piece(max(1, t.n_coll), step, turn, "wire"))
        beside = job.beside
        tn = len(log.templates) - 1 if log else 0
        for it in t.items:
            op = it[0]
            if op == COMPUTE:
                _, ranks, ns, launch_ns = it
                first = launch_ns / KERNELS
                for r in ranks:
                    d = ahead[r]
                    c = cpu[r]
                    if d[0] > c:
                        c = d[0]
                    s = comp[r]
                    if c + first > s:
                        s = c + first
                    c += launch_ns * launch[r]
                    work = ns * cf[r] * next(rows[r])
                    e = s + work
                    beyond[r] += work - ns * still[r] * usual[r]
                    if beside:  # a kernel that communicates takes some of the GPU
                        x = streams[0][r]
                        if x > s:
                            e += beside * ((x if x < e else e) - s)
                    if e < c + TAIL_NS:
                        e = c + TAIL_NS
                    cpu[r] = c
                    comp[r] = e
                    d.append(e)
            elif op == COLL:
                _, comm, ranks, fast, slow, k, after, then, slot, meta = it
                lane = streams[k]
                enq, starts = [], []
                for r in ranks:
                    if beyond[r] and after:
                        told(r)
                    c = cpu[r]
                    enq.append(c)
                    c += coll_ns[r]
                    cpu[r] = c
                    s = c + LAUNCH_NS
                    x = lane[r] + gap
                    if x > s:
                        s = x
                    if after:
                        x = comp[r] + EVENT_NS
                        if x > s:
                            s = x
                    starts.append(s)
                last = max(starts)
                ns = fast
                for much, spans in slow:
                    x = stretch(last, fast, much, spans)
                    if x > ns:
                        ns = x
                end = last + ns * next(wires)
                for r in ranks:
                    lane[r] = end
                if then == 1:
                    x = end + EVENT_NS
                    for r in ranks:
                        comp[r] = x
                elif then == 2:
                    x = slots[slot]
                    for r in ranks:
                        x[r] = end
                if log:
                    log.colls[comm.number].append((tn, meta, starts, enq, end, ns))
            elif op == START:
                _, r, k, n = it
                told(r)
                c = cpu[r]
                called[n] = c
                c += coll_ns[r] * 1.4
                cpu[r] = c
                begun[n] = done[n] = max(c + LAUNCH_NS, streams[k][r] + gap, comp[r] + EVENT_NS)
            elif op == MOVE:
                _, number, a, b, ia, ib, size, ka, kb, fast, slow = it
                last = max(begun[ka], begun[kb])
                ns = fast
                for much, spans in slow:
                    x = stretch(last, fast, much, spans)
                    if x > ns:
                        ns = x
                end = last + ns * next(wires)
                done[ka] = max(done[ka], end)
                done[kb] = max(done[kb], end)
                if log:
                    log.messages[a].append((number, True, ib, size, begun[ka], end, called[ka]))
                    log.messages[b].append((number, False, ia, size, begun[kb], end, called[kb]))
                called[ka] += 1500.0
                called[kb] += 1500.0
            elif op == FINISH:
                _, r, k, n = it
                streams[k][r] = done[n]
                comp[r] = done[n] + EVENT_NS
            elif op == SWAP:
                swap(it, step, turn, wires, cpu, comp, streams, coll_ns, told)
            elif op == JOIN:
                x = slots[it[2]]
                for r in it[1]:
                    if x[r] + EVENT_NS > comp[r]:
                        comp[r] = x[r] + EVENT_NS
            elif op == MARK:
                x = slots[it[2]]
                for r in it[1]:
                    x[r] = comp[r]
            elif op == LIMIT:
                x = slots[it[2]]
                for r in it[1]:
                    if x[r] > cpu[r]:
                        cpu[r] = x[r]
            elif op == JOINALL:
                lane = streams[it[2]]
                for r in it[1]:
                    if lane[r] + EVENT_NS > comp[r]:
                        comp[r] = lane[r] + EVENT_NS
            elif op == HOST:
                for r in it[1]:
                    if comp[r] + 8000.0 > cpu[r]:
                        cpu[r] = comp[r] + 8000.0
            elif op == HOLD and turn == 0:
                for place, r, ns in extra_holds.get(step, ()):
                    if place % t.holds == it[1]:
                        idle = cpu[r] + ns - max(cpu[r], comp[r])
                        out.incidents.append((r, step, cpu[r], ns, max(0.0, idle), "pause"))
                        cpu[r] += ns

    def swap(it, step, turn, wires, cpu, comp, streams, coll_ns, told):
        """Experts: each rank sends each other one what the router chose; unequal, other in each step and
        layer."""
        _, comm, size, k, place = it
        ranks, n, lane = comm.ranks, len(comm.ranks), streams[k]
        rng = stream(job.noise, "route", step, turn, comm.number, place)
        liking = [0.75 + 0.5 * rng.random() for _ in ranks]
        begun, enq = [], []
        for r in ranks:
            told(r)
            c = cpu[r]
            enq.append(c)
            c += coll_ns[r] * 1.2 * (1 + n / 8)
            cpu[r] = c
            begun.append(max(c + LAUNCH_NS, lane[r] + gap, comp[r] + EVENT_NS))
        ends = list(begun)
        for i in range(n):
            for j in range(n):
                if i == j:
                    next(wires)
                    continue
                a, b = ranks[i], ranks[j]
                much = (
                    size
                    * liking[j]
                    * (0.9 + 0.2 * rng.random())
                    * plan.tokens.get(b, 1.0)
                    * plan.tokens.get(a, 1.0)
                )
                much = int(much) & ~511
                lat, inside, between = between_ranks(job, a, b, much)
                inside *= comm.local - 1
                between *= n - comm.local
                fast = lat + max(inside, between)
                last = max(begun[i], begun[j])
                ns = fast
                for f in plan.links:
                    x, y = f.on_ranks(job, a, b)
                    if x != 1.0 or y != 1.0:
                        ns = max(ns, stretch(last, fast, lat + max(inside * x, between * y), f.spans))
                ns *= max(plan.rank_factor.get(a, 1.0), plan.rank_factor.get(b, 1.0))
                end = last + ns * next(wires)
                if end > ends[i]:
                    ends[i] = end
                if end > ends[j]:
                    ends[j] = end
                if log:
                    log.messages[a].append((comm.number, True, j, much, begun[i], end, enq[i] + 700.0 * j))
                    log.messages[b].append(
                        (comm.number, False, i, much, begun[j], end, enq[j] + 700.0 * i + 300.0)
                    )
        for i, r in enumerate(ranks):
            lane[r] = ends[i]
            comp[r] = ends[i] + EVENT_NS

    templates = {}

    def use(t):
        if log and id(t) not in templates:
            templates[id(t)] = t
            log.templates.append(t)
        elif log and log.templates[-1] is not t:
            log.templates.append(t)

    for step in range(steps or job.steps):
        out.step_begin.append(min(comp))
        for ranks, ns in plan.between.get(step, ()):
            for r in ranks:
                at = max(cpu[r], comp[r])
                out.incidents.append((r, step, at, ns, ns, "pause"))
                cpu[r] = at + ns
        if job.layout == "I":
            serve(job, plan, step, cpu, comp, play, use)
            continue
        for r in range(world):
            cpu[r] += 30e3 + 2e5 * unit(job.noise, "load", step, r)  # the data loader, zeroing of gradients
        use(train[0])
        play(train[0], step, 0)
        for batch in range(plan.evaluations.get(step, 0)):
            use(evaluation)
            play(evaluation, step, 1 + batch)
    out.end = max(max(comp), max(max(lane) for lane in streams))
    return out


def serve(job, plan, step, cpu, comp, play, use):
    """One step of each inference engine: it waits for requests at times, then serves a batch of irregular
    size."""
    for engine in range(job.dp):
        comm = job.tensor[engine, 0]
        rng = stream(job.noise, "request", step, engine)
        idle = rng.expovariate(1 / 30e6) if rng.random() < 0.15 else rng.expovariate(1 / 0.4e6)
        tokens = rng.randrange(200, 4000) if rng.random() < 0.12 else rng.randrange(1, 64)
        begin = max(max(cpu[r], comp[r]) for r in comm.ranks) + idle
        for r in comm.ranks:
            cpu[r] = begin + rng.uniform(5e3, 60e3)
        b = Builder(job)
        b.hold()
        step_engine(b, engine, tokens)
        t = Template(job, plan, b)
        use(t)
        play(t, step, engine)
