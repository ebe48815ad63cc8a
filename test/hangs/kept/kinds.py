"""Kinds kept back from whoever works on the judge: written from docs/hang.md and public reports alone."""

import jobs
import kinds
from case import BOXES, BOXES_AND_LOGS, COPIES, DUMPS, LOGS, Case, Cause
from world import FOREVER, MS, S

KINDS = {}


def kind(name, **how):
    return kinds.kind(name, into=KINDS, **how)


def settle(c, job, blamed, **how):
    job.run_until_still()
    c.blame(blamed)
    c.look_at_wait(**how)
    return c


@kind("a rank is stuck inside its call: nothing was launched", sources=(BOXES_AND_LOGS, BOXES, COPIES))
def stuck_in_call(m):
    job = m.job(kinds.WIDE_TENSOR + kinds.FLAT)
    r, i = job.pick(m.random.choice(("tp", "world"))) or job.pick("any")
    comm = job.programs[r][i][1]
    job.change(r, i, how="called only")
    job.insert(r, i + 1, ("sleep", FOREVER))
    job.run_until_still()
    c = Case(m, job)
    op = [o for o in job.sim.ranks[r].ops if o.called_only][0]
    c.meets = [op.meet]
    c.causes = [Cause(comm, {(o.func, o.sn) for o in op.meet.ops.values()}, {r})]
    c.begun()
    c.look_at_wait()
    return c


@kind("a rank's stream is blocked: called, and its kernel does not start")
def queued(m):
    job = m.job(kinds.WIDE_TENSOR + kinds.FLAT)
    r, i = job.pick(m.random.choice(("tp", "world"))) or job.pick("any")
    count = sum(1 for x in job.programs[r][:i] if x[0] == "call")
    plain = job.sim.launch

    def held(op):
        if op.rank == r and len(job.sim.ranks[r].ops) > count and op is job.sim.ranks[r].ops[count]:
            return
        plain(op)

    job.sim.launch = held
    job.run_until_still()
    c = Case(m, job)
    op = job.sim.ranks[r].ops[count]
    c.meets = [op.meet]
    c.causes = [Cause(op.comm.name, {(op.func, op.sn)}, who) for who in ({r}, set())]
    c.begun()
    c.look_at_wait()
    if m.source == LOGS and "hang" in c.answers:
        c.causes.append(Cause(op.comm.name, {(op.func, op.sn)}, {r}))
    return c


@kind(
    "a rank is stopped by a signal: it lives, and its box does not beat",
    sources=(BOXES_AND_LOGS, BOXES, COPIES),
)
def stopped(m):
    c = kinds.stops(m, "any", None)
    for n in c.blamed:
        c.frozen[n] = c.moved(n, c.now) + 10 * MS
    return c


@kind("all are inside, nobody is missing: network or GPU")
def all_inside(m):
    job = m.job(kinds.WIDE_TENSOR + kinds.FLAT)
    r, i = job.pick(m.random.choice(("tp", "world", "dp"))) or job.pick("any")
    comm = job.programs[r][i][1]
    count = sum(1 for x in job.programs[r][:i] if x[0] == "call" and x[1] == comm)
    job.start()
    place = ("coll", comm, count)
    meets = job.sim.comms[comm].meets
    while job.sim.heap and place not in meets:
        job.sim.run(job.sim.heap[0][0])
    meets[place].frozen = True
    job.sim.run(3600 * S)
    c = Case(m, job)
    ops = list(meets[place].ops.values())
    c.meets = [meets[place]]
    c.causes = [Cause(comm, {(o.func, o.sn) for o in ops}, set())]
    c.begun()
    c.look_at_wait()
    return c


@kind("a broadcast from another root", whens=("at", "late", "killed"))
def other_root(m):
    def plant(job, r, i):
        comm = job.programs[r][i][1]
        place = sum(1 for x in job.programs[r][:i] if x[0] == "call" and x[1] == comm)
        for n in job.sim.comms[comm].members:
            calls = [k for k, x in enumerate(job.programs[n]) if x[0] == "call" and x[1] == comm]
            job.change(n, calls[place], func="Broadcast", peer=1 if n == r else 0)

    return kinds.odd_call(m, m.random.choice(("tp", "world")), ["t4d2", "t4p2d2", "fsdp8", "ddp8"], plant)


