"""See test/cases/agent/agent_sums.sh."""
import random, sys, tempfile, time
import agent

JOB = """
set ranks=8 nodes=1 procs=1 rate=300 time_scale=0.05
comm world
comm tp ranks=0-3
loop times=400
coll world func=AllReduce bytes=1048576 channels=2
coll world func=ReduceScatter bytes=65536 channels=2
coll tp func=AllGather bytes=4096 channels=1
sendrecv world shift=1 bytes=32768
end
"""
KILLS = 20


def counters(samples):
    """All that must never fall, by series: of jobs, not of the agent and the machine."""
    return {(name, tuple(sorted(labels.items()))): float(value) for name, series in samples.items()
            if name.endswith(("_total", "_bucket", "_count")) and
            not name.startswith(tuple(agent.P + n for n in ("agent_", "host", "nic")))
            for labels, value in series}


def compare(samples, truth, when):
    want = {k: v["n"] for k, v in truth.items()}
    got = agent.total(samples, "operations_total", ("rank", "function"))
    if got != want:
        sys.exit("FAIL %s: operations: wanted %s, got %s" % (when, want, dict(got)))
    for name, key, scale in (("message_bytes_total", "bytes", 1), ("in_flight_seconds_total", "ns", 1e-9),
                             ("bus_seconds_total", "bus_ns", 1e-9), ("bus_bytes_total", "bus_bytes", 1)):
        got = agent.total(samples, name, ("rank", "function"))
        for k, v in truth.items():
            rounded = v["n"] / 2 if key == "bus_bytes" else 1e-9  # whole bytes of each operation
            if abs(got[k] - v[key] * scale) > 1e-6 * v[key] * scale + rounded:
                sys.exit("FAIL %s: %s of %s: wanted %r, got %r" % (when, name, k, v[key] * scale, got[k]))
    got = agent.total(samples, "operation_duration_seconds_count", ("function",))
    for f in {f for _, f in truth}:
        n = sum(v["timed"] for (_, g), v in truth.items() if g == f)
        if got[f,] != n:
            sys.exit("FAIL %s: durations of %s: wanted %d, got %s" % (when, f, n, got[f,]))


with tempfile.TemporaryDirectory() as folder, agent.Place(folder) as place:
    random.seed(14)
    a = agent.Agent(place).wait()
    job = place.job(JOB)
    kills = 0
    last = {}
    while kills < KILLS or job.poll() is None:
        time.sleep(random.uniform(0.02, 0.4))
        if kills < KILLS:
            a.kill()
            kills += 1
            a.start()
            if kills % 3 == 0 or kills == KILLS:
                # Counters never fall, and never exceed what the logs hold.
                now = counters(a.wait().metrics())
                for k, v in last.items():
                    if now.get(k, 0) < v:
                        sys.exit("FAIL: after kill %d: %s is %r, %r before it" % (kills, k, now.get(k), v))
                last = now
    if job.returncode:
        sys.exit("FAIL: nccl-sim ended with %d\n%s" % (job.returncode, open(folder + "/job.err").read()))
    truth = agent.truth(place.logs)
    want = sum(v["n"] for v in truth.values())
    a.wait()
    def counted():
        return sum(agent.total(a.metrics(), "operations_total", ()).values())
    agent.wait_for(lambda: "all %d operations: %d\n%s" % (want, counted(), a.text()),
                   lambda: counted() >= want)
    samples = a.metrics()
    compare(samples, truth, "after %d kills" % kills)
    # What was started was written, as the accounts say, and nothing is lost.
    started = agent.total(samples, "started_operations_total", ("rank",))
    written = agent.total(samples, "written_operations_total", ("rank",))
    by_rank = {}
    for (rank, _), v in truth.items():
        by_rank[rank,] = by_rank.get((rank,), 0) + v["n"]
    if started != by_rank or written != by_rank:
        sys.exit("FAIL: accounts: started %s, written %s, in the logs %s" %
                 (dict(started), dict(written), by_rank))
    if agent.total(samples, "lost_operations_total", ()):
        sys.exit("FAIL: losses are told where there are none")
    # A job that ends while no agent is there: its box is gone when the next one comes, and only the state
    # says where its log lies.
    for _ in range(10):
        job = place.job(JOB.replace("times=400", "times=100"))
        agent.wait_for("some of the second job",
                       lambda: sum(agent.total(a.metrics(), "operations_total", ()).values()) > want)
        if job.poll() is None:
            break
        # it was over before a busy machine showed it: another one
        want = sum(v["n"] for v in agent.truth(place.logs).values())
        agent.wait_for("all of it", lambda: sum(agent.total(a.metrics(), "operations_total",
                                                            ()).values()) >= want)
    else:
        sys.exit("FAIL: ten jobs were over before any of them was seen")
    a.kill()
    job.wait()
    time.sleep(1)
    truth = agent.truth(place.logs)
    want = sum(v["n"] for v in truth.values())
    a.start()
    compare(a.wait().metrics(), truth, "after a job that ended without us")
    # Of one operation in ten there is a record; all count, by the roll-ups. The job has the number of those
    # before.
    names = ("operations_total", "started_operations_total", "written_operations_total",
             "message_bytes_total")
    def numbers():
        samples = a.metrics()
        return [sum(agent.total(samples, n, ()).values()) for n in names]
    before = numbers()
    place.job(JOB.replace("times=400", "times=100"), {"NCCL_INSPECTOR_SAMPLE": "1/10"},
              logs=folder + "/sampled").wait()
    def sampled():
        more = [n - b for n, b in zip(numbers(), before)]
        return more[0] == more[1] > 0 and more
    n, _, written, size = agent.wait_for("what was sampled", sampled)
    if written > n / 2 or size < n * 4096:
        sys.exit("FAIL: of %d operations with %d bytes %d were written" % (n, size, written))
    # A fresh agent without that state reads the same from the logs alone.
    a.kill()
    b = agent.Agent(place, "--log-dir", place.logs, "--node", "sim-node0", name="second").wait()
    agent.wait_for("all operations again",
                   lambda: sum(agent.total(b.metrics(), "operations_total", ()).values()) >= want)
    compare(b.metrics(), truth, "without the state")
    print("ok: %d operations of %d series through %d kills" % (want, len(truth), kills))
