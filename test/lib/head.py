"""For cases of the head: the real program, its answers, and clients of both kinds by grpcio.

    with head.Head("a", "--freq", "200") as h: ...     folders $WORK/a/data and $WORK/a/out
    g = head.Gsprof(h, "n0"); g.send(0.5)               a gsprof client: Connect, one StreamMetrics
    a = head.Agent(h, "n1"); ...; a.close()             one of ours: numbered samples at the head's ticks, kept until they are acknowledged

INSPECTOR and WORK come from test/lib/head.sh.
"""
import calendar
import collections
import json
import os
import queue
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
import uuid

import grpc
import head_pb2 as ours
import rpc_pb2 as theirs

INSPECTOR, WORK = os.environ["INSPECTOR"], os.environ["WORK"]
GSPROF = "/gswarm_profiler.ProfilerService/"
GPU = "NVIDIA H100 80GB HBM3"
PERIOD = 0.2
# before a program; what Python runs between fork and exec stumbles over grpcio
DIE_WITH_US = ("setpriv", "--pdeathsig", "KILL")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until(what, seconds=60, every=0.05):
    """What it says as soon as it says something; that it never does is a failure."""
    end = time.monotonic() + seconds
    while True:
        got = what()
        if got:
            return got
        assert time.monotonic() < end, "not within %d s: %s" % (seconds, what.__doc__ or what)
        time.sleep(every)


def until_soon(what):
    """The same; False where it has not come within half a second."""
    end = time.monotonic() + 0.5
    while not (got := what()) and time.monotonic() < end:
        time.sleep(0.05)
    return got


class Head:
    def __init__(self, name, *options, freq=PERIOD, prefix=(), env=None, http="127.0.0.1"):
        self.folder = os.path.join(WORK, name)
        self.data, self.out = self.folder + "/data", self.folder + "/out"
        os.makedirs(self.out, exist_ok=True)
        self.port, self.http_port, self.token, self.scheme, self.context = free_port(), free_port(), None, "http", None
        self.at, self.url, self.p = "127.0.0.1:%d" % self.port, "http://%s:%d" % (http, self.http_port), None
        self.words = [*prefix, *DIE_WITH_US, INSPECTOR, "head", "--port", str(self.port), "--http-port",
                      str(self.http_port), "--freq", str(int(freq * 1000)),
                      "--data-dir", self.data, "--out-dir", self.out, *options]
        self.env = dict(os.environ, **(env or {}))
        self.begin()

    def begin(self):
        with open(self.folder + "/err", "ab") as err:
            start = err.seek(0, os.SEEK_END)
            self.p = subprocess.Popen(self.words, stderr=err, stdin=subprocess.DEVNULL, cwd=self.folder,
                                      env=self.env)

        def serves():
            said = self.said()[start:]
            assert self.p.poll() is None, "the head ended with %s: %s" % (self.p.returncode, self.said())
            return "gRPC at" in said
        until(serves)

    def said(self):
        return open(self.folder + "/err").read()

    def kill(self, how=signal.SIGKILL):
        self.p.send_signal(how)
        return self.p.wait(20)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.p.poll() is None:
            code = self.kill(signal.SIGTERM)
            assert kind or code == 0, (code, self.said())
        elif not kind:
            assert self.p.returncode == 0, (self.p.returncode, self.said())
        assert ("ERROR: AddressSanitizer" not in self.said() and
                "runtime error" not in self.said()), self.said()

    def ask(self, method, path, body=None, headers=None, timeout=20):
        """(status, headers, text)"""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = dict({"Content-Type": "application/json"} if data is not None else {}, **(headers or {}))
        if self.token and "Authorization" not in headers:
            headers["Authorization"] = "Bearer " + self.token
        r = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.build_opener(NoRedirect, urllib.request.HTTPSHandler(context=self.context)).open(r, timeout=timeout) as a:
                return a.status, a.headers, a.read().decode()
        except urllib.error.HTTPError as a:
            return a.code, a.headers, a.read().decode()

    def get(self, path):
        code, _, text = self.ask("GET", path)
        assert code == 200, (path, code, text)
        # NaN is no JSON
        return json.loads(text, parse_constant=lambda c: (_ for _ in ()).throw(ValueError(c)))

    def post(self, path, name=None):
        code, _, text = self.ask("POST", path, {"name": name})
        assert code == 200, (path, code, text)
        return json.loads(text)

    def start(self, name=None):
        got = self.post("/profiling/start", name)
        assert got["success"], got
        return got

    def stop(self, name=None):
        got = self.post("/profiling/stop", name)
        assert got["success"], got
        return got

    def session(self, name):
        return next((s for s in self.get("/profiling/sessions")["sessions"] if s["name"] == name), None)

    def file(self, name, seconds=30):
        """The session's file when it is whole; its frames are as docs/cluster.md has them."""
        def whole():
            s = self.session(name)
            return (s and not s["active"] and not s["finishing"] and
                    os.path.exists(os.path.join(self.out, s["output_file"])) and s)
        s = until(whole, seconds)
        return sound(json.load(open(os.path.join(self.out, s["output_file"]))), name)

    def client(self, host):
        return next((c for c in self.get("/clients")["clients"] if c["hostname"] == host), None)

    def taken(self, host):
        return (self.client(host) or {"taken": 0})["taken"]

    def unary(self, method, request, reply, token=None, timeout=20, channel=None):
        own = channel or grpc.insecure_channel(self.at)
        token = token or self.token
        try:
            return own.unary_unary(GSPROF + method, type(request).SerializeToString, reply.FromString)(
                request, timeout=timeout, metadata=[("authorization", "Bearer " + token)] if token else None)
        finally:
            if not channel:
                own.close()


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def sound(doc, name):
    """Frames have numbers without a gap, times that grow, and arrays of one length in an order that only
    grows."""
    frames = doc["frames"]
    assert [f["frame_id"] for f in frames] == list(range(1, len(frames) + 1)), "%s: frame ids %s" % (name, [f["frame_id"] for f in frames])
    times = [f["time"] for f in frames]
    assert all(a < b for a, b in zip(times, times[1:])), "%s: times %s" % (name, times)
    before = {}
    for f in frames:
        for group, of in (("gpu_id", ("gpu_util", "gpu_memory", "dram_bandwidth")),
                          ("client_id", ("client_state", "client_seq", "client_age_s"))):
            ids = f.get(group, [])
            assert ids[:len(before.get(group,
                                       []))] == before.get(group, []), (name, f["frame_id"], before, ids)
            before[group] = ids
            for key in of:
                assert key not in f or len(f[key]) == len(ids), (name, f["frame_id"], key, f[key], ids)
    return doc


