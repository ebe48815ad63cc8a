#!/usr/bin/env bash
# The head's HTTP, route by route, as gsprof has it (test/lib/head_http.py); its gRPC, message by message, as
# 0.2.1 has it (head_v021.py).
. "$(dirname "$0")/../../lib/head.sh"
python3 test/lib/head_http.py
python3 test/lib/head_v021.py
