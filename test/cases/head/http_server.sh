#!/usr/bin/env bash
# HTTP of agent and head: bodies, origins, tokens, streams of events, and who is cut (test/lib/http_server.py).
set -euo pipefail
cd "$(dirname "$0")/../../.."
driver=${BUILD:-build}/test/host/http_echo
[ -x "$driver" ] || { echo "$driver is not built"; exit 77; }
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
exec python3 test/lib/http_server.py "$driver"
