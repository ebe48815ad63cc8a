"""`session ...` and gsprof's commands against heads that are none: what they ask for, what they print, how
they end.

  head_cli.py NCCL_INSPECTOR FOLDER       FOLDER: rpc_pb2 of protoc where gRPC can be tested, and room for files
"""
import http.server
import json
import os
import re
import subprocess
import sys
import threading

tool, folder = sys.argv[1:]
gsprof = folder + "/bin/gsprof"
SESSIONS = [{"name": "warm-up", "active": True, "start_time": "2026-11-23T10:00:00Z", "end_time": None,
             "frames": 12, "frames_lost": 0,
             "late": 3, "output_file": "warm-up.json", "error": ""},
            {"name": "old\x1b[2J", "active": False, "start_time": "2026-11-22T10:00:00Z",
             "end_time": "2026-11-22T11:00:00Z", "frames": 7200,
             "frames_lost": 1, "late": 0, "output_file": "old.json", "error": "No space left on device"}]
STATUS = {"freq": 500, "enable_bandwidth_profiling": True, "enable_nvlink_profiling": False,
          "is_profiling": True, "output_filename": "warm-up.json", "frame_id_counter": 12,
          "connected_clients": ["n0_ipv4:1.2.3.4:5", "n1_ab"], "total_gpus": 16,
          "gpu_info": {}, "sessions": SESSIONS[:1]}
CLIENTS = {"total_clients": 1,
           "clients": [{"client_id": "n0_ipv4:1.2.3.4:5", "hostname": "n0", "gpu_count": 8, "gpus": [],
                        "state": "stale",
                                            "age_s": 0.362287, "skew_s": -0.25, "taken": 1234567, "late": 0,
                                            "lost": 2, "version": "0.1.0"}]}


# What is no head answers with 200, too.
OTHERS = {"empty": b"", "page": b"<html>hello</html>", "another": {"status": "success", "data": []},
          "list": [1, 2], "not quite": {"success": "yes", "message": "Profiling started.",
                                        "output_file": "a.json", "freq": "fast", "total_sessions": None}}


class Head(http.server.BaseHTTPRequestHandler):
    asked, sessions, mode, sent = [], SESSIONS, "good", 0

    def answer(self, status, doc):
        body = doc if isinstance(doc, bytes) else json.dumps(doc).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def endless(self):
        self.send_response(200)
        self.end_headers()
        try:
            for Head.sent in range(1, 201):  # MB
                self.wfile.write(b" " * (1 << 20))
        except OSError:
            pass

    def do_GET(self):
        Head.asked.append((self.path, None, self.headers.get("Authorization")))
        if Head.mode in OTHERS:
            return self.answer(200, OTHERS[Head.mode])
        if Head.mode == "endless":
            return self.endless()
        what = {"/status": STATUS, "/clients": CLIENTS,
                "/profiling/sessions": {"total_sessions": 2, "sessions": Head.sessions}}
        if Head.mode == "noise":
            return self.answer(200, b"\x00{[" * 1000)
        self.answer(200, what[self.path]) if self.path in what else self.answer(404, {"detail": "Not Found"})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Head.asked.append((self.path, json.loads(body), self.headers.get("Authorization")))
        assert self.headers["Content-Type"] == "application/json"
        if Head.mode in OTHERS:
            return self.answer(200, OTHERS[Head.mode])
        if Head.mode == "endless":
            return self.endless()
        if Head.mode == "busy":
            return self.answer(200, {"success": False, "message": "One of that name runs.",
                                     "output_file": ""})
        if Head.mode == "bad":
            return self.answer(422, {"detail": [{"type": "string_type", "loc": ["body", "name"],
                                                 "msg": "Input should be a string"}]})
        name = json.loads(body)["name"] or "all"
        if self.path == "/profiling/stop":
            return self.answer(200, {"success": True,
                                     "message": "Profiling stopped. Data saved to %s.json" % name,
                                     "output_file": None})
        self.answer(200, {"success": True, "message": "Profiling started.", "output_file": name + ".json",
                          "session_id": "x", "name": name})

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Head)
threading.Thread(target=server.serve_forever, daemon=True).start()
at = "127.0.0.1:%d" % server.server_port


def run(words, code=0, env=None):
    p = subprocess.run(words, capture_output=True, text=True, env=dict(os.environ, **(env or {})),
                       timeout=120, cwd=folder)
    assert p.returncode == code, (words, p.returncode, p.stdout, p.stderr)
    return p.stdout, p.stderr


