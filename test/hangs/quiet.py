"""More kinds of kinds.py: healthy and quiet jobs, clocks, several jobs, what is not there, dumps."""

import jobs
from case import BOXES, BOXES_AND_LOGS, COPIES, DUMPS, LOGS, Case
from kinds import FLAT, KINDS, TENSOR, kind, stops  # KINDS: all, with those below
from world import MS, S

# Quiet and healthy


@kind("it runs", whens=("now",), group="quiet")
def healthy(m):
    job = m.job(least_s=m.random.choice((0, 30, 100)))
    c = Case(m, job)
    c.well(int(job.run_until_still() * m.random.uniform(0.2, 0.9)))
    return c


def paused(m, least, most, source_all=True):
    job = m.job(least_s=m.random.choice((0, 80)))
    c = Case(m, job)
    c.well(job.run_until_still() + m.random.randrange(least, most))
    return c


@kind("an evaluation without a call, all outside", whens=("now",), group="quiet")
def evaluation(m):
    return paused(m, 20 * S, 900 * S)


@kind("an idle server", whens=("now",), group="quiet")
def idle(m):
    return paused(m, 3600 * S, 48 * 3600 * S)


@kind("a checkpoint by rank 0, the others wait, as before", whens=("now",), group="quiet")
def checkpoint(m):
    job = m.job(FLAT, steps=8)
    pause = m.random.choice((20, 40, 60)) * S
    ends = [i for i in job.calls(0, "world", 0, 1) if job.programs[0][i][3] == 4 * jobs.KB]
    for i in reversed(ends[3::2]):
        job.stop(0, i, pause)
    job.run_until_still()
    c = Case(m, job)
    starts = [
        o for o in job.sim.ranks[1].of[job.world] if o.bytes == 4 * jobs.KB and o.end - o.start > pause // 2
    ]
    o = starts[-1]
    c.well(o.start + int(pause * m.random.uniform(0.5, 0.95)))
    c.answers.add("not_yet")
    return c


@kind("the end in order on a full disk", sources=(BOXES_AND_LOGS, BOXES), whens=("after",), group="quiet")
def full_disk(m):
    job = m.job()
    job.finish("exit")
    still = job.run_until_still()
    c = Case(m, job)
    at = still * 6 // 10
    c.full = {r.number: at for r in job.sim.ranks}
    c.now = still + m.random.randrange(5 * S, 600 * S)
    c.answers = {"ended"}
    return c


@kind("a stop that never came, of an operation that was passed", whens=("now", "later"), group="quiet")
def lost_stop(m):
    job = m.job(TENSOR + FLAT, least_s=60)
    r, i = job.pick("any")
    job.change(r, i, how="lost")
    still = job.run_until_still()
    c = Case(m, job)
    o = [o for o in job.sim.ranks[r].ops if o.lost][0]
    c.well(min(o.end + 9 * S, still - MS) if m.when == "now" else still + m.random.randrange(20 * S, 600 * S))
    c.stuck_s = max(c.stuck_s, 30)
    passed = any(
        x.number > o.number and x.end is not None and x.end < c.now for x in job.sim.ranks[r].of[o.comm.name]
    )
    if o.p2p or not passed:
        c.answers |= {"not_yet"}
    return c


# Clocks, several jobs, what is not there


@kind("clocks of hosts differ by minutes; a rank stops", sources=(LOGS, COPIES), whens=("late", "killed"))
def clocks_differ(m):
    c = stops(m, m.random.choice(("tp", "world")), ["t2p2d2", "t4d2", "t2d4", "t2p2d4"])
    for i, host in enumerate(sorted({r.host for r in c.job.sim.ranks})):
        c.clocks[host] = (i * m.random.choice((-1, 1)) * m.random.randrange(120 * S, 900 * S), None, 0)
    return c


@kind("clocks of hosts differ by minutes; it runs", sources=(COPIES,), whens=("now",), group="quiet")
def clocks_differ_well(m):
    job = m.job(["t2p2d2", "t4d2", "t2d4", "ddp8"], least_s=30)
    c = Case(m, job)
    c.well(int(job.run_until_still() * m.random.uniform(0.3, 0.9)))
    for i, host in enumerate(sorted({r.host for r in job.sim.ranks})):
        c.clocks[host] = (i * m.random.choice((-1, 1)) * m.random.randrange(120 * S, 900 * S), None, 0)
    return c


