#!/usr/bin/env python3
"""Both ends of exporter/rpc against grpcio, and messages.h against protobuf.

    rpc.py DRIVER FOLDER    test/host/rpc_echo; FOLDER: rpc_pb2 and head_pb2 of protoc, ca, other, server and client .pem and .key
"""
import concurrent.futures
import math
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import traceback

import grpc
import head_pb2 as ours
import rpc_pb2 as theirs

DRIVER, FOLDER = sys.argv[1:3]
HEADERS = b"\x83\x86\x41\x01a\x04\x0e/echo.Echo/Sum\x5f\x10application/grpc\x40\x02te\x08trailers"


class Server:
    def __init__(self, *args):
        self.p = subprocess.Popen([DRIVER, "serve", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True)
        self.port = int(self.p.stdout.readline())
        self.at = "localhost:%d" % self.port

    def stats(self):
        """(calls that began, that ended, its CPU seconds)"""
        self.p.stdin.write("\n")
        self.p.stdin.flush()
        began, ended, cpu = self.p.stdout.readline().split()
        return int(began), int(ended), float(cpu)

    def close(self):
        out, _ = self.p.communicate(timeout=30)
        assert self.p.returncode == 0, (self.p.returncode, out)  # each call that began has ended

    def raw(self):
        return socket.create_connection(("127.0.0.1", self.port))


def file(name):
    with open(FOLDER + "/" + name, "rb") as f:
        return f.read()


def fails(code, call, details=""):
    try:
        got = call()
    except grpc.RpcError as e:
        assert e.code() == code and details in (e.details() or ""), (e.code(), e.details())
        return
    raise AssertionError(got)


def until(what, seconds=30):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def methods(channel):
    return (channel.unary_unary("/echo.Echo/Sum"), channel.stream_unary("/echo.Echo/Sum"),
            channel.stream_stream("/echo.Echo/Each"))


# ---- a grpcio client against our server ----
def calls():
    s = Server()
    channel = grpc.insecure_channel(s.at)
    one, many, each = methods(channel)
    assert one(b"hello") == b"1 5"
    assert many(iter([b"a" * i for i in range(1000)])) == b"1000 499500"
    assert many(iter([b""] * 5000)) == b"5000 0"  # several in a frame
    for sizes in ([0, 1, 100, 20000, 1000000, 7], [4 << 20]):
        assert [len(m) for m in each(iter([b"a" * n for n in sizes]))] == sizes
    assert [len(m) for m in each(iter([]))] == []
    fails(grpc.StatusCode.RESOURCE_EXHAUSTED, lambda: one(b"x" * (5 << 20)), "4194304")
    fails(grpc.StatusCode.RESOURCE_EXHAUSTED, lambda: list(each(iter([b"x", b"x" * ((4 << 20) + 1)]))),
          "4194304")
    fails(grpc.StatusCode.UNIMPLEMENTED, lambda: channel.unary_unary("/echo.Echo/None")(b""),
          "no such method")
    fails(grpc.StatusCode.UNIMPLEMENTED,
          lambda: channel.unary_unary("/echo.Echo/Sum")(b"x" * 2000, compression=grpc.Compression.Gzip),
          "compress")
    fails(grpc.StatusCode.NOT_FOUND, lambda: many(iter([b""] * 13)), "13 % of \u00e4")
    # Both ways in turn: each answer comes before the next message goes.
    more = threading.Semaphore(1)

    def in_turn():
        for i in range(50):
            more.acquire()
            yield b"%d" % i

    for i, m in enumerate(each(in_turn())):
        assert m == b"%d" % i
        more.release()
    # Given up by the client: its end is told.
    gone = each(iter(lambda: time.sleep(0.01) or b"x", None))
    next(gone)
    gone.cancel()
    until(lambda: s.stats()[0] == s.stats()[1])
    channel.close()
    s.close()


def token():
    s = Server("secret")
    channel = grpc.insecure_channel(s.at)
    one = methods(channel)[0]
    fails(grpc.StatusCode.UNAUTHENTICATED, lambda: one(b""))
    for wrong in ("Bearer secre", "Bearer secret2", "Bearer secreT", "secret", "Bearer", ""):
        fails(grpc.StatusCode.UNAUTHENTICATED, lambda: one(b"", metadata=[("authorization", wrong)]))
    assert one(b"a", metadata=[("authorization", "Bearer secret")]) == b"1 1"
    assert channel.unary_unary("/open.Echo/Sum")(b"a") == b"1 1"  # the method decides
    assert ("status 16" in client(s.at, "/echo.Echo/Sum", 1, 1, "no") and
            "message 1 1" in client(s.at, "/echo.Echo/Sum", 1, 1, "secret"))
    channel.close()
    s.close()


def tls():
    key = ["@%s/server.pem" % FOLDER, "@%s/server.key" % FOLDER]
    s = Server("-", *key)
    assert methods(grpc.secure_channel(s.at, grpc.ssl_channel_credentials(file("ca.pem"))))[2](iter([b"x" * 3000000])).next() == b"x" * 3000000
    wrong = grpc.secure_channel(s.at, grpc.ssl_channel_credentials(file("other.pem")))
    fails(grpc.StatusCode.UNAVAILABLE, lambda: methods(wrong)[0](b""))
    ca, other = "@%s/ca.pem" % FOLDER, "@%s/other.pem" % FOLDER
    assert client(s.at, "/echo.Echo/Each", 3, 1000000, "-", ca) == "bytes 1000000\n" * 3 + "status 0 \n"
    assert "message 5 5000" in client("127.0.0.1:%d" % s.port, "/echo.Echo/Sum", 5, 1000, "-", ca)
    said = client(s.at, "/echo.Echo/Sum", 1, 1, "-", other)
    assert "status 14" in said and "NOT trusted" in said, said
    said = client(s.at, "/echo.Echo/Sum", 1, 1)
    assert "status 14" in said, said  # no TLS
    # TLS without HTTP/2, and half a handshake.
    context = ssl.create_default_context(cadata=file("ca.pem").decode())
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.wrap_socket(s.raw(), server_hostname="localhost").recv(1)
    except (ssl.SSLError, OSError):
        pass
    half = s.raw()
    half.send(b"\x16\x03\x01\x02\x00\x01")
    assert methods(grpc.secure_channel(s.at, grpc.ssl_channel_credentials(file("ca.pem"))))[0](b"") == b"1 0"
    s.close()
    s = Server("-", *key, ca)
    fails(grpc.StatusCode.UNAVAILABLE,
          lambda: methods(grpc.secure_channel(s.at, grpc.ssl_channel_credentials(file("ca.pem"))))[0](b""))
    both = grpc.ssl_channel_credentials(file("ca.pem"), file("client.key"), file("client.pem"))
    assert methods(grpc.secure_channel(s.at, both))[0](b"") == b"1 0"
    s.close()
    # Another name than the certificate's.
    s = Server("-", "@%s/client_only.pem" % FOLDER, "@%s/client_only.key" % FOLDER)
    said = client(s.at, "/echo.Echo/Sum", 1, 1, "-", "@%s/client_only.pem" % FOLDER)
    assert "status 14" in said and "name" in said, said
    s.close()


# ---- what no client of grpcio sends ----
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


SETTINGS = frame(4, 0, 0)


def read_all(c):
    c.settimeout(20)
    got = b""
    try:
        while True:
            b = c.recv(65536)
            if not b:
                return got
            got += b
    except ConnectionResetError:
        return got


def frames(c, done):
    """What comes, as {stream: [(type, flags, payload), ...]}, until done() says so."""
    c.settimeout(20)
    got, b = {}, b""
    while not done(got):
        more = c.recv(65536)
        assert more, got
        b += more
        while len(b) >= 9 and len(b) >= 9 + int.from_bytes(b[:3], "big"):
            n = 9 + int.from_bytes(b[:3], "big")
            got.setdefault(int.from_bytes(b[5:9], "big"), []).append((b[3], b[4], b[9:n]))
            b = b[n:]
    return got


def hostile():
    s = Server()
    one = methods(grpc.insecure_channel(s.at))[0]
    for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 100, PREFACE + b"\xff" * 1000,
                    PREFACE + SETTINGS + frame(1, 4, 1, b"\xff" * 50),
                    PREFACE + SETTINGS + frame(0, 0, 1, b"x"), PREFACE + frame(4, 0, 0, b"x")):
        for stopped in (False, True):  # stopped: connection and bytes are there at once, as on a busy machine
            if stopped:
                s.p.send_signal(signal.SIGSTOP)
            c = s.raw()
            c.sendall(garbage)
            s.p.send_signal(signal.SIGCONT)
            got = read_all(c)  # it is cut, and soon
            # the greeting came first, by which others see what is here
            assert got[3:4] == b"\x04", (garbage, stopped, got)
    # Rapid resets end in GOAWAY. nghttp2 lets 1,000 of them pass, and 33 more each second. It goes on until
    # that is sent, which is at the end of a turn: of 4 reads of 64 KiB (rpc.c). All lie there at once, as on
    # a busy machine, so that is what a turn finds.
    began, since = s.stats()[0], time.monotonic()
    one_more = frame(1, 4, 1, HEADERS) + frame(3, 0, 1, struct.pack(">I", 8))
    c = s.raw()
    try:
        c.sendall(PREFACE + SETTINGS +
                  b"".join(frame(1, 4, i, HEADERS) + frame(3, 0, i, struct.pack(">I", 8))
                           for i in range(1, 16001, 2)))
    except OSError:
        pass
    read_all(c)
    took, began = time.monotonic() - since, s.stats()[0] - began
    assert 500 < began <= 1000 + 33 * (took + 1) + 4 * 65536 // len(one_more), (began, took)
    # Messages cut anywhere: those in one frame, those in frames of one byte.
    c = s.raw()
    message = b"\x00" + struct.pack(">I", 3) + b"abc"
    c.sendall(PREFACE + SETTINGS + frame(1, 4, 1, HEADERS) +
              b"".join(frame(0, 0, 1, message[i:i + 1]) for i in range(8)) +
              frame(0, 1, 1, message * 3))
    c.sendall(frame(1, 4, 3, HEADERS) + frame(0, 1, 3, message[:7]) + frame(6, 0, 0, b"12345678"))
    # No gRPC: a plain answer.
    c.sendall(frame(1, 5, 5, b"\x82\x86\x41\x01a\x04\x0e/echo.Echo/Sum"))
    got = frames(c, lambda got: all(any(k == 1 and flags & 1 for k, flags, _ in got.get(i, []))
                                    for i in (1, 3, 5)) and any(k == 6 for k, *_ in got[0]))
    assert (0, 0, b"\0\0\0\0\x044 12") in got[1] and (6, 1, b"12345678") in got[0], got
    assert [k for k, *_ in got[3]] == [1] == [k for k, *_ in got[5]], got  # refused: headers alone
    # A client that takes no answers is cut at 4 MiB and costs nobody else.
    slow = s.raw()
    slow.sendall(PREFACE + SETTINGS +
                 frame(1, 4, 1, HEADERS.replace(b"/Sum", b"/Pour").replace(b"\x04\x0e", b"\x04\x0f")) +
                 frame(0, 0, 1, b"\0" * 5))
    read_all(slow)
    fails(grpc.StatusCode.RESOURCE_EXHAUSTED, lambda: one(b"x" * (5 << 20)))
    assert one(b"abc") == b"1 3"
    s.close()


