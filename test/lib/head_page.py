"""A real head for test/browser/head.mjs, which is the command: nodes of both kinds, a job, a hang that an
agent of ours tells of.

    head_page.py PICTURES COMMAND...    PICTURES: a folder for them, or ""; the command gets token, PICTURES and the head's address behind it
"""
import contextlib
import math
import os
import subprocess
import sys
import tempfile
import threading
import time

import agent
import head
import head_pb2 as ours

TOKEN = head.WORK + "/token"
FAKE = {"LD_LIBRARY_PATH": os.path.abspath(agent.BUILD + "/test/nvml"),
        "NI_FAKE_NVML": os.path.abspath("test/fake_nvml/healthy.txt")}
PERIOD = 0.5


class Node(head.Agent):
    """Its figures hold still where the page is looked at, and move in charts."""

    def fill(self, s):
        t, k = s.time_ns / 1e9 - BEGUN, int(self.host[1:])
        for i in range(8):
            util = 0.5 if k == 2 else 0.7 + 0.25 * math.sin(t / 5 + i / 4 + k)
            s.gpu.add(index=i, name=head.GPU, util=util, memory=0.625, pcie_rx=1.5e9, pcie_tx=0.5e9,
                      nvlink_rx=110e9 + 4e9 * math.sin(t) * (k != 2),
                      nvlink_tx=112e9, power_w=500, temperature_c=55, sm_hz=1.98e9)
        for i in range(2):
            s.nic.add(name="mlx5_%d" % i, rx=20e9, tx=25e9, link=50e9, held=0.01)
        s.job.add(job="train", attempt="0", uid=1000, processes=8, operations=int(t * 1000),
                  bytes=int(t * 4e9), bus_bytes=t * 90e9, bus_seconds=t * 0.5,
                  in_flight=4, oldest_s=0.03 + 0.01 * math.sin(t))


def guest(h, stop):
    g = head.Gsprof(h, "g1", 2, token=h.token)
    while not stop.wait(PERIOD):
        if g.stream.over():
            with contextlib.suppress(Exception):
                g = head.Gsprof(h, "g1", 2, token=h.token)
        g.send(0.25, 0.75)


with contextlib.ExitStack() as all_of:
    with open(TOKEN, "w") as f:
        f.write("sesame\n")
    os.chmod(TOKEN, 0o600)
    h = all_of.enter_context(head.Head("page", "--enable-bandwidth", "--token-file", TOKEN, freq=PERIOD))
    h.token, BEGUN, stop = "sesame", time.time() - 600, threading.Event()
    place = all_of.enter_context(agent.Place(all_of.enter_context(tempfile.TemporaryDirectory())))
    agent.Agent(place, "--head", h.at, "--head-token-file", TOKEN, "--node", "n4", "--stuck-after", "2s",
                env=FAKE).wait()
    with open("test/scenarios/hang_late.scn") as f:
        place.job(f.read().split("\n", 1)[1].replace("nodes=2", "nodes=1"), {"SLURM_JOB_ID": "77"})
    nodes = [Node(h, "n%d" % i, period=PERIOD, token=h.token) for i in (1, 2, 3)]
    threading.Thread(target=guest, args=(h, stop), daemon=True).start()
    head.until(lambda: h.get("/status")["total_gpus"] == 34, 60)
    # the hang has its sentence
    head.until(lambda: "of communicator world" in h.ask("GET", "/metrics/latest")[2], 60)
    page = subprocess.Popen([*sys.argv[2:], h.token, sys.argv[1], h.url], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True, env=dict(os.environ, LD_LIBRARY_PATH=""))
    for line in page.stdout:
        if line.startswith("@"):
            {"@kill\n": h.kill, "@begin\n": h.begin}[line]()
            page.stdin.write("done\n")
            page.stdin.flush()
        else:
            print(line, end="", flush=True)
    stop.set()
    code = page.wait(20)
    for n in nodes:
        n.close()
    if h.p.poll() is not None:
        h.begin()
sys.exit(code)
