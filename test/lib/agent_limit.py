"""For test/cases/agent/agent_limit.sh: a job that has run for a minute with short operations hangs. Its limit
is the least there is, 10 s (docs/hang.md): the agent's rows and `top` say stuck within 2 s after that, and
`hang` says HANG; before it, all say no such thing."""
import json, subprocess, sys, tempfile, time
import agent

# Rank 1 stays away from the last operation.
JOB = """
set ranks=2 nodes=1 procs=1 rate=20 time_scale=1 poll_delay_us=5000
comm world label=world
loop times=1280
  coll world func=AllReduce bytes=1m
end
coll world func=ReduceScatter bytes=8m skip=1
sync world
sleep ms=600000
"""
LIMIT_S = 10
WITHIN_S = 2
SLOW_S = 20 if agent.os.environ.get("NI_VARIANT") else 0

with tempfile.TemporaryDirectory() as folder, agent.Place(folder) as place:
    a = agent.Agent(place).wait()
    job = place.job(JOB)

    def waiting():
        return next((r for r in a.now()["ranks"] if r["function"] == "ReduceScatter"), None)

    def hang():
        p = subprocess.run([agent.BIN, "hang", place.logs, "--box-dir", place.boxes, "--json", "--no-index"],
                           capture_output=True, text=True)
        return p.returncode, json.loads(p.stdout)

    def top_says_stuck():
        return "stuck" in subprocess.run([agent.BIN, "top", "--once", "-a", a.url], capture_output=True,
                                         text=True).stdout.lower()

    time.sleep(60)  # a minute without a question: the job has to run for so long
    agent.wait_for("the operation that hangs", waiting, 120)
    code, answer = hang()
    age = waiting()["age_s"]  # taken after the answer: so old it was at most
    if age < 0.9 * LIMIT_S:
        assert code == 0 and answer["answer"] in ("not_yet", "no_hang"), (age, answer["sentence"])
        assert not waiting()["stuck"] or waiting()["age_s"] > LIMIT_S - 0.5, waiting()
    row = agent.wait_for("the agent to say stuck", lambda: waiting()["stuck"] and waiting(), 60)
    assert LIMIT_S - 0.5 <= row["age_s"] <= LIMIT_S + WITHIN_S + SLOW_S, row
    assert top_says_stuck()
    code, answer = hang()
    assert code == 3 and answer["answer"] in ("hang_likely", "hang_certain"), answer["sentence"]
    assert (answer["hang_after_s"] == LIMIT_S and
            "rank 1 (sim-node0) never called it" in answer["sentence"]), answer["sentence"]
    print("ok   stuck at an age of %.1f s; %s" % (row["age_s"], answer["sentence"]))
    job.kill()
    job.wait()
