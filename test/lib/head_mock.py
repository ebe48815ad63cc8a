#!/usr/bin/env python3
"""The API of a head (docs/cluster.md, "HTTP") with made-up nodes, for its page.

    head_mock.py ASSETS NODES TOKEN COMMAND...    runs the command with the address behind it; ends as it does. TOKEN "": none

ASSETS: the folder of the page's pieces. A frame each 0.2 s. Beside the API: POST /mock {"lost": bool,
"stale": bool} cuts streams and refuses, or makes the second node stale, {"finishing": NAME, "twin": NAME}:
that session's file is being written, there is an older one of that name, "changes": another number tells the
page of it; GET /mock has what was posted to the API.
"""
import json
import math
import subprocess
import sys
import threading
import time
from datetime import datetime, timezone

sys.path.pop(0)  # this folder has an http of its own
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ASSETS, NODES, TOKEN = sys.argv[1], int(sys.argv[2]), sys.argv[3]
HOSTILE = "</script><img src=x onerror=alert(1)>"
begun, asked, mock = time.time(), [], {"lost": False, "stale": False}
read = lambda name: open(ASSETS + "/" + name, "rb").read()
utc = lambda t: datetime.fromtimestamp(t, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def session(name, age, active, **more):
    s = {"name": name, "session_id": "id-" + name, "is_active": active, "active": active,
         "start_time": utc(begun - age), "end_time": None if active else utc(begun - age + 60),
         "frame_count": 120, "frames": 120, "output_file": name + ".json",
         "finishing": False, "late": 0, "frames_lost": 0, "error": None}
    return {**s, **more}


sessions = [session("done", 400, False),
            session(HOSTILE, 200, False, error="No space left on device", frames_lost=7),
            session("runs", 900, True)]
host = lambda i: HOSTILE if i == 2 else "n%d" % i
state = lambda i: "gone" if i == 4 else "stale" if i == 1 and mock["stale"] else "ok"


def gpus(i):
    return [{"id": "%s:%d:H100" % (host(i), g), "name": "NVIDIA H100 80GB HBM3", "physical_idx": g,
             "hostname": host(i)} for g in range(8)]


def clients():
    return {"total_clients": NODES, "clients": [
        {"client_id": "c%d" % i, "hostname": host(i), "gpu_count": 8, "gpus": gpus(i), "connected": i != 4,
         "state": state(i),
         "age_s": 400.0 if i == 4 else 0.1, "skew_s": -0.002 * i, "agent": i != 3, "taken": 9, "late": i,
         "lost": 3 if i == 4 else 0}
        for i in range(NODES)]}


def metrics(i, g, t):
    return {"physical_idx": g, "name": "NVIDIA H100 80GB HBM3", "gpu_util": 60 + 30 * math.sin(t / 9 + i) + g,
            "mem_util": 71.5, "dram_bw_gbps_rx": 1.5, "dram_bw_gbps_tx": 0.5, "nvlink_bw_gbps_rx": 110 + g,
            "nvlink_bw_gbps_tx": 112,
            "power_w": 500 + 20 * g, "temperature_c": None if g == 7 else 50 + (i * 7) % 20}


def latest():
    now, data = time.time(), {}
    for i in range(NODES):
        if i == 4:  # gone: no numbers
            data["c4"] = {"gpus_metrics": [{k: v if k in ("physical_idx", "name") else None
                                            for k, v in metrics(i, g, 0).items()} for g in range(8)],
                                            "p2p_links": [],
                          "hostname": host(i), "state": "gone", "age_s": 400.0,
                          "system_metrics": {"dram_util": None, "disk_util": None, "cpu_util": None},
                          "nics": [], "jobs": [], "open": []}
            continue
        t, stuck = now - begun, i == 3
        job = {"job_id": HOSTILE if stuck else "train", "attempt": "0", "uid": 1000,
               "state": "stuck" if stuck else "running", "processes": 8, "operations": int(t * 1000),
               "bytes": int(t * 4e9), "bus_bytes": t * 9e10, "bus_seconds": t * 0.5, "operations_s": 1000,
               "message_gb_s": 4, "busbw_gb_s": 180, "in_flight": 4, "stuck": 2 if stuck else 0,
               "oldest_s": t + 60 if stuck else 0.02 + 0.01 * math.sin(t),
               "verdict": "rank 27 never came to <b>AllReduce</b> 5" if stuck else None}
        data["c%d" % i] = {
            "gpus_metrics": [metrics(i, g, t) for g in range(8)], "p2p_links": [], "hostname": host(i),
            "state": state(i), "age_s": 12.0 if state(i) == "stale" else 0.05,
            "system_metrics": {"dram_util": 40.0, "disk_util": 10.0, "cpu_util": 5.5 + i},
            "nics": [{"nic": "mlx5_%d" % k, "rx_bytes_s": 2e10, "tx_bytes_s": 2.1e10 + 1e9 * k,
                      "link_bytes_s": 5e10, "held": 0.01 * k} for k in range(4)], "jobs": [job],
            "open": [{"job_id": job["job_id"], "rank": 24 + k, "comm": "0xabc", "function": "AllReduce",
                      "sn": 5, "age_s": t + 60 - k, "stuck": k < 2} for k in range(4)] if stuck else []}
    return {"timestamp": utc(now), "client_data": data}


def point(t):
    jobs = [{"job_id": j, "attempt": "0", "uid": 1000, "busbw": 180} for j in (HOSTILE, "train")]
    return {"time": t, "util": 60 + 30 * math.sin(t / 9), "pcie": 2.0 * 8 * NODES,
            "nvlink": 222.0 * 8 * NODES, "nic": None, "oldest": 1.5, "jobs": jobs}


def status():
    return {"freq": 500, "enable_bandwidth_profiling": True, "enable_nvlink_profiling": True,
            "is_profiling": True, "output_filename": "runs.json", "frame_id_counter": 9,
            "connected_clients": [], "gpu_info": {}, "total_gpus": 8 * NODES,
            "sessions": [s for s in sessions if s["active"]],
            "degraded": "frames wait for the disk: " + HOSTILE}


def all_sessions():
    twin = mock.get("twin")
    return [dict(s, finishing=s["name"] == mock.get("finishing"))
            for s in sessions] + ([session(twin, 1000, False, session_id="twin")] if twin else [])


def post(path, name):
    """As exporter/head/api.c answers."""
    of = [s for s in sessions if name in (None, s["name"], s["session_id"])]
    if path == "start" and any(s["active"] for s in of if name):
        return {"success": False, "message": "A session of this name runs: " + name, "output_file": "",
                "session_id": None, "name": None}
    if path == "start":
        of = [session(name or "made", 0, True)]
        sessions.insert(0, of[0])
    for s in of:
        s["active"] = path != "stop"
    mock["changes"] = mock.get("changes", 0) + 1
    return {"success": True, "message": "Profiling %s." % ("stopped" if path == "stop" else "started"),
            "output_file": None if path == "stop" else of[0]["output_file"]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    log_message = lambda *_: None

    def answer(self, body, code=200, kind="application/json"):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refused(self):
        if mock["lost"] and self.path not in ("/mock", "/page"):
            self.close_connection = True
            return True
        if (TOKEN and self.path not in ("/mock", "/page") and
            self.headers["Authorization"] != "Bearer " + TOKEN):
            self.answer({"detail": "a token is wanted"}, 401)
            return True
        return False

    def do_GET(self):
        if self.refused():
            return
        made = {"/": lambda: {"server": "nccl-inspector 9.9"}, "/status": status, "/clients": clients,
                "/metrics/latest": latest, "/mock": lambda: asked,
                "/profiling/sessions": lambda: {"sessions": all_sessions(), "total_sessions": len(sessions),
                                                "active_sessions": 1}}
        if self.path == "/page":
            self.answer(read("head_assets.head") + b"null" + read("report_assets.tail"),
                        kind="text/html; charset=utf-8")
        elif self.path == "/events":
            self.events()
        elif self.path in made:
            self.answer(made[self.path]())
        else:
            self.answer({"detail": "Not Found"}, 404)

    def events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.close_connection, told = True, None
        first = [point(time.time() - i) for i in range(299, 0, -1)]
        try:
            while not mock["lost"]:
                if told != mock.get("changes", 0):
                    told = mock.get("changes", 0)
                    self.wfile.write(b"event: state\ndata: " + json.dumps(status()).encode() + b"\n\n")
                self.wfile.write(b": silence\n\nevent: points\ndata: " +
                                 json.dumps(first + [point(time.time())]).encode() +
                                 b"\n\nevent: frame\ndata: " + json.dumps(latest()).encode() + b"\n\n")
                first = []
                time.sleep(0.2 if NODES < 100 else 1)
        except OSError:
            pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.refused():
            return
        if self.path == "/mock":
            mock.update(body)
            return self.answer({})
        asked.append([self.path, body, self.headers["Content-Type"]])
        self.answer(post(self.path.split("/")[-1], body["name"]))


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.exit(subprocess.call([*sys.argv[4:], "http://127.0.0.1:%d" % server.server_port]))
