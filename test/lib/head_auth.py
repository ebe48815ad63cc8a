"""Who may do what with a head: without a token and with it, from this machine and from elsewhere, by TLS.

    head_auth.py NAMESPACE       "": none could be made; else the head runs in it as 10.99.0.1, and this script stands outside
"""
import contextlib
import json
import os
import re
import resource
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error

import agent
import grpc
import head
import rpc_pb2 as theirs

NAMESPACE = sys.argv[1]
TOKEN, GSPROF = head.WORK + "/secret", head.WORK + "/bin/gsprof"
all_of_agents = contextlib.ExitStack()
open(TOKEN, "w").write("right token\n")
os.chmod(TOKEN, 0o600)


def refused(*options):
    p = subprocess.run([head.INSPECTOR, "head", "--port", str(head.free_port()), "--http-port",
                        str(head.free_port()), "--data-dir", head.WORK + "/r", *options],
                       capture_output=True, text=True, timeout=20)
    assert p.returncode not in (0, -11) and p.stderr, (options, p.returncode, p.stderr)
    return p.stderr


def code_of(call):
    try:
        call()
        return None
    except grpc.RpcError as e:
        return e.code()


def start_code(h, token=None):
    return code_of(lambda: h.unary("StartProfiling", theirs.StartProfilingRequest(name="x"),
                                   theirs.StartProfilingResponse, token=token))


def metrics_code(h, token=None):
    """None: they are taken."""
    g = head.Gsprof(h, "guest", connect=False, token=token)
    g.send(0.5)
    time.sleep(0.3)
    return code_of(g.close)


def commands(h, http, grpc_code, token=None):
    """All that changes something is refused with these codes."""
    own = {"Authorization": "Bearer " + token} if token else {}
    for path in "/profiling/start", "/profiling/stop", "/profiling/resume", "/exit":
        code, headers, _ = h.ask("POST", path, {"name": "x"}, own)
        assert code == http, (path, code)
    for method in "StartProfiling", "StopProfiling", "SetBandwidthProfiling", "SetNVLinkProfiling", "Exit", "ReadClusterStatus":
        got = code_of(lambda: h.unary(method, head.Raw(b""), theirs.StartProfilingResponse, token=token))
        assert got == grpc_code, (method, got)
    assert h.p.poll() is None


def open_bind():
    for said in refused("--host", "0.0.0.0"), refused("--host", "0.0.0.0", "--token-file",
                                                      TOKEN), refused("--host", "::"):
        assert "--open" in said or "token" in said, said
    assert "go together" in refused("--tls-cert", TOKEN)
    with socket.create_server(("127.0.0.1", 0)) as s:  # what a user can change is named
        port = s.getsockname()[1]
        assert "--port=%d: 127.0.0.1:%d: Address already in use" % (port, port) in refused("--port", str(port))
        assert "--http-port=127.0.0.1:%d: Address already in use" % port in refused("--http-port", str(port))
    assert refused("--token-file", head.WORK + "/none") and refused("--client-ca", TOKEN)


