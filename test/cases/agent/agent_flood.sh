#!/usr/bin/env bash
# What is broken, too long, too slow or too many costs nobody else an answer of the agent.
. "$(dirname "$0")/../../lib/agent.sh"
begin flood
settled
python3 - "$URL" <<'P' || fail "connections"
import socket, sys, time, urllib.request
url = sys.argv[1]
host, port = url.split("//")[1].rsplit(":", 1)
def connect():
    s = socket.create_connection((host, int(port)), 10)
    s.settimeout(10)
    return s
def get():
    return urllib.request.urlopen(url + "/healthz", timeout=20).status
# Half a request, and bytes that are none.
slow = connect()
slow.sendall(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
assert get() == 200
for junk in (b"\0" * 4096, b"\r\n" * 4096, b"GET\r\n\r\n", b"\xff\xfe" * 999 + b"\r\n\r\n",
             b"GET /metrics HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"):
    s = connect()
    s.settimeout(0.5)
    try:
        s.sendall(junk)
        s.shutdown(socket.SHUT_WR)
        while s.recv(4096): pass
    except OSError:
        pass
    s.close()
assert get() == 200
# A header of a megabyte is not kept.
s = connect()
try:
    s.sendall(b"GET / HTTP/1.1\r\nX: " + b"a" * (1 << 20) + b"\r\n\r\n")
    answer = s.recv(100)
    assert not answer or b" 4" in answer, answer
except OSError:
    pass
# Many at once that say nothing: they go within seconds, and who asks is answered.
many = [connect() for _ in range(100)]
for m in many[::2]: m.sendall(b"GET /")
begun = time.time()
assert get() == 200
print("answered after %.1f s behind 100 silent connections" % (time.time() - begun))
for m in many: m.close()
# Thousands that are left behind with half a request: who asks next is answered all the same.
for _ in range(3000):
    m = socket.socket()
    m.setblocking(False)
    try: m.connect((host, int(port)))
    except BlockingIOError: pass
    try: m.sendall(b"GET / HTTP/1.1\r\n")
    except OSError: pass
    m.close()
begun = time.time()
assert get() == 200
print("answered after %.1f s behind 3,000 that were left" % (time.time() - begun))
# Several requests on one connection.
s = connect()
for _ in range(3):
    s.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert s.recv(4096).startswith(b"HTTP/1.1 200")
P
# Two hundred that all want an answer.
seq 200 | xargs -P 200 -I{} curl -s --max-time 20 -o /dev/null -w '%{http_code}\n' "$URL/metrics" | sort |
  uniq -c >"$TMP/codes"
is "200 at once" "$(tr -s ' ' <"$TMP/codes")" " 200 200"
ends 0
finish