def tick_of(frame):
    """Seconds of Unix time."""
    return calendar_seconds(frame["time"])


def calendar_seconds(text):
    m = re.fullmatch(r"(.*)\.(\d{6})Z", text)
    return calendar.timegm(time.strptime(m[1], "%Y-%m-%dT%H:%M:%S")) + int(m[2]) / 1e6


def metrics(host, values, names=(GPU,) * 64, timestamp=0, **more):
    """A MetricsUpdate: a value for each GPU, its utilisation."""
    return theirs.MetricsUpdate(hostname=host,
                                gpus_metrics=[theirs.GPUMetric(
                                    physical_idx=i, name=names[i], gpu_util=v, mem_util=0.25, **more)
                                                             for i, v in enumerate(values)],
                                system_metrics=theirs.SystemMetrics(dram_util=7.25, disk_util=19.5),
                                timestamp=timestamp)


def encode(m):
    return m if isinstance(m, bytes) else m.SerializeToString()


class Stream:
    """A client's stream of messages: what is put is sent."""

    def __init__(self, channel, path, two_ways=False, token=None):
        self.q, self.channel = queue.SimpleQueue(), channel
        self.sent = 0
        kind = channel.stream_stream if two_ways else channel.stream_unary
        call = kind(path, encode, lambda b: b)
        meta = [("authorization", "Bearer " + token)] if token else None
        self.call = call(self.feed(), metadata=meta) if two_ways else call.future(self.feed(), metadata=meta)

    def feed(self):
        while (m := self.q.get()) is not None:
            self.sent += 1
            yield m

    def put(self, m):
        self.q.put(m)

    def over(self):
        return not self.call.is_active() if hasattr(self.call, "is_active") else self.call.done()


