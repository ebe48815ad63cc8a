#!/usr/bin/env python3
"""Scores `outliers` of `nccl-inspector summary` on simulated jobs: one entry for each incident, and who began
it (docs/verdicts.md).

  incidents.py --exporter build/nccl-inspector [--verbose] JOB...       folders of ni-jobs: truth.json and logs

An incident of truth.json is a pause or a delay: rank, step, how long. Of all jobs of a kind, and of a layout:
  entries     those that lost FLOOR_MS or more to one of the others, and can have somebody who began them (is_asked)
  right       of these: who began it is said, and a pause of that rank, that ended then, was planted; or it is a planted culprit;
              that is slow in that step by as much;
              or it is not known, and no incident that can have begun it ended shortly before (can_be_told)
  wrong       somebody is said to have begun it who did not
  nobody      nobody is said to have
  twice       entries that tell of an incident that another one has told of
  seen        planted, FLOOR_MS long or more, and its step or the one after it took so much longer than most (a GPU has work for most pauses)
  named       of these: an entry tells of it
Incidents of a culprit that pauses again and again are one cause: three entries of it are enough.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile

FLOOR_MS = 6.0 # truth.json has what is longer than 5 ms
NEAR_US = 1000
OF_ONE = 3


def summary(exporter, job):
    out = tempfile.mkdtemp(prefix="incidents-")
    try:
        p = subprocess.run([exporter, "summary", job, "--output-dir", out + "/o", "--no-plots", "--no-html",
                            "--no-parquet", "--no-csv", "-q"],
                           stdout=subprocess.DEVNULL)
        if p.returncode not in (0, 2): # 2: logs are missing or not whole
            raise RuntimeError("%s: exit %d" % (job, p.returncode))
        with open(out + "/o/summary/summary.json") as f:
            return json.load(f)
    finally:
        shutil.rmtree(out, ignore_errors=True)


def stepped_us(truth, host, at_s):
    """By how much the host's clock may be set there: all times may be referred to it as it was before, or
    after."""
    weather = truth.get("weather") or {}
    stepped = weather.get("clock_step_host") == host["name"] and at_s >= weather.get("clock_step_at_s", 0)
    return [0, weather.get("clock_step_s", 0) * 1e6] if stepped else [0]


def by_rank(truth, rank):
    """The host of a rank: hosts have as many ranks each, in their order."""
    per = (truth.get("shape") or {}).get("gpus") or -(-truth["world"] // len(truth["hosts"]))
    return truth["hosts"][min(rank // per, len(truth["hosts"]) - 1)]["name"]


def felt_s(truth, x):
    """For how long its GPU had nothing to do. Of models that do not say so, what its step or the next one
    took longer."""
    if "idle_s" in x:
        return x["idle_s"]
    lengths = [b - a for a, b in zip(truth["step_begin_s"], truth["step_begin_s"][1:] + [truth["job_s"]])]
    longer = max(lengths[x["step"]:x["step"] + 2], default=0) - sorted(lengths)[len(lengths) // 2]
    return min(x["length_s"], longer)


def match(truth, began):
    """The number of the incident that an entry tells of, or None. What a GPU had before it hides some of a
    pause of its CPU, and puts it off."""
    step_us = truth["job_s"] * 1e6 / truth["steps"]
    # By its own host's clock, or by that of another one to which all are referred.
    clocks = sorted(truth["hosts"], key=lambda h: h["name"] != began["hostname"])

    def late_us(x):
        by = [us for h in clocks for us in late_by(x, h)]
        return next((us for us in by if -NEAR_US <= us <= step_us), by[0])

    def late_by(x, host):
        end_s = x["begin_s"] + x["length_s"]
        drifted_us = host["clock_drift_ppm"] * end_s
        clock_us = host["clock_offset_ns"] / 1e3 + drifted_us
        by_it = began["time_us"] + began["us"] - truth["epoch_ns"] // 1000 - end_s * 1e6 - clock_us
        return [by_it - us for us in stepped_us(truth, host, end_s)]
    def of_who(x):
        return x["rank"] == began["rank"] if began["rank"] is not None else by_rank(truth, x["rank"]) == began["hostname"]

    near = [i for i, x in enumerate(truth["incidents"]) if of_who(x) and
            began["us"] <= 1.2e6 * x["length_s"] + NEAR_US
            and -NEAR_US <= late_us(x) <= step_us]
    return min(near, key=lambda i: abs(late_us(truth["incidents"][i]))) if near else None


def is_of_all(truth, began):
    """What all ranks do each so many steps, each as long as it takes: no incident of any, and whoever is last
    is named."""
    def is_it(c):
        since = began["step"] - c["first_step"]
        return (abs(since - c["period_steps"] * round(since / c["period_steps"])) <= 1 and
                0.7 <= began["us"] / 1e6 / c["length_s"] <= 1.3)
    return any(is_it(c) for c in truth["culprits"] if c["level"] == "job" and c.get("period_steps") and
               "first_step" in c)


# culprits that take longer, not pause
LONGER = ("late", "onset", "episode", "moving", "gpu", "cpu", "uneven", "stage", "throttle")


def is_of_slow_one(truth, began):
    """What a planted culprit took longer in a step in which its cause is at work, and no more than that can
    be."""
    def is_at_work(c):
        end = truth["steps"] if c["end_step"] is None else c["end_step"]
        spans = ([x for x in c.get("spans") or [] if truth.get("model") != "second"] or
                 [[c["onset_step"] or 0, end]])
        return any(first <= began["step"] <= last for first, last in spans)

    def is_who(c):
        return c.get("rank") == began["rank"] if began["rank"] is not None else c.get("host") == began["hostname"]
    most_us = truth["job_s"] * 1e6 / truth["steps"]
    return any(c["kind"] in LONGER and is_who(c) and is_at_work(c) and
               began["us"] <= c.get("strength", 0) * most_us
               for c in truth["culprits"])


def at_s(truth, entry, clock_s):
    return entry["time_us"] / 1e6 - truth["epoch_ns"] / 1e9 - clock_s


def is_in_job(truth, at):
    return -0.5 <= at <= truth["job_s"] + 0.5


def reference_s(truth, entries):
    """Which host's clock all are referred to: the one by which most entries lie in the job."""
    offs = [0] + [h["clock_offset_ns"] / 1e9 for h in truth["hosts"] if abs(h["clock_offset_ns"]) > 1e7]
    return max(offs, key=lambda off: sum(is_in_job(truth, at_s(truth, e, off)) for e in entries))


