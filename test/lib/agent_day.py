"""See test/long/agent_day.sh. argv: seconds of the agent's clock."""
import statistics, subprocess, sys, tempfile
import agent

TURNS = int(sys.argv[1])
JOB = "set ranks=2 nodes=1 procs=1 rate=400 time_scale=0.05\ncomm c%d\nloop times=200\n" \
      "coll c%d func=AllReduce bytes=65536 channels=2\nend\n"


def figures(a):
    s = a.metrics()
    value = lambda name: sum(agent.total(s, name, ()).values())
    return value("agent_resident_memory_bytes") / 1e6, value("agent_open_descriptors"), value("agent_series"), value("agent_ring_bytes")


with tempfile.TemporaryDirectory() as folder, agent.Place(folder) as place:
    tree = folder + "/tree"
    for words in (["eth", "eth7"], ["host"]):
        subprocess.run([sys.executable, "test/lib/counters/counter_trees.py", tree, *words], check=True)
    a = agent.Agent(place, "--every", "100ms", env={"NI_AGENT_TURNS": str(TURNS), "NI_ROOT": tree}).wait()
    first = a.now()["time_ns"]
    jobs, seen = 0, []
    while a.process.poll() is None:
        # Some jobs end, and some go on with one process after the other.
        place.job(JOB % (jobs % 7, jobs % 7), {"SLURM_JOB_ID": str(jobs // 40)},
                  "%s/job-%d" % (place.logs, jobs)).wait()
        jobs += 1
        try:
            at = (a.now()["time_ns"] - first) / 1e9
            now = figures(a)
        except OSError:
            break
        seen.append((at, now))
        print("%8.0f s  %.1f MB  %d descriptors  %d series  ring %d bytes  %d jobs" % (at, *now, jobs),
              flush=True)
    if not seen or seen[-1][0] < 0.9 * TURNS:
        sys.exit("FAIL: the day ended at %.0f s with %s\n%s" %
                 (seen[-1][0] if seen else 0, a.process.returncode, a.text()))
    # Medians of 7 looks each: one may find a reader that has just begun, or none. The sampler's clock is the
    # machine's: it has made all its buffers once it has written to the ring twice, which is some seconds
    # later than the first hour ends.
    middle = lambda part: [statistics.median(s[i] for _, s in part) for i in range(3)]
    written = sorted({s[3] for _, s in seen if s[3]})[:2]
    hour, late = middle([x for x in seen if x[0] >= 3600 and x[1][3] >= written[-1]][:7]), middle(seen[-7:])
    for what, was, now, more in zip(("MB", "descriptors", "series"), hour, late, (1, 2, 0.5 * hour[2])):
        if now > was + more:
            sys.exit("FAIL: %s: %g after an hour, %g at the end" % (what, was, now))
    print("ok: %d processes in a day; after an hour %s, at the end %s" % (jobs, hour, late))
