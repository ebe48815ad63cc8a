#!/usr/bin/env python3
"""What was read from NCCL's sources of 2.31 and not stated by anybody, held against recordings of real
callbacks.

  inferences.py RELEASE RECORDING...   RELEASE as in 23203; all ranks of one run of gpu_drive, plans symmetric and tags
                                       (test/gpu/plans_v7.c) or others

A line each, with tabs: PASS, FAIL or NOT SEEN; the inference, by its name in docs/validation.md; figures. One
that is not in the recordings, as with an older interface or on a machine where NCCL takes no symmetric
kernel, is NOT SEEN. Exit status: 1 where one FAILs.
"""
import sys

import recording

# float32
FUSED, CAPTURED, CAPTURED_FUSED, BEHIND, LATE = (bytes_ // 4
                                                 for bytes_ in (24576, 40960, 57344, 98304, 786432))
LATE_NS = 20_000_000
NEAR_NS = 5_000_000  # how far apart two processes may begin the same call on a busy machine
BARRIERS = ("ST", "STMC", "LD", "LDMC", "TmaST", "TmaSTMC", "TmaLD", "RSxLD_AGxST", "RSxLDMC_AGxSTMC",
            "RSxTmaLD_AGxTmaST")


class Operation:
    """A Coll with all that belongs to it."""

    def __init__(self, run, number, event):
        self.number, self.event, self.run = number, event, run
        self.symmetric = event["isSymColl"] == 1 or (event["isSymColl"] is None and event["proto"] == "")
        call = run.events.get(event["parent"])
        self.captured = bool(call and call["type"] == "CollApi" and call["graphCaptured"])
        self.call = event["parent"] if call else 0
        self.channels = run.under.get((number, "KernelCh"), [])

    def phases(self):
        """Of each channel: {name: (begin, end)} on the device's clock."""
        return [{phase["phaseName"]: (phase["pTimer"],
                                      phase["states"].get(recording.KERNEL_PHASE_STOP, (0, 0))[1])
                 for _, phase in self.run.under.get((number, "KernelPhase"), [])}
                 for number, _ in self.channels]

    def spans(self):
        return [(channel["pTimer"], channel["states"].get(recording.KERNEL_CH_STOP, (0, 0))[1])
                for _, channel in self.channels]

    def initial_sync(self):
        """Longest of all channels, or None."""
        return max((phase["initial_sync"][1] - phase["initial_sync"][0] for phase in self.phases()
                    if "initial_sync" in phase),
                   default=None)


def read(path):
    run = recording.read(path)
    run.under = {}
    for number, event in run.events.items():
        run.under.setdefault((event["parent"], event["type"]), []).append((number, event))
    run.operations = [Operation(run, number, event) for number, event in run.of("Coll")]
    return run


def every(operations, holds):
    """PASS where it holds for all and there is one, with how many it does not hold for."""
    seen = list(operations)
    wrong = [operation for operation in seen if not holds(operation)]
    if not seen:
        return "NOT SEEN", ""
    first = f"; first: event {wrong[0].number}, {wrong[0].event}" if wrong else ""
    return ("FAIL" if wrong else "PASS"), f"{len(seen) - len(wrong)} of {len(seen)}{first}"


CHECKS = []


def check(name):
    def add(function):
        CHECKS.append((name, function))
        return function
    return add


def all_of(runs):
    return [operation for run in runs for operation in run.operations]


def eager(runs):
    """Symmetric, not captured, not issued behind a replay (that has a check of its own)."""
    return [o for o in all_of(runs) if o.symmetric and not o.captured and o.event["count"] != BEHIND]


def heads_and_tails(runs, count, captured):
    groups = {}
    for o in all_of(runs):
        if o.symmetric and o.captured == captured and o.event["count"] == count:
            groups.setdefault((id(o.run), o.event["parentGroup"]), []).append(o)
    return groups.values()


@check("symmetric-eager: nChannels KernelCh, each stopped")
def _(runs):
    return every((o for o in eager(runs) if o.event["nChannels"]),
                 lambda o: len(o.channels) == o.event["nChannels"] and
                 all(c["stops"] == 1 for _, c in o.channels))


@check("symmetric-channels: their ids are 0 to nChannels - 1")
def _(runs):
    return every((o for o in eager(runs) if o.channels),
                 lambda o: sorted(c["channelId"] for _, c in o.channels) == list(range(len(o.channels))))


