#!/usr/bin/env python3
"""What `show --pattern --json` says of a job of ni-jobs, beside the calls that ni-jobs planted (truth.json,
programs).

pattern_check.py TRUTH JSON [ORDER]: each rank's step has the planted calls, on each communicator (and peer)
in the planted order, from whichever of them the step is counted; nothing else is in it. ORDER: all of it in
the planted order, across communicators.
"""
import json
import sys

truth, said = (json.load(open(p)) for p in sys.argv[1:3])
ordered = len(sys.argv) > 3
assert said["schema_version"] == "nccl-inspector-show-pattern-1"
ROLES = {"t": "tp", "d": "dp", "p": "pp", "e": "ep", "w": "world"}


def distance(on, n):
    """The shorter way round a ring; half of it as the numbers are."""
    return on - n if 2 * on > n else on + n if 2 * on < -n else on


def lanes(calls):
    """Sequences by communicator and peer. Messages to all others are a bag: their order means nothing."""
    out, many = {}, {}
    for c in calls:
        if len(c) > 4: many.setdefault((c[2], c[3], c[0]), set()).add(c[4])
    for c in calls:
        to_all = len(c) > 4 and len(many[c[2], c[3], c[0]]) >= 3
        key = (c[2], c[3], "all" if to_all else c[4] if len(c) > 4 else None, c[0] if len(c) > 4 else None)
        out.setdefault(key, []).append((c[0], None if to_all else c[1]))
    return out


def turned(a, b):
    return len(a) == len(b) and (a == b or any(a[i:] + a[:i] == b for i in range(len(a))))


def call(o):
    c = [o["function"], o["bytes"], o["communicator"].split()[0], o["n_ranks"]]
    if "peers" in o: c.append("all")
    elif "peer" in o: c.append(o["peer"])
    return c


def lanes_said(operations):
    out = {}
    for o in operations:
        c = call(o)
        key = (c[2], c[3], c[4] if len(c) > 4 else None, c[0] if len(c) > 4 else None)
        out.setdefault(key, []).append((c[0], None if key[2] == "all" else c[1]))
    return out


program = {}
for run in said["runs"]:
    for p in run["programs"]:
        for r in p["ranks"]:
            assert r not in program, r
            program[r] = p
assert sorted(program) == list(range(truth["world"])), sorted(program)
labels = any(c["name"] for c in truth["communicators"])
for r, calls in enumerate(truth["programs"]):
    planted = [c[:2] + [ROLES[c[2]], c[3]] + [distance(x, c[3]) for x in c[4:]] for c in calls]
    got = program[r]["operations"]
    assert len(got) == len(planted), (r, len(got), len(planted))
    a, b = lanes(planted), lanes_said(got)
    # a communicator whose role cannot be told has its size for a label
    if sorted(map(str, a)) != sorted(map(str, b)):
        a = {(k[1], k[2], k[3]): v for k, v in a.items()}
        b = {(k[1], k[2], k[3]): v for k, v in b.items()}
    assert set(a) == set(b), (r, sorted(map(str, a)), sorted(map(str, b)))
    for key in a: assert turned(a[key], b[key]), (r, key, a[key], b[key])
    if ordered: assert turned([c[:2] for c in planted], [call(o)[:2] for o in got]), (r, planted, got)
print("%s: %d ranks, %d programs, %d operations" % (truth["layout"], len(program),
                                                    len({id(p) for p in program.values()}),
                                                   len(program[0]["operations"])))
