#!/usr/bin/env bash
# The agent's HTTP: pages, types, methods, bodies, paths; what is too long, too slow or too many costs nobody else an answer.
. "$(dirname "$0")/../../lib/agent.sh"
begin http
is "metrics before readers have settled, or after" "$(code "$URL/metrics" | tr 2 5 | head -c 1)" 5
settled
is metrics "$(code "$URL/metrics")" 200
grep -qi '^Content-Type: text/plain; version=0.0.4' "$TMP/head" || fail "type of the text: $(cat "$TMP/head")"
grep -qi '^Cache-Control: no-store' "$TMP/head" || fail "may be stored"
! grep -qi '^Access-Control' "$TMP/head" || fail "other origins may read it"
if command -v promtool >/dev/null; then promtool check metrics <"$TMP/body" >"$TMP/prom" 2>&1 || { fail "promtool:"; cat "$TMP/prom"; }; fi
sleep 0.2
is OpenMetrics "$(code "$URL/metrics" -H 'Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5')" 200
grep -qi '^Content-Type: application/openmetrics-text' "$TMP/head" || fail "type of OpenMetrics"
is "end of OpenMetrics" "$(tail -n 1 "$TMP/body")" "# EOF"
is now "$(code "$URL/v1/now")" 200
python3 - "$TMP/body" <<'P' || fail "/v1/now"
import json, sys
j = json.load(open(sys.argv[1]))
assert j["schema"] == "nccl-inspector-now-1" and j["jobs"] == [] and j["ranks"] == [] and j["node"] and j["version"], j
P
is health "$(code "$URL/healthz")-$(cat "$TMP/body")" 200-ok
is links "$(code "$URL/")" 200
is query "$(code "$URL/healthz?a=b&c=%00")" 200
is HEAD "$(code "$URL/metrics" -I)" 200
grep -qi '^Content-Length: [1-9]' "$TMP/head" || fail "HEAD without a length"
for method in POST PUT DELETE OPTIONS TRACE PATCH CONNECT x; do
  c=$(code "$URL/metrics" -X $method)
  [ "$c" = 405 ] || { [ $method = CONNECT ] && [ "$c" = 400 ]; } || fail "$method: $c"
done
is POST "$(code "$URL/metrics" -d abc)" 405
grep -qi '^Allow: GET, HEAD' "$TMP/head" || fail "405 without Allow"
is "GET with a body" "$(code "$URL/metrics" -X GET -d abc)" 413
is "GET with chunks" "$(code "$URL/metrics" -X GET -H 'Transfer-Encoding: chunked' -d abc)" 413
for path in /nothing /metrics/ //metrics /../../etc/passwd /..%2f..%2fetc%2fpasswd /%2e%2e/state /agent.state /v1 /V1/now; do
  is "$path" "$(code "$URL$path" --path-as-is)" 404
done
refused=$(metric agent_refused_requests_total)
[ "${refused:-0}" -ge 15 ] || fail "$refused refused requests"
c=$(code "$URL/metrics" -H "X: $(head -c 100000 /dev/zero | tr '\0' a)")
[ "$c" = 431 ] || [ "$c" = 413 ] || [ "$c" = 000 ] || fail "a header of 100 kB: $c"
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
slow.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\nX: ")
assert get() == 200
for junk in (b"\0" * 4096, b"\r\n" * 4096, b"GET\r\n\r\n", b"\xff\xfe" * 999 + b"\r\n\r\n", b"GET /metrics HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"):
    s = connect()
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
# Several requests on one connection.
s = connect()
for _ in range(3):
    s.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
    assert s.recv(4096).startswith(b"HTTP/1.1 200")
P
# Two hundred that all want an answer.
seq 200 | xargs -P 200 -I{} curl -s --max-time 20 -o /dev/null -w '%{http_code}\n' "$URL/metrics" | sort | uniq -c >"$TMP/codes"
is "200 at once" "$(tr -s ' ' <"$TMP/codes")" " 200 200"
ends 0
finish
