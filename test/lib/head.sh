# What the cases of the head have in common: grpcio and protoc's modules of both services, in $WORK
# (test/lib/head.py uses them).
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/top.sh"
need python3
WORK=$TMP # as the cases' Python has it
export NO_PROXY='*' no_proxy='*' GRPC_VERBOSITY=NONE
grpcio=$BUILD/grpcio
if [ ! -e "$grpcio/grpc" ]; then
  python3 -m pip install -q --disable-pip-version-check --target "$WORK/grpcio" grpcio grpcio-tools \
    >"$WORK/pip" 2>&1 ||
    skip "no grpcio from pip ($(tail -n 1 "$WORK/pip"))"
  mv -T "$WORK/grpcio" "$grpcio" 2>/dev/null || true # another case was faster
fi
PYTHONPATH=$grpcio python3 -m grpc_tools.protoc -I test/lib -I docs --python_out="$WORK" test/lib/rpc.proto \
  docs/head.proto
export PYTHONPATH=$grpcio:$WORK INSPECTOR WORK
