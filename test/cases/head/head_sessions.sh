#!/usr/bin/env bash
# Sessions: overlapping ones, names, hosts of one name, wrong clocks (test/lib/head_sessions.py).
. "$(dirname "$0")/../../lib/head.sh"
python3 test/lib/head_sessions.py