class Gsprof:
    def __init__(self, head, host, gpus=1, connect=True, at=None, token=None):
        self.head, self.host, self.gpus = head, host, gpus
        self.channel = grpc.insecure_channel(at or head.at, options=[("grpc.use_local_subchannel_pool", 1)])
        if connect:
            request = ours_initial(host, gpus)
            reply = head.unary("Connect", Raw(request), ConnectResponse, channel=self.channel)
            assert (reply.success and
                    reply.message == "Connected successfully. Registered %d GPUs." % gpus), reply.message
        self.stream = Stream(self.channel, GSPROF + "StreamMetrics", token=token)

    def send(self, *values, timestamp=0, **more):
        self.stream.put(metrics(self.host, values or [0.5] * self.gpus, timestamp=timestamp, **more))

    def close(self):
        """As gsprof's do: the stream ends, and is answered."""
        self.stream.put(None)
        reply = self.stream.call.result(timeout=20)
        self.channel.close()
        return reply

    def cut(self):
        self.stream.put(None)
        self.channel.close()


class Raw(bytes):
    """Bytes that are a message already."""
    SerializeToString = bytes.__bytes__ if hasattr(bytes, "__bytes__") else (lambda self: bytes(self))


class ConnectResponse:
    """ConnectResponse and StopProfilingResponse: 1 success, 2 message."""

    @classmethod
    def FromString(cls, b):
        return theirs.StartProfilingResponse.FromString(b)  # the same numbers


def ours_initial(host, gpus, name=GPU):
    """InitialInfo: a string and repeated GPUInfo."""
    return theirs.InitialInfo(hostname=host,
                              gpus=[theirs.GPUInfo(physical_idx=i, name=name)
                                    for i in range(gpus)]).SerializeToString()