@kind("a message to the wrong peer", whens=("at", "late"))
def wrong_peer(m):
    job = m.job(["t2p4"])
    stage_1 = range(job.tp * job.dp, 2 * job.tp * job.dp)
    r, i = job.pick("Send", stage_1)
    comm = job.programs[r][i][1]
    right = job.programs[r][i][4]
    wrong = 3 if right == 2 else 2
    job.change(r, i, peer=wrong)
    job.run_until_still()
    c = Case(m, job)
    sends = [o for o in job.sim.ranks[r].ops if o.func == "Send" and o.peer == wrong and o.end is None]
    if not sends:  # the wrong one takes it, and what follows is one too many
        c.meets, c.causes = [job.sim.inside()[0].meet], []
        c.begun()
        c.look_at_wait()
        return c
    c.meets = [sends[0].meet]
    members = job.sim.comms[comm].members
    waits = [o for o in job.sim.inside(comm) if o.func == "Recv" and o.peer == job.sim.comms[comm].place[r]]
    ops = {("Send", sends[0].sn)} | {("Recv", o.sn) for o in waits} | {("Send", o.sn) for o in waits}
    c.causes = [Cause(comm, ops, {r, members[wrong], members[right]})]
    c.blamed = {r, members[wrong], members[right]}
    c.causes.append(Cause(comm, ops, ()))
    c.any_of_ranks = True
    c.begun()
    c.look_at_wait()
    return c


@kind("split: one rank does not join in the first call of the new communicator")
def split(m):
    job = m.job(kinds.FLAT)
    odd = m.random.randrange(job.n)
    half = [n for n in range(job.n) if n % 2 == odd % 2]
    job.sim.comm("split", half)
    for n in range(job.n):
        end = job.calls(n, "world", 0, 1)[-1]
        if n in half:
            job.programs[n][end + 2 :] = [("join", "split"), ("sleep", 100 * MS)]
            job.programs[n] += (
                [("call", "split", "AllReduce", 8 * jobs.MB, 0, True), ("sync",)]
                if n != odd
                else [("sleep", FOREVER), ("call", "split", "AllReduce", 8 * jobs.MB, 0, True)]
            )
        job.programs[n] += [("call", job.world, "AllReduce", 4 * jobs.KB, 0, True), ("sync",)]
    return settle(Case(m, job), job, [odd])


@kind("a hang ended by the watchdogs, one after the other", whens=("after",), group="hang")
def watchdogs(m):
    c = kinds.stops(m_at(m, "late"), m.random.choice(("tp", "world")), None)
    since = c.waits_from
    far = c.job.still_since()
    order = list(c.job.sim.ranks)
    m.random.shuffle(order)
    at = far + 600 * S
    for r in order:
        at += m.random.randrange(100 * MS, 2 * S)
        r.died, r.how = at, "crash"
    c.now = at + m.random.randrange(10 * S, 600 * S)
    c.answers = {"hang"}
    c.stuck_s = min(c.stuck_s, 300)
    assert since < c.now
    return c


def m_at(m, when):
    m.when = when
    return m


@kind(
    "killed after some seconds of waiting",
    sources=(BOXES_AND_LOGS, BOXES, COPIES),
    whens=("killed",),
    group="over",
)
def killed_early(m):
    m.when = "late"
    c = kinds.stops(m, "any", None)
    at = max(c.job.still_since(), c.waits_from) + m.random.randrange(2 * S, 8 * S)
    c.kill_all(at, spread=20 * MS)
    c.now = at + m.random.randrange(5 * S, 300 * S)
    c.answers = {"dead"}
    return c


@kind("hung and killed, begun anew, runs", whens=("now",), group="quiet")
def rerun(m):
    when = m.when
    m.when = "killed"
    source = m.source
    old = kinds.stops(m, "any", None)
    m.when, m.source = when, source
    first = old.job
    job = jobs.Job(m.random, first.layout, steps=8, pid0=4310000)
    c = Case(m, job)
    c.stuck_s = old.stuck_s
    c.well(int(job.run_until_still() * m.random.uniform(0.3, 0.9)))
    c.others = [(first, -(old.now + m.random.randrange(20 * S, 300 * S)), {})]
    return c


@kind("killed, begun anew, hangs", whens=("late", "killed"))
def rerun_hangs(m):
    c = kinds.stops(m, "any", None)
    first = jobs.Job(m.random, c.job.layout, steps=8, pid0=4310000)
    still = first.run_until_still()
    old = Case(m, first)
    old.kill_all(int(still * m.random.uniform(0.3, 0.9)))
    c.others = [(first, -(still + m.random.randrange(20 * S, 300 * S)), {})]
    return c


@kind("one group evaluates with calls, the rest wait", whens=("now",), group="quiet")
def subset_evaluates(m):
    job = m.job(kinds.TENSOR)
    n_eval = m.random.choice((100, 200, 380))
    tp = job.groups[0]["tp"]
    for n in job.sim.comms[tp].members:
        end = job.calls(n, job.world, 0, 1)[-1]
        extra = []
        for _ in range(n_eval):
            extra += [("call", tp, "AllReduce", jobs.MB, 0, True), ("sync",), ("sleep", S)]
        job.programs[n][end:end] = extra
    job.run_until_still()
    c = Case(m, job)
    calls = [o for o in job.sim.ranks[0].of[tp] if o.func == "AllReduce"]
    c.well(calls[0].enq + int((calls[-1].enq - calls[0].enq) * m.random.uniform(0.2, 0.95)))
    c.answers.add("not_yet")
    return c


