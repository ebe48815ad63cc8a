"""Three agents with a head, a job on each, and a session: GPUs as planted and the job's collectives stand in
its frames."""
import contextlib
import os
import tempfile
import time

import agent
import head

JOB = """
set ranks=2 nodes=1 procs=1 rate=60 time_scale=0.05
comm world
loop times=600
coll world func=AllReduce bytes=1048576 channels=2
end
"""
NODES = ("n1", "n2", "n3")
FAKE = {"LD_LIBRARY_PATH": os.path.abspath(agent.BUILD + "/test/nvml"),
        "NI_FAKE_NVML": os.path.abspath("test/fake_nvml/healthy.txt")}



def operations_a_second(logs):
    """By the calls' own times: on a busy machine a job is slower than it should be."""
    at = sorted(l["coll_perf"]["coll_enqueue_ns"] for l in agent.lines(logs) if "coll_perf" in l)
    return len(at) / (at[-1] - at[0]) * 1e9


def bandwidths(logs):
    """Of each write of each rank, and of all together, by the operations' own: GB/s, over the time that they
    took."""
    of = {}
    for l in agent.lines(logs):
        r = l.get("coll_perf", {})
        if 0 < (r.get("coll_busbw_gbs") or 0) <= 10000:  # more is none
            write = l["metadata"]["pid"], l["metadata"]["dump_timestamp_us"]
            of.setdefault(write, []).append((r["coll_busbw_gbs"], r["coll_exec_time_ns"]))

    def mean(ops):
        return sum(g * ns for g, ns in ops) / sum(ns for _, ns in ops)
    return [mean(ops) for ops in of.values()], mean([o for ops in of.values() for o in ops])


with contextlib.ExitStack() as all_of, head.Head("job", "--enable-bandwidth", freq=0.5) as h:
    places = [all_of.enter_context(agent.Place(all_of.enter_context(tempfile.TemporaryDirectory())))
              for _ in NODES]
    agents = [agent.Agent(p, "--head", h.at, "--node", n, env=FAKE).wait() for p, n in zip(places, NODES)]
    head.until(lambda: h.get("/status")["total_gpus"] == 24, 60)
    h.start("job")
    jobs = [p.job(JOB, {"SLURM_JOB_ID": "4242"}) for p in places]
    agents[1].kill()  # what it had not sent it sends again, and goes on
    agents[1].start()
    agents[1].wait()
    for job in jobs:
        assert job.wait() == 0
    want = [sum(v["n"] for v in agent.truth(p.logs).values()) for p in places]

    def all_there():
        """the job's operations in /metrics/latest, and that it has ended"""
        latest = h.get("/metrics/latest")["client_data"].values()
        job_of = [j for c in latest for j in c["jobs"]]
        return (sorted(j["operations"] for j in job_of) == sorted(want) and
                all(j["state"] == "ended" for j in job_of))
    head.until(all_there, 120)

    def fresh():
        """samples of all agents that are of now"""
        return [c["state"] for c in h.get("/metrics/latest")["client_data"].values()] == ["ok"] * 3
    head.until(fresh, 60)
    time.sleep(1)
    h.stop("job")
    frames = h.file("job", 60)["frames"]
    # a busy machine makes an agent late now and then
    last = next(f for f in reversed(frames) if f["client_state"] == ["ok"] * 3)
    assert sorted(i.split(":")[0] for i in last["gpu_id"]) == sorted(NODES * 8), last["gpu_id"]
    assert set(last["gpu_util"]) == {"91.00"} and set(last["gpu_memory"]) == {"69.85"}, last
    assert set(last["gpu_power_w"]) == {650.123}, last
    for n, node in enumerate(NODES):
        mine = [j for f in frames for j in f["jobs"] if j["host"] == node]
        assert {j["job_id"] for j in mine} == {"4242"} and "ended" in {j["state"] for j in mine}, mine[-1:]
        # Frames come twice as often as the logs are written: no rate says 0 meanwhile, none says twice what
        # there is. Those at the job's ends, and where the agent was away, are over less. An agent samples
        # when nothing else wants a processor: where the frames say that it was late, it has counted late what
        # the job did before, and what one rate is only test_store and test_grid can judge.
        went = [(f["frame_id"], j["operations_s"], j["message_gb_s"]) for f in frames for j in f["jobs"]
                if j["host"] == node and j["state"] == "running"]
        rates = [r for _, r, _ in went if r is not None][1:-2]
        mean = operations_a_second(places[n].logs)
        late = max((f["client_age_s"][n] for f in frames if len(f["client_age_s"]) > n), default=0)
        print(node, "operations_s", rates, "of %.0f; its samples were %.1f s old at most" % (mean, late))
        if node != "n2" and late < 1.5:
            assert len(rates) >= 5 and 0.5 * mean < sum(rates) / len(rates) < 1.7 * mean, (node, mean, went)
        assert all(abs(g - r * 1048576e-9) < 0.01 * g + 0.001 for _, r, g in went if r), (node, went)
        # A frame's bandwidth is the mean of some of the log's writes, whichever the agent was there for:
        # never of the first, which on a busy machine may have been far slower than all others. One that was
        # late may have seen no two writes apart.
        bus = [j["busbw_gb_s"] for j in mine if j["busbw_gb_s"]]
        writes, whole = bandwidths(places[n].logs)
        assert bus or late >= 1.5, (node, late, writes)
        assert all(min(writes) * 0.99 <= b <= max(writes) * 1.01 for b in bus), (node, bus, writes)
        m = agents[n].metrics()
        mean = sum(agent.total(m, "bus_bytes_total",
                               ()).values()) / sum(agent.total(m, "bus_seconds_total", ()).values()) / 1e9
        assert abs(mean - whole) < 0.01 * whole, (node, mean, whole)
    lost = [c["lost"] for c in h.get("/clients")["clients"]]
    assert lost == [0, 0, 0], lost
    print("%d frames; %d operations on the last node, bus bandwidth %.1f GB/s" %
          (len(frames), want[-1], mean))
