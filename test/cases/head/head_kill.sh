#!/usr/bin/env bash
# The head is killed ten times with sessions that run: what it acknowledged is in their files
# (test/lib/head_kill.py).
. "$(dirname "$0")/../../lib/head.sh"
python3 test/lib/head_kill.py
