#!/usr/bin/env python3
"""Makes a set of jobs: make.py --seed 2 --jobs 72 --out SET -j2     (make tools builds ni-fleet-jobs)"""

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.abspath(os.path.dirname(os.path.abspath(__file__)) + "/../../..")


def make_job(args, number):
    command = [args.tool, str(args.seed), str(args.jobs), str(number), args.out]
    return number, subprocess.run(command, stderr=subprocess.PIPE, text=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--jobs", type=int, default=72)
    parser.add_argument("--out", required=True)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of jobs, of the same set")
    parser.add_argument("--tool", default=ROOT + "/build/test/ni-fleet-jobs")
    parser.add_argument("-j", type=int, default=2)
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    numbers = args.only if args.only else range(args.jobs)
    # Logs of another set have other names, and would stay beside those that are made.
    there = [n for n in numbers if os.path.exists(f"{args.out}/job-{n:03d}")]
    if there:
        sys.exit(f"{args.out}/job-{there[0]:03d} is there already")
    failed = 0
    with ThreadPoolExecutor(args.j) as pool:
        for number, result in pool.map(lambda n: make_job(args, n), numbers):
            if result.returncode:
                failed += 1
                print(f"job-{number:03d}: failed: {result.stderr[-300:]}")
            elif result.stderr:
                print(f"job-{number:03d}: {result.stderr[:300]}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
