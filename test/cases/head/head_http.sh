#!/usr/bin/env bash
# The head's HTTP, route by route, as gsprof has it (test/lib/head_http.py).
set -euo pipefail
. "$(dirname "$0")/../../lib/head.sh"
python3 test/lib/head_http.py