def is_asked(truth, entry, clock_s):
    """Is it an incident of this job that somebody began? Not one of durations alone, where there are none;
    not what was slow by itself, which nobody began; not one of another job or attempt in the folder, whose
    truth is not here."""
    slow = entry["kind"] == "slow" and not entry.get("began")
    ours = entry["id"] in {c["id"] for c in truth["communicators"]}
    return "operations" in entry and not slow and ours and is_in_job(truth, at_s(truth, entry, clock_s))


def can_delay(truth, rank, entry):
    """Can the rank have made the entry's late rank late? It is that one, or a communicator joins them that
    not all have who wait:
    whoever waits for a rank in one goes on together with all others of it. A pipeline hands a delay on from
    stage to stage."""
    late = entry["global_rank"]
    comms = [set(c["ranks"]) for c in truth["communicators"]]
    waiting = next(set(c["ranks"]) for c in truth["communicators"] if c["id"] == entry["id"])
    pipeline = any(c.get("role") == "p" for c in truth["communicators"])
    return pipeline or rank == late or any(rank in c and late in c and not waiting <= c for c in comms)


def can_be_told(truth, entry, clock_s):
    """Is there one who can have begun it? In the two steps before the operation an incident ended of a rank
    whose log is there, with each operation, and its GPU stood still for half of what was lost or longer; and
    there was none such of another host's rank. Else nobody can be named. Of logs without small operations the
    same holds as of sampled ones: what its rank waited for may be left out."""
    step_s, weather = truth["job_s"] / truth["steps"], truth.get("weather") or {}
    if weather.get("sample") or weather.get("min_bytes"):
        return False
    missing = set(truth.get("missing_ranks") or weather.get("missing_ranks") or weather.get("missing") or [])
    at = at_s(truth, entry, clock_s)
    near = [x for x in truth["incidents"] if -0.01 <= at - x["begin_s"] - x["length_s"] <= 2 * step_s
            and x["rank"] not in missing and felt_s(truth, x) * 1e6 >= entry["lost_us"] / 2]
    of_one_host = len({by_rank(truth, x["rank"]) for x in near}) == 1
    return of_one_host and any(can_delay(truth, x["rank"], entry) for x in near)


