"""Our agent against the head of the real gswarm 0.4.3: test 2 of what its users rely on.

    head_real.py PYTHON FOLDER SECONDS     PYTHON: of its virtual environment; FOLDER: of the fake NVML
"""
import json
import os
import subprocess
import sys
import time

import head

PYTHON, NVML, SECONDS = sys.argv[1], sys.argv[2], int(sys.argv[3])
RUNNER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "head_gswarm_run.py")
HOME, PLAN = head.WORK + "/home", head.WORK + "/plan"
os.makedirs(HOME)
ENV = dict(os.environ, HOME=HOME, PYTHONPATH="", LD_LIBRARY_PATH=NVML, NI_FAKE_NVML=PLAN, MPLCONFIGDIR=HOME)
open(PLAN, "w").write("".join("* %s\n" % w
                              for w in ("gpus 2", "total 85899345920", "used 21474836480", "free 64424509440",
                                        "memutil 20",
                                                     "pcietx 4096", "pcierx 1048576", "power 300000",
                                                     "temp 50")) + "0 util 37\n1 util 73\n")
PORT, HTTP, MODEL = (head.free_port() for _ in range(3))
AT = "127.0.0.1:%d" % PORT


def gswarm(*words):
    p = subprocess.run([PYTHON, RUNNER, *words], capture_output=True, text=True, env=ENV, cwd=HOME,
                       timeout=90)
    assert p.returncode == 0 and "Traceback" not in p.stderr, (words, p.returncode, p.stdout, p.stderr)
    return p.stdout + p.stderr


def begin(name, *words):
    log = open(os.path.join(head.WORK, name + ".log"), "w")
    return subprocess.Popen([*head.DIE_WITH_US, *words], stdout=log, stderr=log, env=ENV, cwd=HOME)


# without it its own `stat` fails on any file
real = begin("real", PYTHON, RUNNER, "host", "start", "--host", "127.0.0.1", "-p", str(PORT), "--http-port",
             str(HTTP), "--model-port", str(MODEL), "--enable-bandwidth")
head.until(lambda: "Connected Clients: 0" in gswarm("profiler", "status", "--host", AT), 60, 1)
agent = begin("agent", head.INSPECTOR, "agent", "--foreground", "--node", "n1", "--head", AT, "--listen",
              "127.0.0.1:0", "--state-dir", head.WORK + "/state")
head.until(lambda: "Connected Clients: 1" in gswarm("profiler", "status", "--host", AT), 60, 1)
gswarm("profiler", "start", "--name", "ours", "--host", AT)
end = time.monotonic() + SECONDS
while time.monotonic() < end:
    time.sleep(min(5, max(0, end - time.monotonic())))
    for name, p in ("real", real), ("agent", agent):
        assert p.poll() is None, (name, p.returncode,
                                  open(os.path.join(head.WORK, name + ".log")).read()[-2000:])
said = gswarm("profiler", "status", "--host", AT)
assert "Connected Clients: 1" in said, said
gswarm("profiler", "stop", "--name", "ours", "--host", AT)
path = head.until(lambda: next((os.path.join(f, n) for f, _, names in os.walk(HOME) for n in names
                                if n == "ours.json"), None), 30)
d = head.until(lambda: json.load(open(path)), 10)
frames = d["frames"]
assert len(frames) > 0.8 * SECONDS, len(frames)  # its head makes one a second
whole = [f for f in frames if f["gpu_id"] == ["n1:%d:%s" % (k, head.GPU) for k in (0, 1)]]
assert len(whole) > 0.95 * len(frames), (len(whole), len(frames))
assert all(list(map(float, f["gpu_util"])) == [0.37, 0.73] for f in whole), whole[0]
gswarm("stat", path, HOME + "/stat.png")
assert os.path.getsize(HOME + "/stat.png") > 10000
log = open(os.path.join(head.WORK, "real.log")).read()
assert "Traceback" not in log and "p2p_links" not in log, log[-2000:]
print("%d s: %d frames of the real head, %d with the GPUs of our agent" % (SECONDS, len(frames), len(whole)))
real.terminate()
agent.terminate()
assert agent.wait(20) == 0, agent.returncode
