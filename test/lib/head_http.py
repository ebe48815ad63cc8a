"""Routes of the head against gsprof's: bodies, codes, what a client's odd numbers do, origins, events."""
import json
import math
import os
import re
import resource
import socket
import time

import head

NOT_FOUND, WRONG_METHOD = '{"detail":"Not Found"}', '{"detail":"Method Not Allowed"}'


def routes(h):
    assert h.get("/")["message"] == "GSwarm Profiler HTTP API" and h.get("/")["version"] == "0.1.0"
    s = h.get("/status")
    for key, kind in (("freq", int), ("enable_bandwidth_profiling", bool), ("enable_nvlink_profiling", bool),
                      ("is_profiling", bool),
                      ("output_filename", str), ("frame_id_counter", int), ("connected_clients", list),
                      ("total_gpus", int), ("gpu_info", dict)):
        assert type(s[key]) is kind, (key, s)
    assert (s["freq"], s["is_profiling"], s["output_filename"], s["total_gpus"]) == (200, False, "", 0), s
    assert h.get("/clients") == {"total_clients": 0, "clients": []}
    assert h.get("/metrics/latest")["client_data"] == {}
    assert h.get("/profiling/sessions") == {"sessions": [], "total_sessions": 0, "active_sessions": 0}
    assert h.get("/health") == {"status": "ok"}
    for path in "/nothing", "/profiling", "/status/x", "/../etc/passwd", "/profiling/record":
        code, _, text = h.ask("GET", path)
        assert (code, json.loads(text)) == (404, json.loads(NOT_FOUND)), (path, code, text)
    for method, path, allow in (("POST", "/status", "GET"), ("GET", "/profiling/start", "POST"),
                                ("DELETE", "/clients", "GET"), ("PUT", "/profiling/stop", "POST")):
        code, headers, text = h.ask(method, path)
        assert (code == 405 and (
                method in ("DELETE", "PUT") or
                json.loads(text) == json.loads(WRONG_METHOD))), (method, path, code, text)
        assert allow in headers["allow"], (path, headers["allow"])
    code, headers, _ = h.ask("GET", "/status/")
    assert code == 307 and headers["location"].endswith("/status"), (code, headers)


def fits(doc, schema, value, at):
    """As JSON Schema has it: of it what openapi.json uses."""
    if "$ref" in schema:
        return fits(doc, doc["components"]["schemas"][schema["$ref"].split("/")[-1]], value, at)
    known = {"type", "enum", "required", "properties", "additionalProperties", "items", "oneOf"}
    assert set(schema) <= known, (at, schema)
    kinds = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None),
             "array": list, "object": dict}
    wanted = schema.get("type", [])
    wanted = [wanted] if isinstance(wanted, str) else wanted
    assert (not wanted or
            any(isinstance(value, kinds[w]) and (w == "boolean") == isinstance(value, bool)
                for w in wanted)), (at, wanted, value)
    assert value in schema.get("enum", [value]), (at, value)
    if "oneOf" in schema:
        good = []
        for s in schema["oneOf"]:
            try:
                fits(doc, s, value, at)
                good.append(s)
            except AssertionError:
                pass
        assert len(good) == 1, (at, value)
    if isinstance(value, dict):
        assert set(schema.get("required", [])) <= set(value), (at, set(schema["required"]) - set(value))
        for k, v in value.items():
            s = schema.get("properties", {}).get(k, schema.get("additionalProperties", True))
            assert s is not False, (at, k, "is not described in exporter/head/openapi.json")
            fits(doc, s if isinstance(s, dict) else {}, v, "%s/%s" % (at, k))
    for v in value if isinstance(value, list) and "items" in schema else []:
        fits(doc, schema["items"], v, at + "[]")


