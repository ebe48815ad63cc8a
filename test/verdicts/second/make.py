#!/usr/bin/env python3
"""Writes logs of training jobs with a planted cause, and truth.json, from a model that shares nothing with
ni-jobs.

  make.py --kind late --seed 8 --out DIR [--cost 2..5] [--no-weather] [--layout P]
  make.py --set even --per 2 --out DIR [--kinds late,gc] [--from N]
                                           many: a folder LAYOUT-KIND-SIZE-SEED for each
  make.py --list
Exit codes: 0 made, 2 usage, 3 no strength has the cost that was asked for. README.md says what is modelled
and what is not.
"""

import argparse
import json
import os
import re
import shutil
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import faults
import logs
import program
import truth
import weather
from draws import log_uniform, mix, stream
from machine import Log, between_ranks, run, transfer
from shape import Job

EPOCH = 1_790_000_000_000_000_000


class Impossible(Exception):
    """No strength has the cost that was asked for."""


def shaped(seed, kind, with_weather, layout=None, attempt=0, steps=None):
    """A job, its weather and its number of steps. Kinds that need time take shapes with few records a
    step."""
    w = weather.draw(seed, with_weather, kind in faults.QUIET)
    for again in range(60):
        job = Job(mix(seed, again) if again else seed, kind, attempt, layout=layout)
        job.seed = job.noise = seed
        if job.layout == "I":
            job.steps = stream(seed, "steps").randrange(60, 200)
            per = job.layers * 8 * job.world
            job.steps = int(max(40, min(400, job.records_wanted / per)))
            break
        calibrate(job)
        per = program.records(job, program.build(job).items)
        job.steps = int(max(20, min(300, job.records_wanted / per)))
        least = 100 if kind in faults.PERIODIC else 60 if kind in faults.LONG else 20
        enough = 35e3 if again < 40 else 0
        if job.steps >= least and enough <= per * job.steps < 170e3:
            break
    if kind in faults.LONG:
        w.pop("steps", None)
    job.steps = steps or w.get("steps", job.steps)
    return job, w


def calibrate(job):
    """Steps as long as real ones: the few layers stand for many. Messages take a drawn share of that time."""
    rng = stream(job.seed, "length", job.layout)
    step, share = log_uniform(rng, 60e6, 1200e6), log_uniform(rng, 0.04, 0.4)
    computing, talking, blocks = [1.0] * job.world, [1.0] * job.world, [0] * job.world
    for it in program.build(job).items:
        if it[0] == program.COMPUTE:
            for r in it[1]:
                computing[r] += it[2]
                blocks[r] += 1
        elif it[0] == program.COLL:
            comm = job.comms[it[1]]
            _, inside, between = transfer(job, comm, it[2], it[3])
            for r in comm.ranks:
                talking[r] += max(inside, between)
        elif it[0] == program.MOVE:
            ns = max(between_ranks(job, it[2], it[3], it[4])[1:])
            talking[it[2]] += ns
            talking[it[3]] += ns
        elif it[0] == program.SWAP:
            comm = job.comms[it[1]]
            ns = between_ranks(job, comm.ranks[0], comm.ranks[-1], it[2])
            for r in comm.ranks:
                talking[r] += max(ns[1] * (comm.local - 1), ns[2] * (len(comm.ranks) - comm.local))
    job.layer *= step / max(computing)
    # CUDA holds some thousand launches: a part of a step, or one.
    job.queue = max(2, int(max(blocks) * log_uniform(rng, 0.04, 0.6)))
    if job.by_cpu:  # its launches take as long as the whole step, messages and all
        job.launch_share *= 1.0 + share
    much = share * step / max(talking)
    job.hidden = min(max(job.hidden * much, 64e3), 512e6)
    job.params = min(max(job.params * much, 256e3), 2e9)


def find_strength(job, kind, causes, base, gap, wanted):
    """The strength at which the job loses a share in `wanted` (percent): a search by halves. Nothing gets
    more than 20 times as slow."""
    low, high, k = 0.0, None, 1.0
    most = min([60.0] + [19.0 / (c.size - 1.0) for c in causes if c.unit == "x"])
    for _ in range(14):
        out = run(job, planned(job, kind, causes, k), gap)
        percent = 100.0 * (out.end - base.end) / out.end
        if wanted[0] <= percent <= wanted[1]:
            return k
        if percent < wanted[0]:
            low = k
            k = k * 3.0 if high is None else (low + high) / 2
        else:
            high = k
            k = (low + high) / 2
        if k > most:
            break
    raise Impossible("no strength costs %g to %g %%" % tuple(wanted))


def planned(job, kind, causes, k):
    plan = faults.background(job, kind)
    for c in causes:
        c.plant(plan, k)
    return plan


