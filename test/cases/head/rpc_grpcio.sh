#!/usr/bin/env bash
# gRPC and its messages against the real ones: Python's grpcio and protobuf at the other end of both
# (test/lib/rpc.py).
. "$(dirname "$0")/../../lib/case.sh"
export no_proxy='*'
driver=$BUILD/test/host/rpc_echo
[ -x "$driver" ] || skip "$driver is not built: it needs libmicrohttpd, libcurl and ncurses"
need python3
need openssl
case $("$driver" serve </dev/null) in *'built without'*) skip "built without gRPC" ;; esac
grpcio=$BUILD/grpcio
if [ ! -e "$grpcio/grpc" ]; then
  python3 -m pip install -q --disable-pip-version-check --target "$TMP/grpcio" grpcio grpcio-tools \
    >"$TMP/pip" 2>&1 ||
    skip "no grpcio from pip ($(tail -n 1 "$TMP/pip"))"
  mv "$TMP/grpcio" "$grpcio" 2>/dev/null || true
fi
PYTHONPATH=$grpcio python3 -m grpc_tools.protoc -I test/lib -I docs --python_out="$TMP" test/lib/rpc.proto \
  docs/head.proto
# A CA, the server's and a client's certificate by it, and a CA of nobody.
new() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$TMP/$1.key" -subj "/CN=$1" \
    "${@:2}" 2>/dev/null
}
new ca -x509 -out "$TMP/ca.pem" -addext basicConstraints=critical,CA:true
new other -x509 -out "$TMP/other.pem" -addext basicConstraints=critical,CA:true
echo 'subjectAltName=DNS:localhost,IP:127.0.0.1' >"$TMP/san"
for name in server client; do
  new $name -out "$TMP/$name.csr"
  openssl x509 -req -in "$TMP/$name.csr" -CA "$TMP/ca.pem" -CAkey "$TMP/ca.key" -CAcreateserial -extfile \
    "$TMP/san" -out "$TMP/$name.pem" 2>/dev/null
done
PYTHONPATH=$grpcio:$TMP python3 test/lib/rpc.py "$driver" "$TMP"
