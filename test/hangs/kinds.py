"""Kinds of ending whose every seed may be looked at by whoever works on the judge (seeds below 1000)."""

import jobs
from case import BOXES, BOXES_AND_LOGS, COPIES, DUMPS, LIVE_SOURCES, LOGS, Case, Cause
from world import FOREVER, MS, S

WAITS = ("before", "at", "late", "killed")
KINDS = {}


def kind(name, sources=LIVE_SOURCES, whens=WAITS, group="hang", into=KINDS):
    def add(f):
        into[name] = (f, sources, whens, group)
        return f

    return add


MEGATRON = [n for n, l in jobs.LAYOUTS.items() if l[0] == "megatron"]
TENSOR = [n for n in MEGATRON if jobs.LAYOUTS[n][1] > 1]
WIDE_TENSOR = [n for n in MEGATRON if jobs.LAYOUTS[n][1] > 2]
DATA = [n for n in MEGATRON if jobs.LAYOUTS[n][3] > 1]
PIPE = [n for n in MEGATRON if jobs.LAYOUTS[n][2] > 1]
FLAT = ["ddp8", "fsdp8"]


# One rank does not come


def stops(m, of, layouts):
    job = m.job(layouts, least_s=m.random.choice((0, 80)))
    r, i = job.pick(of)
    job.stop(r, i)
    job.run_until_still()
    c = Case(m, job)
    c.blame([r])
    c.look_at_wait()
    return c


ALL_SOURCES = LIVE_SOURCES + (DUMPS,)


@kind("a rank stops before a call of its tensor group", ALL_SOURCES)
def stop_tp(m):
    return stops(m, "tp", TENSOR)


@kind("... of its data group", ALL_SOURCES)
def stop_dp(m):
    return stops(m, "dp", DATA)


@kind("... before a Recv", ALL_SOURCES)
def stop_recv(m):
    return stops(m, "Recv", PIPE)


@kind("... before a Send", ALL_SOURCES)
def stop_send(m):
    return stops(m, "Send", PIPE)


@kind("... of the whole job", ALL_SOURCES)
def stop_world(m):
    return stops(m, "world", None)


@kind("a rank is late, and comes", whens=("during", "after"))
def late(m):
    job = m.job(steps=10, least_s=m.random.choice((0, 70)))
    r, i = job.pick("any")
    late_by = m.random.choice((2, 5, 20, 60)) * S
    job.stop(r, i, late_by)
    job.finish()
    job.run_until_still()
    c = Case(m, job)
    sim = job.sim
    before = max((o.enq for o in sim.ranks[r].ops if o.enq <= calls_time(sim, r, i)), default=0)
    if m.when == "after":
        c.well(
            m.random.randrange(
                before + late_by + S // 2, max(job.still_since() - 60 * MS, before + late_by + S)
            )
        )
        running_or_ended(c)
        return c
    c.now = before + late_by * 9 // 10
    waited = c.now - before
    c.answers = {"no_hang"} if waited < 4500 * MS else {"not_yet", "no_hang"}
    if waited > c.limit(before) - S:
        c.answers.add("hang")
    if m.source == LOGS:
        c.answers |= {"cannot_tell"}
    return c


def calls_time(sim, r, i):
    """When the host of a rank came to the item i of its program, in which it then slept."""
    calls = sum(1 for item in sim.ranks[r].items[:i] if item[0] == "call")
    ops = sim.ranks[r].ops
    return ops[calls - 1].enq if calls else 0


def running_or_ended(c):
    """The right answers for a look that may fall behind the end of a job that ends in order."""
    if all(r.died is not None and r.died <= c.now for r in c.job.sim.ranks):
        c.answers = {"ended"} if c.source != BOXES else {"ended", "no_data"}
    elif any(r.died is not None and r.died <= c.now for r in c.job.sim.ranks):
        c.answers |= {"no_hang"}


# Processes that die


