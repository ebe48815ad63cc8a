"""Which jobs there are: kinds, their sizes and layouts, and the seeds of the two sets. docs/verdicts.md says
why."""
import collections
import os
import shutil
import subprocess
import sys

# Sizes as ni-jobs --size has them; 0: the kind has none.
SIZES = {"healthy": [0], "noisy": [0], "late": [3, 10, 30], "intermittent": [20], "onset": [10],
         "episode": [15], "moving": [10], "nic": [1.3, 2, 4], "rail": [2], "nvlink": [1.5], "cpu": [4, 5],
         "gpu": [10], "stage": [15],
         "pair": [2], "congestion": [2, 4], "uneven": [15, 40], "two": [0]}
# Kinds that came later, in a list of their own: seeds go by a kind's place.
LATER = {"gc": [100, 300], "checkpoint": [700, 3000], "evaluation": [1000, 2500], "pauses": [30, 100],
         "flap": [4, 10], "throttle": [20, 40], "replica": [6, 15], "stages_differ": [0], "inference": [15],
         "two_jobs": [15], "two_attempts": [15]}
ALL = dict(SIZES, **LATER)
LAYOUTS = "ABCFDML"
NOT_IN = {"nvlink": "FDM", "stage": "AFDM", "pair": "FD", "rail": "FD", "replica": "FDML",
          "stages_differ": "AFDM", "inference": "FDML", "gc": "L", "checkpoint": "L", "evaluation": "L",
          "pauses": "L", "flap": "L", "throttle": "L", "two_jobs": "L", "two_attempts": "L"}
UNCOSTED = ("healthy", "noisy", "stages_differ", "evaluation", "inference")  # no cost can be asked for
COST = "2..5"
UNITS = {"late": "+%g %%", "onset": "+%g %%", "episode": "+%g %%", "moving": "+%g %%", "gpu": "+%g %%",
         "stage": "+%g %%", "uneven": "+%g %%", "intermittent": "%g ms", "throttle": "+%g %%",
         "replica": "+%g %%",
         "inference": "+%g %%", "gc": "%g ms", "checkpoint": "%g ms", "evaluation": "%g ms",
         "pauses": "%g ms", "two_jobs": "+%g %%", "two_attempts": "+%g %%"}

SECOND = os.path.join(os.path.dirname(os.path.abspath(__file__)), "second", "make.py")
OTHER_SEEDS = 50000000  # of sets with weather

# asked: a size, or "cost" for a strength that makes the job lose COST percent. source: "" ni-jobs, "weather"
# the same with --weather, "second" the second model.
Job = collections.namedtuple("Job", "layout kind asked seed source", defaults=("",))


def name(job):
    asked = job.asked if job.asked == "cost" else "%g" % job.asked
    return "%s-%s-%s-%d" % (job.layout, job.kind, asked, job.seed)


def row(kind, asked):
    if kind in ("healthy", "noisy", "stages_differ"):
        return kind
    if asked == "cost":
        return kind + ", 2 to 5 %"
    return kind if not asked else kind + " " + UNITS.get(kind, "x%g") % asked


def jobs(held, per, kinds=None, layouts=LAYOUTS, costs=0.5, per_size=False, weather=False):
    """`per` jobs of each kind and layout (with per_size: of each size). A share of `costs` is given its cost,
    not its size."""
    for number, kind in enumerate(ALL):
        for layout in layouts:
            if kind not in (kinds or (ALL if weather else SIZES)) or layout in NOT_IN.get(kind, ""):
                continue
            sizes = ALL[kind]
            for i in range(per * len(sizes) if per_size else per):
                by_cost = kind not in UNCOSTED and int((i + 1) * costs) > int(i * costs)
                asked = "cost" if by_cost else sizes[i // per if per_size
                                                     else (int(i * (1 - costs)) % len(sizes))]
                seed = 2 * (number * 10000 + ord(layout) * 100 + i) + held + (OTHER_SEEDS if weather else 0)
                yield Job(layout, kind, asked, seed, "weather" if weather else "")


def second_kinds():
    p = subprocess.run([sys.executable, SECOND, "--list"], stdout=subprocess.PIPE, text=True, check=True)
    return p.stdout.split()


def second_jobs(held, per, kinds=None, costs=0.5):
    """The same of the second model, which draws layouts and sizes itself."""
    for number, kind in enumerate(second_kinds()):
        for i in range(per if not kinds or kind in kinds else 0):
            by_cost = kind not in UNCOSTED and int((i + 1) * costs) > int(i * costs)
            yield Job("-", kind, "cost" if by_cost else 0, 2 * (number * 10000 + 5000 + i) + held, "second")


def command(tool, job, seed, folder, steps, stored, more):
    """The program that makes a job, and its options."""
    if job.source == "second":
        args = [sys.executable, SECOND, "--kind", job.kind, "--seed", str(seed), "--out", folder]
    else:
        args = [tool, "--layout", job.layout, "--kind", job.kind, "--seed", str(seed), "--out", folder]
        args += list(more)
        args += ["--weather"] if job.source == "weather" else []
        args += ["--size", "%g" % job.asked] if job.asked and job.asked != "cost" else []
    args += ["--cost", COST] if job.asked == "cost" else []
    args += ["--steps", str(steps)] if steps else []
    return args + ["--stored"] * stored


def make(tool, job, folder, steps=None, stored=False, more=()):
    """Generates a job into folder. False: no strength gives the cost asked for, with none of a few seeds."""
    for again in range(4):
        seed = job.seed + again * 1000000
        args = command(tool, job, seed, folder, steps, stored, more)
        p = subprocess.run(args, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if p.returncode == 0:
            return True
        if p.returncode != 3:
            raise RuntimeError("%s: %s" % (" ".join(args), p.stderr.strip()))
        if os.path.isdir(folder):
            shutil.rmtree(folder)
    return False
