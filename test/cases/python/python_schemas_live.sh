#!/usr/bin/env bash
# Answers of agent, head and top, a session's file, what a program of --on-hang gets: as schemas/ say
# (schemas_live.py).
. "$(dirname "$0")/../../lib/case.sh"
[ -x "$BUILD/nccl-inspector-live" ] && [ -e "$BUILD/test/nvml/libnvidia-ml.so.1" ] ||
  skip "no nccl-inspector-live, or no fake NVML, is built"
"$BUILD/nccl-inspector" head --help 2>/dev/null | grep -q -- --data-dir || skip "this build has no head"
VENV=$(test/foreign/setup.sh mypy jsonschema) || skip "no jsonschema from pip"
NO_PROXY='*' no_proxy='*' "$VENV" test/lib/python/schemas_live.py "$TMP"