def slow_reader():
    """Reads nothing for a while: what it is sent waits, and comes."""
    s = Server()
    channel = grpc.insecure_channel(s.at)
    stream = methods(channel)[2](iter([b"y" * 500000] * 6))
    time.sleep(0.5)
    assert methods(channel)[0](b"1") == b"1 1"
    assert [len(m) for m in stream] == [500000] * 6
    s.close()


def many():
    """Streams that are open and say something now and then."""
    s = Server()
    channels = [grpc.insecure_channel(s.at, [("grpc.use_local_subchannel_pool", 1)]) for _ in range(60)]
    go = threading.Event()

    def slowly():
        yield b"x"
        go.wait(30)
        yield b"y"

    with concurrent.futures.ThreadPoolExecutor(60) as pool:
        sums = [pool.submit(methods(c)[1], slowly()) for c in channels]
        until(lambda: s.stats()[0] == 60)
        before = s.stats()[2]
        time.sleep(1)
        assert s.stats()[2] - before < 0.2, "an idle server computes"
        go.set()
        assert all(x.result() == b"2 2" for x in sums)
    s.close()


# ---- our client against a grpcio server ----
def client(at, path, n, size, *more):
    p = subprocess.run([DRIVER, "call", at, path, str(n), str(size), *more], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, text=True, timeout=90)
    assert p.returncode in (0, 1), p
    return p.stdout