@kind(
    "a clock is set back, then all end in order",
    sources=(BOXES_AND_LOGS, LOGS),
    whens=("after",),
    group="quiet",
)
def clock_back(m):
    job = m.job(least_s=30)
    job.finish()
    still = job.run_until_still()
    c = Case(m, job)
    step = m.random.choice((-1, 1)) * m.random.randrange(60 * S, 3600 * S)
    for host in {r.host for r in job.sim.ranks}:
        c.clocks[host] = (-step, int(still * m.random.uniform(0.2, 0.9)), step)
    c.now = still + m.random.randrange(5 * S, 600 * S)
    c.answers = {"ended"}
    return c


@kind("a clock is set back, then a rank stops", sources=(BOXES_AND_LOGS, LOGS), whens=("late",))
def clock_back_hang(m):
    c = stops(m, "world", FLAT)
    step = m.random.choice((-1, 1)) * m.random.randrange(60 * S, 3600 * S)
    at = c.waits_from * 7 // 10
    for host in {r.host for r in c.job.sim.ranks}:
        c.clocks[host] = (-step, at, step)
    return c


@kind("killed, begun anew with the same job id, runs", whens=("now",), group="quiet")
def restart(m):
    first = m.job()
    still = first.run_until_still()
    old = Case(m, first)
    old.kill_all(int(still * m.random.uniform(0.3, 0.9)))
    layout = first.layout
    job = jobs.Job(m.random, layout, steps=8, pid0=4310000)
    c = Case(m, job)
    c.well(int(job.run_until_still() * m.random.uniform(0.3, 0.9)))
    c.others = [(first, -(still + m.random.randrange(20 * S, 300 * S)), {})]
    return c


@kind(
    "half of logs and boxes are missing, it runs",
    sources=(BOXES_AND_LOGS, BOXES, COPIES),
    whens=("now",),
    group="blind",
)
def half_missing(m):
    c = healthy(m)
    away = m.random.sample(range(c.job.n), c.job.n // 2)
    c.no_log = c.no_box = set(away)
    c.answers = {"cannot_tell"}
    return c


@kind("boxes that cannot be read", sources=(BOXES_AND_LOGS, BOXES), whens=("now",), group="blind")
def unreadable(m):
    c = healthy(m)
    away = m.random.sample(range(c.job.n), max(1, c.job.n // 3))
    c.broken = {n: m.random.choice(("cut", "magic", "version")) for n in away}
    c.answers = {"cannot_tell"}
    return c


@kind("a second job beside it hangs not", sources=(BOXES_AND_LOGS,), whens=("late",))
def second_job(m):
    c = stops(m, "any", None)
    other = jobs.Job(m.random, m.random.choice(FLAT), steps=8, world_name="other", job_id="78", pid0=4320000)
    other.run_until_still()
    c.others = [(other, 0, {"elsewhere": True})]
    return c


# Flight Recorder


@kind("dumps, given up: retired, not completed", sources=(DUMPS,), whens=("late",))
def dumps_retired(m):
    c = stops(m, m.random.choice(("any", "world")), None)
    c.dump_how = {"gave_up": True, "timing": m.random.random() < 0.5}
    return c


@kind("dumps of gloo, all done", sources=(DUMPS,), whens=("now",), group="quiet")
def dumps_gloo(m):
    job = m.job(["ddp8"])
    c = Case(m, job)
    c.now = job.run_until_still() + 620 * S
    c.answers = {"no_hang", "ended", "cannot_tell"}
    c.dump_how = {"backend": "gloo"}
    return c


@kind("dumps of a healthy job", sources=(DUMPS,), whens=("now",), group="quiet")
def dumps_well(m):
    job = m.job()
    c = Case(m, job)
    c.now = job.run_until_still() + m.random.randrange(S, 60 * S)
    c.answers = {"no_hang"}
    return c
