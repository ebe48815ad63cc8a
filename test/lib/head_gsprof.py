"""gsprof's commands with the lines, options, files and exit codes that 0.2.1 has (what differs:
docs/cluster.md, "Called as gsprof").

    head_gsprof.py GSPROF
"""
import json
import os
import re
import subprocess
import sys
import time

import head
import rpc_pb2 as theirs

gsprof = sys.argv[1]
HOME = head.WORK + "/home"
os.makedirs(HOME)
LINE = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \| (?:INFO |ERROR) {4}\| \w+:\w+:\d+ - "
FAKE = {"LD_LIBRARY_PATH": os.path.abspath(os.environ.get("BUILD", "build") + "/test/nvml"),
        "NI_FAKE_NVML": os.path.abspath("test/fake_nvml/healthy.txt")}


def run(*words, code=0, cwd=HOME):
    p = subprocess.run([gsprof, *words], capture_output=True, text=True, cwd=cwd, timeout=60)
    assert p.returncode == code, (words, p.returncode, p.stdout, p.stderr)
    return p.stdout, p.stderr


def lines(*words, code=0):
    """What it logs: all to stderr, each line as loguru has it."""
    out, err = run(*words, code=code)
    assert not out and all(re.match(LINE, l) for l in err.splitlines()), (words, out, err)
    return [re.sub(LINE, "", l) for l in err.splitlines()]


class At:
    """The head of test/lib/head.py, begun by gsprof."""
    token, scheme, context = None, "http", None
    ask, get, post, unary, client, taken = head.Head.ask, head.Head.get, head.Head.post, head.Head.unary, head.Head.client, head.Head.taken

    def __init__(self):
        self.port, self.http_port = head.free_port(), head.free_port()
        self.at, self.web = "127.0.0.1:%d" % self.port, "127.0.0.1:%d" % self.http_port
        self.url = "http://" + self.web


h = At()
said = run("start", "--port", str(h.port), "--freq", "200", "--enable-bandwidth", "--disable-nvlink",
           "--background", "--http-port", str(h.http_port))[1]
