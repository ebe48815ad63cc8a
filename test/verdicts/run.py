#!/usr/bin/env python3
"""Scores the verdicts of `nccl-inspector summary` on simulated jobs with planted causes (docs/verdicts.md).

  run.py make --set tune --per 8 --out DIR -j2          generates jobs and keeps them
  run.py score --exporter build/nccl-inspector --dir DIR -j2 [--verbose]
  run.py make --set weather-tune --per 2 --out DIR      the same with weather, and the kinds that came later
  run.py make --second --set tune --per 2 --out DIR     jobs of the second model (test/verdicts/second)
  run.py make --kinds late --more=--overlap-us=30 --out DIR       one weather at a time: options of ni-jobs
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
    p.add_argument("--set", choices=["tune", "held", "weather-tune", "weather-held"],
                   help="even or odd seeds, of jobs without or with weather; "
                        "default: of `held` held, else tune")
    p.add_argument("--second", action="store_true",
                   help="jobs of the second model, whose layouts and weather are its own")
    p.add_argument("--more", action="append", default=[],
                   help="an option of ni-jobs, as --more=--overlap-us=30")
    p.add_argument("--marker", help="of --write; default: verdicts, of sets with weather weather, "
                                    "of the second model second")
    p.add_argument("--per", type=int, default=8, help="jobs of a kind and layout")
    p.add_argument("--per-size", action="store_true", help="... and size")
    p.add_argument("--kinds", default="", help="comma between; default: all")
    p.add_argument("--layouts", help="their letters; default: all")
    p.add_argument("--costs", type=float, default=0.5,
                   help="share of the jobs whose strength is set by a cost of 2 to 5 %%")
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
    kinds = list(plan.ALL)
    return kinds.index(job.kind) if job.kind in kinds else len(kinds), job.kind, size, job.layout, job.seed


def planned(o):
    kinds = [k for k in o.kinds.split(",") if k]
    known = plan.second_kinds() if o.second else plan.ALL
    for k in kinds:
        if k not in known:
            sys.exit("run.py: there is no kind %s: %s" % (k, ", ".join(known)))
    o.set = o.set or ("held" if o.what == "held" else "tune")
    held, weather = o.set.endswith("held"), o.set.startswith("weather")
    out = list(plan.second_jobs(held, o.per, kinds, o.costs)) if o.second else []
    for layout in "" if o.second else o.layouts or plan.LAYOUTS:
        per = min(o.per, o.per_large) if layout == "L" else o.per
        out += plan.jobs(held, per, kinds, layout, o.costs, o.per_size, weather)
    return sorted(out, key=lambda j: place(o, j))


def each(o, items, work):
    """work(item) of all, o.j at a time; results in order, None left out. Says how far it is when that is a
    while."""
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
    # The second model draws sizes: no two jobs have the same.
    r["row"] = plan.row(job.kind, 0 if r["model"] == "second" and job.asked != "cost" else job.asked)
    r["job"] = os.path.basename(folder)
    return r


def make(o):
    if not o.out:
        sys.exit("run.py: make needs --out DIR")
    os.makedirs(o.out, exist_ok=True)
    jobs = planned(o)
    made = each(o, jobs,
                lambda j: plan.make(o.tool, j, os.path.join(o.out, plan.name(j)), o.steps, False, o.more))
    print("%d jobs in %s, %d not made: no strength has that cost" % (sum(made), o.out, made.count(False)))


def kept(o):
    """Jobs in --dir, from their folders' names; kinds and layouts of other models, too (second/make.py)."""
    wanted = [k for k in o.kinds.split(",") if k]
    out = []
    for n in os.listdir(o.dir):
        layout, kind, asked, seed = n.rsplit("-", 3)
        if (not o.layouts or layout in o.layouts) and (not wanted or kind in wanted):
            out.append(plan.Job(layout, kind, asked if asked == "cost" else float(asked), int(seed)))
    return sorted(out, key=lambda j: place(o, j))


def make_and_score(o, job):
    folder = os.path.join(tempfile.mkdtemp(prefix="verdicts-", dir=o.memory), plan.name(job))
    try:
        return outcome(o, job, folder) if plan.make(o.tool, job, folder, o.steps, True, o.more) else None
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
        with_weather = (o.set or "").startswith("weather")
        marker = o.marker or ("second" if o.second else "weather" if with_weather else "verdicts")
        table.write_between(o.write, marker, table.markdown(outcomes, o.by_layout))


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
