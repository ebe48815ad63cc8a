#!/usr/bin/env python3
"""How long `hang` takes for a job of 1,024 ranks of which one stops: large.py [--exporter FILE] [--ranks N]
[--most SECONDS].

Prints a line for each source, and fails when an answer is wrong or took longer than --most.
"""

import argparse
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import answer
import case as cases
import jobs
import scene


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument(
        "--exporter", default=os.path.join(os.path.dirname(__file__), "..", "..", "build", "nccl-inspector")
    )
    p.add_argument("--ranks", type=int, default=1024)
    p.add_argument("--most", type=float, default=0)
    o = p.parse_args()
    o.exporter = os.path.abspath(o.exporter)
    stand_ins = scene.Stand_ins()
    failed = 0
    try:
        for source in (cases.BOXES_AND_LOGS, cases.BOXES, cases.LOGS, cases.COPIES):
            failed |= play(o, stand_ins, source)
    finally:
        stand_ins.end()
    sys.exit(failed)


def play(o, stand_ins, source):
    rnd = random.Random(source)
    maker = cases.Maker(rnd, source, "late")
    job = jobs.Job(rnd, ("megatron", 8, 4, o.ranks // 32, 8), steps=2)
    r, i = job.pick("tp")
    job.stop(r, i)
    job.run_until_still()
    c = cases.Case(maker, job)
    c.blame([r])
    c.look_at_wait()
    folder = tempfile.mkdtemp(prefix="hangs-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    try:
        paths, boxes, now = scene.lay_out(c, folder, stand_ins)
        tries = [answer.ask(o.exporter, paths, boxes, now, folder) for _ in range(3)]
    finally:
        scene.sweep(folder)
    a = min(tries, key=lambda t: t.seconds)
    right = all(v is not False for v in answer.score(c, a).values())
    print(
        "%-15s %4d ranks: %.2f s, %s: %s"
        % (source, o.ranks, a.seconds, "right" if right else "WRONG", a.sentence[:140])
    )
    return 1 if not right or (o.most and a.seconds > o.most) else 0


if __name__ == "__main__":
    main()
