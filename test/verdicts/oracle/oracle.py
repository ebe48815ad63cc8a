#!/usr/bin/env python3
"""Which planted causes can be told from the logs at all: measured by an observer who knows more than any tool
(docs/verdicts.md, "What can be told").

  oracle.py missed --dir JOBS --scores S.json [--control 15] -j2    of a kept even set: the causes that summary missed
  oracle.py job --dir JOBS NAME...                                  of these jobs, whatever summary says
  oracle.py held [--second] --per 3 --exporter build/nccl-inspector -j2    of a kept-back set: totals alone

Of each job the generator makes twins: the same plan, weather and logs left out, with the cause moved to other
subjects, and without one; of each the same few draws of noise. features.cc measures their logs, observer.cc learns
from all draws but one and names the left-out jobs.
"""
import argparse
import concurrent.futures
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.dirname(HERE))
import judge
import plan
import table

LEAST_COST = 2.0  # percent, as in the tables
# Kinds of a like effect that are candidates, too, by the level of the cause; of the first model, whose jobs are the
# same whatever the kind.
LIKE = {"rank": ["rail"], "host": ["nvlink", "nic"], "nic": ["cpu"], "nvlink": ["nic"], "fabric": ["flap", "nic"]}
ALONE = ("two", "moving", "two_jobs", "two_attempts", "uneven", "replica")  # kinds that have no such
NEAR = 0.25  # costs of twins differ by so much of it at most, before ...
SPREAD = 0.35  # ... each job gets a strength that differs by this, of its logarithm, at most
TOLD, NOT_TOLD = 0.87, 0.5  # seven of eight draws; half


class Tools:
    def __init__(self, build):
        self.jobs, self.features, self.observer = (
            os.path.join(build, "test", n) for n in ("ni-jobs", "ni-features", "ni-observer"))


