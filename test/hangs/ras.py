#!/usr/bin/env python3
"""What NCCL's RAS would answer of a made-up job, and whether `hang --ras` says of it what was planted.

Counts come from the world's own programs: neither the plugin's lines nor its boxes are asked. Each case is
looked at by black boxes (as score.py does) and by two answers of RAS, 320 s apart, the later one at the
moment of the boxes.

    ras.py --exporter build/nccl-inspector --seeds 0-4       the kinds that hang long ago, and the quiet ones
    ras.py --short --least 0.95                              some of each; fails below that share, or with a false alarm

A case is one in which RAS *can tell* when a culprit is dead by then, or has launched fewer collectives of a
communicator than another living rank of it: by the programs, not by what was answered. What it cannot tell
(who owes a Send, a size, a kernel that hangs) must not be called certain, and of healthy jobs none may be
called HANG.
"""

import argparse
import collections
import os
import random
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import answer
import case as cases
import quiet
import ras
import scene
from kept import kinds as kept
from world import S

APART = 320 * S
DEAD_AFTER = 60 * S  # as RAS gives a peer up
ROOT = os.path.dirname(os.path.dirname(HERE))


def launched(r, name, now):
    """{function: how many} that a rank has launched in a communicator: host side, so when it is called."""
    count = collections.Counter()
    for o in r.of.get(name, ()):
        if not o.p2p and not o.called_only and o.replay is None and o.enq <= now:
            count[o.func] += 1
    return count


def is_over(r, now):
    return r.died is not None and r.died <= now


def has(r, name, now):
    begin, end, _ = r.comms.get(name, (None, None, None))
    return begin is not None and begin <= now and (end is None or end > now) and not is_over(r, now)


def dead(r, now):
    return is_over(r, now) and now - r.died >= DEAD_AFTER


def stopped(case, r, now):
    """A process that a signal has stopped does not answer."""
    since = case.frozen.get(r.number)
    return since is not None and (since is True or since <= now)