@check("symmetric-fused: the group's first has channels, the others 0 and no KernelCh")
def _(runs):
    return every((Group(g) for g in heads_and_tails(runs, FUSED, False)), Group.one_head)


class Group:
    def __init__(self, operations):
        self.number, self.event, self.operations = operations[0].number, operations[0].event, operations

    def one_head(self):
        head, tails = self.operations[0], self.operations[1:]
        return (head.event["nChannels"] > 0 and bool(tails) and
                not any(o.event["nChannels"] or o.channels for o in tails))


@check("symmetric-captured: announces channels, and no KernelCh comes")
def _(runs):
    heads = [o for o in all_of(runs) if o.symmetric and o.captured and o.event["count"] == CAPTURED]
    return every(heads, lambda o: o.event["nChannels"] > 0 and not o.channels)


@check("symmetric-captured-fused: the same, tails 0")
def _(runs):
    return every((Group(g) for g in heads_and_tails(runs, CAPTURED_FUSED, True)),
                 lambda g: g.one_head() and not g.operations[0].channels)


@check("classic-captured: KernelCh at each replay")
def _(runs):
    return every((o for o in all_of(runs) if not o.symmetric and o.captured),
                 lambda o: len(o.channels) == o.event["nChannels"] > 0)


@check("replay: a second Coll of one CollApi is a captured one")
def _(runs):
    seen, again = set(), []
    for o in all_of(runs):
        key = (id(o.run), o.call)
        again += [o] if o.call and key in seen else []
        seen.add(key)
    return every(again, lambda o: o.captured)


@check("replay-once: each replay of one call begins after the one before on the device")
def _(runs):
    last, pairs = {}, []
    for o in all_of(runs):
        if o.captured and o.channels:
            before = last.get((id(o.run), o.call))
            pairs += [(before, o)] if before else []
            last[(id(o.run), o.call)] = o
    return every((o for _, o in pairs), lambda o: all(
        min(begin for begin, _ in o.spans()) >= max(end for _, end in before.spans())
        for before, after in pairs if after is o))


@check("behind-replay: an eager symmetric call behind a replay has its own stamps")
def _(runs):
    return every((o for o in all_of(runs) if o.symmetric and not o.captured and o.event["count"] == BEHIND),
                 lambda o: len(o.channels) == o.event["nChannels"] and
                 all(o.event["start_ns"] - NEAR_NS <= begin <= end for begin, end in o.spans()))


@check("proto: empty for symmetric kernels, never for others")
def _(runs):
    known = [o for o in all_of(runs) if o.event["isSymColl"] is not None]
    return every(known, lambda o: (o.event["isSymColl"] == 1) == (o.event["proto"] == ""))


@check("variant: algo is what stands behind its first _; NULL for classic")
def _(runs):
    known = [o for o in all_of(runs) if o.event["version"] >= 7]
    return every(known, lambda o: o.event["kernelVariant"].split("_", 1)[1] == o.event["algo"] if o.symmetric
                 else o.event["kernelVariant"] is None)


@check("texts: one address for each text, all the time")
def _(runs):
    """What NCCL keeps in a table has; what it makes for a call has not."""
    places, operations = {}, [o for o in all_of(runs) if o.event["kernelVariant"]]
    for o in operations:
        places.setdefault((id(o.run), o.event["kernelVariant"]), set()).add(o.event["kernelVariant_at"])
    return every(operations, lambda o: len(places[(id(o.run), o.event["kernelVariant"])]) == 1 and
                 o.event["algo_at"] == o.event["kernelVariant_at"] +
                 len(o.event["kernelVariant"].split("_", 1)[0]) + 1)


@check("tags: of the call at its Coll, also at each replay")
def _(runs):
    calls = [o for o in all_of(runs) if o.event["userTag"] is not None and o.call]
    return every((o for o in calls if o.run.events[o.call]["userTag"]),
                 lambda o: o.event["userTag"] == o.run.events[o.call]["userTag"])


@check("tags-as-given: the top bit, too")
def _(runs):
    top = [o for o in all_of(runs) if (o.event["userTag"] or 0) >> 63]
    return every(top, lambda o: o.event["userTag"] == 1 << 63 | 77)


@check("tags-alltoall: the call's tag at its P2ps")
def _(runs):
    p2ps = [Any(number, event) for run in runs for number, event in run.of("P2p")
            if event["userTag"] is not None]
    return every(p2ps, lambda p: p.event["userTag"] == 2000)


class Any:
    def __init__(self, number, event):
        self.number, self.event = number, event