def count(truth, entries):
    """The counts of a job's entries, and which were wrong and which incidents not told."""
    r = collections.Counter(jobs=1)
    told, wrong = set(), []
    culprits = {c[k] for c in truth["culprits"] for k in ("rank", "rank_b", "host", "host_b") if k in c}
    clock_s = reference_s(truth, entries)
    for e in entries:
        began = e.get("began")
        if e["lost_us"] < FLOOR_MS * 1e3 or not is_asked(truth, e, clock_s):
            continue
        r["entries"] += 1
        if began and began["us"] is not None:
            i = match(truth, began)
            r["twice"] += i is not None and i in told
            did = began["rank"] is None or can_delay(truth, began["rank"], e)
            right = (i is not None and did) or is_of_all(truth, began) or is_of_slow_one(truth, began)
            told.add(i)
        else:
            right = (bool(began) and (began["rank"] in culprits or began["hostname"] in culprits) or
                     not began and not can_be_told(truth, e, clock_s))
        r["right"] += right
        r["wrong"] += bool(began) and not right
        r["nobody"] += not began
        if not right:
            wrong.append(e)
    lengths = [b - a for a, b in zip(truth["step_begin_s"], truth["step_begin_s"][1:] + [truth["job_s"]])]
    usual = sorted(lengths)[len(lengths) // 2]
    spent = collections.Counter(truth["incidents"][i]["rank"] for i in told if i is not None)
    missed = []
    for i, x in enumerate(truth["incidents"]):
        longer = max(lengths[x["step"]:x["step"] + 2]) - usual
        if (min(longer, x["length_s"]) * 1e3 < FLOOR_MS or (
            i not in told and spent[x["rank"]] >= OF_ONE and x["rank"] in culprits)):
            continue
        r["seen"] += 1
        r["named"] += i in told
        if i not in told:
            missed.append(x)
    return r, wrong, missed


def score(exporter, job):
    with open(os.path.join(job, "truth.json")) as f:
        truth = json.load(f)
    return (job, truth) + count(truth, summary(exporter, job)["outliers"])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("job", nargs="+")
    p.add_argument("--exporter", required=True)
    p.add_argument("--verbose", action="store_true")
    p.add_argument("-j", type=int, default=2)
    o = p.parse_args()
    by = collections.defaultdict(collections.Counter)
    with concurrent.futures.ThreadPoolExecutor(o.j) as pool:
        for job, truth, r, wrong, missed in pool.map(lambda j: score(o.exporter, j), sorted(o.job)):
            for key in ("all", truth["kind"], "layout " + truth["layout"]):
                by[key].update(r)
            if o.verbose and (wrong or missed):
                print(os.path.basename(job), dict(r))
                for e in wrong:
                    print("  wrong: %s %s #%s rank %s lost %.1f ms, %s operations, began %s, finding %s" % (
                        e["kind"], e["func"], e["sn"], e["global_rank"], e["lost_us"] / 1e3,
                        e.get("operations"), e.get("began"), e.get("finding")))
                for x in missed:
                    print("  not told: rank %d step %d %s %.1f ms at %.4f" % (x["rank"], x["step"], x["why"], x["length_s"] * 1e3, x["begin_s"]))
    print("| | jobs | entries | right | wrong | nobody | twice | seen | named |\n|---|---|---|---|---|---|---|---|---|")
    part = lambda n, of: "%.1f %%" % (100 * n / of) if of else "-"
    for key, r in by.items():
        print("| %s | %d | %d | %s | %d | %d | %d | %d | %s |" % (key, r["jobs"], r["entries"], part(r["right"], r["entries"]), r["wrong"], r["nobody"], r["twice"],
                                                        r["seen"], part(r["named"], r["seen"])))


if __name__ == "__main__":
    sys.exit(main())
