"""Puts a case onto the disk: logs, boxes, copies and dumps as they are at the instant of the look."""

import os
import shutil
import subprocess
import time

import flight
import record
from case import BOXES, BOXES_AND_LOGS, COPIES, DUMPS, LOGS
from world import MS, S


class Stand_ins:
    """Real processes that stand for the living ranks of made-up hosts: one for each rank of a host."""

    def __init__(self, n=8):
        self.processes = [subprocess.Popen(["sleep", "3600"]) for _ in range(n)]
        self.ids = []
        for p in self.processes:
            with open("/proc/%d/stat" % p.pid, encoding="ascii") as f:
                self.ids.append((p.pid, int(f.read().rsplit(")", 1)[1].split()[19])))

    def of(self, local_rank):
        return self.ids[local_rank % len(self.ids)]

    def end(self):
        for p in self.processes:
            p.kill()
            p.wait()


def damage(path, how):
    with open(path, "r+b") as f:
        if how == "cut":
            f.truncate(3000)
        elif how == "magic":
            f.write(b"NIBLKBAX")
        else:
            f.seek(12)
            f.write((99).to_bytes(4, "little"))


def lay_out(case, folder, stand_ins):
    """Writes the case into a folder. Returns the paths for the command, the folder of boxes, and now (Unix
    ns). That is the time at which this was called: of boxes of living processes the command counts from its
    own time, which is a little later.
    """
    logs, boxes, none = (os.path.join(folder, n) for n in ("logs", "boxes", "none"))
    for d in (logs, boxes, none):
        os.makedirs(d)
    now_unix = time.time_ns()
    mono = time.monotonic_ns() + 10**15  # a machine that has been up for long, since some jobs last for days
    base = now_unix - case.now
    if case.source == DUMPS:
        made = case.now - case.random.randrange(S, 90 * S)
        flight.write(
            case.job,
            base,
            made,
            logs,
            case.random,
            skip=case.skip_dumps,
            **{"timing": False, **case.dump_how}
        )
        return [logs], none, now_unix
    jobs = [(case.job, 0, {})] + case.others
    for number, (job, begun, how) in enumerate(jobs):
        place = logs
        if how.get("elsewhere"):
            place = os.path.join(folder, "logs-of-another")
            os.makedirs(place)
        put(case, job, begun, number == 0, place, boxes, (base, now_unix, mono), stand_ins)
    if case.source == LOGS:
        return [logs], none, now_unix
    if case.source == BOXES:
        return [boxes], boxes, now_unix
    if case.source == COPIES:
        return [boxes, logs], none, now_unix
    return [logs], boxes, now_unix


def look_at(case, job, begun, main, logs, times, at):
    base, _, mono = times
    clocks = {h: record.Clock(base + begun, *c) for h, c in case.clocks.items()} if main else {}
    return record.Look(
        job,
        at - begun,
        base + begun,
        mono - case.now + begun,
        case.stuck_s,
        logs,
        clocks,
        lag=case.lag if main else {},
        full_disk=case.full if main else {},
        frozen=case.frozen if main else {},
        old_nccl=case.old_nccl,
        old_box=case.old_box,
        nccl=case.nccl if main else None,
        old_plugin=case.old_plugin and main,
    )


def put(case, job, begun, main, logs, boxes, times, stand_ins):
    moments = set(case.seen_at.values()) if main else ()
    looks = {at: look_at(case, job, begun, main, logs, times, at) for at in moments}
    now = look_at(case, job, begun, main, logs, times, case.now)
    for r in job.sim.ranks:
        look = looks.get(case.seen_at.get(r.number) if main else None, now)
        lives = r.died is None or r.died > look.now
        if lives:
            # The log and the box of a living rank name the process that stands for it.
            r.pid, ticks = stand_ins.of(r.number % job.per_host)
        if case.source != BOXES and not (main and r.number in case.no_log):
            look.write_log(r, logs)
        if case.source == LOGS or not look.has_box(r) or (main and r.number in case.no_box):
            continue
        if case.source == COPIES:
            look.write_box(r, boxes, copy=True, taken=look.now - case.random.randrange(10 * MS))
            continue
        path = look.write_box(r, boxes, r.pid, ticks if lives else 1)
        if main and r.number in case.broken:
            damage(path, case.broken[r.number])


def sweep(folder):
    shutil.rmtree(folder, ignore_errors=True)
