"""Agents that are none: serves made-up documents of schema nccl-inspector-now-1 to `top`, one port for all.

  fake_agents.py FOLDER

FOLDER/NAME is what GET /NAME/v1/now answers with, read at each request; /NAME/api/v1/query too, where NAME
holds what a Prometheus says.
Special files: NAME.hang, the request is never answered; NAME.close, the connection is closed at once;
NAME.status, the status to answer with; NAME.token, what must be sent as a bearer token. FOLDER/port says
where it listens once it does; FOLDER/asked has a line a request. HTTP/1.1, connections stay open. Ends when
its parent does.
"""
import ctypes
import os
import selectors
import signal
import socket
import sys
import urllib.parse

root = sys.argv[1]
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
asked = open(os.path.join(root, "asked"), "a", buffering=1)


def read(name):
    try:
        with open(os.path.join(root, name), "rb") as f:
            return f.read()
    except OSError:
        return None


def answer(head):
    """What to send; None: nothing, ever; "": close."""
    lines = head.decode("latin-1").split("\r\n")
    path, _, query = lines[0].split(" ")[1].partition("?")
    name = path.strip("/").split("/")[0]
    fields = dict(x.split(": ", 1) for x in lines[1:] if ": " in x)
    asked.write(f"{path} {urllib.parse.unquote(query)}\n")
    if read(name + ".close") is not None:
        return b""
    if read(name + ".hang") is not None:
        return None
    status = (read(name + ".status") or b"200").strip()
    token = read(name + ".token")
    if token is not None and fields.get("Authorization") != "Bearer " + token.decode().strip():
        status = b"401"
    body = read(name)
    if body is None:
        status, body = b"404", b"no such agent\n"
    return b"HTTP/1.1 " + status + b" x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


server = socket.create_server(("127.0.0.1", 0), backlog=512)
poll = selectors.DefaultSelector()
poll.register(server, selectors.EVENT_READ)
with open(os.path.join(root, "port.new"), "w") as f:
    f.write(str(server.getsockname()[1]))
os.rename(os.path.join(root, "port.new"), os.path.join(root, "port"))
text = {}
while True:
    for key, _ in poll.select():
        if key.fileobj is server:
            c = server.accept()[0]
            poll.register(c, selectors.EVENT_READ)
            text[c] = b""
            continue
        c = key.fileobj
        try:
            more = c.recv(65536)
        except OSError:
            more = b""
        text[c] += more
        out = b"" if not more else None
        if b"\r\n\r\n" in text[c]:
            out, text[c] = answer(text[c]), b""
        if out:
            try:
                c.settimeout(5)
                c.sendall(out)
                c.setblocking(True)
            except OSError:  # it had enough of it
                out = b""
        if out == b"":
            poll.unregister(c)
            del text[c]
            c.close()
