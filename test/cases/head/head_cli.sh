#!/bin/bash
# The commands of sessions and gsprof's against heads of Python's, by HTTP and, where grpcio is, by gRPC.
set -euo pipefail
. "$(dirname "$0")/../../lib/top.sh"
command -v python3 >/dev/null || { echo "skip: no python3"; exit 77; }
export NO_PROXY='*' no_proxy='*'
mkdir "$WORK/bin"
ln -s "$INSPECTOR" "$WORK/bin/gsprof"
grpcio=$BUILD/grpcio
[ -e "$grpcio/grpc" ] || { python3 -m pip install -q --disable-pip-version-check --target "$WORK/grpcio" grpcio grpcio-tools \
  >"$WORK/pip" 2>&1 && mv "$WORK/grpcio" "$grpcio"; } || true
PYTHONPATH=$grpcio python3 -m grpc_tools.protoc -I test/lib --python_out="$WORK" test/lib/rpc.proto 2>/dev/null || true
PYTHONPATH=$grpcio python3 test/lib/head_cli.py "$INSPECTOR" "$WORK"
