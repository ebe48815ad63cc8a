"""gswarm's own client, commands and readers against our head.

    head_gswarm.py PYTHON FOLDER     PYTHON: of its virtual environment; FOLDER: of the fake NVML
"""
import json
import os
import re
import subprocess
import sys
import time

import head

PYTHON, NVML = sys.argv[1:3]
RUNNER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "head_gswarm_run.py")
PLAN = head.WORK + "/plan"
HOME = head.WORK + "/home"
os.makedirs(HOME)
ENV = dict(os.environ, HOME=HOME, PYTHONPATH="", LD_LIBRARY_PATH=NVML, NI_FAKE_NVML=PLAN, MPLCONFIGDIR=HOME)
open(PLAN, "w").write("".join("* %s\n" % w
                              for w in ("gpus 2", "total 85899345920", "used 21474836480", "free 64424509440",
                                        "memutil 20",
                                                     "pcietx 4096", "pcierx 1048576", "power 300000",
                                                     "temp 50")) + "0 util 37\n1 util 73\n")


def gswarm(*words, code=0):
    p = subprocess.run([PYTHON, RUNNER, *words], capture_output=True, text=True, env=ENV, cwd=HOME,
                       timeout=60)
    assert p.returncode == code and "Traceback" not in p.stderr, (words, p.returncode, p.stdout, p.stderr)
    return p.stdout + p.stderr


with head.Head("gswarm", "--enable-bandwidth", freq=0.5) as h:
    with open(head.WORK + "/client.log", "w") as log:
        client = subprocess.Popen([*head.DIE_WITH_US, PYTHON, RUNNER, "client", "connect", h.at,
                                   "--resilient", "--block"], stdout=log, stderr=log, env=ENV, cwd=HOME)
    head.until(lambda: h.get("/status")["total_gpus"] == 2 and h.get("/metrics/latest")["client_data"], 40)
    it = h.get("/clients")["clients"][0]
    assert it["gpu_count"] == 2 and it["gpus"][0]["name"] == head.GPU, it
    said = gswarm("profiler", "start", "--name", "theirs", "--host", h.at)
    assert "Profiling started: Profiling started." in said and "Output file: theirs.json" in said, said
    said = gswarm("profiler", "status", "--host", h.at)
    for line in "Frequency: 500ms", "Bandwidth Profiling: Enabled", "NVLink Profiling: Disabled", "Is Profiling: Yes", "Connected Clients: 1", it["client_id"]:
        assert line in said, (line, said)
    said = gswarm("profiler", "sessions", "--host", "127.0.0.1:%d" % h.http_port)
    assert "Found 1 session(s)" in said and "theirs (Active)" in said and re.search(r"Frames: \d", said), said
    said = gswarm("profiler", "read", "--host", h.at, "--output", HOME + "/read.json")
    assert "rror" not in said, said
    # A node joins late and leaves, one of ours says N/A: their readers see one width.
    late = head.Gsprof(h, "late")
    for _ in range(4):
        late.send(0.5)
        time.sleep(0.5)
    late.close()
    time.sleep(2)
    said = gswarm("profiler", "stop", "--name", "theirs", "--host", h.at)
    assert "Profiling stopped. Data saved to theirs.json" in said, said
    d = h.file("theirs")
    host = it["hostname"]
    f = d["frames"][2]
    i = [f["gpu_id"].index("%s:%d:%s" % (host, k, head.GPU)) for k in (0, 1)]
    assert [f["gpu_util"][k] for k in i] == ["37.00", "73.00"] and f["gpu_memory"][i[0]] == "25.00", f
    # 1 GiB/s into the GPU (NVML's RX), 4 MiB/s out of it.
    assert (f["dram_bandwidth_rx"][i[0]], f["dram_bandwidth_tx"][i[0]]) == ("1.07", "0.00"), f
    path = os.path.join(h.out, "theirs.json")
    gswarm("stat", path, HOME + "/stat.png")
    assert os.path.getsize(HOME + "/stat.png") > 10000
    said = gswarm("draw", path)
    assert said.startswith("2 [%d, %d]" % (len(d["frames"]), len(d["frames"]))) and head.GPU in said, said
    # The head goes and comes back: the client comes, too.
    h.kill()
    h.begin()
    head.until(lambda: h.get("/status")["total_gpus"] == 2, 60)
    client.kill()
    client.wait()
    h.unary("Exit", head.Raw(b""), head.ConnectResponse)
    assert h.p.wait(20) == 0
