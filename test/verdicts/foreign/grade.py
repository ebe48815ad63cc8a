#!/usr/bin/env python3
"""Grades a tool on a set: grade.py EXPORTER OUT.json DIR [--only-totals]"""

import argparse
import glob
import json
import os
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

from match import Subject, is_innocent, match, named_by_ranks


def run_tool(exporter, job):
    """The tool leaves tables where it runs, so each run gets a folder of its own."""
    command = [os.path.abspath(exporter), "summary", os.path.abspath(job), "--json", "--only", "tables"]
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=600
        )
    try:
        return json.loads(result.stdout)
    except json.JSONDecodeError:
        return {"findings": [], "failed": result.returncode}


def grade_cause(cause, causes, subjects, n_ranks):
    found = None
    stated = None
    for s in subjects:
        how = match(cause, s, n_ranks)
        if how == "right" or (how and not found):
            if found != "right":
                found = how
                stated = s.cost
    together = None
    if not found:
        together = named_by_ranks(cause, subjects)
        if together:
            found = "named"
            stated = sum(s.cost or 0 for s in together)
    order = [s for s in subjects if s.accuses or cause["benign"]]
    if cause["benign"] and any(s.accuses for s in order):
        order = [s for s in order if s.accuses or match(cause, s, n_ranks)]
    # Of two causes the larger one may come first.
    rivals = [c for c in causes if c is cause or c["cost"] > cause["cost"]]
    first = (
        bool(found)
        and bool(order)
        and any(match(c, order[0], n_ranks) or (together and order[0] in together) for c in rivals)
    )
    truth = 100 * cause["cost"]
    cost_ok = stated is not None and truth > 0 and 0.7 <= stated / truth <= 1.5
    return {
        "kind": cause["kind"],
        "cost": cause["cost"],
        "identifiable": cause["identifiable"],
        "named": bool(found),
        "right": found == "right",
        "first": first,
        "cost_ok": bool(found and cost_ok),
    }


def grade_job(exporter, folder):
    truth = json.load(open(folder + "/truth.json"))
    out = run_tool(exporter, folder)
    subjects = [Subject(f) for f in out.get("findings", [])]
    causes = truth["causes"]
    grades = [grade_cause(c, causes, subjects, truth["n_ranks"]) for c in causes]
    wrong = [s.text for s in subjects if s.accuses and is_innocent(s, causes, truth["n_ranks"])]
    return {
        "job": os.path.basename(folder),
        "shape": truth["shape"],
        "healthy": not causes,
        "causes": grades,
        "innocents": len(wrong),
        "wrong": wrong,
        "findings": len(subjects),
        "by": out.get("findings_by"),
        "weather": truth["weather"],
        "failed": out.get("failed"),
    }


def line(name, grades):
    n = max(1, len(grades))
    share = [100 * sum(g[k] for g in grades) / n for k in ("named", "first", "right", "cost_ok")]
    print(
        f"{name:18} {len(grades):3}  named {share[0]:5.1f} %  first {share[1]:5.1f} %  "
        f"right level {share[2]:5.1f} %  cost {share[3]:5.1f} %"
    )


def totals(jobs):
    every = [dict(g, shape=j["shape"], clean=not j["weather"]) for j in jobs for g in j["causes"]]
    counted = [g for g in every if g["cost"] >= 0.02 and g["identifiable"]]
    healthy = [j for j in jobs if j["healthy"]]
    sick = [j for j in jobs if not j["healthy"]]
    print(
        f"{len(jobs)} jobs, {len(every)} causes, {len(counted)} of 2 % or more and identifiable, "
        f"{sum(1 for j in jobs if j['failed'])} unreadable"
    )
    line("counted", counted)
    line("all", every)
    print(
        f"innocents: {sum(j['innocents'] for j in sick)} in "
        f"{sum(j['innocents'] > 0 for j in sick)} of {len(sick)} jobs with causes; "
        f"{sum(j['innocents'] for j in healthy)} in "
        f"{sum(j['innocents'] > 0 for j in healthy)} of {len(healthy)} healthy jobs"
    )
    return counted


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("exporter")
    parser.add_argument("out")
    parser.add_argument("dir")
    parser.add_argument("--only-totals", action="store_true", help="no shapes, no names of jobs")
    args = parser.parse_args()
    folders = sorted(glob.glob(args.dir + "/job-*"))
    with ThreadPoolExecutor(2) as pool:
        jobs = list(pool.map(lambda f: grade_job(args.exporter, f), folders))
    json.dump(jobs, open(args.out, "w"), indent=1)
    counted = totals(jobs)
    for key in ("kind",) if args.only_totals else ("kind", "shape"):
        print(f"\nby {key}")
        for value in sorted({g[key] for g in counted}):
            line(value, [g for g in counted if g[key] == value])
    if args.only_totals:
        return
    print()
    line("clean logs", [g for g in counted if g["clean"]])
    line("bad weather", [g for g in counted if not g["clean"]])
    print(
        "\nnot named:",
        " ".join(
            f"{j['job']}:{g['kind']}"
            for j in jobs
            for g in j["causes"]
            if g["cost"] >= 0.02 and g["identifiable"] and not g["named"]
        ),
    )
    print("innocents:", " ".join(f"{j['job']}({j['innocents']})" for j in jobs if j["innocents"]))


if __name__ == "__main__":
    main()
