#!/usr/bin/env python3
"""What the agent sends by OTLP, and when it sends it again: test/host/otlp_send against servers that answer
as servers do.

    otlp.py DRIVER [FOLDER]    FOLDER: of the Python package opentelemetry-proto, which then decodes all requests as well

Times are bounds from below alone, but for the end, which is promised to come.
"""
import email.utils
import gzip
import http.server
import math
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback

DRIVER = sys.argv[1]
if len(sys.argv) > 2:
    sys.path.insert(0, sys.argv[2])
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as service
else:
    service = None
failed = []
START, BEGAN, NOW = 1790000000000000001, 1790000005000000001, 1790000009000000007


# ---- a decoder of protobuf, of what is needed here ----
def varint(b, i):
    v = shift = 0
    while True:
        v |= (b[i] & 127) << shift
        shift += 7
        i += 1
        if b[i - 1] < 128:
            return v, i


def fields(b):
    """{number: [value, ...]}: numbers, bytes, 8 bytes."""
    out, i = {}, 0
    while i < len(b):
        tag, i = varint(b, i)
        if tag & 7 == 0:
            v, i = varint(b, i)
        else:
            n, i = (8, i) if tag & 7 == 1 else varint(b, i)
            assert tag & 7 in (1, 2) and i + n <= len(b), "a field that is cut, or of another kind"
            v, i = b[i:i + n], i + n
        out.setdefault(tag >> 3, []).append(v)
    return out


def u64(b):
    return struct.unpack("<Q", b)[0]


def f64(b):
    return struct.unpack("<d", b)[0]


def attributes(list_):
    pairs = [fields(a) for a in list_]
    return {p[1][0].decode(): fields(p[2][0])[1][0].decode() for p in pairs}


def point(b, of):
    p = fields(b)
    out = {"at": attributes(p.get(9 if of == 9 else 7, [])), "time": u64(p[3][0]),
           "start": u64(p[2][0]) if 2 in p else 0}
    if of == 9:
        out.update(count=u64(p[4][0]), sum=f64(p[5][0]),
                   buckets=[x[0] for x in struct.iter_unpack("<Q", p[6][0])],
                   bounds=[x[0] for x in struct.iter_unpack("<d", p[7][0])])
    else:
        out["value"] = f64(p[4][0]) if 4 in p else struct.unpack("<q", p[6][0])[0]
    return out


def decode(b):
    """(resource, scope, {name: (kind, unit, description, temporality, monotonic, points)})"""
    request = fields(b)
    (resource,) = request[1]
    resource = fields(resource)
    (scope,) = resource[2]
    scope = fields(scope)
    metrics = {}
    for m in map(fields, scope[2]):
        (kind,) = {5, 7, 9} & set(m)
        data = fields(m[kind][0])
        name = m[1][0].decode()
        assert name not in metrics, name
        metrics[name] = (kind, m.get(3, [b""])[0].decode(), m.get(2, [b""])[0].decode(), data.get(2, [0])[0],
                         data.get(3, [0])[0],
                         [point(p, kind) for p in data.get(1, [])])
    who = {k: v[0].decode() for k, v in fields(scope[1][0]).items()}
    return attributes(fields(resource[1][0])[1]), who, metrics