pid = int(re.search(r"\(pid (\d+)\)", said)[1])
try:
    assert "One folder, one head" in run("start", "--port", str(head.free_port()), code=1)[1]
    for port, words in (h.port, ("", "")), (h.http_port, ("HTTP ", "HTTP ")):  # 0.2.1's three lines
        both = ["--port", str(head.free_port()), "--http-port",
                str(port)] if words[0] else ["--port", str(port)]
        assert lines("start", *both, code=1) == ["%s %d is already in use on localhost" % ("HTTP port" if words[0] else "Port", port),
                                                 "Please choose a different %sport or stop the process using this port." % words[1],
                                                 "You can find the process using: lsof -i :%d or netstat -tulpn | grep :%d" % (port, port)]
    assert lines("generate-grpc") == ["There is nothing to generate: this gsprof has its protocol built in."]
    # 0.2.1's client: Connect, then messages without a time.
    g = head.Gsprof(h, "n0", 2)
    g.send(0.37, 0.73, dram_bw_gbps_rx=4096, dram_bw_gbps_tx=1048576)
    me = h.client("n0")["client_id"]
    assert me.startswith("n0_ipv4:127.0.0.1:"), me
    assert lines("profile", h.at, "--name", "a") == ["Profiling started: Profiling started.",
                                                     "Output file: a.json"]
    assert lines("profile", h.at, "--name", "a", code=1)[0].startswith("Failed to start profiling: ")
    for _ in range(8):
        g.send(0.37, 0.73, dram_bw_gbps_rx=4096, dram_bw_gbps_tx=1048576)
        time.sleep(0.2)
    status = ["  Frequency: 200ms", "  Bandwidth Profiling: Enabled", "  NVLink Profiling: Disabled",
              "  Is Profiling: Yes", "  Output Filename: a.json", r"  Frame Counter: [1-9]\d*",
              "  Connected Clients: 1", "  Client List:", "    - " + re.escape(me)]
    got = lines("status", h.at)
    assert (got[0] == "Head Node Status:" and all(re.fullmatch(w, l) for w, l in zip(status, got[1:])) and
            len(got) == len(status) + 1), got
    got = lines("http-status", h.web)
    assert got[0] == "Head Node Status (via HTTP):" and "  Total GPUs: 2" in got, got
    got.remove("  Total GPUs: 2")
    assert all(re.fullmatch(w, l) for w, l in zip(status, got[1:])) and len(got) == len(status) + 1, got
    # Without a name: made of the time, by both ways, as 0.2.1 has it.
    out = lines("http-profile", h.web)
    assert (out[0] == "Profiling started: Profiling started." and
            re.fullmatch(r"Output file: profiling_\d{8}_\d{6}\.json", out[1])), out
    assert lines("http-stop", h.web, "--name",
                 out[1][13:-5]) == ["Profiling stopped: Profiling stopped. Data saved to " + out[1][13:]]
    assert lines("stop", h.at) == ["Profiling stopped: Profiling stopped. Data saved to a.json"]
    assert lines("stop", h.at, code=1) == ["Failed to stop profiling: Profiling is not active."]
    assert lines("stop", h.at, "--gsprof-exit-codes") == ["Failed to stop profiling: Profiling is not active."]
    head.until(lambda: os.path.exists(HOME + "/a.json"))
    # what came late stands in it
    head.until(lambda: not any(s["finishing"] for s in h.get("/profiling/sessions")["sessions"]))
    doc = json.load(open(HOME + "/a.json"))
    assert {"frames", "summary_by_device", "summary_by_client"} <= set(doc), doc.keys()
    # a busy machine brings some samples late
    f = next(f for f in reversed(doc["frames"]) if "nan" not in f["gpu_util"])
    assert (f["gpu_id"] == ["n0:%d:%s" % (k, head.GPU) for k in (0, 1)] and
            f["gpu_util"] == ["0.37", "0.73"] and f["gpu_memory"] == ["0.25"] * 2), f
    # KiB/s as 0.2.1 has them, in the right direction: what it called rx left the GPU.
    assert (f["dram_bandwidth_rx"][0], f["dram_bandwidth_tx"][0],
            float(f["dram_bandwidth"][0])) == ("1048576.00", "4096.00", 1052672), f
    assert (f["dram_util"] == ["7.25"] and f["disk_util"] == ["19.50"] and
            re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}", f["time"])), f
    # connect is an agent, which finds NVML's GPUs.
    node = subprocess.Popen([*head.DIE_WITH_US, gsprof, "connect", h.at, "--enable-bandwidth", "--resilient"],
                            cwd=HOME, stderr=subprocess.DEVNULL,
                            env=dict(os.environ, XDG_STATE_HOME=HOME, **FAKE))
    head.until(lambda: h.get("/status")["total_gpus"] == 10, 40)
    node.terminate()
    node.wait(20)
    g.close()
    # as gsprof has it: who is gone is not there
    head.until(lambda: me not in h.get("/metrics/latest")["client_data"])
    # stat: a picture beside the file, or where it was asked for.
    run("stat", "--data", "a.json")
    assert open(HOME + "/a.pdf", "rb").read(5) == b"%PDF-"
    run("stat", "--data", "a.json", "--plot", "b.png")
    assert open(HOME + "/b.png", "rb").read(4) == b"\x89PNG"
    run("stat", code=1)  # result.json is the default, and not there
    # Its log has 4 MiB, then it goes on in an empty one.
    path = HOME + "/.gswarm_profiler_data/head.log"
    with open(path, "a") as f:
        f.write("x" * 63 + "\n" + ("y" * 63 + "\n") * ((1 << 16) - 64))
        f.flush()
        f.write(("y" * 63 + "\n") * 64)  # short: what is cut while it is written goes on behind a hole
    head.until(lambda: os.path.getsize(path) < 1000)
    log = open(path + ".1").read()
    assert len(log) > 4 << 20 and log.endswith("y\n") and "x" * 63 in log
    # recover as its README has it: by name or id it goes on; --export alone writes NAME.json.
    one = next(s["session_id"] for s in h.get("/profiling/sessions")["sessions"] if s["name"] == "a")
    for words in ("--name", "a"), ("--session-id", one):
        assert run("recover", *words, "--head", h.web)[0] == "a goes on; its file will be a.json\n"
        assert h.get("/status")["is_profiling"]
        assert lines("stop", h.at, "--name",
                     "a") == ["Profiling stopped: Profiling stopped. Data saved to a.json"]
        head.until(lambda: not any(s["finishing"] for s in h.get("/profiling/sessions")["sessions"]))
    assert "no session of that name" in run("recover", "--name", "nobody", "--head", h.web, code=1)[1]
    doc = json.load(open(HOME + "/a.json"))
    assert "a.json is there: --export FILE names another" in run("recover", "--export", "--name", "a", code=1)[1]
    os.rename(HOME + "/a.json", HOME + "/kept.json")
    run("recover", "--export", "--name", "a")
    assert json.load(open(HOME + "/a.json"))["frames"] == doc["frames"]
    run("recover", "--export", code=2)
    lines("profile", h.at, "--name", "left")
    assert lines("exit", h.at) == ["Head node exit signal sent."]
    head.until(lambda: not os.path.exists("/proc/%d" % pid) or
               open("/proc/%d/stat" % pid).read().split()[2] == "Z")
    assert "Failed to get status: " in lines("status", h.at, code=1)[0]
    out = run("recover", "--list")[0]
    assert (re.search(r"^left +[0-9a-f-]{36} +yes ", out, re.M) and
            re.search(r"^a +[0-9a-f-]{36} +no ", out, re.M)), out
    run("recover", "--name", "a", "--export", "again.json")
    got = json.load(open(HOME + "/again.json"))["frames"]
    assert got == doc["frames"], [(k, x[k], y.get(k)) for x, y in zip(got, doc["frames"]) for k in x
                                  if x[k] != y.get(k)][:3]
    log += open(path).read()
    for what in ("StartProfiling a by ipv4:127.0.0.1:\\d+: Profiling started.",
                 "StartProfiling a by ipv4:127.0.0.1:\\d+: .*runs", "client n0_ipv4:\\S+ came",
                 "client n0_ipv4:\\S+ went", "stop profiling_\\d+_\\d+ by 127.0.0.1: Profiling stopped.",
                 "Exit by ipv4:", "the head ends$"):
        assert re.search(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ " + what, log, re.M), (what, log)
finally:
    if os.path.exists("/proc/%d" % pid):
        os.kill(pid, 9)
print("gsprof's commands hold")
