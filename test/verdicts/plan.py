"""Which jobs there are: kinds, their sizes and layouts, and the seeds of the two sets. docs/verdicts.md says why."""
import collections
import os
import shutil
import subprocess

# Sizes as ni-jobs --size has them; 0: the kind has none.
SIZES = {"healthy": [0], "noisy": [0], "late": [3, 10, 30], "intermittent": [20], "onset": [10], "episode": [15],
         "moving": [10], "nic": [1.3, 2, 4], "rail": [2], "nvlink": [1.5], "cpu": [4, 5], "gpu": [10], "stage": [15],
         "pair": [2], "congestion": [2, 4], "uneven": [15, 40], "two": [0]}
# Kinds that came later, in a list of their own: seeds go by a kind's place.
LATER = {"gc": [100, 300], "checkpoint": [700, 3000], "evaluation": [1000, 2500], "pauses": [30, 100], "flap": [4, 10],
         "throttle": [20, 40], "replica": [6, 15], "stages_differ": [0], "inference": [15]}
ALL = dict(SIZES, **LATER)
LAYOUTS = "ABCFDML"
NOT_IN = {"nvlink": "FDM", "stage": "AFDM", "pair": "FD", "rail": "FD", "replica": "FDML", "stages_differ": "AFDM",
          "inference": "FDML", "gc": "L", "checkpoint": "L", "evaluation": "L", "pauses": "L", "flap": "L", "throttle": "L"}
UNCOSTED = ("healthy", "noisy", "stages_differ", "evaluation", "inference")  # no cost can be asked for
COST = "2..5"
UNITS = {"late": "+%g %%", "onset": "+%g %%", "episode": "+%g %%", "moving": "+%g %%", "gpu": "+%g %%", "stage": "+%g %%",
         "uneven": "+%g %%", "intermittent": "%g ms", "throttle": "+%g %%", "replica": "+%g %%", "inference": "+%g %%",
         "gc": "%g ms", "checkpoint": "%g ms", "evaluation": "%g ms", "pauses": "%g ms"}

# asked: a size, or "cost" for a strength that makes the job lose COST percent.
Job = collections.namedtuple("Job", "layout kind asked seed")


def name(job):
    asked = job.asked if job.asked == "cost" else "%g" % job.asked
    return "%s-%s-%s-%d" % (job.layout, job.kind, asked, job.seed)


def row(kind, asked):
    if kind in ("healthy", "noisy", "stages_differ"):
        return kind
    if asked == "cost":
        return kind + ", 2 to 5 %"
    return kind if not asked else kind + " " + UNITS.get(kind, "x%g") % asked


def jobs(held, per, kinds=None, layouts=LAYOUTS, costs=0.5, per_size=False):
    """`per` jobs of each kind and layout (with per_size: of each size). A share of `costs` is given its cost, not its size."""
    for number, kind in enumerate(ALL):
        for layout in layouts:
            if kind not in (kinds or SIZES) or layout in NOT_IN.get(kind, ""):
                continue
            sizes = ALL[kind]
            for i in range(per * len(sizes) if per_size else per):
                by_cost = kind not in UNCOSTED and int((i + 1) * costs) > int(i * costs)
                asked = "cost" if by_cost else sizes[i // per if per_size else (int(i * (1 - costs)) % len(sizes))]
                yield Job(layout, kind, asked, 2 * (number * 10000 + ord(layout) * 100 + i) + held)


def make(tool, job, folder, steps=None, stored=False):
    """Generates a job into folder. False: no strength gives the cost asked for, with none of a few seeds."""
    for again in range(4):
        seed = job.seed + again * 1000000
        args = [tool] + ["--stored"] * stored + ["--layout", job.layout, "--kind", job.kind, "--seed", str(seed), "--out", folder]
        if job.asked == "cost":
            args += ["--cost", COST]
        elif job.asked:
            args += ["--size", "%g" % job.asked]
        if steps:
            args += ["--steps", str(steps)]
        p = subprocess.run(args, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if p.returncode == 0:
            return True
        if p.returncode != 3:
            raise RuntimeError("%s: %s" % (" ".join(args), p.stderr.strip()))
        if os.path.isdir(folder):
            shutil.rmtree(folder)
    return False