@check("phases: ascending, inside their KernelCh, together its span")
def _(runs):
    def holds(o):
        for (begin, end), phases in zip(o.spans(), o.phases()):
            parts = sorted(phases.values())
            if not parts or parts[0][0] != begin or parts[-1][1] != end or any(a > b for a, b in parts):
                return False
            if any(one[1] != next_[0] for one, next_ in zip(parts, parts[1:])):
                return False
        return True
    return every((o for o in eager(runs) if o.channels and any(o.phases())), holds)


@check("phases-before-stop: between a KernelCh's start and its stop, of the same thread")
def _(runs):
    phases = [(event, run.events[event["parent"]]) for run in runs for _, event in run.of("KernelPhase")]
    return every((Any(0, phase | {"parent_": parent}) for phase, parent in phases),
                 lambda p: p.event["parent_"]["start_ns"] <= p.event["start_ns"] <= p.event["stop_ns"] <= p.event["parent_"]["stop_ns"] and
                 p.event["thread"] == p.event["parent_"]["thread"])


@check("phases-classic: kernels that are not symmetric have phases in 2.31, none later")
def _(runs):
    asked = any(o.symmetric and any(o.phases()) for o in all_of(runs))
    return every((o for o in all_of(runs) if asked and not o.symmetric and o.channels),
                 lambda o: any(o.phases()) == (RELEASE < 23200))


@check("initial_sync: barrier kernels wait in it for a late rank, and the late one does not")
def _(runs):
    """Each LATE operation of all ranks: the last rank came LATE_NS later than the others."""
    by_number = {}
    for o in all_of(runs):
        if (o.symmetric and o.event["count"] == LATE and o.event["algo"] in BARRIERS and
            o.initial_sync() is not None):
            by_number.setdefault(o.event["seqNumber"], {})[o.event["rank"]] = o
    together = [sorted(ranks.items()) for ranks in by_number.values() if len(ranks) > 1]

    def holds(pair):
        late = pair.ranks[-1][1].initial_sync()
        return late < LATE_NS / 2 and all(o.initial_sync() > LATE_NS / 2 for _, o in pair.ranks[:-1])
    return every((Together(ranks) for ranks in together), holds)


class Together:
    def __init__(self, ranks):
        self.ranks, self.number = ranks, ranks[0][1].number
        self.event = {rank: o.initial_sync() for rank, o in ranks}


@check("broadcast: without a configuration of its own, no Coll")
def _(runs):
    calls = [Any(number, event) for run in runs for number, event in run.of("CollApi")
             if event["func"] == "Broadcast"]
    of = {(id(o.run), o.call) for o in all_of(runs)}
    return every(calls, lambda c: not any((id(run), c.number) in of for run in runs
                                          if run.events.get(c.number) is c.event))


def is_tail(o):
    return o.symmetric and o.event["count"] in (FUSED, CAPTURED_FUSED) and not o.event["nChannels"]


def after_pause(runs, symmetric):
    """Of recordings with NI_RECORDER_PAUSE: operations with KernelCh behind those that had none because it
    was not in the mask."""
    for run in runs:
        silent = [i for i, o in enumerate(run.operations) if o.symmetric == symmetric and not o.channels and
                  not o.captured and
                  not is_tail(o)]
        if silent and any(o.channels for o in run.operations[:silent[0]]):
            yield from (o for o in run.operations[silent[-1] + 1:] if o.channels and o.symmetric == symmetric)


def of_earlier_work(o):
    return any(end < o.event["start_ns"] for _, end in o.spans())


@check("shift: with KernelCh out of the mask for a while, later ones carry stamps of earlier works")
def _(runs):
    after = list(after_pause(runs, False))
    early = sum(map(of_earlier_work, after))
    return ("PASS" if early else "FAIL") if after else "NOT SEEN", f"{early} of {len(after)} operations after it"


@check("shift-symmetric: not those of symmetric kernels")
def _(runs):
    return every(after_pause(runs, True), lambda o: not of_earlier_work(o))


def main():
    runs = [read(path) for path in sys.argv[2:]]
    failed = False
    for name, function in CHECKS:
        verdict, figures = function(runs)
        failed |= verdict == "FAIL"
        print(f"{verdict}\t{name}\t{figures}")
    sys.exit(failed)


if len(sys.argv) < 3 or not sys.argv[1].isdigit():
    sys.exit(__doc__)
RELEASE = int(sys.argv[1])
main()
