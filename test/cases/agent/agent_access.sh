#!/usr/bin/env bash
# Who may read the agent: a token, TLS, addresses; what it refuses to begin with, and the files that it does
# not trust.
. "$(dirname "$0")/../../lib/agent.sh"
need openssl
cd "$TMP"
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost \
  -addext subjectAltName=IP:127.0.0.1 2>/dev/null
openssl genrsa -out other.pem 2048 2>/dev/null
cd - >/dev/null
echo "a-token-of-many-letters" >"$TMP/token"
echo >"$TMP/empty"
chmod 600 "$TMP"/*.pem "$TMP/token" "$TMP/empty"
tls=(--tls-cert "$TMP/cert.pem" --tls-key "$TMP/key.pem")

begin access --token-file "$TMP/token" "${tls[@]}"
case $URL in https://127.0.0.1:*) ;; *) fail "serves $URL" ;; esac
good=(-H "Authorization: Bearer a-token-of-many-letters")
settled "${good[@]}"
is "with the token" "$(code "$URL/metrics" "${good[@]}")" 200
is "any case of the scheme" "$(code "$URL/metrics" -H "Authorization: bearer a-token-of-many-letters")" 200
is "a certificate that is verified" "$(curl -s --cacert "$TMP/cert.pem" "${good[@]}" -o /dev/null -w '%{http_code}' "$URL/healthz")" 200
for wrong in "" "Bearer" "Bearer " "Bearer a" "Bearer a-token-of-many-letterz" \
  "Bearer a-token-of-many-letters2" "Basic a-token-of-many-letters" \
  "a-token-of-many-letters" "Bearer a-token-of-many-lettersa-token-of-many-letters"; do
  for path in / /metrics /v1/now /healthz /nothing; do
    is "$path with '$wrong'" "$(code "$URL$path" ${wrong:+-H "Authorization: $wrong"})" 401
  done
done
grep -qi '^WWW-Authenticate: Bearer' "$TMP/head" || fail "401 without WWW-Authenticate"
is "plain HTTP to TLS" "$(code "http${URL#https}/metrics" "${good[@]}")" 000
is "TLS 1.1" "$(code "$URL/metrics" "${good[@]}" --tlsv1.0 --tls-max 1.1)" 000
is "TLS still" "$(code "$URL/metrics" "${good[@]}")" 200
# A new certificate and a new token hold after SIGHUP, on the same port; what is broken changes nothing.
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$TMP/key.pem" -out "$TMP/cert.pem" -days 2 -subj /CN=new \
  2>/dev/null
echo "a-new-token" >"$TMP/token"
kill -HUP "$PID"
wait_for 10 grep -q 'SIGHUP: the settings were read' "$TMP/access.err" || fail "SIGHUP is not told"
is "the old token" "$(code "$URL/metrics" "${good[@]}")" 401
is "the new token" "$(code "$URL/metrics" -H "Authorization: Bearer a-new-token")" 200
subject=$(openssl s_client -connect "${URL#https://}" </dev/null 2>/dev/null | openssl x509 -noout -subject)
[ "${subject##*= }" = new ] || [ "${subject##*=}" = new ] || fail "the certificate is of '$subject'"
cp "$TMP/other.pem" "$TMP/key.pem"
kill -HUP "$PID"
wait_for 10 grep -q 'the settings stay as they were' "$TMP/access.err" ||
  fail "a key that does not fit is not told"
is "after a bad key" "$(code "$URL/metrics" -H "Authorization: Bearer a-new-token")" 200
ends 0

refused "a key that does not fit" 'tls-cert.*want a certificate and its key' "${tls[@]}"
refused "a certificate alone" 'go together' --tls-cert "$TMP/cert.pem"
refused "no certificate" 'no-such.*No such file' --tls-cert "$TMP/no-such" --tls-key "$TMP/key.pem"
refused "an empty token" 'token-file=.*empty' --token-file "$TMP/empty"
chmod 644 "$TMP/token"
refused "a token for all" 'others can read it: chmod o=' --token-file "$TMP/token"
chmod 600 "$TMP/token"
chmod 604 "$TMP/key.pem"
refused "a key for all" 'tls-key=.*others can read it' "${tls[@]}"
chmod 600 "$TMP/key.pem"
for open in 0.0.0.0:0 '[::]:0' 192.0.2.1:0; do
  refused "$open" '--open' --listen "$open"
  refused "$open with a token alone" '--open' --listen "$open" --token-file "$TMP/token"
done
for bad in 9777 :9777 127.0.0.1 127.0.0.1: 127.0.0.1:x 127.0.0.1:65536 127.0.0.1:-1 ::1:9777 '[::1' '[]:1' \
  example.com:9777 '[127.0.0.1]:1' "$(head -c 300 /dev/zero | tr '\0' 1):1"; do
  refused "--listen=$bad" 'want an address and a port' --listen "$bad"
done
timeout 20 "$INSPECTOR" agent --listen foo 2>"$TMP/usage" && fail "--listen foo begins" || rc=$?
is "a bad value is a usage error" "$rc" 64
refused "an address of another machine" 'Cannot assign' --listen 192.0.2.1:0 --open
begin ported
refused "a port that is taken" 'in use' --listen "${URL#http://}"
ends 0
begin named --listen localhost:0
is localhost "$(code "$URL/healthz")" 200
ends 0
begin any --listen 0.0.0.0:0 --open
is "all addresses" "$(code "${URL/0.0.0.0/127.0.0.1}/healthz")" 200
ends 0
if [ -e /proc/net/if_inet6 ] && grep -q ' lo$' /proc/net/if_inet6; then
  begin six --listen '[::1]:0'
  is IPv6 "$(code "$URL/healthz")" 200
  ends 0
fi
finish
