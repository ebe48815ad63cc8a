"""package.py BUILD TMP: the installed nccl_inspector against the real command, plugin and simulator."""
import ctypes
import glob
import gzip
import json
import os
import re
import subprocess
import sys
import time
import unittest
import warnings

import nccl_inspector as ni

BUILD, TMP = sys.argv[1], sys.argv[2]
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
LOGS = os.path.join(TMP, "logs")


def run_job(logs, *words, **settings):
    env = {**os.environ, **ni.env(logs, blackbox=0, **settings)}
    subprocess.run([BUILD + "/nccl-sim", "--job", "2x2", "--procs", "--quiet", *words], env=env, check=True,
                   cwd=TMP)


class Profiler(ctypes.Structure):
    """ncclProfiler_v4, of which init and finalize are called."""
    _fields_ = [("name", ctypes.c_char_p), ("init", ctypes.c_void_p), ("start", ctypes.c_void_p),
                ("stop", ctypes.c_void_p),
                ("record", ctypes.c_void_p), ("finalize", ctypes.c_void_p)]

    mask = ctypes.c_int()  # NCCL's: it stays where it is

    def begin(self):
        context, mask = ctypes.c_void_p(), Profiler.mask
        init = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p,
                                ctypes.c_uint64, ctypes.c_int,
                                ctypes.c_int, ctypes.c_int, ctypes.c_void_p)(self.init)
        assert init(ctypes.byref(context), ctypes.byref(mask), b"tp", 0x77, 1, 1, 0, None) == 0
        return context

    def end(self, context):
        assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self.finalize)(context) == 0


def text(path):
    with open(path) as f: return f.read()


