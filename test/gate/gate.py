#!/usr/bin/env python3
"""The gate: instructions instead of seconds (docs/benchmarks.md "The gate").

    gate.py BUILD            counts all rows and compares them with test/gate/table
    gate.py BUILD --accept   writes the table anew
    gate.py BUILD --runs RE  only the runs whose names match, also with --accept

Each run (runs.py) is a program under valgrind's callgrind, with a fixed input, in an empty environment, at
fixed addresses. A row is a part of a run, divided by its operations. Beside the instructions stand page
faults and system calls of the same program without valgrind. The table holds for one compiler, one C library
and one set of libraries; with others the figures are printed and nothing is judged.

Exit status: 0; 1 when a row grew too much; 77 when nothing was judged. The last line is
"N passed, N failed, N skipped".
"""
import collections
import concurrent.futures
import glob
import os
import platform
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time

import runs

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TABLE, FUNCTIONS = "test/gate/table", "test/gate/functions"
FELL = 0.97
# Page faults depend on what memory the kernel has at hand, system calls of several threads on who comes
# first.
GROWN_FAULTS, MORE_FAULTS = 1.25, 500
GROWN_CALLS, MORE_CALLS = 1.10, 20
NAMED = 10      # functions that are named when a row grew
KEPT = 0.002    # of a row: functions with less are not in the file of functions
AT_ONCE = 2
TOOLS = ("valgrind", "strace", "setarch", "taskset", "nm", "pkg-config")
LIBRARIES = ("simdjson", "libisal", "zlib", "libdeflate", "libzstd")
BASE_ENV = {"LC_ALL": "C", "TZ": "UTC", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
INCOMPLETE = 2  # an exit status of commands: a log is not complete

Counted = collections.namedtuple("Counted", "rows faults calls")


# ---- running ----

class Place:
    """Where one run's program runs: a folder that is new each time, on one processor."""

    def __init__(self, build, place, boxes, run, cpu):
        self.build, self.run, self.cpu = build, run, cpu
        name = re.sub(r"\W+", "-", run.name)
        self.folder = "%s/%s" % (place, name)
        # Not in everybody's /dev/shm: a job looks there at each box whose process has ended.
        self.boxes = "%s/%s" % (boxes, name)

    def environment(self):
        e = dict(BASE_ENV, **self.run.env)
        if "NCCL_INSPECTOR_ENABLE" in e:
            e["NCCL_INSPECTOR_BLACKBOX"] = self.boxes
        if platform.machine() == "x86_64":
            e["SIMDJSON_FORCE_IMPLEMENTATION"] = "haswell"
        if self.run.world:
            e["LD_PRELOAD"] = self.build + "/test/same_world.so"
        return e

    def go(self, wrap, env, more_words=()):
        """Runs the program within the command `wrap`. Returns what it used; what it said is in said()."""
        for d in (self.folder, self.boxes):
            shutil.rmtree(d, ignore_errors=True)
            os.mkdir(d)
        os.mkdir(self.folder + "/logs")
        words = ["taskset", "-c", str(self.cpu), "setarch", "-R"] + wrap + self.run.command + list(more_words)
        with open(self.folder + "/said", "wb") as said, open(self.folder + "/errors", "wb") as errors:
            p = subprocess.Popen(words, cwd=self.folder, env=env, stdin=subprocess.DEVNULL, stdout=said,
                                 stderr=errors, start_new_session=True)
            _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        if p.returncode not in (0, INCOMPLETE):
            why = open(self.folder + "/errors").read()[-2000:]
            sys.exit("gate: %s: exit status %d: %s" % (self.run.name, p.returncode, why))
        return used

    def said(self):
        return open(self.folder + "/said").read()

    def faults_and_calls(self):
        if self.run.silent:  # test/gate/play says its callbacks' faults, and what the kernel's filter trapped
            self.go([], self.environment(), ["--sealed"])
            trapped = re.findall(r"made system call \d+, (\d+) times", self.said())
            return int(re.search(r"^faults (\d+)", self.said(), re.M).group(1)), sum(map(int, trapped))
        faults = self.go([], self.environment()).ru_minflt
        table = self.folder + ".calls"
        inner = [w for k, v in self.environment().items() for w in ("-E", k + "=" + v)]
        self.go(["strace", "-f", "-c", "-o", table] + inner, BASE_ENV)  # strace lives in the real world
        # Those that failed are left out: the linker looks for libraries in folders that not all machines
        # have.
        lines = [line.split() for line in open(table) if re.match(r" *\d+\.\d+ ", line)]
        failed = lambda w: int(w[4]) if len(w) == 6 else 0
        return faults, sum(int(w[3]) - failed(w) for w in lines if w[-1] != "total")

    def costs(self):
        """Instructions of each function, and the plugin's symbols, if it was there."""
        out, libraries = self.folder + ".cg", self.folder + ".map"
        callgrind = ["valgrind", "-q", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no"]
        self.go(callgrind + ["--callgrind-out-file=%s.%%p" % out] + self.run.options,
                dict(self.environment(), NI_WORLD_MAP=libraries))
        costs = collections.Counter()
        for f in glob.glob(out + ".*"):
            costs.update(runs.self_costs(f))
        places = open(libraries).read().splitlines() if os.path.exists(libraries) else []
        bases = [int(line.split()[0], 16) for line in places if runs.PLUGIN in line]
        return costs, runs.Symbols("%s/%s" % (self.build, runs.PLUGIN), bases[0]) if bases else None


def count(build, place, boxes, run, cpu):
    p = Place(build, place, boxes, run, cpu)
    faults, calls = p.faults_and_calls()
    costs, symbols = p.costs()
    return Counted(list(run.rows(costs, symbols, p.said())), faults, calls)


def count_all(build, pattern):
    """[(run, what was counted)] of the runs whose names match."""
    cpus = queue.SimpleQueue()
    # A run has one processor, so that a program that asks for their number gets the same answer everywhere.
    for cpu in sorted(os.sched_getaffinity(0))[:AT_ONCE]:
        cpus.put(cpu)

    def on_one(run):
        cpu = cpus.get()
        try:
            return count(build, place, boxes, run, cpu)
        finally:
            cpus.put(cpu)

    memory = "/dev/shm" if os.path.isdir("/dev/shm") else "/tmp"
    with tempfile.TemporaryDirectory(prefix="ni-gate-", dir="/tmp") as top, \
            tempfile.TemporaryDirectory(prefix="ni-gate-", dir=memory) as boxes:
        place = top + "/in"
        os.mkdir(place)
        runs.inputs(build, place)
        todo = [r for r in runs.runs(build, place) if re.search(pattern, r.name)]
        with concurrent.futures.ThreadPoolExecutor(cpus.qsize()) as pool:
            return list(zip(todo, pool.map(on_one, todo)))


# ---- the table ----

def toolchain():
    def last_word(*words):
        said = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout.decode()
        return (said.split("\n")[0].split() or ["none"])[-1]

    flags = re.search(r"^(?:flags|Features)\s*:(.*)", open("/proc/cpuinfo").read(), re.M)
    parts = [platform.machine()]
    if flags and "avx2" in flags.group(1).split():  # valgrind hides all other differences of processors
        parts.append("AVX2")
    parts += ["gcc " + last_word("gcc", "-dumpfullversion"), "glibc " + last_word("ldd", "--version")]
    parts += [last_word("valgrind", "--version").replace("-", " ")]
    return ", ".join(parts + ["%s %s" % (x, last_word("pkg-config", "--modversion", x)) for x in LIBRARIES])


def read_table():
    """For which tools it holds; rows; page faults and system calls by run."""
    rows, others, holds = {}, {}, ""
    for line in open(TABLE) if os.path.exists(TABLE) else []:
        if line.startswith("# for "):
            holds = line[6:].strip()
        elif line.strip() and line[0] != "#":
            name, *figures = (w.strip() for w in line.split("|"))
            if len(figures) == 1:
                rows[name] = float(figures[0])
            else:
                others[name] = [int(f) for f in figures]
    return holds, rows, others


def write_table(rows, others):
    with open(TABLE, "w") as f:
        f.write("# What make gate compares with (docs/benchmarks.md, the gate). `make gate-accept` writes it.\n")
        f.write("# for %s\n\n# row | instructions of an operation\n" % toolchain())
        for name, figure in rows.items():
            f.write("%-46s | %10.1f\n" % (name, figure))
        f.write("\n# run without valgrind | page faults | system calls that did not fail\n"
                "# of callbacks: those in them alone\n")
        for name, figures in others.items():
            f.write("%-46s | %10d | %10d\n" % (name, *figures))


def read_functions():
    found = collections.defaultdict(dict)
    for line in open(FUNCTIONS) if os.path.exists(FUNCTIONS) else []:
        if line[0] != "#":
            row, figure, name = (w.strip() for w in line.split("|", 2))
            found[row][name] = float(figure)
    return found


def write_functions(found):
    with open(FUNCTIONS, "w") as f:
        f.write("# Instructions of an operation by function, for the names of those that grew. "
                "`make gate-accept` writes it.\n")
        for row, functions in found.items():
            for name, figure in sorted(functions.items(), key=lambda x: (-x[1], x[0])):
                f.write("%s | %.2f | %s\n" % (row, figure, name))


# ---- judging ----

def grown_functions(was, now):
    grown = sorted(((now.get(n, 0) - was.get(n, 0), n) for n in set(was) | set(now)), reverse=True)
    return ["      %+10.2f  %s, from %.2f to %.2f" % (more, n, was.get(n, 0), now.get(n, 0))
            for more, n in grown[:NAMED] if more > 0.005]


def judge_row(name, now, limit, was, functions, judged):
    """Prints a row. True: it fails."""
    bad = judged and (was is None or now > limit * was)
    change = "new" if not was else "%+.2f %%" % (100 * now / was - 100)
    print("%-4s %-46s %10.1f  %s" % ("FAIL" if bad else "ok", name, now, change))
    if judged and was is None:
        print("      it is not in %s: make gate-accept" % TABLE)
    elif bad:
        print("      more than %.0f %%; what grew:" % (100 * limit - 100))
        print("\n".join(grown_functions(*functions)))
    elif judged and now < FELL * was:
        print("      it fell from %.1f: make gate-accept lowers it" % was)
    return bad


def judge_others(run, counted, was, judged):
    """Prints page faults and system calls of a run. True: they fail."""
    if run.silent:
        many_calls = counted.calls > 0
    else:
        many_calls = run.steady and counted.calls > GROWN_CALLS * was[1] + MORE_CALLS
    bad = judged and (many_calls or counted.faults > GROWN_FAULTS * was[0] + MORE_FAULTS)
    print("%-4s %-46s %d page faults (%+d), %d system calls (%+d)" % (
        "FAIL" if bad else "ok", run.name, counted.faults, counted.faults - was[0], counted.calls,
        counted.calls - was[1]))
    return bad


def main():
    os.chdir(ROOT)
    build, words = os.path.abspath(sys.argv[1]), sys.argv[2:]
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        print("%s is missing: scripts/install-deps.sh test" % ", ".join(missing))
        print("0 passed, 0 failed, 1 skipped")
        return 77
    pattern = words[words.index("--runs") + 1] if "--runs" in words else ""
    began = time.monotonic()
    holds, old_rows, old_others = read_table()
    old_functions = read_functions()
    rows, functions, limit = {}, {}, {}
    done = count_all(build, pattern)
    for run, counted in done:
        for row, n, costs in counted.rows:
            name = row if row.split(",")[0] == run.name else "%s: %s" % (run.name, row)
            total = sum(costs.values())
            rows[name], limit[name] = total / n, run.grown
            functions[name] = {f: c / n for f, c in costs.items() if c >= KEPT * total}
    others = {run.name: [counted.faults, counted.calls] for run, counted in done}
    if "--accept" in words:
        keep = bool(pattern)
        write_table(dict(old_rows if keep else {}, **rows), dict(old_others if keep else {}, **others))
        write_functions(dict(old_functions if keep else {}, **functions))
        print("%d rows written" % len(rows))
        return 0
    here = toolchain()
    judged, failed = holds == here, 0
    for name, now in rows.items():
        both = old_functions[name], functions[name]
        failed += judge_row(name, now, limit[name], old_rows.get(name), both, judged)
    for run, counted in done:
        failed += judge_others(run, counted, old_others.get(run.name, [0, 0]), judged)
    gone = [n for n in old_rows if n not in rows] if judged and not pattern else []
    for name in gone:
        print("FAIL %-46s is in %s, but was not counted" % (name, TABLE))
    failed += len(gone)
    print("%.0f s, %.0f s of CPU" % (time.monotonic() - began, sum(os.times()[:4])))
    tests = len(rows) + len(done) + len(gone)
    if not judged:
        print("not judged: the table holds for %s;\nhere is %s" % (holds or "nothing yet", here))
        print("0 passed, 0 failed, %d skipped" % tests)
        return 77
    print("%d passed, %d failed, 0 skipped" % (tests - failed, failed))
    return 1 if failed else 0


sys.exit(main())
