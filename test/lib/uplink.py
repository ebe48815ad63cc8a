#!/usr/bin/env python3
"""The agent against heads of grpcio: cuts, kills, clocks, black holes, gsprof's head.

    uplink.py NCCL_INSPECTOR FOLDER    FOLDER: rpc_pb2 and head_pb2 of protoc, cert.pem and key.pem, and room for states

Times are bounds from below alone, but for ends that are promised.
"""
import concurrent.futures
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import urllib.request

import grpc
import head_pb2 as ours
import rpc_pb2 as theirs

INSPECTOR, FOLDER = sys.argv[1:3]
SECOND = 1_000_000_000
PERIOD = SECOND // 10
PORTS = []


def port():
    """One that was free just now, and is no port of a client's connection."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", 0))
        PORTS.append(s.getsockname()[1])
        return PORTS[-1]


def until(what, why, seconds=60):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, why() if callable(why) else why
        time.sleep(0.02)


class Head:
    """have: what is safe. off_ns: its clock. acks(seq): what it has after that sample; None: it says
    nothing."""

    def __init__(self, old=False, secure=False, listen=None):
        self.port, self.old, self.secure = listen or port(), old, secure
        self.have = self.off_ns = 0
        self.period = PERIOD
        self.hellos, self.samples, self.tokens, self.updates, self.connects = [], [], [], [], []
        self.acks = lambda seq: seq
        self.raw = None  # bytes instead of a welcome
        self.begin()

    def clock(self):
        return time.time_ns() + self.off_ns

    def begin(self):
        call = grpc.method_handlers_generic_handler
        if self.old:
            handlers = call("gswarm_profiler.ProfilerService", {
                "Connect": grpc.unary_unary_rpc_method_handler(self.connect),
                "StreamMetrics": grpc.stream_unary_rpc_method_handler(self.metrics)})
        else:
            handlers = call("nccl_inspector.v1.Head",
                            {"Stream": grpc.stream_stream_rpc_method_handler(self.stream)})
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(8), handlers=[handlers],
                                  options=[("grpc.so_reuseport", 0)])
        at = "localhost:%d" % self.port if self.secure else "127.0.0.1:%d" % self.port
        if self.secure:
            pem = [open("%s/%s.pem" % (FOLDER, name), "rb").read() for name in ("key", "cert")]
            assert self.server.add_secure_port(at, grpc.ssl_server_credentials([tuple(pem)]))
        else:
            assert self.server.add_insecure_port(at)
        self.server.start()

    def end(self):
        self.server.stop(0).wait()

    def answer(self, m, welcome, received):
        return ours.FromHead(welcome=welcome, protocol=1, version="x", have=self.have, period_ns=self.period,
                             echo_ns=m.sent_ns,
                             received_ns=received, now_ns=self.clock()).SerializeToString()

    def stream(self, messages, context):
        self.tokens.append(dict(context.invocation_metadata()).get("authorization"))
        for b in messages:
            received, m = self.clock(), ours.FromAgent.FromString(b)
            if m.HasField("hello"):
                self.hellos.append((m.hello, len(self.samples)))
                yield self.raw or self.answer(m, True, received)
                continue
            self.samples.append((m.sample, received))
            have = self.acks(m.sample.seq)
            if have is not None:
                self.have = max(self.have, have)
                yield self.answer(m, False, received)

    def connect(self, b, context):
        self.connects.append((theirs.InitialInfo.FromString(b), time.monotonic()))
        return theirs.StartProfilingResponse(success=True, message="Connected").SerializeToString()

    def metrics(self, messages, context):
        for b in messages:
            self.updates.append(theirs.MetricsUpdate.FromString(b))
        return b""

    def wait(self, n):
        """So many more samples."""
        n += len(self.samples)
        until(lambda: len(self.samples) >= n, lambda: "no more than %d samples" % len(self.samples))

    def check(self, first=1):
        """No sample is missing, and of each connection they begin behind what the head had, in order."""
        numbers = [s.seq for s, _ in self.samples]
        assert set(numbers) == set(range(first, max(numbers) + 1)), numbers
        ends = [n for _, n in self.hellos[1:]] + [len(numbers)]
        for (_, begins), ends in zip(self.hellos, ends):
            part = numbers[begins:ends]
            assert part == list(range(part[0], part[0] + len(part))) if part else True, part


class Agent:
    def __init__(self, name, head, *options):
        self.name, self.options, self.err = name, options, open("%s/%s.err" % (FOLDER, name), "ab")
        self.head = head
        self.begin()

    def begin(self):
        at = self.err.tell()
        self.p = subprocess.Popen([INSPECTOR, "agent", "--foreground", "--listen", "127.0.0.1:0",
                                   "--state-dir", FOLDER + "/" + self.name, "--box-dir", FOLDER + "/boxes",
                                   "--node", "n7", "--head", self.head, *self.options], stderr=self.err)
        until(lambda: b" serves " in self.said()[at:], "it does not serve")
        self.url = self.said()[at:].split(b" serves ")[1].split()[0].decode()

    def said(self):
        with open(self.err.name, "rb") as f:
            return f.read()

    def metric(self, name):
        try:
            with urllib.request.urlopen(self.url + "/metrics", timeout=10) as f:
                lines = f.read().decode().splitlines()
        except OSError:  # 503: logs are still being read
            return None
        return next((float(x.split()[-1]) for x in lines
                     if x.startswith("nccl_inspector_agent_head_" + name)), None)

    def wait(self, name, what):
        until(lambda: (lambda v: v is not None and what(v))(self.metric(name)),
              lambda: "%s: %s" % (name, self.metric(name)))

    def kill(self, number=signal.SIGKILL):
        self.p.send_signal(number)
        assert self.p.wait(30) in (0, -9), self.p.returncode


class Hole:
    """A way to a head that can be cut, or lead nowhere."""

    def __init__(self, to):
        self.to, self.dark, self.pairs = to, False, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.at = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            a, _ = self.listener.accept()
            b = socket.create_connection(("127.0.0.1", self.to))
            self.pairs.append((a, b, time.monotonic()))
            for x, y in ((a, b), (b, a)):
                threading.Thread(target=self.carry, args=(x, y), daemon=True).start()

    def carry(self, x, y):
        try:
            while True:
                data = x.recv(65536)
                while self.dark and data:
                    data = x.recv(65536)  # the other side gets nothing, and no end
                if not data:
                    break
                y.sendall(data)
        except OSError:
            pass
        if not self.dark:
            self.cut((x, y))

    def cut(self, pair):
        for s in pair:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def kills_and_cuts():
    head = Head()
    head.end()
    agent = Agent("kills", "127.0.0.1:%d" % head.port, "--every", "100ms")
    agent.wait("kept_samples", lambda v: v >= 3)
    assert agent.metric("connected") == 0 and b"--head=" in agent.said()
    agent.kill()  # it has never seen a head
    agent.begin()
    head.begin()
    head.wait(10)
    assert head.samples[0][0].seq == 1 and head.hellos[0][0].first == 1 and head.hellos[0][0].host == "n7"
    agent.wait("connected", lambda v: v == 1)
    agent.wait("samples_total{node=\"n7\",result=\"acknowledged\"}", lambda v: v >= 10)
    agent.wait("kept_samples", lambda v: v <= 3)
    for _ in range(3):
        agent.kill()
        agent.begin()
        head.wait(5)
    agent.p.send_signal(signal.SIGHUP)
    n = len(head.hellos)
    until(lambda: len(head.hellos) > n, "no hello after SIGHUP")
    head.wait(5)
    head.end()
    time.sleep(2)
    head.begin()
    head.wait(20)
    assert len({h.uuid for h, _ in head.hellos}) == 1 and len(head.hellos[0][0].uuid) == 36
    head.check()
    numbers = [s.seq for s, _ in head.samples]
    twice = len(numbers) - len(set(numbers))  # sent, and the answer was lost with the connection
    assert twice <= 20 * len(head.hellos), numbers
    # The head loses its state, then knows more than the agent.
    head.end()
    head.have, head.samples, head.hellos = 0, [], []
    head.begin()
    head.wait(3)
    head.end()
    head.have, head.samples, head.hellos = 1_000_000, [], []
    head.begin()
    head.wait(5)
    assert head.samples[0][0].seq == 1_000_001, head.samples[0]
    head.check(1_000_001)
    agent.kill(signal.SIGTERM)
    head.end()


def acknowledges_less():
    head = Head()
    head.acks = lambda seq: max(seq - 7, 0) if seq % 3 == 0 else None
    hole = Hole(head.port)
    agent = Agent("less", hole.at)
    for _ in range(3):
        head.wait(15)
        hole.cut(hole.pairs[-1][:2])
        have, n = head.have, len(head.hellos)
        until(lambda: len(head.hellos) > n, "no hello after a cut")
        head.wait(1)
        hello, begins = head.hellos[n]
        assert (hello.first <= head.have + 1 and have < head.samples[begins][0].seq <= head.have + 1 or
                len(head.hellos) > n + 1)
    head.wait(10)
    head.check()
    assert agent.metric("kept_samples") >= 4
    agent.kill(signal.SIGTERM)
    head.end()


def clocks():
    head = Head()
    head.off_ns = -5_000_000_000
    began = head.clock()
    agent = Agent("clocks", "127.0.0.1:%d" % head.port)
    head.wait(30)
    near = lambda: min(abs(received - s.time_ns) for s, received in head.samples[-10:])
    assert near() < 1_000_000_000, head.samples[-3:]
    assert all(began - 1_000_000_000 < s.time_ns < received + 1_000_000_000
               for s, received in head.samples), head.samples[:3]
    agent.wait("clock_skew_seconds", lambda v: 4 < v < 6)
    # It takes samples when the head wants them, and not each second; some of them at once, however busy this
    # machine is.
    gaps = sorted(b[0].time_ns - a[0].time_ns for a, b in zip(head.samples[-30:], head.samples[-29:]))
    assert gaps[0] < 500_000_000 and gaps[len(gaps) // 2] > PERIOD // 2, gaps
    for step in (-1_000_000_000, 3_000_000_000):
        head.off_ns += step
        head.wait(20)
        until(lambda: near() < 500_000_000, lambda: near())
    head.period = 2 * SECOND
    behind = lambda: min((s.time_ns + SECOND // 100) % head.period for s, _ in head.samples[-3:])
    # a slow sampler is late. What is just behind ticks of the one clock is not so of the other
    for step in () if os.environ.get("NI_VARIANT") else (0, SECOND):
        head.off_ns += step
        head.wait(4)
        until(lambda: behind() < SECOND, lambda: "%d ns behind the ticks" % behind())
    times = [s.time_ns for s, _ in head.samples]
    assert all(a < b for a, b in zip(times, times[1:])), times
    head.check()
    agent.kill(signal.SIGTERM)
    head.end()


def old_head():
    head = Head(old=True)
    agent = Agent("old", "127.0.0.1:%d" % head.port, "--every", "100ms")
    until(lambda: len(head.updates) >= 10, lambda: agent.said())
    agent.wait("connected", lambda v: v == 1)
    u = head.updates[-1]
    assert head.connects[0][0].hostname == u.hostname == "n7" and not u.p2p_links
    assert 0 < u.system_metrics.dram_util <= 100 and 1 < u.system_metrics.disk_util <= 100, u
    agent.wait("kept_samples", lambda v: v <= 2)
    times = [u.timestamp for u in head.updates]
    assert times == sorted(times) and abs(times[-1] - time.time()) < 60
    ended = time.monotonic()
    head.end()
    n = len(head.updates)
    head.begin()
    until(lambda: len(head.updates) > n + 3, lambda: agent.said())
    assert len(head.connects) == 2 and head.connects[1][1] - ended > 4.9, head.connects
    agent.kill(signal.SIGTERM)
    head.end()


def black_hole():
    head = Head()
    hole = Hole(head.port)
    agent = Agent("hole", hole.at)
    head.wait(5)
    began, hole.dark = time.monotonic(), True
    agent.wait("connected", lambda v: v == 0)
    assert time.monotonic() - began > 14 and len(hole.pairs) == 1, hole.pairs
    hole.dark = False
    head.wait(100)
    head.check()
    agent.kill(signal.SIGTERM)
    head.end()


def says_nonsense():
    head = Head()
    agent = Agent("nonsense", "127.0.0.1:%d" % head.port)
    head.wait(3)
    head.acks = lambda seq: seq + 1000
    until(lambda: b"it acknowledges what was never sent" in agent.said(), agent.said)
    head.acks = lambda seq: seq
    head.raw, head.have = b"\xff" * 40, 0
    until(lambda: b"it says what is no message of a head" in agent.said(), agent.said)
    head.raw = ours.FromHead(welcome=True, have=1 << 63, period_ns=1).SerializeToString()
    n = len(head.hellos)
    until(lambda: len(head.hellos) > n + 1, "no hello")
    head.raw = None
    head.wait(5)
    agent.kill(signal.SIGTERM)
    head.end()


def token_and_tls():
    head = Head(secure=True)
    with open(FOLDER + "/token", "w") as f:
        f.write("secret-77\nmore\n")
    os.chmod(FOLDER + "/token", 0o600)
    agent = Agent("tls", "localhost:%d" % head.port, "--head-token-file", FOLDER + "/token", "--head-ca",
                  FOLDER + "/cert.pem")
    head.wait(3)
    assert set(head.tokens) == {"Bearer secret-77"}, head.tokens
    agent.kill(signal.SIGTERM)
    n = len(head.hellos)
    agent = Agent("tls2", "localhost:%d" % head.port, "--head-ca", "system")
    until(lambda: b"--head=localhost" in agent.said(), agent.said)
    assert len(head.hellos) == n, "it trusts whom nobody trusts"
    agent.kill(signal.SIGTERM)
    head.end()


failed = []


def run(case):
    try:
        case()
    except BaseException:
        failed.append(case.__name__)
        traceback.print_exc()
        print("FAIL", case.__name__)


os.makedirs(FOLDER + "/boxes", exist_ok=True)
chosen = sys.argv[3:]
cases = [c for c in (black_hole, kills_and_cuts, old_head, clocks, acknowledges_less, says_nonsense,
                     token_and_tls) if not chosen or c.__name__ in chosen]
with concurrent.futures.ThreadPoolExecutor(2) as pool:  # one of them mostly waits
    list(pool.map(run, cases))
sys.stdout.flush()
sys.stdout.flush()
os._exit(1 if failed else 0)