def session(*words, code=0):
    Head.asked.clear()
    return run([tool, "session", *words, "--head", at], code)


def want(text, *patterns):
    for p in patterns:
        assert re.search(p, text), (p, text)


open(folder + "/token", "w").write("secret word\n")
want(session("start", "a", "--token-file", folder + "/token")[0], r"^a runs; its file will be a\.json$")
assert Head.asked == [("/profiling/start", {"name": "a"}, "Bearer secret word")], Head.asked
session("start", 'q"\\')
assert Head.asked[0][1] == {"name": 'q"\\'}, Head.asked
want(session("stop")[0], "Data saved to warm-up.json")           # the only one that runs
assert [a[:2] for a in Head.asked] == [("/profiling/sessions", None),
                                       ("/profiling/stop", {"name": "warm-up"})], Head.asked
Head.sessions = SESSIONS[:1] * 2
want(session("stop", code=1)[1], "2 sessions run: which one")
assert all(a[0] != "/profiling/stop" for a in Head.asked)
Head.sessions = []
want(session("stop", code=1)[1], "no session runs")
Head.sessions = SESSIONS
session("stop", "--all")
assert Head.asked[-1][:2] == ("/profiling/stop", {"name": None}), Head.asked
out = session("list")[0]
want(out, r"warm-up +yes +2026-11-23T10:00:00Z +12 +0 +3 +warm-up.json", "No space left on device",
     r"old\?\[2J")
assert "\x1b" not in out
want(session("status")[0], "a frame each 500 ms, bandwidth on, NVLink off, 16 GPUs",
     r"n0 +stale +8 +362 ms +-250 ms +1,234,567 +0 +2 +0.1.0")
# A node has one name; two that send from it are told apart by their ids.
CLIENTS["clients"].append({**CLIENTS["clients"][0], "client_id": "n0_af09c787", "state": "ok"})
want(session("status")[0], r"\nnode +state", r"n0_ipv4:1.2.3.4:5 +stale +8", r"n0_af09c787 +ok +8")
CLIENTS["clients"].pop()
session("recover", "--name", "old", "--resume")
assert Head.asked == [("/profiling/resume", {"name": "old"}, None)], Head.asked
want(session("resume", "old")[0], "^old goes on; its file will be old.json$")
assert Head.asked == [("/profiling/resume", {"name": "old"}, None)], Head.asked
run([tool, "session", "resume"], 64)
got = session("list", "--json")[0]
assert json.loads(got)["sessions"][0] == SESSIONS[0] and len(got.splitlines()) == 1 and "\x1b" not in got, got
assert json.loads(session("status", "--json")[0]) == STATUS
Head.mode = "busy"
want(session("start", "a", code=1)[1], "One of that name runs")
Head.mode = "bad"
want(session("start", "a", code=1)[1], "422: .*Input should be a string")
Head.mode = "noise"
for more in (), ("--json",):
    session("list", *more, code=1)
    session("status", *more, code=1)
for Head.mode in OTHERS:
    for words in ("start", "a"), ("stop", "a"), ("stop", "--all"), ("resume", "a"), ("list",), ("status",), ("status", "--json"):
        out, err = session(*words, code=1)
        assert not out, (Head.mode, words, out)
        want(err, "what answers at %s is no head" % at)
Head.mode = "endless"
want(session("start", "a", code=1)[1], "its answer is larger than 1 MiB")
assert Head.sent < 50, Head.sent  # what lies between in buffers, too
Head.mode = "good"
os.mkfifo(folder + "/fifo")  # that nobody writes to
want(session("list", "--token-file", folder + "/fifo", code=1)[1], "--token-file")
want(run([tool, "session", "stat", folder + "/fifo"], 1)[1], "it has no frames")
for text, name in (('{"schema":"nccl-inspector-session-1","session_name":"none","frames":[\n\n],"end_time":null}', "none"), ('{"frames": []}', "e.json")):
    open(folder + "/e.json", "w").write(text)
    want(run([tool, "session", "stat", "e.json"])[0],
         "^%s: empty, the session ended before its first frame\n" % name)
    assert json.loads(run([tool, "session", "stat", "--json", "e.json"])[0])["files"][0]["frames"] == 0
    want(run([tool, "session", "stat", "e.json", "--plot", "e.svg"], 1)[1], "nothing to draw")
