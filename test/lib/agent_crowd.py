"""See test/cases/agent/agent_crowd.sh."""
import os, shutil, subprocess, sys, tempfile
import agent, forge_box

CROWD, REAL = range(65001, 65301), 64001
JOB = "set ranks=2 nodes=1 rate=50 time_scale=0.05\ncomm c\nloop times=3000\ncoll c func=AllReduce bytes=65536 channels=2\nend\n"


def forged(place, uids):
    """A sound box for each, whose process is ours: pid and start time are right, the user is another."""
    one = forge_box.forge(place.boxes + "/", ops=0, pid=os.getpid(), life="alive", dir="/tmp/job",
                          file="/tmp/job/forged-pid1-1.jsonl.gz",
                          line='{"process":{"pid":1}}')
    for uid in uids:
        path = "%s/nccl-inspector-forged-pid%d-%016x.box" % (place.boxes, uid, uid)
        shutil.copyfile(one, path)
        os.chown(path, uid, uid)
    os.remove(one)


def figure(a, name, **only):
    return agent.total(a.metrics(), name, (), **only).get((), 0)


with tempfile.TemporaryDirectory() as folder, agent.Place(folder) as place:
    os.chmod(folder, 0o755)
    os.chmod(place.boxes, 0o1777)
    forged(place, CROWD)
    a = agent.Agent(place).wait()
    agent.wait_for("more users than there is room for", lambda: figure(a, "agent_users_left_out") > 30)
    before = figure(a, "agent_users_left_out")
    logs = folder + "/job"
    os.mkdir(logs)
    os.chown(logs, REAL, REAL)
    with open(folder + "/job.scn", "w") as f:
        f.write("# a real job\n" + JOB)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "SLURM_"))}
    env.update(NCCL_INSPECTOR_ENABLE="1", NCCL_INSPECTOR_DUMP_DIR=logs, NCCL_INSPECTOR_BLACKBOX=place.boxes,
               NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS="200000")
    place.spawn(["setpriv", "--reuid", str(REAL), "--regid", str(REAL), "--clear-groups",
                 agent.BUILD + "/nccl-sim", "--quiet", "--plugin",
                 agent.BUILD + "/libnccl-profiler-inspector.so", "--scenario", folder + "/job.scn"],
                env=env, stdout=subprocess.DEVNULL, stderr=open(folder + "/job.err", "a"))
    agent.wait_for("series of the real job, of user %d" % REAL,
                   lambda: figure(a, "operations_total", user=str(REAL)))
    if figure(a, "job_processes", user=str(REAL)) < 1 or figure(a, "agent_reader_restarts_total"):
        sys.exit("FAIL: the real job has no process, or readers crash: %s" % a.get("/metrics")[:4000])
    left = figure(a, "agent_users_left_out")
    if left != before + 1:
        sys.exit("FAIL: %d users are left out, wanted %d" % (left, before + 1))
    if a.kill(15):
        sys.exit("FAIL: SIGTERM ended it with %s\n%s" % (a.process.returncode, a.text()))
    print("ok: %d users without a process, and a real job" % len(CROWD))