def check(b, n):
    """Is it the request of test/host/otlp_send.c whose sums are n?"""
    resource, who, m = decode(b)
    assert resource == {"service.name": "nccl-inspector-agent", "service.instance.id": "n1:1790000005",
                        "service.version": "1.2",
                        "host.name": "n1"}, resource
    assert who == {1: "nccl-inspector", 2: "1.2"}, who
    p = "nccl_inspector_"
    rank = {"node": "n1", "job_id": "77", "rank": "3", "comm": "dp??"}
    at = {"start": START, "time": NOW}
    assert m[p + "operations"] == (7, "", "operations that finished", 2, 1,
                                   [{"at": rank, "value": n, **at}]), m
    assert m[p + "late_seconds"] == (7, "s", "", 2, 1,
                                     [{"at": {k: rank[k] for k in ("node", "job_id", "rank")}, "value": n / 4,
                                       **at}]), m
    assert m[p + "operation_duration_seconds"] == (9, "s", "time in flight", 2, 0, [
        {"at": {"node": "n1", "job_id": "77"}, "count": n + 4, "sum": 12.25, "buckets": [1, n, 3],
         "bounds": [1e-5, 0.5], **at}]), m
    assert m[p + "gpu_info"] == (5, "", "GPUs", 0, 0,
                                 [{"at": {"gpu": "0", "uuid": "GPU-5"}, "value": 1, "start": 0,
                                   "time": NOW}]), m
    ratio = m[p + "gpu_utilization_ratio"]
    assert (ratio[:5] == (5, "1", "busy", 0, 0) and ratio[5][0]["value"] == 0.5 and
            math.isnan(ratio[5][1]["value"])), ratio
    assert m[p + "nic_receive_bytes"] == (7, "By", "received", 2, 1,
                                          [{"at": {}, "value": float(2**64 - 1), "start": BEGAN,
                                            "time": NOW}]), m
    assert len(m) == 6, list(m)
    if service:
        r = service.ExportMetricsServiceRequest.FromString(b)
        got = r.resource_metrics[0].scope_metrics[0].metrics
        assert [x.name for x in got] == list(m)
        x = {x.name: x for x in got}
        assert x[p + "operations"].sum.is_monotonic and x[p + "operations"].sum.aggregation_temporality == 2
        assert [d.as_int for d in x[p + "operations"].sum.data_points] == [n]
        assert list(x[p + "operation_duration_seconds"].histogram.data_points[0].bucket_counts) == [1, n, 3]
        assert x[p + "gpu_info"].gauge.data_points[0].as_int == 1
        assert x[p + "nic_receive_bytes"].sum.data_points[0].start_time_unix_nano == BEGAN
        assert r.resource_metrics[0].resource.attributes[1].value.string_value == "n1:1790000005"


# ---- a server that answers by a list ----
class Server:
    """answers: (status, {header: value}, body) each; "close": no answer; "hang": none, ever. What came:
    self.got, (time, sums)."""

    def __init__(self, answers, listen=True):
        self.answers, self.got, self.headers, self.paths = list(answers), [], [], []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                try:
                    self.answer()
                except AssertionError:
                    failed.append(traceback.format_exc())
                    raise

            def answer(self):
                body = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
                assert (self.headers["Content-Encoding"] == "gzip" and
                        self.headers["Content-Type"] == "application/x-protobuf")
                assert ("Expect" not in self.headers and
                        self.headers["User-Agent"].startswith("nccl-inspector/"))
                n = decode(body)[2]["nccl_inspector_operations"][5][0]["value"]
                check(body, n)
                outer.headers.append(dict(self.headers))
                outer.paths.append(self.path)
                outer.got.append((time.monotonic(), n))  # before the answer: whoever has that may count
                answer = outer.answers.pop(0) if outer.answers else (599, {}, b"")
                if answer == "hang":
                    outer.ended.wait(20)
                    answer = "close"
                elif answer != "close":
                    status, headers, data = answer
                    self.send_response(status)
                    for k, v in headers.items():
                        self.send_header(k, v() if callable(v) else v)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    try:
                        self.wfile.write(data)
                    except OSError:  # the client reads no more of it
                        pass
                self.close_connection = True

            def do_GET(self):
                raise AssertionError("a redirect was followed")

            def log_message(self, *args):
                pass

        self.ended = threading.Event()
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self.http.server_bind()
        self.url = "http://127.0.0.1:%d" % self.http.server_address[1]
        if listen:
            self.listen()

    def listen(self):
        self.http.server_activate()
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def gaps(self):
        return [b[0] - a[0] for a, b in zip(self.got, self.got[1:])]


