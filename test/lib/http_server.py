#!/usr/bin/env python3
"""What exporter/http/http.h promises, of test/host/http_echo over real connections.

    http_server.py DRIVER [name...]    the tests of those names; without: all

Times are bounds from below, but for waits that are promised to end.
"""
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

DRIVER = sys.argv[1]


class Server:
    def __init__(self, token=None, origin="-", at="127.0.0.1:0"):
        self.file = tempfile.NamedTemporaryFile("w")
        self.file.write((token or "") + "\n")
        self.file.flush()
        self.p = subprocess.Popen([DRIVER, at, self.file.name if token else "-", origin],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.p.stdout.readline().strip()
        self.port = int(self.url.rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.stdin.close()
        assert self.p.wait(20) == 0, "it ended with %d" % self.p.returncode

    def tell(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()

    def ask(self, line):
        self.tell(line)
        return self.p.stdout.readline().strip()

    def connect(self, rcvbuf=0, host="127.0.0.1"):
        s = socket.socket()
        if rcvbuf:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        s.settimeout(60)
        s.connect((host, self.port))
        return s

    def get(self, path, method="GET", body=b"", host="127.0.0.1", **headers):
        """Status, headers in small letters, body. Headers: a=b is "a: b", _ is -; length=False: none is
        sent."""
        s = self.connect(host=host)
        length = headers.pop("length", True)
        lines = ["%s %s HTTP/1.1" % (method, path),
                 "Connection: close"] + ["%s: %s" % (k.replace("_", "-"), v) for k, v in headers.items()]
        if "Host" not in headers:
            lines.append("Host: %s:%d" % (host, self.port))
        if (length and (body or method == "POST") and "Transfer_Encoding" not in headers and
            "Content_Length" not in headers):
            lines.append("Content-Length: %d" % len(body))
        try:
            s.sendall("\r\n".join(lines + ["", ""]).encode() + body)
        except OSError:
            pass  # it has refused what is still being sent
        got = b""
        try:
            while piece := s.recv(65536):
                got += piece
        except OSError:
            pass
        s.close()
        if not got:
            return 0, {}, b""
        head, _, rest = got.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        return int(lines[0].split()[1]), {k.lower(): v
                                          for k, v in (x.split(": ", 1) for x in lines[1:])}, rest

    def stream(self, rcvbuf=0):
        s = self.connect(rcvbuf)
        s.sendall(b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
        return Stream(s)


class Stream:
    def __init__(self, s):
        self.s, self.raw, self.text = s, bytearray(), bytearray()
        head = self.until(lambda: b"\r\n\r\n" in self.raw) and self.raw.partition(b"\r\n\r\n")
        self.head, self.raw = head[0].decode(), head[2]
        assert "200" in self.head and "text/event-stream" in self.head and "no-store" in self.head, self.head

    def until(self, done):
        while not done():
            piece = self.s.recv(1 << 16)
            if not piece:
                return False
            self.raw += piece
        return True

    def wait(self, text):
        """Text of the events up to this, chunks taken apart; None where it ends before."""
        while text not in self.text:
            at = self.raw.find(b"\r\n")
            size = int(self.raw[:at], 16) if at > 0 else 0
            if at > 0 and len(self.raw) >= at + size + 4:
                if size == 0:
                    return None
                self.text += self.raw[at + 2:at + 2 + size]
                del self.raw[:at + size + 4]
            else:
                had = len(self.raw)
                if not self.until(lambda: len(self.raw) > had):
                    return None
        before, _, self.text = self.text.partition(text)
        if before == b":" and text == b"\n\n":  # a comment: the machine is slow
            return self.wait(text)
        return before + text


JSON = {"Content_Type": "application/json"}


def test_post():
    with Server() as s:
        status, head, body = s.get("/echo", "POST", b'{"name":"a\0b"}', **JSON)
        assert ((status, body) == (200, b'{"name":"a\0b"}') and
                head["content-type"] == "application/json"), (status, head, body)
        status, _, body = s.get("/echo", "POST", b"a", Content_Type="text/plain")
        assert status == 422 and body == b'{"detail":"JSON is wanted"}', (status, body)
        assert s.get("/echo", "POST", b"{}")[0] == 422
        chunked = b"4\r\n{\"a\"\r\n3;x=y\r\n:1}\r\n0\r\n\r\n"
        assert s.get("/echo", "POST", chunked, Transfer_Encoding="chunked", **JSON)[::2] == (200, b'{"a":1}')
        assert s.get("/echo", "POST", length=False, **JSON)[::2] == (200, b"")
        most = b"m" * 65536
        assert s.get("/echo", "POST", most, **JSON)[::2] == (200, most)
        assert s.get("/echo", "POST", b"", Content_Length="65537", **JSON)[0] == 413
        assert s.get("/echo", "POST", b"", Content_Length="99999999999999999999", **JSON)[0] in (0, 400, 413)
        many = b"".join(b"1000\r\n" + b"c" * 4096 + b"\r\n" for _ in range(17)) + b"0\r\n\r\n"
        status, _, body = s.get("/echo", "POST", many, Transfer_Encoding="chunked", **JSON)
        assert status == 413 and b"64 KiB" in body, (status, body)
        # A second request of a connection has a body of its own.
        c = s.connect()
        for n in (5, 3, 0):
            c.sendall(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % n + b"z" * n)
            got = b""
            while b"\r\n\r\n" not in got or len(got.partition(b"\r\n\r\n")[2]) < n:
                got += c.recv(4096)
            assert got.partition(b"\r\n\r\n")[2] == b"z" * n, got
        c.close()
        status, head, _ = s.get("/echo", "PUT", b"a", **JSON)
        assert status == 405 and head["allow"] == "GET, HEAD, POST", head
        status, head, _ = s.get("/echo")
        assert status == 405 and head["allow"] == "POST", head
        assert s.get("/peer", "GET", b"abc")[0] == 413
        assert s.get("/nothing")[::2] == (404, b'{"detail":"Not Found"}')


def test_head_and_shared():
    with Server() as s:
        status, head, body = s.get("/large", "HEAD")
        assert (status, head["content-length"], body) == (200, str(4 << 20), b""), head
        assert len(s.get("/large")[2]) == 4 << 20
        status, head, body = s.get("/events", "HEAD")
        assert status == 200 and head["content-type"] == "text/event-stream" and s.ask("streams") == "0"
        # What a hundred ask at once is not made a hundred times, unless the machine needs 100 ms for each; it
        # is made again later.
        begun = time.monotonic()
        for _ in range(100):
            last = int(s.get("/count")[2])
        assert last <= 1 + (time.monotonic() - begun) * 10 and last < 100, last
        time.sleep(0.2)
        assert int(s.get("/count")[2]) > last
        assert s.ask("counts").split()[0] == "101"


def test_origins():
    ours, other = "https://ours.example:8443", "https://other.example"
    with Server(origin=ours) as s:
        for origin in (ours, "http://first.example"):
            for path in ("/peer", "/count", "/count", "/nothing"):
                assert s.get(path, Origin=origin)[1]["access-control-allow-origin"] == origin, path
        for head in ({}, {"Origin": other}, {"Origin": "null"}, {"Origin": ours + "1"},
                     {"Origin": ours[:-1]}):
            for path in ("/peer", "/count", "/nothing"):
                assert not [h for h in s.get(path, **head)[1] if h.startswith("access-control")], (path, head)
            status, got, _ = s.get("/echo", "OPTIONS", Access_Control_Request_Method="POST", **head)
            assert status == 405 and not [h for h in got if h.startswith("access-control")], (status, got)
        status, got, body = s.get("/echo", "OPTIONS", Origin=ours, Access_Control_Request_Method="POST")
        assert status == 204 and body == b"" and got["access-control-allow-origin"] == ours, got
        assert got["access-control-allow-methods"] == "GET, HEAD, POST", got
        assert got["access-control-allow-headers"] == "content-type, authorization", got
        # Other sites' pages cannot post through a browser on this machine, whatever name leads here.
        here = "127.0.0.1:%d" % s.port
        for origin, host, wanted in ((ours, here, 200), ("http://" + here, here, 200), (other, here, 403),
                                     ("null", here, 403),
                                     ("http://localhost:1", "localhost:1", 200),
                                     ("http://evil.example:80", "evil.example:80", 403)):
            assert s.get("/echo", "POST", b"{}", Origin=origin, Host=host,
                         **JSON)[0] == wanted, (origin, host)
    with Server() as s:
        assert s.get("/echo", "OPTIONS", Origin=ours)[0] == 405


def test_token():
    with Server(token="a-token", origin="http://o.example") as s:
        good = {"Authorization": "Bearer a-token"}
        for bad in ({}, {"Authorization": "Bearer a-toke"}, {"Authorization": "Basic a-token"}):
            for path in ("/peer", "/count", "/nothing", "/events", "/page/", "//page"):
                status, head, _ = s.get(path, **bad)
                assert status == 401 and head["www-authenticate"] == "Bearer", (path, bad, status)
            assert s.get("/echo", "POST", b"{}", **bad, **JSON)[0] == 401
            assert s.get("/page", "POST", b"{}", **bad, **JSON)[0] == 401
            assert s.get("/page", **bad)[::2] == (200, b"page")
        assert s.get("/peer", **good)[::2] == (200, b"127.0.0.1")
        assert s.get("/echo", "POST", b"{}", Origin="http://elsewhere.example", **good, **JSON)[0] == 200
        assert s.get("/peer", "OPTIONS", Origin="http://o.example")[0] == 204
        status, head, _ = s.get("/peer", Origin="http://o.example")
        assert status == 401 and head["access-control-allow-origin"] == "http://o.example"


def test_loopback():
    with Server(at="0.0.0.0:0") as s:
        assert s.get("/peer")[2] == b"127.0.0.1"
        probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:  # no packet is sent: which address of ours would be used
            probe.connect(("192.0.2.1", 9))
            own = probe.getsockname()[0]
        except OSError:
            own = "127.0.0.1"
        if not own.startswith("127."):
            assert s.get("/peer", host=own)[2] == own.encode()


def test_streams():
    with Server() as s:
        a, b = s.stream(), s.stream()
        assert a.wait(b"hello\n\n") and b.wait(b"hello\n\n")
        for n in (1, 100, 3 << 20, 7):  # one event may be larger than what a reader may be behind
            s.tell("event %d" % n)
            for r in (a, b):
                got = r.wait(b"\n\n")
                assert got == b"data: " + b"x" * n + b"\n\n", (n, len(got))
        c = s.stream()
        assert c.wait(b"\n\n") == b"data: hello\n\n"
        assert s.get("/echo", "POST", b"{}", **JSON)[0] == 200  # the handler may tell, too
        assert [r.wait(b"\n\n") for r in (a, b, c)] == [b"data: posted\n\n"] * 3
        assert s.ask("streams") == "3"
        # One that does not read is cut; the others get all.
        stalled = s.stream(rcvbuf=4096)
        for i in range(400):
            s.tell("event 65536")
            # c, too: else it is as far behind, but for what its socket holds
            if any(len(r.wait(b"\n\n")) != 65544 for r in (a, b, c)):
                raise AssertionError("an event is not whole")
            if s.ask("streams") == "3":
                break
        else:
            raise AssertionError("25 MB, and not cut")
        while stalled.wait(b"\n\n"):
            pass
        a.s.close()
        until = time.monotonic() + 20
        while s.ask("streams") != "2":  # one that has gone is noticed without an event
            assert time.monotonic() < until, "a stream that was closed stays"
            time.sleep(0.1)
        # Half of the connections may be streams; who asks for something else is answered.
        more = [s.stream() for _ in range(30)]
        status, head, _ = s.get("/events")
        assert status == 503 and "retry-after" in head and s.ask("streams") == "32", status
        assert s.get("/peer")[0] == 200
        # Beyond 64 connections: those that say nothing go, and who asks is answered.
        many = [s.connect() for _ in range(100)]
        assert s.get("/peer")[0] == 200 and s.ask("streams") == "32"
        for x in many:
            x.close()
        s.tell("event 9")
        assert all(r.wait(b"x" * 9 + b"\n\n") for r in more)


def raw(s, request):
    """The status of what is sent as it is; 0: the connection ends."""
    c = s.connect()
    c.sendall(request)
    got = b""
    while b"\r\n" not in got and (piece := c.recv(4096)):
        got += piece
    c.close()
    return int(got.split()[1]) if got else 0


def test_ambiguous():
    """What a proxy could take for another request, or for two, is refused."""
    with Server() as s:
        post, get, echo = b"POST /echo HTTP/1.1\r\nHost: a\r\n", b"GET /peer HTTP/1.1\r\nHost: a\r\n", b"Content-Type: application/json\r\n"
        assert raw(s, get + b"\r\n") == 200 and raw(s, get + b"X:\t a\tb \r\n\r\n") == 200
        assert raw(s, get.replace(b"/peer", b"/peer?a=1%2000&b") + b"X-Y: \r\n\r\n") == 200
        assert raw(s, post + echo + b"Content-Length: 2\r\n\r\n{}") == 200
        assert raw(s, post + echo + b"Transfer-Encoding: Chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n") == 200
        for what, request in {
                "two lengths": post + echo + b"Content-Length: 2\r\nContent-Length: 0\r\n\r\n{}",
                "one length twice": post + echo + b"Content-Length: 2\r\ncontent-length: 2\r\n\r\n{}",
                "two lengths of a GET": get + b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
                "a length and an encoding": post + echo +
                b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
                "two encodings": post + echo +
                b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
                "another encoding": post + echo + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
                "two hosts": get + b"Host: b\r\n\r\n",
                "a blank before the colon": post + echo + b"Content-Length : 2\r\n\r\n{}",
                "a CR in a value": get + b"X: a\rContent-Length: 2\r\n\r\n",
                "a NUL in a value": get + b"X: a\0b\r\nY: c\r\n\r\n",
                "a NUL in the last value": get + b"X: a\0b\r\n\r\n",
                "a NUL in a name": get + b"X\0Y: a\r\n\r\n",
                "a NUL in the path": get.replace(b"/peer", b"/peer\0x") + b"\r\n",
                "a NUL at the path's end": get.replace(b"/peer", b"/peer\0") + b"\r\n",
                "a NUL in the query": get.replace(b"/peer", b"/peer?a=\0") + b"\r\n",
                "a NUL behind the method": get.replace(b"GET", b"GET\0") + b"\r\n",
                "an escaped NUL in the path": get.replace(b"/peer", b"/peer%00x") + b"\r\n"}.items():
            got = raw(s, request)
            assert got == 400, (what, got)
        code, headers, _ = s.get("/page")
        want = {"x-frame-options": "DENY", "content-security-policy": "frame-ancestors 'none'",
                "x-content-type-options": "nosniff"}
        assert code == 200 and want.items() <= headers.items(), headers


def test_slow():
    """The limits that take long, at one time: 20 s for a request, and a stream that is told nothing and
    lasts."""
    with Server() as s:
        events, begun, ended = s.stream(), time.monotonic(), {}
        events.wait(b"\n\n")

        def drip(name, start, piece):
            c = s.connect()
            try:
                c.sendall(start)
                while True:
                    c.settimeout(1)
                    try:
                        if not c.recv(4096):
                            break
                    except socket.timeout:
                        pass
                    c.sendall(piece)
            except OSError:
                pass
            ended[name] = time.monotonic() - begun

        threads = [threading.Thread(target=drip, args=x, daemon=True) for x in (
            ("headers", b"GET / HTTP/1.1\r\nX: ", b"a"),
            ("body", b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\n\r\n", b"a"),
            ("chunks", b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
             b"1\r\na\r\n"))]
        for t in threads:
            t.start()
        assert events.wait(b":\n\n") == b":\n\n" and events.wait(b":\n\n") == b":\n\n"
        assert time.monotonic() - begun > 29
        for t in threads:
            t.join(60)
        assert len(ended) == 3 and all(t > 19 for t in ended.values()), ended
        s.tell("event 5")
        assert events.wait(b"\n\n") == b"data: xxxxx\n\n"


def test_close():
    """It ends with streams that wait, that have much to get, and with requests half sent."""
    with Server() as s:
        keep = [s.stream() for _ in range(3)] + [s.stream(rcvbuf=4096)]
        half = s.connect()
        half.sendall(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc")
        s.tell("event 900000")
        assert keep[0].wait(b"\n\n") and keep[0].wait(b"\n\n")
        gone = s.stream()
        gone.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        gone.s.close()
        assert s.ask("streams") in ("4", "5")


failed = 0
for name, test in [x for x in list(globals().items()) if x[0].startswith("test_")]:
    if sys.argv[2:] and name[5:] not in sys.argv[2:]:
        continue
    try:
        test()
        print("ok", name)
    except Exception:
        failed += 1
        print("FAIL", name)
        traceback.print_exc(file=sys.stdout)
sys.exit(failed > 0)