def dies(m, how, of="any", ranks=1, final=False):
    job = m.job(least_s=m.random.choice((0, 80)))
    r, i = job.pick(of)
    gone = [r]
    ends = [("abort", n) for n in job.sim.ranks[r].comms] if final else []
    job.insert(r, i, *ends, ("end", how))
    lag = m.random.choice((0, 0, 5, 40)) * MS if how in ("sigkill", "_exit", "crash") else 0
    if ranks > 1:
        others = [n for n in range(job.n) if n != r]
        m.random.shuffle(others)
        for n in others[: ranks - 1]:
            gone.append(n)
    job.start()
    if ranks > 1:
        job.sim.run(0)
        when = FOREVER
        probe = job.sim.ranks[r]
        while probe.died is None and job.sim.heap:
            job.sim.run(job.sim.heap[0][0])
        when = job.sim.now
        for n in gone[1:]:
            job.sim.kill(n, when + m.random.randrange(50 * MS), how)
    job.sim.run(3600 * S)
    c = Case(m, job)
    c.lag = {n: lag for n in gone}
    c.blame(gone)
    c.look_at_wait(max(c.waits_from, max(job.sim.ranks[n].died for n in gone)), dead=True)
    return c


@kind("a rank is killed (SIGKILL)")
def sigkill(m):
    return dies(m, "sigkill")


@kind("a rank ends by _exit or a crash")
def crash(m):
    return dies(m, m.random.choice(("_exit", "crash")))


@kind("a rank ends by exit, communicators open")
def exits(m):
    return dies(m, "exit")


@kind("an exception, finalized: communicators destroyed, then exit")
def exception(m):
    return dies(m, "final", final=True)


@kind("several ranks are killed")
def several(m):
    return dies(m, "sigkill", ranks=m.random.choice((2, 3)))


@kind("all ranks are killed while they run", whens=("killed",), group="over")
def all_killed(m):
    job = m.job(least_s=m.random.choice((0, 80)))
    still = job.run_until_still()
    c = Case(m, job)
    at = int(still * m.random.uniform(0.3, 0.8))
    c.kill_all(at, m.random.choice(("sigkill", "_exit", "crash")), spread=20 * MS)
    c.now = at + m.random.randrange(5 * S, 600 * S)
    c.answers = {"dead"} if m.source != LOGS else {"dead", "cannot_tell"}
    return c


@kind("all end in order", whens=("after",), group="quiet")
def all_end(m):
    job = m.job()
    job.finish(m.random.choice(("final", "exit")))
    c = Case(m, job)
    c.now = job.run_until_still() + m.random.randrange(2 * S, 600 * S)
    c.answers = {"ended"}
    if m.source == BOXES:
        c.answers = {"ended", "no_data"}  # boxes go with their processes
    return c


@kind("a host is gone: its processes, and its boxes", sources=(BOXES_AND_LOGS, COPIES, LOGS), whens=("late",))
def node_gone(m):
    job = m.job(["ddp8", "t2p2d2", "t4d2", "t2d4", "t2p2d4"])
    still = job.run_until_still() * 6 // 10
    hosts = sorted({r.host for r in job.sim.ranks})
    host = m.random.choice(hosts)
    job = m_again(m, job)
    gone = [r.number for r in job.sim.ranks if r.host == host]
    job.start()
    for n in gone:
        job.sim.kill(n, still, "crash")
    job.sim.run(3600 * S)
    c = Case(m, job)
    c.no_box = set(gone)
    c.blame(gone)
    c.look_at_wait()
    c.faint = True
    c.answers |= {"cannot_tell"}
    return c


def m_again(m, job):
    """The same job, not yet run."""
    fresh = jobs.Job(m.random, job.layout, steps=job.steps)
    fresh.programs = job.programs
    fresh.sim.comms.clear()
    fresh.sim.comms.update(job.sim.comms)
    for c in fresh.sim.comms.values():
        c.meets = {}
        fresh.sim.join(c, at=0)
    return fresh