class Handler(grpc.GenericRpcHandler):
    def service(self, details):
        assert dict(details.invocation_metadata)["user-agent"].startswith("nccl-inspector/")
        return {"/a/Count": grpc.stream_unary_rpc_method_handler(
            lambda it, ctx: b"%d" % sum(len(m) for m in it)),
                "/a/Each": grpc.stream_stream_rpc_method_handler(lambda it, ctx: it),
                "/a/Early": grpc.stream_unary_rpc_method_handler(
                    lambda it, ctx: ctx.abort(grpc.StatusCode.NOT_FOUND, "no \u00e4%")),
                "/a/Big": grpc.stream_unary_rpc_method_handler(lambda it, ctx: b"x" * ((4 << 20) + 1))}.get(details.method)


def our_client():
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers([Handler()])
    port = server.add_insecure_port("127.0.0.1:0")
    secure = server.add_secure_port("127.0.0.1:0",
                                    grpc.ssl_server_credentials([(file("server.key"), file("server.pem"))]))
    server.start()
    at = "localhost:%d" % port
    assert client(at, "/a/Count", 3000, 999) == "message 2997000\nstatus 0 \n"
    assert client(at, "/a/Each", 4, 3000000) == "bytes 3000000\n" * 4 + "status 0 \n"
    assert client(at, "/a/None", 1, 1).startswith("status 12 ")
    assert client(at, "/a/Early", 100, 100000) == "status 5 no \u00e4%\n"
    assert client(at, "/a/Big", 1, 1).startswith("status 8 ")
    assert client("localhost:%d" % secure, "/a/Each", 2, 2000000, "-",
                  "@%s/ca.pem" % FOLDER) == "bytes 2000000\n" * 2 + "status 0 \n"
    server.stop(0)
    said = client("127.0.0.1:1", "/a/Each", 1, 1)
    assert "status 14 " in said and "broken Connection refused" in said, said
    for at in ("nowhere.invalid:1", "localhost", "a:b", "::1:5", "[::1:5", ":5", "localhost:70000"):
        assert client(at, "/", 1, 1).startswith("refused " + at), at
    # One that stops answering in the middle.
    mute = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=lambda: mute.accept()[0].close(), daemon=True).start()
    said = client("127.0.0.1:%d" % mute.getsockname()[1], "/a/Each", 1, 1)
    assert "status 14 " in said and "broken" in said, said


