"""See test/cases/agent/agent_users.sh."""
import os, subprocess, sys, tempfile
import agent

JOB = "set ranks=2 nodes=1 rate=200 time_scale=0.05\ncomm %s\nloop times=300\ncoll %s func=AllReduce bytes=65536 channels=2\nend\n"
USERS = (64001, 64002)
NODE = os.uname().nodename


def own(path, uid):
    os.makedirs(path, exist_ok=True)
    os.chown(path, uid, uid)
    return path


with tempfile.TemporaryDirectory() as folder, agent.Place(folder) as place:
    os.chmod(folder, 0o755)
    os.chmod(place.boxes, 0o1777)
    logs = {uid: own("%s/job-%d" % (folder, uid), uid) for uid in USERS}
    a = agent.Agent(place, "--log-dir", folder).wait()
    jobs = []
    for uid in USERS:
        # What is in one's folder and another's: a link to the other user's log, a pipe, a folder that is none.
        os.symlink(logs[USERS[0]] + "/secret.jsonl.gz", logs[uid] + "/" + NODE + "-pid1-1700000000.jsonl.gz")
        os.mkfifo(logs[uid] + "/" + NODE + "-pid2-1700000000.jsonl.gz")
        os.lchown(logs[uid] + "/" + NODE + "-pid2-1700000000.jsonl.gz", uid, uid)
        # And one that says to be compressed, is not, and is longer than anybody can read.
        huge = logs[uid] + "/" + NODE + "-pid3-1700000000.jsonl.gz"
        with open(huge, "wb") as f:
            f.write(b"\x1f\x8b\x08\0")
            f.truncate(1 << 40)
            f.seek(1 << 30)
            f.write(os.urandom(1 << 23))
        os.chown(huge, uid, uid)
        with open("%s/%d.scn" % (folder, uid), "w") as f:
            f.write("# a user's job\n" + JOB % ("c%d" % uid, "c%d" % uid))
        env = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "SLURM_"))}
        env.update(NCCL_INSPECTOR_ENABLE="1", NCCL_INSPECTOR_DUMP_DIR=logs[uid], NCCL_INSPECTOR_BLACKBOX=place.boxes,
                   NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS="200000")
        jobs.append(place.spawn(["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", agent.BUILD + "/nccl-sim", "--quiet",
                                 "--plugin", agent.BUILD + "/libnccl-profiler-inspector.so", "--scenario", "%s/%d.scn" % (folder, uid)],
                                env=env, stdout=subprocess.DEVNULL, stderr=open(folder + "/job.err", "a")))
    # A box of one user that names the other one's folder is his own word alone.
    def readers():
        out = subprocess.run(["ps", "-o", "uid=,pid=", "--ppid", str(a.process.pid)], capture_output=True, text=True).stdout
        return {int(l.split()[0]) for l in out.split("\n") if l.split()}
    agent.wait_for("a reader for each user", lambda: set(USERS) <= readers())
    if 0 in readers() - {0} or not readers() <= set(USERS) | {0}:
        sys.exit("FAIL: readers are of %s" % readers())
    for j in jobs:
        if j.wait():
            sys.exit("FAIL: nccl-sim ended with %d\n%s" % (j.returncode, open(folder + "/job.err").read()))
    for uid in USERS:
        os.remove(logs[uid] + "/" + NODE + "-pid1-1700000000.jsonl.gz")
        os.remove(logs[uid] + "/" + NODE + "-pid2-1700000000.jsonl.gz")
        os.remove(logs[uid] + "/" + NODE + "-pid3-1700000000.jsonl.gz")
        want = sum(v["n"] for v in agent.truth(logs[uid]).values())
        comm = "c%d" % uid
        agent.wait_for("%d operations of user %d" % (want, uid),
                       lambda: agent.total(a.metrics(), "operations_total", ("comm",)).get((comm,), 0) == want)
    print("ok: %s" % dict(agent.total(a.metrics(), "operations_total", ("job_id", "comm"))))
    if a.kill(15):
        sys.exit("FAIL: SIGTERM ended it with %s\n%s" % (a.process.returncode, a.text()))