def described(h):
    """Each answer is as /openapi.json describes it, and each described path is there."""
    doc, own = h.get("/openapi.json"), {"Content-Type": "application/json"}
    a, g = head.Agent(h, "full"), head.Gsprof(h, "bare", 2)
    fill = a.fill

    def more(s):
        fill(s)
        s.nic.add(name="mlx5_0", rx=1e9, link=5e10)
        s.job.add(job="1", attempt="0", uid=7, processes=8, state=3, operations=5, verdict="rank 3")
        s.open.add(job="1", comm="c", function="AllReduce", rank=3, sn=5, age_s=60, stuck=True)
    a.fill = more
    g.send(0.5, math.nan)
    head.until(lambda: any(c["open"] for c in h.get("/metrics/latest")["client_data"].values()))
    assert {j["state"] for c in h.get("/metrics/latest")["client_data"].values()
            for j in c["jobs"]} == {"logs_only"}
    tried = set()

    def ask(method, path, code, body=None):
        got, headers, text = h.ask(method.upper(), path, body, own if body else {})
        answer = doc["paths"][path][method]["responses"][str(got)]
        answer = doc["components"]["responses"][answer["$ref"].split("/")[-1]] if "$ref" in answer else answer
        (kind, content), = answer["content"].items()
        assert got == code and headers["Content-Type"] == kind, (path, got, headers["Content-Type"], kind)
        if kind == "application/json":
            fits(doc, content["schema"], json.loads(text), path)
        tried.add((method, path))
    for body, code in ((b'{"name":"seen"}', 200), (b'{"name":"seen"}', 200), (b'{"name":null}', 200),
                       (b"{", 422), (b'{"name":5}', 422)):
        ask("post", "/profiling/start", code, body)
    for path in "/", "/status", "/health", "/clients", "/metrics/latest", "/profiling/sessions", "/openapi.json":
        ask("get", path, 200)
    ask("get", "/page", h.ask("GET", "/page")[0])  # 404 where it was built without npm
    ask("post", "/profiling/stop", 200, b'{"name":"seen"}')
    ask("post", "/profiling/stop", 200, b'{"name":"none"}')
    ask("post", "/profiling/resume", 200, b'{"name":"seen"}')
    ask("post", "/profiling/resume", 422, b'[]')
    ask("post", "/profiling/stop", 200, b"{}")
    ask("get", "/profiling/sessions", 200)
    g.close()
    a.close()
    left = {(m, p) for p, ms in doc["paths"].items() for m in ms} - tried
    assert left == {("get", "/events"), ("post", "/exit")}, left  # both further down


def unfit(h):
    """FastAPI's 422, and nothing is begun."""
    for body, headers, kind, loc, given in (
            (None, {}, "missing", ["body"], None),
            (b"{", {"Content-Type": "application/json"}, "json_invalid", ["body", 0], {}),
            (b"[]", {"Content-Type": "application/json"}, "model_attributes_type", ["body"], []),
            (b'{"name":"a"}', {"Content-Type": "text/plain"}, "model_attributes_type", ["body"],
             '{"name":"a"}'),
            (b'\x1b"\xff\n', {"Content-Type": "text/plain"}, "model_attributes_type", ["body"],
             '\x1b"\ufffd\n'),
            (b'{"name":5}', {"Content-Type": "application/json"}, "string_type", ["body", "name"], 5),
            (b'{"name":["a"]}', {"Content-Type": "application/json"}, "string_type", ["body", "name"],
             ["a"])):
        code, _, text = h.ask("POST", "/profiling/start", body, headers)
        detail = json.loads(text)["detail"]
        assert code == 422 and (detail[0]["type"], detail[0]["loc"]) == (kind, loc), (body, code, text)
        assert {"type", "loc", "msg", "input"} <= set(detail[0]) and detail[0]["input"] == given, detail
    assert not h.get("/status")["is_profiling"]
    for path in "/docs", "/redoc":
        code, headers, _ = h.ask("GET", path)
        assert code == 307 and headers["location"] == "/openapi.json", (path, code, headers)
    h.start("keep")
    # What cannot be understood ends nothing: it may be about one session.
    for body, headers in ((b'{"name":"a', {"Content-Type": "application/json"}),
                          (b'{"name":"a"}', {"Content-Type": "text/plain"}),
                          (b'{"name":5}', {"Content-Type": "application/json"})):
        code, _, text = h.ask("POST", "/profiling/stop", body, headers)
        assert code == 422, (body, code, text)
    assert h.session("keep")["active"]
    code, _, text = h.ask("POST", "/profiling/stop")  # gsprof's form: no body at all
    assert code == 200 and json.loads(text)["success"] and json.loads(text)["output_file"] is None, text
    got = h.post("/profiling/stop")
    assert (got["success"], got["message"]) == (False, "Profiling is not active."), got
    code, _, _ = h.ask("POST", "/profiling/start", b" " * 70000 + b"{}", {})
    assert code in (413, 422), code