def token():
    with head.Head("token", "--token-file", TOKEN) as h:
        for wrong in None, "wrong token", "right":
            commands(h, 401, grpc.StatusCode.UNAUTHENTICATED, wrong)
            assert metrics_code(h, wrong) == grpc.StatusCode.UNAUTHENTICATED, wrong
        for path in "/status", "/clients", "/metrics/latest", "/profiling/sessions", "/events":
            code, headers, _ = h.ask("GET", path)
            assert code == 401, (path, code)
        h.token = "right token"
        h.start("a")
        h.stop("a")
        assert start_code(h) is None and metrics_code(h, h.token) is None
        a = head.Agent(h, "n1", token="wrong token")
        head.until(lambda: a.errors)
        assert a.errors[0][0] == grpc.StatusCode.UNAUTHENTICATED, a.errors
        a.token = h.token
        head.until(lambda: a.acked > 0)
        a.close()
        # Its log says who was refused; of very many in a second how many.
        for line in r"refused StartProfiling to ipv4:127\.0\.0\.1:\d+", r"HTTP refused \d+ requests", r"client n1_\S+ came":
            assert re.search(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ %s$" % line, h.said(), re.M), (line, h.said())
        with grpc.insecure_channel(h.at) as c:
            call = c.unary_unary(head.GSPROF + "Exit", lambda b: b, lambda b: b)

            def many():
                wait = [call.future(b"") for _ in range(200)]
                return [f.exception() for f in wait] and "lines were left out" in h.said()
            head.until(many, every=1.1)


def insecure():
    """Numbers from everybody, commands from nobody without the token."""
    with head.Head("insecure", "--token-file", TOKEN, "--insecure-gsprof") as h:
        commands(h, 401, grpc.StatusCode.UNAUTHENTICATED)
        assert metrics_code(h) is None
        assert h.unary("GetStatus", head.Raw(b""), theirs.StatusResponse).freq == 200
        assert h.unary("Connect", head.Raw(head.ours_initial("n1", 1)), head.ConnectResponse).success
        assert start_code(h, "right token") is None


def closed(s):
    """Its end has come; greetings may lie before it."""
    s.setblocking(False)
    try:
        while True:
            if not s.recv(65536):
                return True
    except BlockingIOError:
        return False
    except OSError:
        return True


def elsewhere():
    if not NAMESPACE:
        return print("no network namespace: not tried from elsewhere")
    there = dict(prefix=("ip", "netns", "exec", NAMESPACE), http="10.99.0.1")

    def far(name, *options):
        h = head.Head(name, "--host", "10.99.0.1", *options, **there)
        h.at = "10.99.0.1:%d" % h.port
        return h
    with far("far", "--insecure-gsprof") as h:
        assert metrics_code(h) is None
        assert h.unary("GetStatus", head.Raw(b""), theirs.StatusResponse).freq == 200
        for method in "StartProfiling", "StopProfiling", "Exit", "SetNVLinkProfiling":
            got = code_of(lambda: h.unary(method, head.Raw(b""), theirs.StartProfilingResponse))
            assert got == grpc.StatusCode.PERMISSION_DENIED, (method, got)
        a = head.Agent(h, "n1")
        head.until(lambda: a.errors)
        assert a.errors[0][0] == grpc.StatusCode.PERMISSION_DENIED, a.errors
        a.close()
        # One address beyond this machine has a quarter of the connections; who is one too many is closed, and
        # others are served.
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        many = [socket.create_connection(("10.99.0.1", h.port)) for _ in range(1030)]
        head.until(lambda: sum(closed(s) for s in many) >= 6)
        assert 6 <= sum(closed(s) for s in many) < 12
        for s in many:
            s.close()
        head.until(lambda: metrics_code(h) is None)
        try:
            h.ask("GET", "/status", timeout=3)
            raise AssertionError("HTTP is reached from elsewhere")
        except (urllib.error.URLError, OSError):
            pass
    with far("far_open", "--open") as h:
        h.start("a")
        h.stop("a")
        assert start_code(h) is None and metrics_code(h) is None


def said(code, what, program, *words):
    """The program ends with that code, and says that."""
    p = subprocess.run([*([head.INSPECTOR, "session"] if program == "session" else [GSPROF]), *words],
                       capture_output=True, text=True, timeout=40)
    assert (p.returncode == code and
            what in p.stdout + p.stderr), (program, words, what, p.returncode, p.stdout, p.stderr)
    print("    " + (p.stdout + p.stderr).strip().split("\n")[0])


def tls():
    w = head.WORK

    def made(*words):
        subprocess.run(["openssl", *words], check=True, stderr=subprocess.DEVNULL)

    def new(name, *more):
        made("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
             "%s/%s.key" % (w, name), "-subj", "/CN=" + name, *more)
    for ca in "ca", "nobody":
        new(ca, "-x509", "-out", "%s/%s.pem" % (w, ca), "-addext", "basicConstraints=critical,CA:true")
    open(w + "/san", "w").write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for name, ca in ("server", "ca"), ("client", "ca"), ("stranger", "nobody"):
        new(name, "-out", "%s/%s.csr" % (w, name))
        made("x509", "-req", "-in", "%s/%s.csr" % (w, name), "-CA", "%s/%s.pem" % (w, ca), "-CAkey",
             "%s/%s.key" % (w, ca), "-CAcreateserial",
             "-extfile", w + "/san", "-out", "%s/%s.pem" % (w, name))

    def pem(name):
        return open("%s/%s" % (w, name), "rb").read()
    with head.Head("tls", "--tls-cert", w + "/server.pem", "--tls-key", w + "/server.key", "--client-ca",
                   w + "/ca.pem", "--token-file", TOKEN) as h:
        def call(name, token="right token"):
            key, chain = (pem(name + ".key"), pem(name + ".pem")) if name else (None, None)
            with grpc.secure_channel(h.at, grpc.ssl_channel_credentials(pem("ca.pem"), key, chain)) as c:
                return code_of(lambda: h.unary("GetStatus", head.Raw(b""), theirs.StatusResponse, channel=c,
                                               token=token))
        assert call("client") is None
        assert call("client", "wrong") == grpc.StatusCode.UNAUTHENTICATED
        assert call("stranger") == call(None) == grpc.StatusCode.UNAVAILABLE
        assert metrics_code(h, "right token") == grpc.StatusCode.UNAVAILABLE  # without TLS
        h.url, h.token = "https://127.0.0.1:%d" % h.http_port, "right token"
        h.context = ssl.create_default_context(cafile=w + "/ca.pem")
        h.context.load_cert_chain(w + "/client.pem", w + "/client.key")
        assert h.get("/status")["freq"] == 200
        code, _, _ = h.ask("GET", "/status", None, {"Authorization": "Bearer wrong"})
        assert code == 401, code
        own = h.context
        for name in None, "stranger":  # TLS that others signed, or nobody: not even the page
            h.context = ssl.create_default_context(cafile=w + "/ca.pem")
            if name:
                h.context.load_cert_chain("%s/%s.pem" % (w, name), "%s/%s.key" % (w, name))
            for path in "/status", "/page":
                code, _, text = h.ask("GET", path)
                assert code == 403 and "client certificate" in text, (name, path, code, text)
        h.context = own
        trust = ["--token-file", TOKEN, "--ca", w + "/ca.pem"]
        mine = trust + ["--cert", w + "/client.pem", "--key", w + "/client.key"]
        http, rpc = "127.0.0.1:%d" % h.http_port, h.at
        said(0, "one runs", "session", "start", "one", "--head", http, *mine)
        said(1, "client certificate", "session", "list", "--head", http, *trust)
        said(1, "--cert and --key go together", "session", "list", "--head", http, *mine[:-2])
        said(0, "Is Profiling: Yes", "gsprof", "status", rpc, *mine)
        said(1, "does it want a certificate of the client (--cert FILE", "gsprof", "status", rpc, *trust)
        # An agent of ours has one of its own.
        a = agent.Agent(all_of_agents.enter_context(agent.Place(all_of_agents.enter_context(tempfile.TemporaryDirectory()))), "--node", "ours", "--head", rpc,
                        "--head-token-file", TOKEN, "--head-ca", w + "/ca.pem", "--head-cert",
                        w + "/client.pem", "--head-key", w + "/client.key").wait()
        head.until(lambda: h.taken("ours") > 1, 40)
        a.kill(15)
        # What people mix up.
        said(1, "does it want TLS (--ca FILE), or is it another port?", "session", "list", "--head", http,
             "--token-file", TOKEN)
        said(1, "does it speak TLS there (--ca FILE", "gsprof", "status", rpc, "--token-file", TOKEN)
        said(1, "it speaks no HTTP/2 there: the other port?", "gsprof", "status", http, *mine)
    with head.Head("plain") as h:
        http, rpc = "127.0.0.1:%d" % h.http_port, h.at
        said(1, "does it speak TLS there?", "session", "list", "--head", http, "--ca", w + "/ca.pem")
        said(1, "it speaks no TLS there", "gsprof", "status", rpc, "--ca", w + "/ca.pem")
        said(1, "what answers there is not HTTP: another port?", "session", "list", "--head", rpc)
        said(1, "port?", "gsprof", "status", http)  # it closes the connection, or answers in its own words
    said(1, "does it run there?", "session", "list", "--head", http)
    said(1, "Connection refused", "gsprof", "status", rpc)


os.makedirs(os.path.dirname(GSPROF), exist_ok=True)
os.symlink(head.INSPECTOR, GSPROF)
with all_of_agents:
    head.run([open_bind, token, insecure, elsewhere, tls])
