"""For test/cases/agent/agent_locked.sh: the agent as its unit runs it (NI_BIN), and a job of another user
that hangs."""
import json, os, tempfile
import agent

UID = 64001
# What the unit takes away is gone for the program of --on-hang, too: it says what it could do.
HOOK = """#!/usr/bin/python3
import ctypes, json, mmap, os, socket, sys
def tried(what):
    try:
        what()
        return "done"
    except OSError as e:
        return e.strerror
libc = ctypes.CDLL(None, use_errno=True)
def call(f, *arguments):
    if f(*arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
status = dict(map(str.strip, l.split(":", 1)) for l in open("/proc/self/status"))
said = {"hang": json.load(sys.stdin), "rights": status["CapEff"], "new privileges": status["NoNewPrivs"],
        "mount": tried(lambda: call(libc.mount, b"x", b"/mnt", b"tmpfs", 0, None)), "nice": tried(lambda: os.setpriority(0, 0, 19)),
        "netlink": tried(lambda: socket.socket(16, 3)), "code": tried(lambda: mmap.mmap(-1, 4096, prot=7)),
        "program": tried(lambda: os.system("true")), "INET": tried(lambda: socket.socket()), "mask": os.umask(0)}
json.dump(said, open(sys.argv[1] + ".part", "w"))
os.rename(sys.argv[1] + ".part", sys.argv[1])
"""

with tempfile.TemporaryDirectory() as folder, agent.Place(folder) as place:
    os.chmod(folder, 0o755)
    os.chmod(place.boxes, 0o1777)
    os.chown(place.logs, UID, UID)
    with open(folder + "/hook", "w") as f:
        f.write(HOOK)
    os.chmod(folder + "/hook", 0o755)
    a = agent.Agent(place, "--stuck-after", "2s", "--keep-ended", "2s", "--on-hang", folder + "/hook",
                    "--on-hang", folder + "/said").wait()
    status = open("/proc/%d/status" % a.process.pid).read()
    for line in ("Seccomp:\t2", "NoNewPrivs:\t1", "Umask:\t0077"):
        assert line in status, status
    with open("test/scenarios/hang_late.scn") as f:
        scenario = f.read().split("\n", 1)[1].replace("nodes=2", "nodes=1")
    as_user = ["setpriv", "--reuid", str(UID), "--regid", str(UID), "--clear-groups"]
    job = place.job(scenario, {"SLURM_JOB_ID": "77"}, before=as_user)
    said = json.load(open(agent.wait_for("a hang that is told",
                                         lambda: os.path.exists(folder + "/said") and folder + "/said", 40)))
    assert "ReduceScatter 0 of communicator world: rank 2" in said.pop("hang")["sentence"], said
    assert int(said.pop("rights"), 16).bit_count() == 5, said
    assert said == {"new privileges": "1", "mount": "Operation not permitted",
                    "nice": "Operation not permitted", "code": "Operation not permitted",
                    "netlink": "Address family not supported by protocol", "program": "done", "INET": "done",
                    "mask": 0o077}, said
    # Whose job it is can read what lies beside his logs, and so can his colleagues; what is the agent's
    # nobody can.
    hang = place.logs + "/nccl-inspector-hang"
    for path, owner, mode in ((hang, UID, 0o755), (hang + "/verdict.txt", UID, 0o644),
                              (hang + "/verdict.json", UID, 0o644)):
        st = os.stat(path)
        assert (st.st_uid, st.st_mode & 0o777) == (owner, mode), (path, oct(st.st_mode), st.st_uid)
    for top, folders, files in os.walk(a.state):
        for name in files:
            assert not os.stat(top + "/" + name).st_mode & 0o077, name
    assert agent.total(a.metrics(), "job_hang", ("user", "verdict")), a.get("/metrics")
    job.kill()
    job.wait()
    agent.wait_for("the series of a job that was killed to go", lambda: '"77"' not in a.get("/metrics"), 20)
    assert "not permitted" not in a.text(), a.text()
    assert a.kill(15) == 0, a.text()
