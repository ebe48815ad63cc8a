"""For test/cases/agent/agent_killed.sh: a rank of a job is killed, long before --stuck-after. Its row stays,
named killed, and the verdict on the hang that follows is there within ten seconds of the death."""
import subprocess, sys, tempfile, time
import agent

JOB = """
set ranks=4 nodes=1 procs=1
comm world label=world
coll world func=AllReduce bytes=4m repeat=50
sync world
sleep ms=3000
exit how=sigkill rank=2
coll world func=AllReduce bytes=4m
sync world
sleep ms=600000
"""
WITHIN_S = 10
SLOW = 10 if agent.os.environ.get("NI_VARIANT") else 1

with tempfile.TemporaryDirectory() as folder, agent.Place(folder) as place:
    a = agent.Agent(place).wait()
    job = place.job(JOB, {"SLURM_JOB_ID": "77"})

    def ranks():
        return {r["rank"]: r for r in a.now()["ranks"] if r["comm"] == "world"}

    def of_job():
        return next((j for j in a.now()["jobs"] if j["job_id"] == "77"), {})

    agent.wait_for("all four ranks", lambda: len(ranks()) == 4 and all(r["alive"] for r in ranks().values()))
    agent.wait_for("the dead rank's row", lambda: not ranks().get(2, {"alive": True})["alive"])
    died = time.monotonic()
    table = subprocess.run([agent.BIN, "top", "--once", "-a", a.url], capture_output=True, text=True).stdout
    killed = [l.split() for l in table.split("\n") if " killed " in l]
    assert [row[1] for row in killed] == ["2"], table

    sentence = agent.wait_for("a verdict", lambda: of_job().get("hang"))
    took = time.monotonic() - died
    assert took < WITHIN_S * SLOW, "the verdict came after %.1f s" % took
    assert (sentence.startswith("HANG (") and "the process of rank 2" in sentence and
            "is gone" in sentence), sentence
    assert of_job()["state"] == "stuck", of_job()
    now = ranks()
    assert (sorted(now) == [0, 1, 2, 3] and
            [now[k]["alive"] for k in range(4)] == [True, True, False, True]), now
    assert now[2]["stuck"] == 0 and of_job()["processes"] == 3, (now[2], of_job())
    print("ok   %.1f s after the death: %s" % (took, sentence))

    job.kill()
    job.wait()
    agent.wait_for("the rows of a job without processes to go", lambda: not ranks(), 20)
    assert a.kill(15) == 0, a.text()