class Driver:
    def __init__(self, *args):
        self.p = subprocess.Popen([DRIVER, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def say(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()

    def totals(self):
        self.say("totals")
        words = self.p.stdout.readline().rstrip("\n").split(" ", 4)
        return dict(zip(("sent", "retried", "dropped", "refused"), map(int, words)), error=words[4])

    def until(self, **wanted):
        end = time.monotonic() + 30
        while True:
            t = self.totals()
            if all(t[k] == v for k, v in wanted.items()):
                return t
            assert time.monotonic() < end and not failed, (t, wanted)
            time.sleep(0.02)

    def end(self):
        """Stops it: after how many seconds it was."""
        out, _ = self.p.communicate(timeout=30)
        assert self.p.returncode == 0, self.p.returncode
        return int(out.split()[-1]) / 1000


def wait(until):
    end = time.monotonic() + 30
    while not until():
        assert time.monotonic() < end
        time.sleep(0.02)


FINE = (200, {}, b"")


def later(seconds):
    return lambda: email.utils.formatdate(time.time() + seconds, usegmt=True)


def retry_after():
    s = Server([(503, {"Retry-After": "2"}, b""), FINE])
    d = Driver(s.url)
    d.say("put 7")
    t = d.until(sent=1)
    assert (t["retried"], t["dropped"]) == (1, 0) and t["error"] == "the server answers 503", t
    assert [n for _, n in s.got] == [7, 7] and s.gaps()[0] >= 1.99, s.got
    assert s.paths == ["/v1/metrics"] * 2, s.paths
    d.end()


def retry_after_date():
    s = Server([(429, {"Retry-After": later(4)}, b""), FINE])
    d = Driver(s.url + "/")
    d.say("put 1")
    d.until(sent=1, retried=1, dropped=0)
    assert s.gaps()[0] >= 2, s.gaps()  # its seconds are whole
    assert s.paths == ["/v1/metrics"] * 2, s.paths
    d.end()


def backoff():
    s = Server([(429, {}, b""), (502, {}, b""), (504, {}, b""), FINE])
    d = Driver(s.url)
    d.say("put 3")
    d.until(sent=1, retried=3, dropped=0)
    assert all(gap >= least - 0.01 for gap, least in zip(s.gaps(), (0.5, 1, 2))) and len(s.got) == 4, s.gaps()
    d.end()


def never():
    codes = (400, 500, 301, 413, 401)
    s = Server([(c, {"Location": "/elsewhere", "Retry-After": "1"}, b"x" * 100) for c in codes] + [FINE])
    d = Driver(s.url)
    for i, c in enumerate(codes):
        d.say("put %d" % i)
        assert d.until(dropped=i + 1)["error"] == "the server answers %d" % c
    time.sleep(1.5)
    d.say("put 9")
    d.until(sent=1, retried=0, dropped=len(codes))
    assert [n for _, n in s.got] == [0, 1, 2, 3, 4, 9], s.got
    d.end()


def partial():
    body = b"\x0a\x0e\x08\x03\x12\x0abad points"
    s = Server([(200, {}, body), (200, {}, b"\xff" * 99), (200, {}, b"y" * (1 << 20)), FINE])
    d = Driver(s.url + "/api/v1/otlp/v1/metrics?x=1", "X-Scope: me: and you")
    for i in range(4):
        d.say("put %d" % i)
        t = d.until(sent=i + 1)
    assert (t["retried"], t["dropped"], t["refused"], t["error"]) == (0, 0, 3, "bad points"), t
    assert (len(s.got) == 4 and s.headers[0]["X-Scope"] == "me: and you" and
            set(s.paths) == {"/api/v1/otlp/v1/metrics?x=1"}), s.paths
    d.end()


def no_answer():
    s = Server(["close", FINE], listen=False)
    d = Driver(s.url)
    d.say("put 5")
    t = d.until(sent=0, dropped=0)
    wait(lambda: d.totals()["error"])  # refused
    s.listen()
    d.until(sent=1, dropped=0)
    assert [n for _, n in s.got] == [5, 5] and s.gaps()[0] >= 0.99, s.got
    d.end()


def replaced():
    s = Server([(503, {"Retry-After": "2"}, b""), FINE])
    d = Driver(s.url)
    d.say("put 1")
    wait(lambda: d.totals()["error"])
    for i in (2, 3, 4):
        d.say("put %d" % i)
    d.until(sent=1, dropped=3, retried=0)
    assert [n for _, n in s.got] == [1, 4] and s.gaps()[0] >= 1.99, s.got
    d.end()


def end_sends():
    s = Server([FINE])
    d = Driver(s.url)
    d.say("put 8")
    d.end()
    assert [n for _, n in s.got] == [8], s.got


def end_is_bounded():
    s = Server(["hang"])
    d = Driver(s.url)
    d.say("put 8")
    wait(lambda: s.got)
    d.say("put 9")
    took = d.end()
    s.ended.set()
    assert took < 3, took
    # A server that takes connections and reads nothing, and one that asked for an hour.
    mute = socket.create_server(("127.0.0.1", 0))
    d = Driver("http://127.0.0.1:%d" % mute.getsockname()[1])
    d.say("put 8")
    took = d.end()
    assert took < 3, took
    s = Server([(503, {"Retry-After": "100000"}, b""), FINE])
    d = Driver(s.url)
    d.say("put 8")
    d.until(dropped=1)  # not within five minutes
    d.say("put 9")
    assert d.end() < 3 and len(s.got) == 1, s.got


def words():
    for args in (["ftp://127.0.0.1"], ["collector:4318"], ["http://a", "no header"],
                 ["http://a", "X: y\r\nZ: 1"]):
        p = subprocess.run([DRIVER, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        assert p.returncode == 1 and p.stdout == "refused Invalid argument\n", (args, p)
    big = subprocess.run([DRIVER, "--encode", "100000"], stdout=subprocess.PIPE).stdout
    m = decode(big)[2]
    points = m["nccl_inspector_operations"][5]
    assert 15 << 20 < len(big) <= 16 << 20 and 10000 < len(points) < 100000, (len(big), len(points))
    assert len(points[5]["at"]["name"]) == 1023 and len(m) == 6
    check(subprocess.run([DRIVER, "--encode", "0"], stdout=subprocess.PIPE).stdout, 5)
    for answer, said in ((b"", "1 0 "), (b"\x0a\x00", "1 0 "), (b"\x0a\x02\x08\x05", "1 5 "),
                         (b"\x0a\x05\x12\x03a\x1bb", "1 0 a?b"),
                         (b"\x0a\x05\x08\x05", "0 0 "), (b"\x0a\x02\x12\x7f", "0 0 "),
                         (b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "0 0 "),
                         (b"\x12\x01z\x0d1234\x111234567812\x0a\x03\x08\xe8\x07", "0 0 "),
                         (b"\x12\x01z\x0d1234\x1112345678\x0a\x03\x08\xe8\x07", "1 1000 "),
                         (b"\x0a\x0b\x08" + b"\xff" * 9 + b"\x01", "1 0 "), (b"\x80" * 50, "0 0 "),
                         (b"\x0b", "0 0 ")):
        got = subprocess.run([DRIVER, "--refused"], input=answer,
                             stdout=subprocess.PIPE).stdout.decode().rstrip("\n")
        assert got == said, (answer, got, said)


tests = [retry_after, retry_after_date, backoff, never, partial, no_answer, replaced, end_sends,
         end_is_bounded, words]


def run(test):
    try:
        test()
    except BaseException:
        failed.append("%s: %s" % (test.__name__, traceback.format_exc()))


threads = [threading.Thread(target=run, args=(t,)) for t in tests]
for t in threads:
    t.start()
for t in threads:
    t.join()
for f in failed:
    print("FAIL " + f)
sys.exit(bool(failed))