def missing_ranks(job, w, rng):
    if w.get("missing") == "host" and job.n_hosts > 1:
        h = rng.randrange(job.n_hosts)
        out = [r for r in range(job.world) if job.host_of[r] == h]
    elif "missing" in w:
        out = sorted(rng.sample(range(job.world), rng.choice((1, 1, 2))))
    else:
        return []
    w["missing"] = out
    return out


def one(
    seed,
    kind,
    out,
    cost=None,
    with_weather=True,
    layout=None,
    level=1,
    attempt=0,
    planting=True,
    epoch=None,
    cut=False,
    shape_kind=None,
    steps=None,
    again=0,
    subject=None,
    strength=None,
):
    """One job's logs into `out`; returns the truth as a dict."""
    job, w = shaped(seed, shape_kind or kind, with_weather, layout, attempt, steps)
    job.noise = mix(seed, "again", again) if again else seed
    gap = w["gap_us"] * 1000.0
    rng = stream(seed, attempt, "life")
    base_plan = faults.background(job, kind)
    base = run(job, base_plan, gap)
    causes = faults.causes(job, kind, base, *(subject or ())) if planting and subject != NOBODY else []
    k = find_strength(job, kind, causes, base, gap, cost) if cost and causes else strength or 1.0
    log = Log(job)
    plan = planned(job, kind, causes, k)
    final = run(job, plan, gap, log)
    epoch = epoch or EPOCH + rng.randrange(10**15)
    clocks = weather.Clocks(job, w, epoch, final.end)
    missing = missing_ranks(job, w, rng)
    life = {"interval_ns": rng.choice((0.25e9, 0.5e9, 1e9, 2e9)), "cut_ns": final.end * 0.93 if cut else None}
    records = logs.write(job, w, clocks, log, out, life, missing, level)
    culprits = []
    for c in causes:
        alone = base
        if len(causes) > 1:  # of two: what is gained without this one alone
            alone = run(job, planned(job, kind, [x for x in causes if x is not c], k), gap)
        seen = truth.culprit(job, c, k, final, alone.end / 1e9, missing, "sample" in w)
        culprits.append(seen)
    with_s, without_s = final.end / 1e9, base.end / 1e9
    if not causes:
        without_s = with_s
    incidents = [
        {
            "rank": r,
            "step": s,
            "why": why,
            "begin_s": round(b / 1e9, 6),
            "length_s": round(x / 1e9, 6),
            "idle_s": round(idle / 1e9, 6),
        }
        for r, s, b, x, idle, why in sorted(final.incidents, key=lambda i: i[2])
        if x > 5e6
    ]
    first = causes[0] if causes else None
    return {
        "schema_version": 1,
        "model": "second",
        "layout": job.layout,
        "kind": kind,
        "size": culprits[0]["size"] if first else 0,
        "unit": first.unit if first else "",
        "seed": seed,
        "world": job.world,
        "steps": job.steps,
        "records": records,
        "jitter": job.jitter,
        "shape": {
            "hosts": job.n_hosts,
            "gpus": job.gpus,
            "nics": job.n_nics,
            "tp": job.tp,
            "pp": job.pp,
            "dp": job.dp,
            "ep": job.ep,
            "order": job.order,
            "layers": job.layers,
            "stage_layers": job.stage_layers,
            "micro_batches": job.micro,
            "chunks": job.chunks,
            "paced_by": "cpu" if job.by_cpu else "gpu",
        },
        "weather": w,
        "epoch_ns": epoch,
        "job_s": round(with_s, 6),
        "job_without_s": round(without_s, 6),
        "cost_s": round(with_s - without_s, 6),
        "cost_percent": round(100.0 * (with_s - without_s) / with_s, 3),
        "hosts": [
            {
                "name": n,
                "clock_offset_ns": clocks.offset[h],
                "clock_drift_ppm": round(clocks.drift[h] * 1e6, 4),
            }
            for h, n in enumerate(job.hostnames)
        ],
        "delivery_ns": [int(f[-1][1]) for f in clocks.delivery],
        "stages": [job.stage_of(r) for r in range(job.world)],
        "stage_work": truth.stage_work(job),
        "communicators": [
            {"id": c.hash, "name": c.name, "role": c.role, "ranks": c.ranks} for c in job.comms
        ],
        "step_begin_s": [round(x / 1e9, 6) for x in final.step_begin],
        "incidents": incidents,
        "culprits": culprits,
    }