# Calls that do not agree


def odd_call(m, of, layouts, plant):
    job = m.job(layouts)
    r, i = job.pick(of) or job.pick("any")
    comm_of = job.programs[r][i]
    plant(job, r, i)
    name = comm_of[1]
    job.run_until_still()
    c = Case(m, job)
    return disagreement(m, c, r, name)


def out_of_step(c, r, name):
    """The truth where a rank called once more or less than the others, and nobody came to call another thing
    in that place: what it has not called, or has called alone. It may be a deadlock, too: r is then among
    those who are named."""
    sim, comm = c.job.sim, c.job.sim.comms[name]
    meets = sorted({id(o.meet): o.meet for o in sim.inside(name)}.values(), key=lambda x: x.key[2])
    meets = [x for x in meets if r not in x.ops or len(x.ops) == 1] or meets
    c.meets = meets[:1]
    c.causes = [Cause(name, {(o.func, o.sn) for o in meets[0].ops.values()}, {r})]
    if r in meets[0].ops:
        c.causes.append(Cause(name, c.causes[0].ops, set(comm.members) - {r}))
        c.causes.append(Cause(name, c.causes[0].ops, comm.members))
    c.must_name = r
    c.begun()
    c.look_at_wait()
    return c


def disagreement(m, c, r, comm_name):
    """The truth where one rank calls another thing than the rest: the first place of which calls are not
    alike. Of two ranks nobody can tell which is wrong."""
    job = c.job
    odd = [
        x
        for comm in job.sim.comms.values()
        for x in comm.meets.values()
        if len(x.ops) > 1 and not x.alike() and any(o.start is not None for o in x.ops.values())
    ]
    odd.sort(key=lambda x: max(o.enq for o in x.ops.values()))
    if not odd:
        return out_of_step(c, r, comm_name)
    meet = odd[0]
    ops = list(meet.ops.values())
    comm = ops[0].comm
    calls = {(o.func, o.sn) for o in ops}
    c.causes = [Cause(comm.name, calls, {r})]
    if meet.key[0] == "p2p":
        c.causes.append(
            Cause(comm.name, calls, ())
        )  # the sizes of both sides are told, and nobody is missing
    if len(comm.members) == 2 or meet.key[0] == "p2p":
        both = {o.rank for o in ops}
        c.causes += [Cause(comm.name, calls, both), Cause(comm.name, calls, both - {r})]
    c.meets = [meet]
    c.begun()
    c.look_at_wait()
    if m.when == "before":
        c.now = max(o.start for o in ops if o.start is not None) + m.random.randrange(5600 * MS, 7600 * MS)
    if len(ops) < len(comm.members) and meet.key[0] == "coll":
        c.causes += [Cause(comm.name, calls, {r} | (set(comm.members) - set(meet.ops)))]
    return c


@kind("a call left out", whens=("at", "late", "killed"))
def left_out(m):
    def plant(job, r, i):
        del job.programs[r][i]

    return odd_call(m, m.random.choice(("tp", "tp", "dp")), ["t4d2", "t4p2d2", "t2d4"], plant)


@kind("a call doubled", whens=("at", "late", "killed"))
def doubled(m):
    def plant(job, r, i):
        job.insert(r, i, job.programs[r][i])

    return odd_call(m, m.random.choice(("tp", "world")), ["t4d2", "t4p2d2", "fsdp8"], plant)


