"""See test/cases/top/top_agent.sh."""
import subprocess, sys, tempfile
import agent

JOB = """
set ranks=4 nodes=1 procs=1
comm world label=world
comm tp0 ranks=0-1 label=tp0
loop times=20
  coll tp0 func=AllReduce bytes=1m
  coll world func=AllReduce bytes=4m
end
coll world func=ReduceScatter bytes=8m skip=2
sync world
sleep ms=600000
"""
COUNTED = ", 4 ranks, 3 in flight, 3 stuck\n"
# Until there is a verdict `top` says itself who waits for whom.
MISSING = (": 3 ranks wait in ReduceScatter of world for ", "ReduceScatter 0 of communicator world: rank 2 (")

with tempfile.TemporaryDirectory() as folder, agent.Place(folder) as place:
    a = agent.Agent(place, "--stuck-after", "1s").wait()
    place.job(JOB)

    def said():
        global text
        text = subprocess.run([agent.BIN, "top", "--once", "-a", a.url], capture_output=True,
                              text=True).stdout
        return COUNTED in text and any(w in text for w in MISSING)

    text = ""
    try:
        agent.wait_for("top to tell who is missing", said)
    finally:
        print(text)
    rows = [l.split() for l in text.split("\n") if " world " in l]
    waits = {r[1]: r[-1] for r in rows}
    for rank in "013":
        if waits.get(rank) != "r2":
            sys.exit("FAIL: rank %s waits for %s, not r2" % (rank, waits.get(rank)))
