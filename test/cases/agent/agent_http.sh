#!/usr/bin/env bash
# The agent's HTTP: pages, types, methods, bodies, paths.
. "$(dirname "$0")/../../lib/agent.sh"
begin http
is "metrics before readers have settled, or after" "$(code "$URL/metrics" | tr 2 5 | head -c 1)" 5
settled
is metrics "$(code "$URL/metrics")" 200
grep -qi '^Content-Type: text/plain; version=0.0.4' "$TMP/head" || fail "type of the text: $(cat "$TMP/head")"
grep -qi '^Cache-Control: no-store' "$TMP/head" || fail "may be stored"
! grep -qi '^Access-Control' "$TMP/head" || fail "other origins may read it"
if command -v promtool >/dev/null; then
  promtool check metrics <"$TMP/body" >"$TMP/prom" 2>&1 || { fail "promtool:"; cat "$TMP/prom"; }
fi
sleep 0.2
is OpenMetrics "$(code "$URL/metrics" -H 'Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5')" 200
grep -qi '^Content-Type: application/openmetrics-text' "$TMP/head" || fail "type of OpenMetrics"
is "end of OpenMetrics" "$(tail -n 1 "$TMP/body")" "# EOF"
is now "$(code "$URL/v1/now")" 200
python3 - "$TMP/body" <<'P' || fail "/v1/now"
import json, sys
j = json.load(open(sys.argv[1]))
assert (j["schema"] == "nccl-inspector-now-1" and j["jobs"] == [] and j["ranks"] == [] and j["node"] and
        j["version"]), j
P
is health "$(code "$URL/healthz")-$(cat "$TMP/body")" 200-ok
is "another path" "$(code "$URL/")" 404
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
for path in /nothing /metrics/ //metrics /../../etc/passwd /..%2f..%2fetc%2fpasswd /%2e%2e/state \
  /agent.state /v1 /V1/now; do
  is "$path" "$(code "$URL$path" --path-as-is)" 404
done
refused=$(metric agent_refused_requests_total)
[ "${refused:-0}" -ge 15 ] || fail "$refused refused requests"
c=$(code "$URL/metrics" -H "X: $(head -c 100000 /dev/zero | tr '\0' a)")
[ "$c" = 431 ] || [ "$c" = 413 ] || [ "$c" = 000 ] || fail "a header of 100 kB: $c"
ends 0
finish