def host_of(case, number):
    return "10.0.%d.1" % (number // case.job.per_host)


def say(case, now):
    """The answer at `now`, which begins with the job."""
    sim, comms = case.job.sim, []
    for c in sim.comms.values():
        here, gone = [], []
        for place, number in enumerate(c.members):
            r = sim.ranks[number]
            who = {"host": host_of(case, number), "pid": r.pid, "dev": number % case.job.per_host}
            if has(r, c.name, now) and not stopped(case, r, now):
                here.append(ras.rank(place, launched(r, c.name, now), **who))
            else:
                quiet_one = is_over(r, now) or stopped(case, r, now)
                gone.append(ras.missing(place, unresponsive=quiet_one, dead=dead(r, now), **who))
        if here:
            comms.append(ras.comm(c.hash, len(c.members), here, gone))
    return ras.answer(comms, at=now // S)


def lagging(case, now):
    """Global ranks that a living rank of some communicator is ahead of, those that are gone included."""
    out, sim = set(), case.job.sim
    for c in sim.comms.values():
        here = [n for n in c.members if has(sim.ranks[n], c.name, now)]
        total = {n: sum(launched(sim.ranks[n], c.name, now).values()) for n in here}
        if here:
            out |= {n for n in here if total[n] < max(total.values())}
            out |= {n for n in c.members if is_over(sim.ranks[n], now) or stopped(case, sim.ranks[n], now)}
    return out


def named(case, d):
    """Global ranks of the first trouble."""
    pids = {(host_of(case, r.number), r.pid): r.number for r in case.job.sim.ranks}
    troubles = d.get("ras", {}).get("troubles", [])
    wait = {"behind", "other_calls", "dead", "unresponsive"}
    first = next((t for t in troubles if t["hangs"] and not t["consequence"]), None)
    ranks = [x for x in (first or {"ranks": []})["ranks"] if wait & set(x["is"])]
    return {pids[x["host"], x["pid"]] for x in ranks}


def play(o, stand_ins, part, form, seed):
    name, make, source, when, group = form
    for draw in range(10):
        rnd = random.Random("ras/%s/%s/%s/%d/%d" % (name, source, when, seed, draw))
        try:
            c = make(cases.Maker(rnd, source, when))
            break
        except cases.NotThisKind:
            if draw == 9:
                return None
    folder = tempfile.mkdtemp(prefix="hangs-ras-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    try:
        paths, boxes, now = scene.lay_out(c, folder, stand_ins)
        first = max(0, c.now - APART)
        files = []
        for i, at in enumerate((first, c.now)):
            files.append(os.path.join(folder, "ras%d.json" % i))
            with open(files[-1], "w", encoding="utf-8") as f:
                f.write(say(c, at))
        look = ["--ras=" + f for f in files]
        by_ras = answer.ask(o.exporter, [], os.path.join(folder, "none"), now, folder, look)
        by_plugin = answer.ask(o.exporter, paths, boxes, now, folder)
        beside = answer.ask(o.exporter, paths, boxes, now, folder, ["--ras=" + files[1]])
        return Row(name, group, seed, c, first, by_ras, by_plugin, beside)
    finally:
        scene.sweep(folder)


class Row:
    """kind: tells, silent or quiet, with what was right of it."""

    def __init__(self, name, group, seed, case, first, by_ras, by_plugin, beside):
        self.name, self.group, self.seed, self.case = name, group, seed, case
        self.said, self.plugin = by_ras, by_plugin
        hang = "hang" in case.answers
        self.truth = set().union(*(c.ranks for c in case.causes)) if case.causes else set()
        self.lag = lagging(case, case.now) if hang else set()
        self.tells = hang and bool(self.truth & self.lag)
        self.named = named(case, by_ras.d)
        self.verdict = by_ras.answer == "hang"
        self.ranks = bool(self.named) and self.named <= self.truth | case.blamed
        self.same = self.ranks and bool(self.named & by_plugin.ranks)
        self.alarm = "hang" not in case.answers and by_ras.code == 3
        self.certain = "certain" in (by_ras.d.get("answer") or "")
        self.differ = (beside.d.get("ras", {}).get("beside_the_plugin") or {}).get("differences", [])
        self.compared = (beside.d.get("ras", {}).get("beside_the_plugin") or {}).get("compared", 0)


def todo(o):
    for part, table in (("open", quiet.KINDS), ("kept", kept.KINDS)):
        for name, (make, sources, whens, group) in table.items():
            if o.only not in name or cases.COPIES not in sources:
                continue
            when = "late" if "late" in whens else "now" if "now" in whens else None
            if when is None:
                continue
            form = (name, make, cases.COPIES, when, group)
            first, _, last = o.seeds.partition("-")
            for seed in range(int(first), int(last or first) + 1):
                yield part, form, seed


def tell(row, what):
    print("%s, seed %d: %s; truth %s, lagging %s, named %s\n    RAS:    %s\n    plugin: %s"
          % (row.name, row.seed, what, sorted(row.truth), sorted(row.lag), sorted(row.named),
             row.said.sentence[:300],
             row.plugin.sentence[:200]))
    for d in row.differ[:3]:
        print("    differs: " + d)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--exporter", default=os.path.join(ROOT, "build", "nccl-inspector"))
    p.add_argument("--seeds", default="0-1")
    p.add_argument("--only", default="")
    p.add_argument("--short", action="store_true")
    p.add_argument("--least", type=float, default=0)
    p.add_argument("--verbose", action="store_true")
    o = p.parse_args()
    o.exporter = os.path.abspath(o.exporter)
    stand_ins, rows = scene.Stand_ins(), []
    try:
        forms = list(todo(o))
        if o.short:
            forms = random.Random("ras").sample(forms, min(24, len(forms)))
        rows = [r for r in (play(o, stand_ins, *f) for f in forms) if r is not None]
    finally:
        stand_ins.end()
    tells = [r for r in rows if r.tells]
    right = [r for r in tells if r.verdict and r.ranks]
    silent = [r for r in rows if "hang" in r.case.answers and not r.tells]
    other = [r for r in rows if "hang" not in r.case.answers]
    alarms = [r for r in rows if r.alarm or r.certain]
    differ = [r for r in rows if r.differ]
    if o.verbose:
        for r in tells:
            if r not in right:
                tell(r, "wrong")
        for r in silent:
            tell(r, "cannot be told by RAS")
        for r in differ:
            tell(r, "RAS and plugin differ")
    for r in alarms:
        tell(r, "FALSE ALARM")
    print("%d hangs that RAS can tell: verdict right in %d, verdict and ranks in %d, the plugin names one of them in %d"
          % (len(tells), sum(r.verdict for r in tells), len(right), sum(r.same for r in tells)))
    print("%d hangs that it cannot: %d called HANG by what lags behind, %d CANNOT TELL, %d not yet or no hang"
          % (len(silent), *(sum(r.said.answer in a for r in silent)
                            for a in (("hang",), ("cannot_tell",), ("not_yet", "no_hang")))))
    print("%d jobs that do not hang: %d called HANG" % (len(other), len(alarms)))
    print("%d ranks compared beside the plugin in %d jobs: differences in %d"
          % (sum(r.compared for r in rows), len(rows), len(differ)))
    sys.exit(bool(alarms) or bool(differ) or (bool(tells) and len(right) < o.least * len(tells)) or not rows)


if __name__ == "__main__":
    main()
