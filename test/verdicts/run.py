#!/usr/bin/env python3
"""Scores the verdicts of `nccl-inspector summary` on simulated jobs with planted causes (docs/verdicts.md).

  run.py make --set tune --per 8 --out DIR -j2          generates jobs and keeps them
  run.py score --exporter build/nccl-inspector --dir DIR -j2 [--verbose]
  run.py held --per 40 --exporter build/nccl-inspector --write docs/verdicts.md    a job at a time: makes, scores, deletes it
"""
import argparse
import concurrent.futures
import json
import os
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import judge
import plan
import table

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["make", "score", "held"])
    p.add_argument("--set", choices=["tune", "held"], help="even or odd seeds; default: of `held` odd, else even")
    p.add_argument("--per", type=int, default=8, help="jobs of a kind and layout")
    p.add_argument("--per-size", action="store_true", help="... and size")
    p.add_argument("--kinds", default="", help="comma between; default: all")
    p.add_argument("--layouts", default=plan.LAYOUTS)
    p.add_argument("--costs", type=float, default=0.5, help="share of the jobs whose strength is set by a cost of 2 to 5 %%")
    p.add_argument("--per-large", type=int, default=4, help="jobs of a kind of layout L, at most")
    p.add_argument("--steps", type=int, help="instead of the layouts' own")
    p.add_argument("--out", help="of make: where the jobs go")
    p.add_argument("--dir", help="of score: where they are")
    p.add_argument("--exporter", default=os.path.join(ROOT, "build", "nccl-inspector"))
    p.add_argument("--tool", default=os.path.join(ROOT, "build", "test", "ni-jobs"))
    p.add_argument("--json", help="outcomes, a line each")
    p.add_argument("--write", help="a document whose table between <!-- verdicts --> markers is replaced")
    p.add_argument("--by-layout", action="store_true")
    p.add_argument("--verbose", action="store_true", help="what was said of each job that is not right")
    p.add_argument("-j", type=int, default=2)
    return p.parse_args()


def place(o, job):
    """Where a job stands in tables: by kind, size, layout."""
    size = (1, 0) if job.asked == "cost" else (0, job.asked)
    return list(plan.ALL).index(job.kind), size, o.layouts.index(job.layout), job.seed


def planned(o):
    kinds = [k for k in o.kinds.split(",") if k]
    for k in kinds:
        if k not in plan.ALL:
            sys.exit("run.py: there is no kind %s: %s" % (k, ", ".join(plan.ALL)))
    held = (o.set or ("held" if o.what == "held" else "tune")) == "held"
    out = []
    for layout in o.layouts:
        per = min(o.per, o.per_large) if layout == "L" else o.per
        out += plan.jobs(held, per, kinds, layout, o.costs, o.per_size)
    return sorted(out, key=lambda j: place(o, j))


def each(o, items, work):
    """work(item) of all, o.j at a time; results in order, None left out. Says how far it is when that is a while."""
    out, told = [], time.time()
    with concurrent.futures.ThreadPoolExecutor(o.j) as pool:
        for i, r in enumerate(pool.map(work, items)):
            if r is not None:
                out.append(r)
            if time.time() - told > 30:
                told = time.time()
                print("%d of %d jobs" % (i + 1, len(items)), file=sys.stderr)
    return out


def outcome(o, job, folder):
    out = tempfile.mkdtemp(prefix="verdict-")
    try:
        r = judge.score(o.exporter, folder, os.path.join(out, "out"))
    finally:
        shutil.rmtree(out, ignore_errors=True)
    r["row"] = plan.row(job.kind, job.asked)
    r["job"] = os.path.basename(folder)
    return r


def make(o):
    if not o.out:
        sys.exit("run.py: make needs --out DIR")
    os.makedirs(o.out, exist_ok=True)
    jobs = planned(o)
    made = each(o, jobs, lambda j: plan.make(o.tool, j, os.path.join(o.out, plan.name(j)), o.steps))
    print("%d jobs in %s, %d not made: no strength has that cost" % (sum(made), o.out, made.count(False)))


def kept(o):
    """Jobs in --dir, from their folders' names."""
    wanted = [k for k in o.kinds.split(",") if k]
    out = []
    for n in os.listdir(o.dir):
        layout, kind, asked, seed = n.split("-")
        if layout in o.layouts and (not wanted or kind in wanted):
            out.append(plan.Job(layout, kind, asked if asked == "cost" else float(asked), int(seed)))
    return sorted(out, key=lambda j: place(o, j))


def make_and_score(o, job):
    folder = os.path.join(tempfile.mkdtemp(prefix="verdicts-", dir=o.memory), plan.name(job))
    try:
        return outcome(o, job, folder) if plan.make(o.tool, job, folder, o.steps, True) else None
    finally:
        shutil.rmtree(os.path.dirname(folder), ignore_errors=True)


def report(o, outcomes):
    if o.json:
        with open(o.json, "w") as f:
            f.writelines(json.dumps(r) + "\n" for r in outcomes)
    print(table.terminal(outcomes, o.by_layout))
    healthy = [r for r in outcomes if r["kind"] == "healthy"]
    if healthy:
        late = table.of_jobs(sum(r["all_late"] for r in healthy), len(healthy))
        print("half of the ranks came late to 10 %% of their operations: %s of %d healthy jobs" % (late, len(healthy)))
    if o.verbose:
        for r in outcomes:
            why = table.failing(r)
            if why:
                print("\n%s: %s, cost %.1f %%" % (r["job"], why, r["cost"]))
                for s in r["sentences"] or [{"named": 0, "text": "nothing"}]:
                    print("  %s %s" % ("-~+"[s["named"]], s["text"]))
    if o.write:
        table.write_between(o.write, "verdicts", table.markdown(outcomes, o.by_layout))


def main():
    o = options()
    if o.what == "make":
        return make(o)
    if o.what == "score":
        if not o.dir:
            sys.exit("run.py: score needs --dir DIR")
        return report(o, each(o, kept(o), lambda j: outcome(o, j, os.path.join(o.dir, plan.name(j)))))
    # A job is some 50 MB for two seconds: in memory where there is much of it.
    o.memory = "/dev/shm" if os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 4 << 30 else None
    jobs = planned(o)
    outcomes = each(o, jobs, lambda j: make_and_score(o, j))
    report(o, outcomes)
    if len(outcomes) < len(jobs):
        print("%d of %d jobs not made: no strength has a cost of 2 to 5 %%" % (len(jobs) - len(outcomes), len(jobs)))


if __name__ == "__main__":
    sys.exit(main())
