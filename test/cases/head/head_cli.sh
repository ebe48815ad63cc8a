#!/bin/bash
# The commands of sessions and gsprof's against heads of Python's, by HTTP and, where grpcio is, by gRPC.
. "$(dirname "$0")/../../lib/top.sh"
need python3
export NO_PROXY='*' no_proxy='*'
mkdir "$TMP/bin"
ln -s "$INSPECTOR" "$TMP/bin/gsprof"
grpcio=$BUILD/grpcio
[ -e "$grpcio/grpc" ] ||
  { python3 -m pip install -q --disable-pip-version-check --target "$TMP/grpcio" grpcio grpcio-tools \
  >"$TMP/pip" 2>&1 && mv "$TMP/grpcio" "$grpcio"; } || true
PYTHONPATH=$grpcio python3 -m grpc_tools.protoc -I test/lib --python_out="$TMP" test/lib/rpc.proto \
  2>/dev/null || true
PYTHONPATH=$grpcio python3 test/lib/head_cli.py "$INSPECTOR" "$TMP"
