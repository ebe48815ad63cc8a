"""Three agents with a head, a job on each, and a session: GPUs as planted and the job's collectives stand in its frames."""
import contextlib
import os
import tempfile
import time

import agent
import head

JOB = """
set ranks=2 nodes=1 procs=1 rate=60 time_scale=0.05
comm world
loop times=400
coll world func=AllReduce bytes=1048576 channels=2
end
"""
NODES = ("n1", "n2", "n3")
FAKE = {"LD_LIBRARY_PATH": os.path.abspath(agent.BUILD + "/test/nvml"), "NI_FAKE_NVML": os.path.abspath("test/fake_nvml/healthy.txt")}

with contextlib.ExitStack() as all_of, head.Head("job", "--enable-bandwidth", freq=0.5) as h:
    places = [all_of.enter_context(agent.Place(all_of.enter_context(tempfile.TemporaryDirectory()))) for _ in NODES]
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
        """the job's operations in /metrics/latest"""
        latest = h.get("/metrics/latest")["client_data"].values()
        return sorted(j["operations"] for c in latest for j in c["jobs"]) == sorted(want)
    head.until(all_there, 60)
    time.sleep(1)
    h.stop("job")
    frames = h.file("job", 60)["frames"]
    last = frames[-1]
    assert sorted(i.split(":")[0] for i in last["gpu_id"]) == sorted(NODES * 8), last["gpu_id"]
    assert set(last["gpu_util"]) == {"91.00"} and set(last["gpu_memory"]) == {"69.85"}, last
    assert set(last["gpu_power_w"]) == {650.123} and last["client_state"] == ["ok"] * 3, last
    for n, node in enumerate(NODES):
        mine = [j for f in frames for j in f["jobs"] if j["host"] == node]
        assert {j["job_id"] for j in mine} == {"4242"} and mine[-1]["state"] == "ended", mine[-1:]
        # Frames come twice as often as the logs are written: no rate says 0 meanwhile, none says twice what there is. Those at the job's
        # ends, and where the agent was away, are over less; on a busy machine a job is slower than it should be.
        went = [(f["frame_id"], j["operations_s"], j["message_gb_s"]) for f in frames for j in f["jobs"] if j["host"] == node and j["state"] == "running"]
        rates = [r for _, r, _ in went if r is not None][1:-2]
        mean = (want[n] / 400) * 60  # operations of a turn, turns a second
        print(node, "operations_s", rates, "of", mean)
        assert len(rates) >= (2 if node == "n2" else 5) and all(0.4 * mean < r < 1.8 * mean for r in rates), (node, mean, went)
        assert all(abs(g - r * 1048576e-9) < 0.01 * g for _, r, g in went if r), (node, went)
        bus = [j["busbw_gb_s"] for j in mine if j["busbw_gb_s"]]
        m = agents[n].metrics()
        mean = sum(agent.total(m, "bus_bytes_total", ()).values()) / sum(agent.total(m, "bus_seconds_total", ()).values()) / 1e9
        # Of n2 the frames do not have what was while its agent was away, which may have been another bandwidth.
        assert node == "n2" or min(bus) * 0.9 <= mean <= max(bus) * 1.1, (node, bus, mean)
    lost = [c["lost"] for c in h.get("/clients")["clients"]]
    assert lost == [0, 0, 0], lost
    print("%d frames; %d operations on the last node, bus bandwidth %.1f GB/s" % (len(frames), want[-1], mean))