def make(seed, kind, out, **more):
    """One folder: logs and truth.json. Of two jobs or attempts the truth is that of the one with the
    cause."""
    os.makedirs(out, exist_ok=True)
    if kind == "two_jobs":
        rng = stream(seed, "two jobs")
        epoch = EPOCH + rng.randrange(10**15)
        told = one(seed, kind, out, epoch=epoch, **more)
        for name in ("cost", "layout", "subject", "strength"):
            more.pop(name, None)
        other = one(seed + 7_000_000, "healthy", out, epoch=epoch + rng.randrange(10**10), **more)
        told["other_jobs"] = [
            {
                k: other[k]
                for k in ("layout", "world", "steps", "records", "epoch_ns", "job_s", "hosts", "weather")
            }
        ]
    elif kind == "two_attempts":
        rng = stream(seed, "two attempts")
        epoch = EPOCH + rng.randrange(10**15)
        told = one(seed, kind, out, epoch=epoch, attempt=1, **more)
        for name in ("cost", "subject", "strength"):
            more.pop(name, None)
        killed = rng.random() < 0.5
        before = one(
            seed,
            kind,
            out,
            epoch=epoch - int(told["job_s"] * 1e9) - rng.randrange(30 * 10**9, 600 * 10**9),
            planting=False,
            cut=killed,
            shape_kind=kind,
            **more,
        )
        told["other_attempts"] = [{k: before[k] for k in ("steps", "records", "epoch_ns", "job_s")}]
        told["other_attempts"][0]["killed"] = killed
    else:
        told = one(seed, kind, out, **more)
    with open(os.path.join(out, "truth.json"), "w") as f:
        json.dump(told, f, indent=1)
        f.write("\n")
    return told


def span(text):
    m = re.fullmatch(r"([\d.]+)\.\.([\d.]+)", text)
    if not m:
        raise argparse.ArgumentTypeError("A..B in percent")
    return float(m[1]), float(m[2])


NOBODY = "none"


def moved(text):
    if text == NOBODY:
        return text
    m = re.fullmatch(r"(\d+)(?:,([01]))?", text)
    if not m:
        raise argparse.ArgumentTypeError("R, or R,1, or none")
    return int(m[1]), int(m[2] or 0)


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--list", action="store_true", help="print the kinds")
    p.add_argument("--kind", choices=faults.KINDS)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--cost", type=span, help="percent of the job, as 2..5")
    p.add_argument("--layout", choices=list("TPFHDMOI"), help="this layout, not one by chance")
    p.add_argument("--again", type=int, default=0, help="the same job once more: other noise; weather and names stay")
    p.add_argument("--subject", type=moved, help="rank R, or R,1: whose the first or second cause is to be; none: no cause")
    p.add_argument("--strength", type=float, help="as truth.json has it, instead of a search")
    p.add_argument("--steps", type=int, help="so many, not what the shape asks for")
    p.add_argument("--no-weather", action="store_true", help="good clocks, complete logs")
    p.add_argument("--stored", action="store_true", help="gzip without compression")
    p.add_argument("--set", choices=("even", "odd"), help="many jobs, of even or odd seeds")
    p.add_argument("--per", type=int, default=1, help="jobs of each kind")
    p.add_argument(
        "--from", type=int, default=0, dest="first", help="of each kind the first that many are left out"
    )
    p.add_argument("--kinds", help="of --set: these, comma between")
    p.add_argument("--out")
    return p, p.parse_args()


def main():
    p, o = options()
    if o.list:
        print("\n".join(faults.KINDS))
        return 0
    if not o.out or bool(o.set) == bool(o.kind):
        p.error("--out DIR, and --kind or --set")
    more = {
        "cost": o.cost,
        "with_weather": not o.no_weather,
        "layout": o.layout,
        "steps": o.steps,
        "again": o.again,
        "subject": o.subject,
        "strength": o.strength,
        "level": 0 if o.stored else 1,
    }
    if o.kind:
        try:
            make(o.seed, o.kind, o.out, **more)
        except Impossible as e:
            print("make.py: %s" % e, file=sys.stderr)
            return 3
        return 0
    kinds = o.kinds.split(",") if o.kinds else faults.KINDS
    for kind in kinds:
        for i in range(o.first, o.first + o.per):
            part = os.path.join(o.out, "making")
            began = time.time()
            t = None
            for again in range(5):  # where no strength has the cost, another job
                seed = 2 * (faults.KINDS.index(kind) * 10000 + i + again * 1000000) + (o.set == "odd")
                shutil.rmtree(part, ignore_errors=True)
                try:
                    t = make(seed, kind, part, **more)
                    break
                except Impossible:
                    pass
            if t is None:
                continue
            asked = "cost" if o.cost and t["culprits"] else "%.4g" % t["size"]
            name = "%s-%s-%s-%d" % (t["layout"], kind, asked, seed)
            shutil.rmtree(os.path.join(o.out, name), ignore_errors=True)
            os.rename(part, os.path.join(o.out, name))
            print(
                "%-32s %6d records, %3d ranks, %3d steps, cost %5.2f %%, %4.1f s"
                % (name, t["records"], t["world"], t["steps"], t["cost_percent"], time.time() - began),
                flush=True,
            )
    shutil.rmtree(os.path.join(o.out, "making"), ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
