#!/usr/bin/env bash
# HTTP of agent and head: bodies, origins, tokens, streams of events, and who is cut
# (test/lib/http_server.py).
. "$(dirname "$0")/../../lib/case.sh"
driver=$BUILD/test/host/http_echo
need "$driver"
need python3
python3 test/lib/http_server.py "$driver"
