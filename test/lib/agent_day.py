"""See test/long/agent_day.sh. argv: seconds of the agent's clock."""
import subprocess, sys, tempfile, time
import agent

TURNS = int(sys.argv[1])
JOB = "set ranks=2 nodes=1 procs=1 rate=400 time_scale=0.05\ncomm c%d\nloop times=200\n" \
      "coll c%d func=AllReduce bytes=65536 channels=2\nend\n"


def figures(a):
    s = a.metrics()
    value = lambda name: sum(agent.total(s, name, ()).values())
    return value("agent_resident_memory_bytes") / 1e6, value("agent_open_descriptors"), value("agent_series"), value("agent_ring_bytes") / 1e6


with tempfile.TemporaryDirectory() as folder, agent.Place(folder) as place:
    tree = folder + "/tree"
    for words in (["eth", "eth7"], ["host"]):
        subprocess.run([sys.executable, "test/lib/counters/counter_trees.py", tree, *words], check=True)
    a = agent.Agent(place, "--every", "10ms", "--ring-bytes", "1M", env={"NI_AGENT_TURNS": str(TURNS), "NI_ROOT": tree}).wait()
    first = a.now()["time_ns"]
    jobs, seen, hour = 0, [], None
    while a.process.poll() is None:
        place.job(JOB % (jobs % 7, jobs % 7), logs="%s/job-%d" % (place.logs, jobs)).wait()
        jobs += 1
        try:
            at = (a.now()["time_ns"] - first) / 1e9
            now = figures(a)
        except OSError:
            break
        if at >= 3600 and hour is None:
            hour = now
        seen.append((at, now))
        print("%8.0f s  %.1f MB  %d descriptors  %d series  ring %.2f MB  %d jobs" % (at, *now, jobs), flush=True)
    if hour is None or seen[-1][0] < 0.9 * TURNS:
        sys.exit("FAIL: the day ended at %.0f s with %s\n%s" % (seen[-1][0] if seen else 0, a.process.returncode, a.text()))
    late = [s for t, s in seen if t > 0.7 * TURNS]
    for i, (what, slack) in enumerate((("MB", 1.10), ("descriptors", 1.0), ("series", 1.5))):
        if min(s[i] for s in late) > hour[i] * slack + (3 if i == 1 else 1):
            sys.exit("FAIL: %s: %g after an hour, at least %g at the end" % (what, hour[i], min(s[i] for s in late)))
    if max(s[3] for _, s in seen) > 1.2:
        sys.exit("FAIL: the ring grew to %g MB" % max(s[3] for _, s in seen))
    print("ok: %d jobs in a day; after an hour %s, at the end %s" % (jobs, hour, seen[-1][1]))
