"""schemas_live.py TMP: a head, an agent with GPUs and a job that hangs, a session; each answer against
schemas/, strictly."""
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, "test/lib")
import agent  # noqa: E402
import schemas  # noqa: E402

TMP = sys.argv[1]
FAKE = {"LD_LIBRARY_PATH": os.path.abspath(agent.BUILD + "/test/nvml"),
        "NI_FAKE_NVML": os.path.abspath("test/fake_nvml/healthy.txt")}
check, bad = schemas.Schemas(), []


def looked(name, document):
    wrong = check.wrong(name, document)
    for sentence in wrong[:5]: print("FAIL", sentence)
    bad.extend(wrong)
    return document


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def command(*words, **kw):
    return subprocess.run([agent.BIN, *words], stdout=subprocess.PIPE, check=True, **kw).stdout.decode()


with contextlib.ExitStack() as end:
    place = end.enter_context(agent.Place(TMP))
    port, http = free_port(), free_port()
    with open(TMP + "/head.err", "w") as err:
        head = place.spawn([agent.BIN, "head", "--port", str(port), "--http-port", str(http), "--freq", "200",
                            "--enable-bandwidth", "--enable-nvlink", "--data-dir", TMP + "/data", "--out-dir",
                            TMP + "/out"], stderr=err)

    def get(path, body=None):
        with urllib.request.urlopen(urllib.request.Request("http://127.0.0.1:%d%s" % (http, path), None if body is None else json.dumps(body).encode(),
                                                           {"Content-Type": "application/json"}),
                                                           timeout=20) as answer:
            return json.loads(answer.read())

    def text(path):
        with open(path) as f: return f.read()

    def serves():
        assert head.poll() is None, text(TMP + "/head.err")
        return "gRPC at" in text(TMP + "/head.err")
    agent.wait_for("the head to serve", serves)
    hook = TMP + "/hook"
    with open(hook, "w") as f: f.write('#!/bin/sh\ncat >"$0.part"\nmv "$0.part" "$0.said"\n')
    os.chmod(hook, 0o755)
    a = agent.Agent(place, "--head", "127.0.0.1:%d" % port, "--stuck-after", "2s", "--on-hang", hook,
                    env=FAKE).wait()
    agent.wait_for("the agent's GPUs", lambda: get("/status")["total_gpus"] == 8, 30)
    get("/profiling/start", {"name": "s"})
    with open("test/scenarios/hang_late.scn") as f:
        scenario = f.read().split("\n", 1)[1].replace("nodes=2", "nodes=1")
    job = place.job(scenario, {"SLURM_JOB_ID": "77"})
    agent.wait_for("operations in flight",
                   lambda: [c for c in get("/metrics/latest")["client_data"].values() if c["open"]], 30)
    looked("now", a.now())
    looked("now", json.loads(command("top", "--json", "-a", a.url)))
    looked("top", json.loads(command("top", "--json", "-a", a.url, "-a", a.url)))
    looked("head-latest", get("/metrics/latest"))
    looked("head-status", get("/status"))
    agent.wait_for("the program of --on-hang", lambda: os.path.exists(hook + ".said"), 40)
    looked("on-hang", json.loads(text(hook + ".said")))
    get("/profiling/stop", {"name": "s"})
    looked("head-clients", get("/clients"))
    ended = agent.wait_for("the session's file",
                           lambda: [s for s in looked("head-sessions", get("/profiling/sessions"))["sessions"]
                                    if not s["finishing"] and not s["active"]])
    path = os.path.join(TMP, "out", ended[0]["output_file"])
    session = looked("session", json.loads(text(path)))
    assert any(f["gpu_id"] and f["jobs"] for f in session["frames"]), session["frames"][-1:]
    looked("session-stat", json.loads(command("session", "stat", "--json", path)))
    job.kill()
print("%d documents, %d wrong" % (11, len(bad)))
sys.exit(bool(bad))
