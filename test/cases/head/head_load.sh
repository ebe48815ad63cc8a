#!/usr/bin/env bash
# 200 clients of both kinds and three sessions: what they cost the head (test/lib/head_load.py, test/host/head_load.c).
set -euo pipefail
. "$(dirname "$0")/../../lib/head.sh"
driver=$BUILD/test/host/head_load
[ -x "$driver" ] || { echo "$driver is not built"; exit 77; }
case $BUILD in *san) echo "skip: a sanitizer's costs are not the head's"; exit 77 ;; esac
[ -z "${SESSION_GB:-}" ] || { python3 test/lib/head_large.py "$BUILD/test/host/session_feed"; exit; }
python3 test/lib/head_load.py "$driver" "$BUILD/test/host/session_feed"
