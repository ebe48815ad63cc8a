"""What the gate runs, and which rows come of it (gate.py): programs, their inputs, what callgrind says of
them."""
import bisect
import collections
import glob
import gzip
import os
import re
import subprocess
import sys

PLUGIN = "libnccl-profiler-inspector.so"
WORLD_BEGAN_S = 1790000000  # test/preload/same_world.c
GROWN_CALLBACKS, GROWN = 1.01, 1.03

# Recordings of real NCCL in test/data/real, and the interface through which each is played. A new release or
# interface is a line here, and `make gate-accept`.
RELEASES = [("2.27.7", 4), ("2.28.9", 5), ("2.28.9", 4), ("2.29.7", 6), ("2.30.7", 6), ("2.32.3", 7),
            ("2.32.3", 6),
            ("2.32.3", 5)]
PLANS = ("mix", "groups")
LOOPS = 10
ALL_EVENTS, ALL_EVENTS_LOOPS = ("2.32.3", 6), 3
# Rows of test/gate/play by its functions; the first word of a function behind "raise_" says whose operations
# count.
KINDS = {"collective starter": "raise_collective_starter", "collective poller": "raise_collective_poller",
         "P2P starter": "raise_p2p_starter", "P2P poller": "raise_p2p_poller", "API call": "raise_api",
         "network": "raise_network", "copy engine": "raise_copy_engine"}
BURST_INTERFACES, BURST_OPS, BURSTS = (4, 5, 6), 2048, 2
DUMP_RECORDS = 10000
LOG_RANKS, LOG_OPS, COMMS_OF_A_RANK = 4, 2500, 2
LOG_RECORDS = LOG_RANKS * LOG_OPS * COMMS_OF_A_RANK
AGENT_LOGS, MINUTE_S = 2, 60  # of the log's files those of node-0
SWEEP_COUNTERS = 8 * 1890
FRAME_CLIENTS, FRAME_GPUS, FRAME_SECONDS, FRAMES_A_SECOND = 20, 8, 60, 2
# The head's feeder asks again and again whether frames are safe, as often as the disk takes long.
WAITING = {"ni_store_safe", "ni_writer_safe", "ni_store_flushed", "ni_writer_flushed", "usleep",
           "clock_nanosleep", "nanosleep"}

# rows: what to make of the costs; grown: the factor by which a row may grow; world: with same_world.c;
# silent: faults and calls are those of callbacks alone; steady: its system calls are the same each time.
Run = collections.namedtuple("Run", "name command env options rows grown world silent steady",
                             defaults=[False, False, True])


def callback_runs(build, place):
    so, play = "%s/%s" % (build, PLUGIN), build + "/test/gate/play"
    job = job_settings()
    chains = ["--separate-callers=24"]

    def played(release, interface, loops, plans, title="", **settings):
        files = ["%s/%s-%s.rec" % (place, release, plan) for plan in plans]
        words = [play, "--plugin", so, "--nccl", release, "--interface", str(interface)]
        words += ["--loops", str(loops)] + files
        return Run("callbacks %s v%d%s" % (release, interface, title), words, dict(job, **settings),
                   chains, played_rows, GROWN_CALLBACKS, world=True, silent=True)

    for release, interface in RELEASES:
        yield played(release, interface, LOOPS, PLANS)
    yield played(*ALL_EVENTS, ALL_EVENTS_LOOPS, PLANS[:1], ", trace", NCCL_INSPECTOR_EVENTS="trace")
    for interface in BURST_INTERFACES:
        words = [build + "/test/bench/bench_burst", so, "--interface", str(interface)]
        words += ["--ops", str(BURST_OPS), "--bursts", str(BURSTS - 1)]
        yield Run("8 channels v%d" % interface, words, job, chains, burst_rows, GROWN_CALLBACKS, world=True,
                  steady=False)


