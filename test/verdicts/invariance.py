#!/usr/bin/env python3
"""The same job with one weather more has the same findings (docs/verdicts.md).

  invariance.py --exporter build/nccl-inspector --layouts ABCDFM --kinds late,gpu --seeds 7700,7702
  invariance.py ... --steps 30 --weather timer,drift,step-0.026

Each job is made by ni-jobs without weather, and again with each of WEATHER alone. Exit 1 where findings differ
in what they say of whom, or a cost by more than a third.
"""
import argparse
import collections
import concurrent.futures
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import judge

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WEATHER = {
    "timer": ["--timer-ns", "1024"],
    "drift": ["--drift-ppm", "100", "--host-offset-s", "300"],
    "overlap": ["--overlap-us", "20"],
    "symmetric": ["--with", "symmetric"],
    "step+0.02": ["--clock-step-s", "0.02"],
    "step-0.026": ["--host-offset-s", "2", "--clock-step-s", "-0.026"],
    "step-2": ["--clock-step-s", "-2"],
}


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--exporter", default=os.path.join(ROOT, "build", "nccl-inspector"))
    p.add_argument("--tool", default=os.path.join(ROOT, "build", "test", "ni-jobs"))
    p.add_argument("--layouts", default="ABCDFM")
    p.add_argument("--kinds", default="healthy,late,gpu,cpu,nic,pauses,throttle")
    p.add_argument("--seeds", default="7700", help="even ones: the others are kept back")
    p.add_argument("--steps", help="instead of the layouts' own")
    p.add_argument("--weather", default=",".join(WEATHER), help="of: %s" % ", ".join(WEATHER))
    p.add_argument("-j", type=int, default=2)
    return p.parse_args()


def costs_by_subject(summary):
    return {(f["kind"], f["level"], tuple(sorted(f["ranks"])), tuple(sorted(f["hosts"]))): f["lost"]
            for f in judge.findings(summary)}


def differences(plain, other):
    out = ["no more: %s" % (k,) for k in plain if k not in other]
    out += ["new: %s" % (k,) for k in other if k not in plain]
    for k in plain:
        if k in other and plain[k] > 0 and not 0.75 <= other[k] / plain[k] <= 1.33:
            out.append("costs %.2f times as much: %s" % (other[k] / plain[k], k))
    return out


def make_and_summarise(o, options_of_job, folder):
    made = subprocess.run([o.tool, "--stored"] + options_of_job + ["--out", folder], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True)
    if made.returncode == 3:
        return None  # no strength has that cost
    if made.returncode:
        sys.exit("invariance.py: ni-jobs %s: %s" % (" ".join(options_of_job), made.stderr.strip()))
    return costs_by_subject(judge.summarise(o.exporter, folder, folder + "-out"))


def compare(o, job):
    layout, kind, seed = job
    plain_options = ["--layout", layout, "--kind", kind, "--seed", seed]
    plain_options += ["--steps", o.steps] if o.steps else []
    plain_options += [] if kind in ("healthy", "noisy") else ["--cost", "3..4"]
    out = []
    with tempfile.TemporaryDirectory(prefix="invariance-") as folder:
        plain = make_and_summarise(o, plain_options, os.path.join(folder, "plain"))
        for name in o.weather.split(",") if plain is not None else []:
            other = make_and_summarise(o, plain_options + WEATHER[name], os.path.join(folder, name))
            out.append((name, differences(plain, other)))
    return job, out


def main():
    o = options()
    unknown = [w for w in o.weather.split(",") if w not in WEATHER]
    if unknown:
        sys.exit("invariance.py: --weather %s: accepted are %s" % (unknown[0], ", ".join(WEATHER)))
    jobs = [(x, k, s) for x in o.layouts for k in o.kinds.split(",") for s in o.seeds.split(",")]
    asked, differ = collections.Counter(), collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(o.j) as pool:
        for job, outcomes in pool.map(lambda j: compare(o, j), jobs):
            for name, found in outcomes:
                asked[name] += 1
                differ[name] += bool(found)
                for text in found:
                    print("%s, %s: %s" % (" ".join(job), name, text))
    for name, n in asked.items():
        print("%-12s %d of %d differ" % (name, differ[name], n))
    return 1 if sum(differ.values()) or not asked else 0


if __name__ == "__main__":
    sys.exit(main())
