#!/usr/bin/env python3
"""One job's truth beside what the tool says: show.py EXPORTER JOB_DIR"""

import json
import sys

from grade import run_tool
from match import Subject, is_innocent, match


def main():
    exporter, folder = sys.argv[1:3]
    truth = json.load(open(folder + "/truth.json"))
    print(
        f"{truth['shape']}: {truth['n_ranks']} ranks, {truth['n_hosts']} hosts, "
        f"{truth['nics']} NICs a host, "
        f"{truth['steps']} steps, {truth['run_s']:.1f} s, weather {truth['weather']}, "
        f"missing {truth['missing_ranks']}"
    )
    for c in truth["causes"]:
        windows = [f"{w['begin_step']}-{w['end_step']}" for w in c["windows"][:6]]
        print(
            f"  {c['kind']} ({c['level']}) ranks {c['ranks'][:16]} hosts {c['hosts']} "
            f"nic {c['nic']} index {c['index']}: {100 * c['cost']:.1f} %, steps {windows}, "
            f"{len(c['moments_s'])} moments, every {c['every_steps']}"
            f"{'' if c['identifiable'] else ', NOT identifiable: ' + c['why_not']}"
        )
    out = run_tool(exporter, folder)
    print("findings by", out.get("findings_by"))
    for f in out.get("findings", []):
        s = Subject(f)
        marks = [
            c["kind"] + ":" + m
            for c in truth["causes"]
            for m in [match(c, s, truth["n_ranks"])]
            if m
        ]
        wrong = s.accuses and is_innocent(s, truth["causes"], truth["n_ranks"])
        cost = "?" if s.cost is None else round(s.cost, 1)
        print(
            f"  [{f.get('class')}] {s.kind} {s.level} {cost} % "
            f"{' '.join(marks)}{' INNOCENT' if wrong else ''}\n      {s.text}"
        )


if __name__ == "__main__":
    main()
