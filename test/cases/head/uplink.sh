#!/usr/bin/env bash
# The agent's way to a head: Python's grpcio is the head (test/lib/uplink.py).
. "$(dirname "$0")/../../lib/agent.sh"
need openssl
grpcio=$BUILD/grpcio
if [ ! -e "$grpcio/grpc" ]; then
  python3 -m pip install -q --disable-pip-version-check --target "$TMP/grpcio" grpcio grpcio-tools \
    >"$TMP/pip" 2>&1 ||
    skip "no grpcio from pip ($(tail -n 1 "$TMP/pip"))"
  mv "$TMP/grpcio" "$grpcio" 2>/dev/null || true
fi
PYTHONPATH=$grpcio python3 -m grpc_tools.protoc -I test/lib -I docs --python_out="$TMP" test/lib/rpc.proto \
  docs/head.proto
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$TMP/key.pem" -out \
  "$TMP/cert.pem" -subj /CN=localhost \
  -addext subjectAltName=DNS:localhost 2>/dev/null
PYTHONPATH=$grpcio:$TMP no_proxy='*' python3 test/lib/uplink.py "$INSPECTOR" "$TMP"