class Case:
    """A cause of a job: how the job is made, and its truth."""

    def __init__(self, tools, job, truth, which, more=()):
        self.tools, self.truth, self.which = tools, truth, which
        self.culprit = truth["culprits"][which]
        self.command = plan.command(tools.jobs, job, truth["seed"], "FOLDER", None, True, more)
        if "--cost" in self.command:
            at = self.command.index("--cost")
            del self.command[at:at + 2]
        self.strength = truth["culprits"][0]["strength"]

    def twin(self, folder, draw, subject=None, cost=None, strength=None):
        """Makes it in folder; a subject is a rank and the cause's number, or another kind of cause and a rank. Its
        truth, or None: the cause cannot be there, or not at that cost."""
        args = [folder if a == "FOLDER" else a for a in self.command]
        kind, _, rank = (subject or "").rpartition(":")
        if kind:
            args[args.index("--kind") + 1] = kind
            subject = rank
            if "--size" in args:
                at = args.index("--size")
                del args[at:at + 2]
        args += ["--again", str(draw)] if draw else []
        args += ["--subject", subject] if subject else []
        args += ["--cost", cost] if cost else [] if subject == "none" else ["--strength", "%.9g" % strength]
        p = subprocess.run(args, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if p.returncode in (3, 64):  # no such cost; not in this layout
            return None
        if p.returncode:
            raise RuntimeError("%s: %s" % (" ".join(args), p.stderr.strip()))
        with open(os.path.join(folder, "truth.json")) as f:
            return json.load(f)

    def measure(self, folder, truth, path):
        """Features of the job in folder, written to path."""
        comms = "".join("%s %s %s\n" % (c["id"], c["role"], " ".join(map(str, c["ranks"])))
                        for c in truth["communicators"])
        with open(path, "w") as out:
            subprocess.run([self.tools.features, folder], input=comms, stdout=out, text=True, check=True)


def own_rank(truth, culprit):
    """A rank that the cause is of."""
    ranks = culprit.get("ranks") or [r for s in culprit["accept"] for r in s.get("ranks", ())]
    names = [h["name"] for h in truth["hosts"]]
    if culprit.get("rank") is not None:
        return culprit["rank"]
    if ranks or culprit.get("host") not in names:
        return ranks[0] if ranks else 0
    return names.index(culprit["host"]) * truth["world"] // len(names)


def neighbours(truth, culprit, seed):
    """Ranks whose causes may look alike: of the culprit's communicators, hosts and stages; in the order in which
    they are asked."""
    world, rank = truth["world"], own_rank(truth, culprit)
    near = []
    for c in sorted(truth["communicators"], key=lambda c: len(c["ranks"])):
        others = [r for r in c["ranks"] if r != rank]
        if rank in c["ranks"] and others:
            at = c["ranks"].index(rank)
            near += [c["ranks"][(at + 1) % len(c["ranks"])], c["ranks"][at - 1]]
    rest = list(range(world))
    random.Random(seed).shuffle(rest)
    stages = truth.get("stages") or [0] * world
    firsts = [stages.index(s) for s in sorted(set(stages))]
    by_host = list(range(0, world, max(1, world // max(1, len(truth["hosts"])))))
    wide = culprit["level"] not in ("rank", "rail")
    return list(dict.fromkeys((firsts if culprit["level"] == "stage" else by_host if wide else near) + rest))


def same_subject(culprit, other):
    """Whether a finding that is right of the other one would be right for this one: so are two NICs of one
    communicator, where it is enough to name that."""
    right = culprit["accept"] + culprit["related"]
    return any(judge.is_subject({**{"communicator": None}, **s, "ranks": set(s.get("ranks", ())),
                                 "hosts": set(s.get("hosts", ()))}, r)
               for s in other["accept"] for r in right)


class Oracle:
    def __init__(self, tools, draws, moved, memory):
        self.tools, self.draws, self.moved, self.memory = tools, draws, moved, memory
        self.subjects = []  # of the candidates of one case

    def candidate(self, case, subject, work, number):
        """Features of all draws of a candidate. False: there is none such. Each job has a strength of its own, so
        that how much is lost does not tell who it is."""
        strength, folder = case.strength, os.path.join(work, "job")
        if subject and subject != "none":
            strength = self.strength_there(case, folder, subject)
            shutil.rmtree(folder, ignore_errors=True)
        if strength is None:
            return False
        for draw in range(self.draws):
            by = math.exp(random.Random("%d %d" % (number, draw)).uniform(-SPREAD, SPREAD))
            truth = case.twin(folder, draw, subject, None, strength * by)
            if truth is None:
                return False
            case.measure(folder, truth, os.path.join(work, "%d-%d" % (number, draw)))
            shutil.rmtree(folder)
        return True

    def strength_there(self, case, folder, subject):
        """At which the cause costs about as much there; None: it cannot, or it is no other subject."""
        wanted = case.culprit["cost_percent"]
        span = "%g..%g" % (wanted * (1 - NEAR), min(89, wanted * (1 + NEAR)))
        truth = case.twin(folder, 0, subject, *((span,) if ":" in subject else (None, case.strength)))
        if truth is None:
            return None
        other = truth["culprits"][case.which]
        if any(same_subject(s, other) for s in [case.culprit] + self.subjects):
            return None
        if abs(other["cost_percent"] / wanted - 1) > NEAR:
            shutil.rmtree(folder)
            truth = case.twin(folder, 0, subject, span) if len(case.truth["culprits"]) == 1 else None
            if truth is None:
                return None
        self.subjects.append(other)
        return truth["culprits"][0]["strength"]

    @staticmethod
    def like(case):
        """Causes of other kinds in the same place, or anywhere."""
        if case.truth.get("model") == "second" or case.truth["kind"] in ALONE:
            return []
        rank = own_rank(case.truth, case.culprit)
        return ["%s:%d" % (k, rank) for k in LIKE.get(case.culprit["level"], ())]

    def judge(self, case):
        """What the observer says of a case."""
        work = tempfile.mkdtemp(prefix="oracle-", dir=self.memory)
        try:
            names = []
            ranks = neighbours(case.truth, case.culprit, case.truth["seed"])[:24]
            for some, most in (([None, "none"], 2), (["%d,%d" % (r, case.which) for r in ranks], self.moved),
                               (self.like(case), 2)):
                most += len(names)
                for subject in some:
                    if len(names) < most and self.candidate(case, subject, work, len(names)):
                        names.append(subject)
            lines = "".join("%d %d %s\n" % (c, d, os.path.join(work, "%d-%d" % (c, d)))
                            for c in range(len(names)) for d in range(self.draws))
            p = subprocess.run([self.tools.observer], input=lines, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
            if p.returncode:
                return {"told": 0.0, "all": 0.0, "candidates": names, "lost": [], "told_by": {},
                        "why": p.stderr.strip()}
            out = json.loads(p.stdout)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        right = [sum(n == c for n in named) / len(named) for c, named in enumerate(out["named"])]
        return {"told": right[0], "all": sum(right) / len(right), "candidates": names, "lost": out["lost"],
                "named": out["named"][0], "told_by": out["told_by"]}


def verdict(share):
    return "told" if share >= TOLD else "not told" if share <= NOT_TOLD else "doubtful"


def source_of(truth):
    return "second" if truth.get("model") == "second" else "weather" if truth.get("weather") else ""


def leads(said, n=4):
    """The features that tell the planted one from the nearest others, best first."""
    per = {}
    for key, far in said["told_by"].items():
        number, name = key.split(": ", 1)
        per.setdefault(int(number), []).append((far, name))
    out = []
    for number, some in sorted(per.items(), key=lambda x: max(x[1]))[:n]:
        far, name = max(some)
        out.append("from %s by %s (%.0f deviations)" % (said["candidates"][number], name, far))
    return out


def show(name, case, said):
    c = case.culprit
    print("%-34s %-8s %s %s, cost %.1f %%, %s: told %.0f %% (all candidates %.0f %%), lost to %s" % (
        name, verdict(said["told"]), c["level"], c["accept"][0].get("ranks") or c["accept"][0].get("hosts"),
        c["cost_percent"], "whole" if table.is_whole({"weather": case.truth["weather"]}) else "left out",
        100 * said["told"], 100 * said["all"],
        [(said["candidates"][i], n) for i, n in enumerate(said["lost"]) if n] or said.get("why", "nobody")))
    for lead in leads(said):
        print("      " + lead)
    sys.stdout.flush()


def kept_job(folder, name):
    with open(os.path.join(folder, name, "truth.json")) as f:
        truth = json.load(f)
    layout, kind, asked, _ = name.rsplit("-", 3)
    return plan.Job(layout, kind, asked if asked == "cost" else float(asked), truth["seed"], source_of(truth)), truth


def large(culprit):
    return culprit["identifiable"] and culprit["cost_percent"] >= LEAST_COST


def missed(o, tools):
    """Cases of a kept set: missed ones, and a control of named ones."""
    wrong, right = [], []
    with open(o.scores) as f:
        for r in map(json.loads, f):
            job, truth = kept_job(o.dir, r["job"])
            for i, (c, each) in enumerate(zip(truth["culprits"], r["each"])):
                if large(c) and truth["world"] <= o.ranks:
                    (right if each["match"] else wrong).append((r["job"], Case(tools, job, truth, i)))
    left_out = [x for x in right if not table.is_whole({"weather": x[1].truth["weather"]})]
    some = right if o.whole or len(left_out) < o.control else left_out
    wrong.sort(key=lambda x: x[1].truth["records"])  # those of 1,024 ranks take long
    return wrong, random.Random(1).sample(some, min(o.control, len(some)))


def spread(n, of):
    """A share and its deviation, in percent."""
    share = n / of
    return "%.0f +- %.0f %% of %d" % (100 * share, 100 * (share * (1 - share) / of) ** 0.5, of)


def totals(title, said):
    each = [verdict(s["told"]) for s in said]
    print("%s: %s" % (title, ", ".join("%s %d" % (v, each.count(v)) for v in ("told", "doubtful", "not told"))))
    draws = [n for s in said for n in [s["told"]]]
    if draws:
        print("   left-out draws named: %.0f %% on the mean" % (100 * sum(draws) / len(draws)))


def each(o, oracle, cases, tell):
    out = []
    with concurrent.futures.ThreadPoolExecutor(o.j) as pool:
        for (name, case), said in zip(cases, pool.map(lambda x: oracle().judge(x[1]), cases)):
            if tell:
                show(name, case, said)
            out.append(said)
    return out


def held(o, tools, oracle):
    """A kept-back set: makes, scores and deletes job by job, asks the observer of what summary missed. Totals
    alone are told."""
    if o.second:
        jobs = list(plan.second_jobs(True, o.per))
    else:
        jobs = [j for x in plan.LAYOUTS for j in plan.jobs(True, o.per, None, x, weather=True)]
    random.Random(1).shuffle(jobs)
    counts = {}

    def asked(case):
        try:
            return verdict(oracle().judge(case)["told"])
        except (RuntimeError, subprocess.CalledProcessError):  # its text would name the job
            return "failed"

    def one(job):
        work = tempfile.mkdtemp(prefix="oracle-held-", dir=oracle().memory)
        folder = os.path.join(work, plan.name(job))
        try:
            if not plan.make(tools.jobs, job, folder, None, True):
                return []
            with open(os.path.join(folder, "truth.json")) as f:
                truth = json.load(f)
            r = judge.score(o.exporter, folder, os.path.join(work, "out"))
            shutil.rmtree(folder)
            group = "whole logs" if table.is_whole(r) else "operations or ranks left out"
            out = []
            for i, (c, e) in enumerate(zip(truth["culprits"], r["each"])):
                if large(c):
                    few = truth["world"] <= o.ranks
                    out.append((group, "named" if e["match"] else asked(Case(tools, job, truth, i)) if few
                                else "not asked"))
            return out
        except RuntimeError:
            return [("jobs that failed", "failed")]
        finally:
            shutil.rmtree(work, ignore_errors=True)

    with concurrent.futures.ThreadPoolExecutor(o.j) as pool:
        for n, some in enumerate(pool.map(one, jobs)):
            for group, what in some:
                counts.setdefault(group, {}).setdefault(what, 0)
                counts[group][what] += 1
            if n % 25 == 24:
                print("%d of %d jobs" % (n + 1, len(jobs)), file=sys.stderr)
    text = table.in_markdown(lines_of(counts, "second model" if o.second else "with weather"))
    print(text)
    if o.write:
        table.write_between(o.write, "observer of the second model" if o.second else "observer", text)


def lines_of(counts, title):
    """A line for whole logs and one for others: causes, and what the observer says of those that were missed."""
    lines = [["causes of 2 % and more", "all", "named", "missed: told", "doubtful", "not told", "not asked",
              "named of those that can be told"]]
    for group, of in sorted(counts.items(), reverse=True):
        n, can = sum(of.values()), of.get("named", 0) + of.get("told", 0)
        lines.append([title + ", " + group] + ["%d" % x for x in (n, of.get("named", 0))] +
                     ["%d" % of.get(k, 0) for k in ("told", "doubtful", "not told", "not asked")] +
                     [spread(of.get("named", 0), can) if can else "-"])
        if of.get("failed"):
            print("%s: %d failed" % (group, of["failed"]), file=sys.stderr)
    return lines


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["missed", "job", "held"])
    p.add_argument("names", nargs="*")
    p.add_argument("--dir", help="of missed and job: where the jobs are (run.py make)")
    p.add_argument("--scores", help="of missed: run.py score --json")
    p.add_argument("--control", type=int, default=15, help="so many named causes as well")
    p.add_argument("--whole", action="store_true", help="the control is of any logs, not of such that lack something")
    p.add_argument("--draws", type=int, default=8, help="of noise")
    p.add_argument("--moved", type=int, default=4, help="other subjects, at most")
    p.add_argument("--ranks", type=int, default=2048, help="of jobs with more it is not asked: 1,024 take minutes")
    p.add_argument("--more", action="append", default=[],
                   help="of job: options of ni-jobs that it was made with, in place of --weather")
    p.add_argument("--second", action="store_true", help="of held: the second model")
    p.add_argument("--per", type=int, default=3, help="of held: jobs of a kind and layout")
    p.add_argument("--write", help="of held: a document whose table between <!-- observer --> markers is replaced")
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--exporter", default=os.path.join(ROOT, "build", "nccl-inspector"))
    p.add_argument("-j", type=int, default=2)
    return p.parse_intermixed_args()


def main():
    o = options()
    tools = Tools(o.build)
    memory = "/dev/shm" if os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 4 << 30 else None


    def oracle():
        return Oracle(tools, o.draws, o.moved, memory)

    if o.what == "held":
        held(o, tools, oracle)
    elif o.what == "job":
        for name in o.names:
            job, truth = kept_job(o.dir, name)
            if o.more:
                job = job._replace(source="")
            cases = [(name, Case(tools, job, truth, i, o.more)) for i in range(len(truth["culprits"]))]
            each(o, oracle, cases, True)
    else:
        wrong, right = missed(o, tools)
        for title, cases in (("named by summary (control)", right), ("missed by summary", wrong)):
            if cases:
                totals(title, each(o, oracle, cases, True))


if __name__ == "__main__":
    main()