def odd_numbers(h):
    """NaN and infinity of one client do not hide the others."""
    a, b = head.Gsprof(h, "odd"), head.Gsprof(h, "even", 2)
    a.send(math.nan, dram_bw_gbps_rx=math.inf)
    b.send(0.5, 0.25, dram_bw_gbps_rx=1024 * 1024, dram_bw_gbps_tx=2048)
    head.until(lambda: len(h.get("/metrics/latest")["client_data"]) == 2 and
               h.get("/status")["total_gpus"] == 3)
    latest = h.get("/metrics/latest")["client_data"]
    g = next(v for k, v in latest.items() if k.startswith("even_"))["gpus_metrics"]
    assert [(m["physical_idx"], m["gpu_util"], m["mem_util"], m["name"])
            for m in g] == [(0, 50, 25, head.GPU), (1, 25, 25, head.GPU)], g
    # KiB/s, and the names of the other direction: what gsprof calls rx left the GPU.
    assert (abs(g[0]["dram_bw_gbps_tx"] - 1.073741824) < 1e-5 and
            abs(g[0]["dram_bw_gbps_rx"] - 0.002097152) < 1e-5), g
    assert next(v for k, v in latest.items()
                if k.startswith("odd_"))["gpus_metrics"][0]["gpu_util"] is None, latest
    status, clients = h.get("/status"), h.get("/clients")
    assert (sorted(k.split("_")[0] for k in status["connected_clients"]) == ["even", "odd"] and
            clients["total_clients"] == 2), status
    for c in clients["clients"]:
        assert (c["client_id"].startswith(c["hostname"] + "_ipv4:127.0.0.1:") and
                c["gpu_count"] == len(c["gpus"])), c
        assert status["gpu_info"][c["client_id"]] == c["gpus"], (status, c)
        for key in "state", "age_s", "skew_s", "taken", "late", "lost", "version":
            assert key in c, (key, c)
    a.close()
    b.close()


def origins(h):
    code, headers, _ = h.ask("OPTIONS", "/profiling/start", None,
                             {"Origin": "http://page.example", "Access-Control-Request-Method": "POST",
                                                                    "Access-Control-Request-Headers": "content-type"})
    assert (code in (200, 204) and headers["Access-Control-Allow-Origin"] == "http://page.example" and
            "POST" in headers["Access-Control-Allow-Methods"]), \
        (code, headers)
    code, headers, _ = h.ask("GET", "/status", None, {"Origin": "http://page.example"})
    assert code == 200 and headers["Access-Control-Allow-Origin"] == "http://page.example", headers
    _, headers, _ = h.ask("GET", "/status", None, {"Origin": "http://elsewhere.example"})
    assert headers["Access-Control-Allow-Origin"] is None, headers
    code, _, _ = h.ask("POST", "/profiling/start", {"name": "foreign"},
                       {"Origin": "http://elsewhere.example"})
    assert code == 403 and not h.session("foreign"), code


def events(h):
    """A stream begins with all there is; a start and a stop are told, frames once a second at most."""
    a = head.Gsprof(h, "moves")
    for _ in range(15):
        a.send(0.5, dram_bw_gbps_rx=1024 * 1024, dram_bw_gbps_tx=2048)
        time.sleep(head.PERIOD * 0.8)
    a.close()
    with socket.create_connection(("127.0.0.1", h.http_port), 20) as s:
        s.sendall(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        got, began = b"", time.monotonic()

        def came(what):
            nonlocal got
            while what not in got:
                assert time.monotonic() - began < 20, (what, got)
                got += s.recv(65536)
        came(b"event: frame")
        assert b"text/event-stream" in got and b"event: state" in got.split(b"event: frame")[0], got
        came(b"event: points")
        points = json.loads(re.search(rb"event: points\ndata: (.*)\n\n", got)[1])
        # of before it asked
        assert len(points) >= 2 and all(a["time"] < b["time"] for a, b in zip(points, points[1:])), points
        assert (any(p["util"] == 50 and abs(p["pcie"] - 1.075838976) < 1e-5 and p["nic"] is None
                    for p in points) and
                points[-1]["jobs"] == []), points
        h.start("told")
        came(b'"is_profiling":true')
        h.stop("told")
        while b'"is_profiling":false' not in got.rsplit(b'"is_profiling":true', 1)[1]:
            assert time.monotonic() - began < 20, got
            got += s.recv(65536)
        assert got.count(b"event: frame") <= time.monotonic() - began + 2, got.count(b"event: frame")


def memory(h):
    """Who asks again and again costs nothing that stays."""
    def resident():
        return int(open("/proc/%d/statm" % h.p.pid).read().split()[1]) * resource.getpagesize()
    for i in range(60):
        h.start("m%d" % i)
        h.stop("m%d" % i)
    for _ in range(300):
        h.get("/status")
    before = resident()
    for _ in range(1500):
        h.get("/status")
    # a sanitizer keeps what is freed
    assert resident() - before < 20e6 or os.environ.get("NI_VARIANT"), (before, resident())


def ended(h):
    code, _, text = h.ask("POST", "/exit")
    assert code == 200 and json.loads(text)["success"], text
    assert h.p.wait(20) == 0, h.said()


with head.Head("http", "--cors", "http://page.example") as h:
    for test in routes, unfit, odd_numbers, origins, events, memory, ended:
        began = time.monotonic()
        test(h)
        print("ok %s %.1f s" % (test.__name__, time.monotonic() - began), flush=True)

with head.Head("described") as h:
    described(h)
    print("ok described", flush=True)