# ---- messages ----
def decoded(kind, message):
    data = message if isinstance(message, bytes) else message.SerializeToString()
    p = subprocess.run([DRIVER, "decode", kind], input=data, stdout=subprocess.PIPE, timeout=30)
    assert p.returncode in (0, 3), p.returncode
    return p.stdout if p.returncode == 0 else None


def back(kind, message):
    got = decoded(kind, message)
    assert got is not None, message
    out = type(message)()
    out.ParseFromString(got)
    assert repr(out) == repr(message), (kind, str(out)[:2000], str(message)[:2000])


def messages():
    gpu = theirs.GPUMetric(physical_idx=7, name="NVIDIA H100 80GB HBM3", gpu_util=0.37, mem_util=0.5,
                           dram_bw_gbps_rx=3, dram_bw_gbps_tx=223333,
                           nvlink_bw_gbps_rx=1, nvlink_bw_gbps_tx=2.5)
    system = theirs.SystemMetrics(dram_util=50, disk_util=25)
    back("initial", theirs.InitialInfo(hostname="n\u00e41",
                                       gpus=[theirs.GPUInfo(physical_idx=i, name="g%d" % i)
                                             for i in range(64)]))
    back("update", theirs.MetricsUpdate(hostname="n1", gpus_metrics=[gpu] * 8, system_metrics=system,
                                        timestamp=1.79e9))
    back("status", theirs.StatusResponse(freq=500, enable_nvlink_profiling=True, is_profiling=True,
                                         output_filename="x.json", frame_id_counter=9,
                                         connected_clients=["a_ipv4:1.2.3.4:5", "b"]))
    back("reply", theirs.StartProfilingResponse(success=True, message="Profiling started.",
                                                output_file="a.json"))
    back("name", theirs.StartProfilingRequest(name="warm-up"))
    back("enable", theirs.SetBandwidthProfilingRequest(enable=True))
    u = theirs.MetricsUpdate()
    # What no GPU sends is unknown, what one sends is 0 where it is not there; links are NVLink; unknown keys
    # are passed over.
    rx = theirs.GPUMetric(physical_idx=1, dram_bw_gbps_rx=5)
    rx.extra_metrics.update({"fan": 3})
    u.ParseFromString(decoded("update",
                              theirs.MetricsUpdate(hostname="n1", gpus_metrics=[theirs.GPUMetric(), rx],
                                                             p2p_links=[theirs.P2PLink(local_gpu_physical_id=1, aggregated_max_bandwidth_gbps=2)] * 2)))
    a, b = u.gpus_metrics
    assert (a.gpu_util, a.mem_util, a.dram_bw_gbps_rx, b.dram_bw_gbps_rx,
            b.nvlink_bw_gbps_tx) == (0, 0, 0, 5, 4e9 / 1024), u
    assert (math.isnan(a.dram_bw_gbps_tx) and math.isnan(a.nvlink_bw_gbps_tx) and
            math.isnan(u.system_metrics.dram_util)), u
    u.ParseFromString(decoded("update",
                              theirs.MetricsUpdate(gpus_metrics=[theirs.GPUMetric(gpu_util=math.nan)],
                                                   timestamp=math.inf)))
    assert math.isnan(u.gpus_metrics[0].gpu_util) and u.timestamp == 0, u
    c = theirs.ClusterStatusResponse()
    c.ParseFromString(decoded("node",
                              theirs.MetricsUpdate(hostname="n1", gpus_metrics=[gpu], system_metrics=system)))
    g = c.nodes[0].gpus[0]
    assert (c.nodes[0].node_id, g.gpu_id, g.memory_used, g.memory_total, g.dram_bandwidth, g.nvlink_bandwidth,
            g.temperature, g.power) == \
        ("n1", 7, 8192, 16384, 223336, 3.5, -1, -1) and abs(g.utilization - 0.37) < 1e-9, c
    # Ours, with all fields at their ends.
    big, low = 2**64 - 1, -2**63
    sample = ours.Sample(seq=big, time_ns=low, memory=0.5, disk=math.inf, cpu=math.nan)
    for i in range(64):
        sample.gpu.add(index=-i, name="g\u00e4%d" % i, util=i, memory=1, pcie_rx=2, pcie_tx=3, nvlink_rx=4,
                       nvlink_tx=5, power_w=6, temperature_c=7, sm_hz=8)
        sample.nic.add(name="cxi%d" % i, rx=1, tx=2, link=3, held=4)
        sample.open.add(job="77", comm="tp", function="AllReduce", rank=-2**31, sn=big, age_s=1.5, stuck=True)
    for i in range(32):
        sample.job.add(job="77", attempt="1", uid=2**32 - 1, processes=8, state=i % 3, operations=big,
                       bytes=1, bus_bytes=2, bus_seconds=3, in_flight=4,
                       stuck=5, oldest_s=6, verdict="v" * 511)
    back("agent", ours.FromAgent(sample=sample, sent_ns=low))
    back("agent", ours.FromAgent(hello=ours.Hello(uuid="u" * 39, host="h" * 255, version="1.2", protocol=1,
                                                  first=1, next=big, skew_ns=-5)))
    back("head", ours.FromHead(welcome=True, protocol=1, version="1", have=big, period_ns=1, echo_ns=-1,
                               received_ns=2, now_ns=2**63 - 1))
    # Refused.
    for kind, m in (("initial", theirs.InitialInfo(hostname="h" * 256)),
                    ("initial", theirs.InitialInfo(gpus=[theirs.GPUInfo()] * 65)),
                    ("update", theirs.MetricsUpdate(gpus_metrics=[gpu] * 65)),
                    ("name", theirs.StartProfilingRequest(name="n" * 300)),
                    ("agent", b""), ("agent", ours.FromAgent(sent_ns=1)),
                    ("agent", ours.FromAgent(hello=ours.Hello(host="no uuid"))),
                    ("agent", ours.FromAgent(hello=ours.Hello(uuid="u"), sample=ours.Sample())),
                    ("agent", ours.FromAgent(sample=ours.Sample(job=[ours.Job()] * 33)))):
        assert decoded(kind, m) is None, (kind, m)
    whole = theirs.MetricsUpdate(hostname="n1", gpus_metrics=[gpu], system_metrics=system).SerializeToString()
    for cut in range(1, len(whole)):  # as Python has it
        try:
            theirs.MetricsUpdate().ParseFromString(whole[:cut])
            sound = True
        except Exception:
            sound = False
        assert (decoded("update", whole[:cut]) is not None) == sound, cut
    # Texts are safe to print, and cut between characters.
    i = theirs.InitialInfo()
    i.ParseFromString(decoded("initial",
                              b"\x0a\x06a\x1b\x00\xffbc\x12\x34\x12\x32" + "a".encode() * 46 +
                              "\u00e4\u00e4".encode()))
    assert (i.hostname, i.gpus[0].name) == ("a???bc", "a" * 46), i


def client_only():
    subprocess.run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout %s/client_only.key -out %s/client_only.pem "
                   "-subj /CN=elsewhere -addext subjectAltName=DNS:elsewhere" % (FOLDER, FOLDER), shell=True,
                   check=True, stderr=subprocess.DEVNULL)


failed = 0
client_only()
for test in (messages, calls, token, tls, hostile, slow_reader, many, our_client):
    began = time.monotonic()
    try:
        test()
        print("ok %s %.1f s" % (test.__name__, time.monotonic() - began), flush=True)
    except BaseException:
        failed += 1
        print("FAIL %s: %s" % (test.__name__, traceback.format_exc()), flush=True)
sys.exit(failed > 0)