@kind("a call of another size", whens=("before", "at", "late", "killed"))
def other_size(m):
    def plant(job, r, i):
        job.change(r, i, nbytes=job.programs[r][i][3] // 2)

    return odd_call(m, m.random.choice(("tp", "world", "dp")), ["t4d2", "t4p2d2", "t2p2d4"], plant)


@kind("a call of another function", whens=("before", "at", "late", "killed"))
def other_function(m):
    def plant(job, r, i):
        job.change(r, i, func="Broadcast" if job.programs[r][i][2] != "Broadcast" else "AllReduce")

    return odd_call(
        m,
        m.random.choice(("tp", "world", "dp")),
        ["t4d2", "t4p2d2", "fsdp8", "ddp8"] if m.random.random() < 0.5 else ["t4d2", "t4p2d2"],
        plant,
    )


@kind("two calls of a communicator exchanged", whens=("at", "late", "killed"))
def exchanged(m):
    def plant(job, r, i):
        p = job.programs[r]
        others = [
            k
            for k in range(i + 1, len(p))
            if p[k][0] == "call" and p[k][1] == p[i][1] and p[k][2:4] != p[i][2:4]
        ]
        others += [
            k
            for k in range(i - 1, 0, -1)
            if p[k][0] == "call" and p[k][1] == p[i][1] and p[k][2:4] != p[i][2:4]
        ]
        p[i], p[others[0]] = p[others[0]], p[i]

    return odd_call(m, m.random.choice(("tp", "dp")), ["t4d2", "t4p2d2", "fsdp8", "ddp8", "t2p2d4"], plant)


@kind("a message left out", whens=("late", "killed"))
def message_left_out(m):
    job = m.job(PIPE)
    r, i = job.pick(m.random.choice(("Send", "Recv")))
    name, func, peer = job.programs[r][i][1], job.programs[r][i][2], job.programs[r][i][4]
    place = sum(1 for x in job.programs[r][:i] if x[0] == "call" and x[1:3] == (name, func) and x[4] == peer)
    del job.programs[r][i]
    job.run_until_still()
    c = Case(m, job)
    # What came after it was taken for it, message by message: in the end the other side has one too many,
    # or there is a ring.
    comm = job.sim.comms[name]
    other = comm.members[peer]
    c.meets = [o.meet for o in job.sim.inside(name) if o.p2p] or [job.sim.inside()[0].meet]
    ops = {("Send", place), ("Recv", place)}
    c.causes = [
        Cause(name, ops, {r, other}),
        Cause(name, ops, ()),
    ]  # (): what each of both is in is told, and nobody is missing
    c.blamed = set(comm.members)
    c.must_name = r
    c.any_of_ranks = True
    c.begun()
    c.look_at_wait()
    return c


@kind("a message of another size", whens=("late", "killed"))
def message_size(m):
    def plant(job, r, i):
        job.change(r, i, nbytes=job.programs[r][i][3] // 2)

    return odd_call(m, m.random.choice(("Send", "Recv")), PIPE, plant)


@kind("two communicators in another order: a deadlock", whens=("at", "late", "killed"))
def deadlock(m):
    job = m.job(["t4d2", "t2d4", "t4p2d2", "t2p2d4"])
    r = m.random.randrange(job.n)
    at = m.random.choice(job.calls(r, "dp"))
    # All others call A on their tensor group, then B on the job; this one B, then A.
    tp, size = job.groups[r]["tp"], 3 * jobs.MB + 4096
    places = [matching(job, r, at, n) for n in range(job.n)]
    for n, here in enumerate(places):
        pair = [
            ("call", job.groups[n]["tp"], "AllReduce", size, 0, True),
            ("call", job.world, "AllReduce", size, 0, True),
        ]
        job.insert(n, here, *(reversed(pair) if n == r else pair))
    job.run_until_still()
    c = Case(m, job)
    meets = [o.meet for o in job.sim.ranks[r].of[job.world] + job.sim.ranks[r].of[tp] if o.bytes == size]
    ring = {n for x in meets for n in x.ops} | set(job.sim.comms[tp].members)
    c.meets = meets
    c.begun()
    c.causes = [Cause(x.ops[r].comm.name, {(x.ops[r].func, x.ops[r].sn)}, ring) for x in meets]
    c.any_of_ranks = True
    c.words = ("deadlock",)
    c.look_at_wait()
    return c


def matching(job, r, at, n):
    """Where the program of rank n is as far as that of r at `at`: before its call of the same place in its
    own
    data group."""
    comm = job.programs[r][at][1]
    k = sum(1 for x in job.programs[r][:at] if x[0] == "call" and x[1] == comm)
    mine = [i for i, x in enumerate(job.programs[n]) if x[0] == "call" and x[1] == job.groups[n]["dp"]]
    return mine[k]


# Endings of communicators


@kind("a hang, then abort and an orderly end", sources=(BOXES_AND_LOGS, LOGS), whens=("after",), group="over")
def hang_then_abort(m):
    job = m.job(FLAT)
    r, i = job.pick("world")
    wait = m.random.choice((60, 330, 700)) * S
    job.stop(r, i, wait)
    job.programs[r][i + 1 :] = [
        ("end", m.random.choice(("exit", "sigkill", "final"))),
        job.programs[r][i + 1],
    ]
    still = job.run_until_still(wait - S)
    c = Case(m, job)
    c.blame([r])
    for n in job.sim.ranks:
        if n.number != r:
            n.items[n.pc :] = [("abort", job.world), ("sleep", 30 * MS), ("end", "final")]
            n.parked = None
            job.sim.at(still + wait - S // 2 + m.random.randrange(S), job.sim.step, n)
    job.sim.run(7200 * S)
    c.stuck_s = m.random.choice((10, 30))
    c.now = max(x.died for x in job.sim.ranks) + m.random.randrange(5 * S, 300 * S)
    killed = job.sim.ranks[r].how == "sigkill"
    c.answers = {"dead"} if killed else {"ended"}
    if killed and m.source == LOGS:
        c.answers = {"dead", "cannot_tell", "hang"}
    if killed:
        c.answers |= {"hang"}
    return c


@kind("a rank destroys a communicator that others wait in")
def destroyed(m):
    job = m.job(TENSOR)
    r, i = job.pick("tp")
    name = job.programs[r][i][1]
    job.programs[r][i:] = [("destroy", name), ("sleep", FOREVER)]
    job.run_until_still()
    c = Case(m, job)
    peers = [o for o in job.sim.inside(name) if o.rank != r]
    c.meets = [peers[0].meet]
    c.causes = [Cause(name, {(o.func, o.sn) for o in peers[0].meet.ops.values()}, {r})]
    c.begun()
    c.look_at_wait()
    if m.source == BOXES:  # a box does not hold communicators that are over
        c.faint = True
        c.answers |= {"cannot_tell", "not_yet"} if m.when == "before" else {"cannot_tell"}
    return c


@kind("shrink: the survivors go on in a new communicator", whens=("after",), group="quiet")
def shrink(m):
    job = m.job(FLAT, steps=6)
    r, i = job.pick("world")
    job.programs[r][i:] = [("end", "sigkill")]
    keep_old = m.random.random() < 0.5
    job.sim.comm("shrunk", [n for n in range(job.n) if n != r])
    still = job.run_until_still()
    for n in job.sim.ranks:
        if n.number != r:
            more = [] if keep_old else [("abort", job.world)]
            more += [("join", "shrunk")]
            for _ in range(400):
                more += [
                    ("call", "shrunk", "AllReduce", 4 * jobs.MB, 0, True),
                    ("sync",),
                    ("sleep", 700 * MS),
                ]
            if keep_old:
                n.open = 0
                n.tails.pop(None, None)
            n.items, n.pc, n.parked = more, 0, None
            job.sim.at(still + 20 * S, job.sim.step, n)
    job.sim.run(still + 200 * S)
    c = Case(m, job)
    c.well(still + m.random.randrange(30 * S, 190 * S))
    c.answers |= {"not_yet", "cannot_tell"} if m.source == BOXES else {"not_yet"}
    return c
