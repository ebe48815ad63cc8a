"""See test/cases/agent/agent_users.sh."""
import os, signal, subprocess, sys, tempfile, time
import agent

JOB = "set ranks=2 nodes=1 rate=200 time_scale=0.05\ncomm %s\nloop times=300\ncoll %s func=AllReduce bytes=65536 channels=2\nend\n"
# 0.3 s
SHORT = "set ranks=2 procs=1 nodes=1 rate=100\ncomm c\nloop times=30\ncoll c func=AllReduce bytes=65536 channels=2\nend\n"
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
        # What is in one's folder and another's: a link to the other user's log, a pipe, a folder that is
        # none.
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
        env.update(NCCL_INSPECTOR_ENABLE="1", NCCL_INSPECTOR_DUMP_DIR=logs[uid],
                   NCCL_INSPECTOR_BLACKBOX=place.boxes,
                   NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS="200000")
        jobs.append(place.spawn(["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups",
                                 agent.BUILD + "/nccl-sim", "--quiet", "--plugin",
                                 agent.BUILD + "/libnccl-profiler-inspector.so", "--scenario",
                                 "%s/%d.scn" % (folder, uid)],
                                env=env, stdout=subprocess.DEVNULL, stderr=open(folder + "/job.err", "a")))
    # A box of one user that names the other one's folder is his own word alone.
    def children():
        out = subprocess.run(["ps", "-o", "uid=,pid=", "--ppid", str(a.process.pid)], capture_output=True,
                             text=True).stdout
        return [tuple(map(int, l.split())) for l in out.split("\n") if l.split()]
    agent.wait_for("a reader for each user", lambda: set(USERS) <= {uid for uid, _ in children()})
    listers = [pid for uid, pid in children() if uid == 0]
    if not {uid for uid, _ in children()} <= set(USERS) | {0} or len(listers) != 2:
        sys.exit("FAIL: children are %s" % children())
    # As when a log folder's server does not answer: nobody but who lists it waits.
    for pid in listers:
        os.kill(pid, signal.SIGSTOP)
    for _ in range(3):
        a.metrics()
    agent.wait_for("operations", lambda: agent.total(a.metrics(), "operations_total", ()))
    for pid in listers:
        os.kill(pid, signal.SIGKILL)
    agent.wait_for("listers begun anew",
                   lambda: agent.total(a.metrics(), "agent_reader_restarts_total", ()).get((), 0) >= 2)
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
                       lambda: agent.total(a.metrics(), "operations_total",
                                           ("comm", "user")).get((comm, str(uid)), 0) == want)
    print("ok: %s" % dict(agent.total(a.metrics(), "operations_total", ("job_id", "comm"))))
    if a.kill(15):
        sys.exit("FAIL: SIGTERM ended it with %s\n%s" % (a.process.returncode, a.text()))
    # Jobs of 0.3 s, whose boxes alone say where their logs are: most are found, however busy the machine is.
    a = agent.Agent(place, name="short").wait()
    def short(n):
        logs = own("%s/short-%d" % (folder, n), 0)
        job = place.job(SHORT, {"SLURM_JOB_ID": str(n)}, logs)
        if job.wait():
            sys.exit("FAIL: nccl-sim ended with %d\n%s" % (job.returncode, open(folder + "/job.err").read()))
        return sum(v["n"] for v in agent.truth(logs).values())
    for again in range(3):
        want = {(str(n),): short(n) for n in range(8 * again, 8 * again + 8)}
        if min(want.values()) < 60:
            sys.exit("FAIL: short jobs wrote %s" % want)
        time.sleep(2.5)
        got = agent.total(a.metrics(), "operations_total", ("job_id",))
        found = sum(got.get(k) == n for k, n in want.items())
        if found >= 6:
            break
    else:
        sys.exit("FAIL: of 8 jobs of 0.3 s %d were found" % found)