def lines(logs):
    for path in glob.glob(logs + "/*.gz"):
        with gzip.open(path, "rt") as f:
            yield from map(json.loads, f)


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        run_job(LOGS)

    def test_check(self):
        c = ni.check(LOGS)
        self.assertEqual((c["verdict"], c["schema_version"], c["operations"]),
                         ("COMPLETE", "nccl-inspector-check-1", 880))
        self.assertEqual(ni.check(LOGS, expect={"AllReduce": 80, "AllGather": 400})["verdict"], "COMPLETE")
        c = ni.check([LOGS], expect={"AllReduce": 81})
        self.assertEqual((c["verdict"], [p["code"] for p in c["problems"]]), ("INCOMPLETE", ["expect"]))
        some = sorted(glob.glob(LOGS + "/*.gz"))[:2]
        self.assertEqual(ni.check(some)["verdict"], "INCOMPLETE")
        self.assertEqual(ni.check(some, partial=True)["verdict"], "COMPLETE")

    def test_check_cannot(self):
        with self.assertRaisesRegex(ni.InspectorError, r"(?m)nothing-here: No such file or directory") as e:
            ni.check(TMP + "/nothing-here")
        self.assertEqual(e.exception.returncode, 1)
        with self.assertRaises(ValueError): ni.check([])
        os.symlink(LOGS, TMP + "/--json")
        here = os.getcwd()
        os.chdir(TMP)
        self.assertEqual(ni.check("--json")["verdict"], "COMPLETE")  # a name that looks like an option
        os.chdir(here)

    def test_summary(self):
        s = ni.summary(LOGS)
        self.assertEqual((s["complete"], s["records"], s["operations"]), (True, 880, 440))
        self.assertEqual({g["func"] for g in s["groups"]}, {"AllReduce", "AllGather", "ReduceScatter"})
        of_job = ni.summary(LOGS, coll=["AllReduce"], job_rank=range(1))
        some = ni.summary(LOGS, coll=["AllReduce"], rank=range(1))
        self.assertEqual(of_job["records"], 20)
        self.assertEqual({(g["func"], g["records"]) for g in some["groups"] if g["records"]},
                         {("AllReduce", 40)})
        self.assertFalse([f for f in os.listdir(TMP) if "analysis" in f])
        out = TMP + "/out"
        self.assertEqual(ni.summary(LOGS, out)["records"], 880)
        self.assertEqual(json.loads(text(out + "/summary/summary.json"))["records"], 880)
        self.assertTrue(glob.glob(out + "/parquet_files/*.parquet"))
        with self.assertRaisesRegex(ni.InspectorError, "--rank"): ni.summary(LOGS, rank="x")
        one = sorted(glob.glob(LOGS + "/*.gz"))[0]
        self.assertEqual(ni.summary(one)["input"]["missing_ranks"] > 0, True)

    def test_env(self):
        e = ni.env("there/%j", preset="deep", stuck_seconds=7, enable_p2p=False, sample="1/10")
        self.assertEqual(e, {"NCCL_PROFILER_PLUGIN": BUILD + "/libnccl-profiler-inspector.so",
                             "NCCL_INSPECTOR_ENABLE": "1", "NCCL_INSPECTOR_DUMP_DIR": os.getcwd() +
                             "/there/%j", "NCCL_INSPECTOR_EVENTS": "deep",
                             "NCCL_INSPECTOR_STUCK_SECONDS": "7", "NCCL_INSPECTOR_ENABLE_P2P": "0",
                             "NCCL_INSPECTOR_SAMPLE": "1/10"})
        with self.assertRaisesRegex(TypeError, "stuck_second is no setting"): ni.env(stuck_second=7)
        with self.assertRaisesRegex(ValueError, "light, standard, deep, trace"): ni.env(preset="loud")
        with self.assertRaisesRegex(ValueError, "twice"): ni.env(preset="deep", events="coll")
        with self.assertRaisesRegex(ni.InspectorError, "not there"): ni.env(plugin=TMP + "/no.so")
        page = text(ROOT + "/docs/settings.md")
        table = page[page.index("<!-- table -->"):page.index("<!-- end of table -->")]
        known = {n.lower() for n in re.findall(r"(?m)^\| `NCCL_INSPECTOR_([A-Z0-9_]+)`", table)}
        self.assertEqual(known, set(ni._job.SETTINGS) | {"enable", "dump_dir", "command"})

    def test_programs(self):
        named = os.environ.pop("NCCL_INSPECTOR_COMMAND")
        path = os.environ["PATH"]
        try:
            os.environ["PATH"] = TMP
            with self.assertRaisesRegex(ni.InspectorError, "neither in this package nor in PATH"):
                ni.command()
            with self.assertRaisesRegex(ni.InspectorError, "name it"): ni.env()
            # As `make install` has them.
            os.makedirs(TMP + "/usr/bin"), os.makedirs(TMP + "/usr/lib")
            for name, where in (("nccl-inspector", "bin"), ("libnccl-profiler-inspector.so", "lib")):
                with open("%s/usr/%s/%s" % (TMP, where, name), "w") as f: f.write("#!/bin/sh\nkill -9 $$\n")
                os.chmod(f.name, 0o755)
            os.environ["PATH"] = TMP + "/usr/bin"
            self.assertEqual((ni.command(), ni.plugin()),
                             (TMP + "/usr/bin/nccl-inspector",
                              TMP + "/usr/lib/libnccl-profiler-inspector.so"))
            with self.assertRaisesRegex(ni.InspectorError, "signal 9"): ni.check(LOGS)
            os.environ["NCCL_INSPECTOR_COMMAND"] = TMP + "/none"
            with self.assertRaisesRegex(ni.InspectorError, "NCCL_INSPECTOR_COMMAND is .*/none"): ni.command()
        finally:
            os.environ.update(PATH=path, NCCL_INSPECTOR_COMMAND=named)
        said = subprocess.run([sys.executable, "-m", "nccl_inspector", "check", "-q", LOGS],
                              capture_output=True, text=True)
        self.assertEqual((said.stdout, said.returncode), ("COMPLETE\n", 0))

    def test_mark(self):
        """In a process that records by the real plugin: the mark stands in its log."""
        logs = TMP + "/marked"
        os.environ.update(ni.env(logs + "/%p", dump_thread_interval_microseconds=100000, blackbox=0))
        self.assertFalse(ni.mark("too early"))
        with self.assertRaisesRegex(ni.InspectorError, "writes no log"): ni.mark("too early", strict=True)
        profiler = Profiler.in_dll(ctypes.CDLL(ni.plugin()), "ncclProfiler_v4")
        context = profiler.begin()
        try:
            logs = "%s/%d" % (logs, os.getpid())
            until = time.monotonic() + 20  # the plugin's thread makes the file
            while time.monotonic() < until and not ni._job.log_dir(): time.sleep(0.01)
            self.assertEqual(ni._job.log_dir(), logs)
            self.assertTrue(ni.mark("step 1"))
            until = time.monotonic() + 20
            while time.monotonic() < until and not any("control" in line for line in lines(logs)):
                time.sleep(0.1)
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                self.assertFalse(ni.mark("a#b"))
                self.assertFalse(ni.mark("x" * 65))
                self.assertFalse(ni.mark("step 2", TMP + "/nowhere"))
            self.assertEqual(len(said), 3)
            self.assertIn("no mark 'a#b'", str(said[0].message))
            with self.assertRaises(ni.InspectorError): ni.mark("", strict=True)
        finally:
            profiler.end(context)
        marks = [line["control"]["mark"] for line in lines(logs) if "control" in line]
        self.assertEqual(marks, ["step 1"])
        for name in ni.env(): os.environ.pop(name, None)

    def test_mark_does_not_hold_the_job(self):
        slow = TMP + "/slow"
        with open(slow, "w") as f: f.write("#!/bin/sh\nexec sleep 60\n")
        os.chmod(slow, 0o755)
        named, ni._job.MARK_SECONDS = os.environ["NCCL_INSPECTOR_COMMAND"], 0.2
        os.environ["NCCL_INSPECTOR_COMMAND"] = slow
        try:
            began = time.monotonic()
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                self.assertFalse(ni.mark("step", LOGS))
            self.assertLess(time.monotonic() - began, 10)
            self.assertIn("did not end", str(said[0].message))
        finally:
            os.environ["NCCL_INSPECTOR_COMMAND"] = named

    def test_arrow_is_optional(self):
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            with self.assertRaisesRegex(ImportError, "pip install pyarrow"): ni.tables({})
            with self.assertRaises(ImportError): ni.records(LOGS)


unittest.main(argv=["package", "-q"])
