#!/usr/bin/env bash
# Answers of agent, head and top, a session's file, what a program of --on-hang gets: as schemas/ say (schemas_live.py).
set -euo pipefail
cd "$(dirname "$0")/../../.."
export BUILD=${BUILD:-build}
[ -x "$BUILD/nccl-inspector-live" ] && [ -e "$BUILD/test/nvml/libnvidia-ml.so.1" ] || { echo "no nccl-inspector-live, or no fake NVML, is built"; exit 77; }
"$BUILD/nccl-inspector" head --help 2>/dev/null | grep -q -- --data-dir || { echo "this build has no head"; exit 77; }
VENV=$(test/foreign/setup.sh mypy jsonschema) || { echo "no jsonschema from pip"; exit 77; }
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
NO_PROXY='*' no_proxy='*' "$VENV" test/lib/python/schemas_live.py "$TMP"
