"""The agent's cost beside a job of 8 ranks x 1,000 operations/s, with 8 fake GPUs and 8 fake NICs at 1 Hz
(docs/benchmarks.md).

    bench_agent.py [SECONDS=60]       rows: what, value, bound, unit
"""
import os, statistics, subprocess, sys, tempfile, time
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../lib"))
import agent

SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 60
RUNS = 5
JOB = "set ranks=8 nodes=1 procs=1 rate=%d time_scale=0.05\ncomm world\nloop times=%d\n" \
      "coll world func=AllReduce bytes=1048576 channels=2\nend\n"


def row(what, value, bound, unit):
    print("| %-60s | %13s | %-9s | %s |" % (what, value, bound, unit), flush=True)


def family(pid):
    kids = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()
    return [pid] + [k for p in kids for k in family(int(p))]


def cpu(pids):
    ticks = 0
    for p in pids:
        try:
            f = open("/proc/%s/schedstat" % p).read().split()
            ticks += sum(int(open("/proc/%s/task/%s/schedstat" % (p, t)).read().split()[0])
                         for t in os.listdir("/proc/%s/task" % p))
        except OSError:
            pass
    return ticks / 1e9


def ticks(pids):
    """The same as /proc/PID/stat has it, user and system: in 10 ms, sampled by the kernel's tick or not."""
    words = [open("/proc/%s/stat" % p).read().rsplit(")", 1)[1].split() for p in pids]
    return sum(int(w[11]) + int(w[12]) for w in words) / os.sysconf("SC_CLK_TCK")


def resident(pids):
    """PSS in MB: pages that a reader shares with the agent count once."""
    return sum(int(l.split()[1]) for p in pids for l in open("/proc/%s/smaps_rollup" % p)
               if l.startswith("Pss:")) / 1024


with tempfile.TemporaryDirectory() as folder, agent.Place(folder) as place:
    tree, fake = folder + "/tree", folder + "/gpus"
    for words in (["cxi", "before", "8"], ["host"]):
        subprocess.run([sys.executable, "test/lib/counters/counter_trees.py", tree, *words], check=True)
    open(fake, "w").write("* gpus 8\n* power 431000\n* util 77\n* sm 1410\n* used 20000000000\n* total 80000000000\n* temp 55\n* reasons 4\n")
    a = agent.Agent(place, env={"NI_ROOT": tree, "NI_FAKE_NVML": fake, "NI_FAKE_NVML_STILL": "1",
                                "LD_LIBRARY_PATH": agent.BUILD + "/test/nvml"}).wait()
    idle = cpu(family(a.process.pid))
    time.sleep(20)
    row("agent, no job: share of a core", "%.2f" % (100 * (cpu(family(a.process.pid)) - idle) / 20), "", "%")
    job = place.job(JOB % (1000, 1000 * (SECONDS + 15)))
    time.sleep(8)
    pids, at, begun = family(a.process.pid), time.monotonic(), ticks(family(a.process.pid))
    took, used = [], []
    for _ in range(RUNS):
        before, since = [cpu([p]) for p in pids], time.monotonic()
        time.sleep(SECONDS / RUNS)
        used.append([100 * (cpu([p]) - b) / (time.monotonic() - since) for p, b in zip(pids, before)])
    row("8 ranks x 1,000 operations/s: share of a core, median of %d" % RUNS,
        "%.2f" % statistics.median(map(sum, used)), "<= 1", "%")
    row("  of that the agent itself, its reader",
        " / ".join("%.2f" % statistics.median(u) for u in zip(*used)), "", "%")
    row("  user and system time by /proc, all of it",
        "%.2f" % (100 * (ticks(pids) - begun) / (time.monotonic() - at)), "", "%")
    row("  memory of both (PSS)", "%.1f" % resident(pids), "<= 64", "MB")
    for _ in range(31):
        time.sleep(0.15)
        t = time.monotonic()
        text = a.get("/metrics")
        took.append(1000 * (time.monotonic() - t))
    row("  /metrics, median and longest of 31", "%.1f / %.1f" % (statistics.median(took), max(took)), "<= 50",
        "ms")
    row("  its series", sum(1 for l in text.split("\n") if l and l[0] != "#"), "<= 5,000", "")
    n = sum(agent.total(agent.parse(text), "operations_total", ()).values())
    row("  operations a second that it counted", "%d" % (n / (time.monotonic() - at + 8)), "8,000", "1/s")
    job.kill()
    job.wait()
    # A collective's cost in the job's own threads, with and without an agent that reads its box and log: in
    # turn.
    burst, cost = agent.BUILD + "/test/bench/bench_burst", {True: [], False: []}
    env = {k: v for k, v in os.environ.items() if not k.startswith("NCCL_")}
    env.update(NCCL_INSPECTOR_ENABLE="1", NCCL_INSPECTOR_DUMP_DIR=folder + "/burst",
               NCCL_INSPECTOR_BLACKBOX=place.boxes)
    for _ in range(RUNS):
        for watched in (True, False):
            a.process.send_signal(18 if watched else 19)  # SIGCONT, SIGSTOP
            for p in family(a.process.pid)[1:]:
                os.kill(int(p), 18 if watched else 19)
            out = subprocess.run([burst, agent.BUILD + "/libnccl-profiler-inspector.so", "--ops", "40000",
                                  "--bursts", "16"], env=env, capture_output=True,
                                 text=True).stdout
            cost[watched].append(float([l.split()[1] for l in out.split("\n")
                                        if l.startswith("two_threads ")][0]))
            subprocess.run(["rm", "-rf", folder + "/burst"])
    a.process.send_signal(18)
    ratio = statistics.median(w / n for w, n in zip(cost[True], cost[False]))
    row("a collective's cost in the job, watched / not, %d in turn" % RUNS, "%.3f" % ratio, "1", "")