def job_settings():
    """The plugin writes when a communicator ends, in that thread: when a thread of its own runs is chance."""
    return {"NCCL_INSPECTOR_ENABLE": "1", "NCCL_INSPECTOR_DUMP_DIR": "logs",
            "NCCL_INSPECTOR_DUMP_THREAD_ENABLE": "0"}


def other_runs(build, place):
    log, from_main = place + "/log", ["--zero-before=main"]
    dump = [build + "/test/bench/bench_dump", "%s/%s" % (build, PLUGIN), "records", str(DUMP_RECORDS), "0"]
    yield Run("dump", dump, job_settings(), ["--toggle-collect=finalize_timed"],
              whole("dump, a record", DUMP_RECORDS), GROWN, world=True)
    tables = ["--jobs", "1", "--no-plots", "--no-html", "--output-dir", "out"]
    for name, words in (("check", ["-q"]), ("summary", ["-q"] + tables), ("trace", ["-o", "out.json"])):
        yield Run(name, [build + "/nccl-inspector", name, "--no-index"] + words + [log], {}, from_main,
                  whole(name + ", a record", LOG_RECORDS), GROWN)
    # The parser takes half of what `check` does: a copy of each line would hardly be seen there.
    yield Run("parse", [build + "/nccl-inspector", "check", "--no-index", "-q", log], {},
              ["--toggle-collect=ni_parse_line"], whole("parse, a record", LOG_RECORDS), GROWN)
    sweeps = [place + "/before.txt", place + "/after.txt"]
    words = [build + "/nccl-inspector", "counters", "summarize"] + sweeps
    yield Run("counters summarize", words, {}, from_main,
              whole("counters summarize, a counter", SWEEP_COUNTERS),
              GROWN)
    minute = [build + "/test/gate/agent_minute", log, "node-0", place + "/empty"]
    if os.path.exists(minute[0]):
        records = LOG_RECORDS * AGENT_LOGS // LOG_RANKS
        yield Run("agent reads", minute, {}, ["--toggle-collect=reads_logs"],
                  whole("agent reads, a record", records), GROWN, world=True)
        yield Run("agent", minute, {}, ["--toggle-collect=one_minute"],
                  whole("agent, a second", MINUTE_S), GROWN, world=True)
    feed = [build + "/test/host/session_feed", "load", ".", str(FRAME_CLIENTS), str(FRAME_GPUS)]
    samples = FRAME_CLIENTS * FRAME_SECONDS * FRAMES_A_SECOND
    yield Run("head", feed + [str(FRAME_SECONDS), "1", "step"], {}, from_main,
              whole("head, a sample", samples, WAITING), GROWN, steady=False)


def runs(build, place):
    """All runs. build: the build folder's whole path; place: where inputs() has put the inputs."""
    yield from callback_runs(build, place)
    yield from other_runs(build, place)


def inputs(build, place):
    for release in {r for r, _ in RELEASES}:
        for plan in PLANS:
            packed, = glob.glob("test/data/real/*-nccl%s-*-%s-rank0.rec.gz" % (release, plan))
            with open("%s/%s-%s.rec" % (place, release, plan), "wb") as f:
                f.write(gzip.open(packed).read())
    log = [build + "/test/host/loggen", place + "/log", "--ranks", str(LOG_RANKS), "--node", str(AGENT_LOGS)]
    log += ["--ops", str(LOG_OPS), "--comm-name", "--format", "ours", "--gzip", "--member-lines", "500"]
    subprocess.run(log, check=True, stdout=subprocess.DEVNULL)
    for f in glob.glob(place + "/log/*"):  # the agent looks at nothing old
        os.utime(f, (WORLD_BEGAN_S, WORLD_BEGAN_S))
    sweep = [sys.executable, "test/lib/counters/netprof.py", "sweep"]
    moved = ["cxi%d:%s=+77" % (n, c) for n in range(8) for c in ("hni_rx_paused_0", "hni_tx_paused_0")]
    subprocess.run(sweep + [place + "/before.txt", "--form", "text"], check=True)
    subprocess.run(sweep + [place + "/after.txt", "--form", "text", "--seconds", "30"] +
                   [w for m in moved for w in ("--set", m)], check=True)
    os.mkdir(place + "/empty")