class Agent(threading.Thread):
    """One of ours. Sample s has a utilisation of s % 97 percent; `acked` is what the head said that it has
    for good."""

    def __init__(self, head, host, at=None, skew_s=0.0, period=PERIOD, keep=10000, token=None, epoch=0):
        super().__init__(daemon=True)
        self.head, self.host, self.at, self.skew, self.period, self.keep, self.token = head, host, at or head.at, skew_s, period, keep, token
        self.epoch = epoch  # 0: an agent of the release before, which has none
        self.uuid, self.seq, self.acked, self.kept, self.time = str(uuid.uuid4()), 0, 0, collections.deque(), {}
        self.lock, self.closed, self.welcomes, self.errors, self.stream, self.offset = threading.Lock(), False, 0, [], None, None
        self.order, self.cut_at, self.back_at = [], None, None
        threading.Thread(target=self.samples, daemon=True).start()
        self.start()

    def clock(self):
        return time.time() + self.skew

    def samples(self):
        next_tick = 0
        while not self.closed:
            if self.offset is None:
                time.sleep(0.02)
                continue
            now = self.clock() + self.offset  # the head's
            tick = max(round(now / self.period), next_tick)
            if now < tick * self.period:
                time.sleep(tick * self.period - now)
            next_tick = tick + 1
            with self.lock:
                self.seq += 1
                s = ours.Sample(seq=self.seq, time_ns=round(tick * self.period * 1e9), memory=0.5, disk=0.25,
                                cpu=0.125)
                self.fill(s)
                self.time[self.seq] = tick * self.period
                self.kept.append(s)
                if len(self.kept) > self.keep:
                    self.kept.popleft()
                if self.stream:
                    self.put(s)

    def fill(self, s):
        s.gpu.add(index=0, name=GPU, util=(s.seq % 97) / 100, memory=0.5)

    def put(self, s):
        self.order.append(s.seq)
        self.stream.put(ours.FromAgent(sample=s, sent_ns=time.monotonic_ns()))

    def run(self):
        while not self.closed:
            channel = grpc.insecure_channel(self.at,
                                            options=[("grpc.use_local_subchannel_pool", 1),
                                                     ("grpc.keepalive_time_ms", 5000),
                                                              ("grpc.keepalive_timeout_ms", 5000),
                                                              ("grpc.http2.max_pings_without_data", 0)])
            stream = Stream(channel, "/nccl_inspector.v1.Head/Stream", two_ways=True, token=self.token)
            with self.lock:
                first = self.kept[0].seq if self.kept else self.seq + 1
                stream.put(ours.FromAgent(hello=ours.Hello(uuid=self.uuid, host=self.host, version="0.1.0",
                                                           protocol=1, first=first, next=self.seq + 1,
                                                           skew_ns=round(self.skew * 1e9), epoch=self.epoch)))
            try:
                for b in stream.call:
                    self.heard(stream, ours.FromHead.FromString(b))
            except grpc.RpcError as e:
                if not self.closed:
                    self.errors.append((e.code(), e.details()))
            with self.lock:
                self.stream, self.cut_at = None, time.monotonic()
            stream.put(None)
            channel.close()
            time.sleep(0.1)

    def late(self, once=False):
        """One that comes for a frame that is out, as the head counts them; once: which may be for the next
        frame instead. The head puts none before one that it has: it is for the tick that is nearest when it
        comes. Where that is the next one, another follows."""
        def counted():
            return (self.head.client(self.host) or {"late": 0})["late"]

        def came():
            with self.lock:
                self.seq += 1
                old = ours.Sample(seq=self.seq, time_ns=round((max(self.time.values()) - 2) * 1e9))
                self.time[self.seq] = old.time_ns / 1e9
                self.kept.append(old)
                if self.stream:
                    self.put(old)
            return once or until_soon(lambda: counted() > before)
        before = counted()
        until(came)

    def anew(self, epoch, n):
        """Cut off, its spool is lost: it has taken n samples since, from 1 on. They are sent when it is
        back."""
        with self.lock:
            self.stream, stream, self.epoch, self.acked = None, self.stream, epoch, 0
            now = round((self.clock() + self.offset) / self.period)
            self.kept.clear()
            self.time = {i: (now - n - 2 + i) * self.period for i in range(1, n + 1)}
            for i in range(1, n + 1):
                s = ours.Sample(seq=i, time_ns=round(self.time[i] * 1e9), memory=0.5, disk=0.25, cpu=0.125)
                s.gpu.add(index=0, name=GPU, util=(i % 97) / 100, memory=0.5)
                self.kept.append(s)
            self.seq = n
        if stream:  # a head that was killed may have ended it already
            stream.put(None)

    def heard(self, stream, m):
        if self.offset is None:  # once: what a connection that was cut still delivers is old
            self.offset = m.now_ns / 1e9 - self.clock()
        with self.lock:
            self.acked = max(self.acked, m.have)
            while self.kept and self.kept[0].seq <= m.have:
                self.kept.popleft()
            if m.welcome:
                self.welcomes += 1
                self.stream, self.order, self.back_at = stream, [], time.monotonic()
                for s in self.kept:
                    self.put(s)

    def close(self):
        self.closed = True
        stream = self.stream
        if stream:
            stream.put(None)
        self.join(20)

    def id(self):
        return "%s_%s" % (self.host, self.uuid[:8])

    def complete(self, doc, begin, end, upto=None):
        """Each sample up to `upto` (what was acknowledged) that was taken in this time stands in the frame of
        its tick, as it was. How many."""
        at, n = {round(tick_of(f) / self.period): f for f in doc["frames"]}, 0
        for seq in range(1, (self.acked if upto is None else upto) + 1):
            tick = self.time[seq]
            if not begin <= tick <= end:
                continue
            f = at.get(round(tick / self.period))
            assert f, "%s: no frame of sample %d" % (self.host, seq)
            assert self.id() in f["client_id"], (self.host, seq, f["client_id"])
            i = f["client_id"].index(self.id())
            j = f["gpu_id"].index("%s:0:%s" % (self.host, GPU))
            got = f["client_seq"][i], f["client_state"][i], f["gpu_util"][j]
            assert got == (seq, "ok", "%.2f" % (seq % 97)), "%s: frame %d: %s, sample %d" % (self.host, f["frame_id"], got, seq)
            n += 1
        return n


class Proxy(threading.Thread):
    """Loopback to loopback: passes on, passes nothing on (a black hole), or resets."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.to, self.hole, self.pairs = port, False, []
        self.s = socket.create_server(("127.0.0.1", 0))
        self.at = "127.0.0.1:%d" % self.s.getsockname()[1]
        self.start()

    def run(self):
        while True:
            a, _ = self.s.accept()
            try:
                b = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                a.close()
                continue
            self.pairs.append((a, b))
            for x, y in (a, b), (b, a):
                threading.Thread(target=self.carry, args=(x, y), daemon=True).start()

    def carry(self, x, y):
        try:
            while (d := x.recv(65536)):
                while self.hole:
                    time.sleep(0.02)
                y.sendall(d)
        except OSError:
            pass
        for s in x, y:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def reset(self):
        for pair in self.pairs:
            for s in pair:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                s.close()
        self.pairs = []


def run(tests):
    """Each function; the first that fails ends it."""
    for t in tests:
        began = time.monotonic()
        t()
        print("ok %s %.1f s" % (t.__name__, time.monotonic() - began), flush=True)
