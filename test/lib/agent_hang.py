"""For test/cases/agent/agent_hang.sh: one node of the job of scenario hang_late, whose rank 2 never comes,
and its agent."""
import json, os, sys, tempfile
import agent

SENTENCE = "ReduceScatter 0 of communicator world: rank 2"

with tempfile.TemporaryDirectory() as folder, agent.Place(folder) as place:
    hook = folder + "/hook"
    with open(hook, "w") as f:
        f.write('#!/bin/sh\n{ echo "$1"; cat; } >"$0.part"\nmv "$0.part" "$0.said"\n')
    os.chmod(hook, 0o755)
    a = agent.Agent(place, "--stuck-after", "2s", "--keep-ended", "2s", "--on-hang", hook, "--on-hang",
                    "an argument").wait()
    with open("test/scenarios/hang_late.scn") as f:
        scenario = f.read().split("\n", 1)[1].replace("nodes=2", "nodes=1")
    job = place.job(scenario, {"SLURM_JOB_ID": "77", "SLURM_RESTART_COUNT": "1"})

    def hung():
        m = a.metrics()
        stuck = agent.total(m, "stuck_operations", ("job_id", "attempt", "rank", "comm"))
        verdict = agent.total(m, "job_hang", ("job_id", "attempt", "verdict"))
        if stuck and not verdict.keys() & {("77", "1", "likely"), ("77", "1", "certain")}:
            assert verdict in ({}, {("77", "1", "stuck"): 1}), verdict
        return stuck if verdict.keys() & {("77", "1", "likely"),
                                          ("77", "1", "certain")} and os.path.exists(hook + ".said") else None

    stuck = agent.wait_for("a verdict", hung, 40)
    assert stuck == {("77", "1", rank, "world"): 1 for rank in "013"}, stuck
    oldest = agent.total(a.metrics(), "oldest_in_flight_seconds", ("rank", "comm"))
    assert all(oldest["" + rank, "world"] > 2 for rank in "013") and not oldest["2", "world"], oldest

    now = a.now()
    of_job, = now["jobs"]
    assert ((of_job["job_id"], of_job["attempt"], of_job["state"]) == ("77", "1", "stuck") and
            of_job["processes"]), of_job
    assert SENTENCE in of_job["hang"], of_job
    world = {r["rank"]: r for r in now["ranks"] if r["comm"] == "world"}
    assert [world[k]["stuck"] for k in range(4)] == [1, 1, 0, 1], world
    assert world[2]["function"] is None and world[2]["call"] is None, world
    assert all(world[k]["call"] >= world[2]["collectives"] and world[k]["age_s"] > 2
               for k in (0, 1, 3)), world

    argument, said = open(hook + ".said").read().split("\n", 1)
    said = json.loads(said)
    assert argument == "an argument" and said["schema"] == "nccl-inspector-on-hang-1", (argument, said)
    assert ((said["job_id"], said["attempt"], said["node"]) == ("77", "1", now["node"]) and
            SENTENCE in said["sentence"]), said
    assert json.load(open(said["path"]))["verdict"] == ("certain" if said["certain"] else "likely"), said

    job.kill()
    job.wait()
    agent.wait_for("the series of a job that was killed to go", lambda: '"77"' not in a.get("/metrics"), 20)
    assert a.now()["jobs"] == [], a.now()["jobs"]
    assert a.kill(15) == 0, a.text()
