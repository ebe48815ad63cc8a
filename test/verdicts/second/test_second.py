#!/usr/bin/env python3
"""Tests of the second model: that its lines are the plugin's, that causes cost what they should, and that its
physics hold.

test_second.py FOLDER      leaves two jobs there for `nccl-inspector check`: healthy and late
"""

import glob
import gzip
import json
import os
import re
import shutil
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import faults
import make
import truth
from draws import stream
from machine import Log, run, stretch
from program import build, interleaved, meet, one_forward_one_backward

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
OUT = None
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_type(value, name):
    if name in ("integer", "number"):
        return isinstance(value, int if name == "integer" else (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def faults_of(value, schema, defs, where=""):
    """What of the JSON Schema a value breaks: those of its words that log-line.schema.json uses; and keys it
    does not know."""
    if "$ref" in schema:
        schema = defs[schema["$ref"].rsplit("/", 1)[1]]
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(is_type(value, t) for t in types):
        return ["%s is %r" % (where, value)]
    out = []
    if "enum" in schema and value not in schema["enum"] or "const" in schema and value != schema["const"]:
        out.append("%s is %r" % (where, value))
    if "pattern" in schema and not re.search(schema["pattern"], value):
        out.append("%s is %r" % (where, value))
    if "minimum" in schema and value is not None and value < schema["minimum"]:
        out.append("%s is %r" % (where, value))
    if isinstance(value, dict):
        known = schema.get("properties", {})
        out += ["%s lacks %s" % (where, k) for k in schema.get("required", []) if k not in value]
        out += ["%s has %s" % (where, k) for k in value if known and k not in known]
        for k, v in value.items():
            if k in known:
                out += faults_of(v, known[k], defs, where + "." + k)
    return out


def job_of(kind, seed, layout=None, weather=False, steps=12):
    job, w = make.shaped(seed, kind, weather, layout, steps=steps)
    return job, w


def seconds(job, kind, causes, k):
    return run(job, make.planned(job, kind, causes, k)).end / 1e9


class Second(unittest.TestCase):
    def test_lines_are_the_plugins(self):
        with open(os.path.join(ROOT, "schemas", "log-line.schema.json")) as f:
            schema = json.load(f)
        for seed, kind, layout in ((2, "healthy", "M"), (4, "late", "P")):
            folder = os.path.join(OUT, kind)
            told = make.make(seed, kind, folder, layout=layout, with_weather=False, steps=4)
            seen = 0
            for path in glob.glob(os.path.join(folder, "*.gz")):
                with gzip.open(path, "rt") as f:
                    lines = f.read().splitlines()
                self.assertIn('"process":', lines[0])
                for line in lines[:4] + lines[4::41] + lines[-3:]:
                    self.assertEqual(faults_of(json.loads(line), schema, schema["$defs"]), [], line)
                operations = [json.loads(x) for x in lines[::7] if '_perf":' in x]
                seen += sum('_perf":' in x for x in lines)
                for x in operations:
                    body = x.get("coll_perf") or x.get("p2p_perf")
                    delta = body.get("coll_gpu_start_delta_ns", body.get("p2p_gpu_start_delta_ns"))
                    self.assertGreater(delta, 0, "a kernel begins before its call")
            self.assertEqual(seen, told["records"])

    def test_a_healthy_job_has_no_cost(self):
        told = make.make(6, "healthy", os.path.join(OUT, "quiet"), with_weather=True, layout="D", steps=5)
        self.assertEqual((told["cost_percent"], told["culprits"]), (0.0, []))
        shutil.rmtree(os.path.join(OUT, "quiet"))

    def test_cost_grows_with_strength(self):
        for kind, layout, steps in (("late", "D", 8), ("nic", "T", 4), ("gc", "D", 30)):
            job, _ = job_of(kind, 10, layout, steps=steps)
            base = run(job, faults.background(job, kind))
            causes = faults.causes(job, kind, base)
            costs = [seconds(job, kind, causes, k) - base.end / 1e9 for k in (1.0, 4.0)]
            self.assertLess(costs[0], costs[1], kind)
            self.assertGreaterEqual(costs[0], 0.0, kind)

    def test_who_is_slow_waits_least(self):
        # A CPU that is the slower of the two hides a slow GPU, as it does in real jobs.
        job = next(j for j in (job_of("gpu", seed, "D")[0] for seed in range(12, 40, 2)) if not j.by_cpu)
        base = run(job, faults.background(job, "gpu"))
        causes = faults.causes(job, "gpu", base)
        log = Log(job)
        run(job, make.planned(job, "gpu", causes, 1.0), log=log)
        waits = [0.0] * job.world
        for op in log.colls[0]:
            for r in range(job.world):
                waits[r] += op[4] - op[2][r]
        self.assertEqual(waits.index(min(waits)), causes[0].ranks[0])

    def test_a_cause_moves_no_other_draw(self):
        job, _ = job_of("late", 14, "P")
        plain = run(job, faults.background(job, "late"))
        causes = faults.causes(job, "late", plain)
        self.assertEqual(plain.end, run(job, make.planned(job, "late", causes, 0.0)).end)
        self.assertEqual(plain.end, run(job, faults.background(job, "late")).end)

    def test_pipelines_meet(self):
        for p in range(2, 9):
            for programs in (
                [one_forward_one_backward(s, p, m) for s in range(p)] for m in (p - 1, p, 2 * p + 1)
            ):
                meet(programs)
            for v in (2, 3):
                for m in (p, 2 * p, 3 * p):
                    order = meet([interleaved(s, p, m, v) for s in range(p)])
                    for s in range(p):
                        mine = "".join(x[0] for x in order if x[0] in "FB" and x[1] == s)
                        self.assertEqual((mine.count("F"), mine.count("B")), (m * v, m * v))
                    self.assertEqual(sum(x[0] == "move" for x in order), 2 * m * (p * v - 1))

    def test_a_link_that_flaps(self):
        self.assertAlmostEqual(stretch(0.0, 100.0, 300.0, [(1000.0, 2000.0)]), 100.0)
        self.assertAlmostEqual(stretch(1000.0, 100.0, 300.0, [(1000.0, 2000.0)]), 300.0)
        self.assertAlmostEqual(stretch(950.0, 100.0, 300.0, [(1000.0, 2000.0)]), 200.0)
        self.assertAlmostEqual(stretch(1970.0, 100.0, 300.0, [(1000.0, 2000.0)]), 120.0)

    def test_what_nobody_can_tell(self):
        # One ring through all hosts: each NIC of it slows it alike.
        job, _ = job_of("nic", 16, "D")
        cause = faults.make(job, "nic", stream(1), run(job, faults.background(job, "nic"), steps=3))
        self.assertFalse(truth.subjects(job, cause, 3.0)[2])
        # Tensor-parallel groups within hosts: those of one host show its NVLink.
        job, _ = job_of("two", 18, "T", steps=3)
        cause = faults.make(job, "nvlink", stream(1), run(job, faults.background(job, "nvlink"), steps=3))
        self.assertTrue(truth.subjects(job, cause, 3.0)[2])

    def test_what_sampled_messages_do_not_tell(self):
        # One replica: nothing but messages crosses hosts, and of these each side kept others.
        job = next(j for j in (job_of("congestion", seed, "P")[0] for seed in range(20, 400, 2)) if j.dp == 1)
        cause = faults.make(job, "congestion", stream(1), run(job, faults.background(job, "late"), steps=3))
        self.assertTrue(truth.subjects(job, cause, 3.0)[2])
        self.assertFalse(truth.subjects(job, cause, 3.0, sampled=True)[2])

    def test_who_has_more_tokens(self):
        # Of messages the sizes tell that a rank has more to do; an AlltoAll's is the same on all of its
        # ranks.
        job, _ = job_of("uneven", 22, "M", steps=3)
        outcome = run(job, faults.background(job, "uneven"), steps=3)
        cause = faults.make(job, "uneven", stream(1), outcome)
        for job.native_alltoall, told in ((False, "note"), (True, "fault")):
            self.assertEqual(truth.culprit(job, cause, 1.0, outcome, 0.0, [])["class"], told)

    def test_each_kind_has_a_shape_and_a_cause(self):
        for i, kind in enumerate(faults.KINDS):
            job, _ = make.shaped(100 + i, kind, True, steps=None)
            self.assertTrue(job.layout == "I" or build(job).items)
            self.assertTrue(4 <= job.world <= 64 and 1 <= job.n_hosts <= 8)


if __name__ == "__main__":
    OUT = sys.argv.pop(1)
    unittest.main()