for text in '{"schema":"nccl-inspector-session-1","frames":[', '{"frames":{}}', "", "{}", '{"frames":[1,{"x":1}]}':
    open(folder + "/e.json", "w").write(text)
    want(run([tool, "session", "stat", "e.json"], 1)[1], "it has no frames")
run([tool, "session", "list", "--head", "127.0.0.1:1"], 1)
run([tool, "session", "start", "a", "b"], 64)

LINE = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \| (INFO |ERROR)    \| \w+:\w+:\d+ - "


def lines(text):
    got = text.splitlines()
    assert all(re.match(LINE, g) for g in got), text
    return [re.sub(LINE, "", g) for g in got]


def gs(*words, code=0, env=None):
    Head.asked.clear()
    out, err = run([gsprof, *words], code, env)
    assert not out, out
    return lines(err)


STATUS_LINES = ["Head Node Status:", "  Frequency: 500ms", "  Bandwidth Profiling: Enabled",
                "  NVLink Profiling: Disabled", "  Is Profiling: Yes", "  Output Filename: warm-up.json",
                "  Frame Counter: 12", "  Connected Clients: 2", "  Client List:",
                "    - n0_ipv4:1.2.3.4:5", "    - n1_ab"]
assert gs("http-profile", at, "--name", "x") == ["Profiling started: Profiling started.",
                                                 "Output file: x.json"]
gs("http-profile", at)
assert re.fullmatch(r"profiling_\d{8}_\d{6}", Head.asked[0][1]["name"]), Head.asked
assert gs("http-stop", at, "--name", "x") == ["Profiling stopped: Profiling stopped. Data saved to x.json"]
got = gs("http-status", at)
assert (got[0] == "Head Node Status (via HTTP):" and "  Total GPUs: 16" in got and
        [g for g in got[1:] if "Total" not in g] == STATUS_LINES[1:]), got
Head.mode = "busy"
assert gs("http-profile", at, code=1) == ["Failed to start profiling: One of that name runs."]
gs("http-profile", at, "--gsprof-exit-codes")
gs("http-stop", at, env={"GSPROF_EXIT_CODES": "1"})
Head.mode = "good"
want(run([gsprof, "help"])[0], "http-profile", "connect")
want(run([gsprof, "help", "start"])[0], "--disable-bandwidth")
for words in ["nothing"], ["profile", "a", "b"], ["exit"], ["start", "--freq", "x"], []:
    run([gsprof, *words], 2)
want(gs("status", "127.0.0.1:1", code=1)[0], "Failed to get status: .")

sys.path.insert(0, folder)
try:
    import concurrent.futures
    import grpc
    import rpc_pb2 as pb
except ImportError:
    print("HTTP holds; no grpcio")
    sys.exit(0)


class Service(grpc.GenericRpcHandler):
    asked = []

    def service(self, call):
        name = call.method.rsplit("/", 1)[1]

        def do(request, context):
            Service.asked.append((call.method, request))
            if name == "GetStatus":
                return pb.StatusResponse(**{k: STATUS[k] for k in list(STATUS)[:7]}).SerializeToString()
            if name == "Exit":
                return b""
            given = pb.StartProfilingRequest.FromString(request).name
            if given == "denied":
                context.abort(grpc.StatusCode.PERMISSION_DENIED, "not from here")
            return pb.StartProfilingResponse(success=given != "busy", message="Profiling %s." % name,
                                             output_file=given + ".json").SerializeToString()
        return grpc.unary_unary_rpc_method_handler(do)


g = grpc.server(concurrent.futures.ThreadPoolExecutor(2), handlers=[Service()])
port = "localhost:%d" % g.add_insecure_port("127.0.0.1:0")
g.start()
assert gs("profile", port, "--name", "x") == ["Profiling started: Profiling StartProfiling.",
                                              "Output file: x.json"]
assert Service.asked == [("/gswarm_profiler.ProfilerService/StartProfiling",
                          pb.StartProfilingRequest(name="x").SerializeToString())]
assert gs("stop", port) == ["Profiling stopped: Profiling StopProfiling."] and Service.asked[-1][1] == b""
assert gs("status", port) == STATUS_LINES
assert gs("exit", port) == ["Head node exit signal sent."]
assert gs("profile", port, "--name", "busy",
          code=1) == ["Failed to start profiling: Profiling StartProfiling."]
want(gs("profile", port, "--name", "denied", code=1)[0], "Failed to start profiling: .*not from here")
g.stop(None)
print("HTTP and gRPC hold")