# ---- what callgrind says ----

class Symbols:
    """Names of the plugin's functions, also by address: where .bss has a segment of its own, which a byte
    more or less in .data decides, valgrind reads no symbols and shows addresses
    (test/preload/same_world.c)."""

    def __init__(self, path, base):
        said = subprocess.run(["nm", "-n", path], check=True, stdout=subprocess.PIPE).stdout.decode()
        lines = [line.split() for line in said.splitlines()]
        found = [(int(w[0], 16) + base, w[2]) for w in lines if len(w) == 3 and w[1] in "tT"]
        self.at, self.names = [a for a, _ in found], [n for _, n in found]
        self.own = {bare(n) for n in self.names}
        self.first, self.end = base, base + os.path.getsize(path)

    def name(self, shown):
        """A function's name, and whether it is the plugin's."""
        if bare(shown) in self.own:
            return shown, True
        if not re.fullmatch("0x[0-9a-f]{8,}", shown):
            return shown, False
        address = int(shown, 16)
        if not self.first <= address < self.end:
            return "?", False
        i = bisect.bisect_right(self.at, address) - 1
        return (self.names[i] if i >= 0 else "(linker's stubs)"), True


def self_costs(path):
    """Each function's own instructions, from a callgrind file with uncompressed names: a function with its
    callers, innermost first and with ' between them, as --separate-callers writes it."""
    costs, name, called = collections.Counter(), None, False
    for line in open(path, errors="replace"):
        if line.startswith("fn="):
            name = line[3:-1]
        elif line.startswith("calls="):
            called = True  # the next line is the cost of what was called
        elif line[0].isdigit() or line[0] in "+-*":
            if not called and name:
                costs[name] += int(line.split()[1])
            called = False
    return costs


def bare(name):
    """A function's name without what the compiler adds to that of a copy."""
    return re.sub(r"\.(constprop|isra|part|cold|lto_priv)\.?\d*", "", name)


def whole(row, operations, less=frozenset()):
    """One row: all that was counted, but for the functions `less`."""
    def rows(costs, symbols, said):
        functions = collections.Counter()
        for name, n in costs.items():
            first = name.split("'")[0]
            functions[bare(symbols.name(first)[0] if symbols else first)] += n
        yield row, operations, collections.Counter({f: n for f, n in functions.items() if f not in less})
    return rows


def in_plugin(costs, symbols, caller):
    """Instructions by function: what the plugin, and what it calls, takes below that function of the
    driver."""
    functions = collections.Counter()
    for name, cost in costs.items():
        chain = [bare(c) for c in name.split("'")]
        if caller not in chain or "clock_gettime" in chain:  # that is our own, test/preload/same_world.c
            continue
        below = [symbols.name(c) for c in chain[:chain.index(caller)]]
        if any(ours for _, ours in below):
            functions[bare(below[0][0])] += cost
    return functions


def played_rows(costs, symbols, said):
    """Rows of test/gate/play, by its raise functions."""
    operations = {k: int(n) for k, n in re.findall(r"^(\w+) (\d+) \d+$", said, re.M)}
    for row, raised in KINDS.items():
        n = operations.get(re.sub("^raise_|_starter$|_poller$", "", raised))
        functions = in_plugin(costs, symbols, raised)
        if n and functions:
            yield row, n, functions


def burst_rows(costs, symbols, said):
    """Rows of test/bench/bench_burst: bursts by two threads; what one thread does afterwards is left out."""
    for row, caller in (("starter", "launch_burst"), ("poller", "poll_burst")):
        yield row, BURSTS * BURST_OPS, in_plugin(costs, symbols, caller)