@kind("a long pipeline, a rank stops early in the step")
def long_pipeline(m):
    job = m.job([("megatron", 1, 8, 1, 4), ("megatron", 2, 8, 1, 8)], least_s=m.random.choice((0, 80)))
    r, i = job.pick(m.random.choice(("Send", "Recv")), range(job.n // 4))
    job.stop(r, i)
    return settle(Case(m, job), job, [r])


@kind("two ranks stop in different groups")
def two_causes(m):
    job = m.job(["t4p2d2", "t2p2d4", "t2d4", "t4d2"])
    tps = sorted({job.groups[n]["tp"] for n in range(job.n)})
    m.random.shuffle(tps)
    blamed = []
    for name in tps[:2]:
        r = m.random.choice(job.sim.comms[name].members)
        r, i = job.pick("tp", [r])
        job.stop(r, i)
        blamed.append(r)
    return settle(Case(m, job), job, blamed)


@kind("a lost stop long ago, then a rank stops")
def lost_then_hang(m):
    job = m.job(kinds.FLAT + kinds.TENSOR, least_s=80)
    loser = m.random.randrange(job.n)
    i = m.random.choice(job.calls(loser, "", 0.05, 0.3))
    job.change(loser, i, how="lost")
    r, i = job.pick("any")
    job.stop(r, i)
    return settle(Case(m, job), job, [r])


@kind("a dead rank in an all-to-all of Send and Recv")
def dead_in_all_to_all(m):
    job = m.job(["ddp8"])
    r = m.random.randrange(job.n)
    for n in range(job.n):
        ends = job.calls(n, "world", 0, 1)
        for step, i in reversed(list(enumerate(ends))):
            if step % 4 == 1:
                pairs = [
                    x
                    for p in range(job.n)
                    if p != n
                    for x in (
                        ("call", job.world, "Send", jobs.MB, p, True),
                        ("call", job.world, "Recv", jobs.MB, p, True),
                    )
                ]
                job.programs[n][i:i] = [("group", True)] + pairs + [("group", False)]
    i = [k for k, x in enumerate(job.programs[r]) if x == ("group", True)][-2]
    job.insert(r, i, ("end", "sigkill"))
    job.run_until_still()
    c = Case(m, job)
    c.blame([r])
    c.look_at_wait(max(c.waits_from, job.sim.ranks[r].died), dead=True)
    return c


@kind("a long first iteration: compiling", whens=("now",), group="quiet")
def compiling(m):
    job = m.job(kinds.FLAT + kinds.TENSOR)
    r = m.random.randrange(job.n)
    i = job.calls(r, "", 0, 0.3)[0]
    job.stop(r, i, m.random.choice((30, 50)) * S)
    job.run_until_still()
    c = Case(m, job)
    c.well(m.random.randrange(7 * S, 29 * S))
    c.answers.add("not_yet")
    return c


@kind("all ended but one, which was killed", sources=(BOXES_AND_LOGS, COPIES), whens=("after",), group="over")
def one_killed_at_the_end(m):
    job = m.job()
    job.finish("exit")
    r = m.random.randrange(job.n)
    job.programs[r][-1] = ("end", "sigkill")
    still = job.run_until_still()
    c = Case(m, job)
    c.now = still + m.random.randrange(20 * S, 400 * S)
    c.answers = {"dead"}
    return c


@kind(
    "half of the ranks left no data, a rank stops", sources=(BOXES_AND_LOGS, COPIES), whens=("late", "killed")
)
def half_missing_hang(m):
    c = kinds.stops(m, m.random.choice(("tp", "world")), ["t4p2d2", "t4d2", "ddp8", "fsdp8"])
    culprit = next(iter(c.causes[0].ranks))
    waiting = {o.rank for o in c.meets[0].ops.values()} - {culprit}
    witness = m.random.choice(sorted(waiting))
    others = [n for n in range(c.job.n) if n not in (culprit, witness)]
    m.random.shuffle(others)
    away = set(others[: c.job.n // 2])
    if m.random.random() < 0.5:
        away.add(culprit)
    c.no_log = c.no_box = away
    c.faint = True
    if culprit in away:
        c.answers |= {"cannot_tell"}
    return c


@kind("dumps, and one is missing: its process is dead", sources=(DUMPS,), whens=("late",))
def dumps_dead(m):
    job = m.job(kinds.FLAT)
    r, i = job.pick("world")
    job.insert(r, i, ("end", "sigkill"))
    job.run_until_still()
    c = Case(m, job)
    c.skip_dumps = {r}
    c.blame([r])
    c.look_at_wait()
    return c


@kind("dumps with times, a rank in a call of another function", sources=(DUMPS,), whens=("late",))
def dumps_other_function(m):
    def plant(job, r, i):
        job.change(r, i, func="Broadcast")

    c = kinds.odd_call(m, m.random.choice(("tp", "world")), ["t4d2", "t4p2d2", "fsdp8"], plant)
    c.dump_how = {"timing": m.random.random() < 0.5, "gave_up": m.random.random() < 0.5}
    return c
