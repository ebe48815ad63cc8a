#!/usr/bin/env bash
# 200 clients of both kinds and three sessions: what they cost the head (test/lib/head_load.py,
# test/host/head_load.c).
. "$(dirname "$0")/../../lib/head.sh"
driver=$BUILD/test/host/head_load
need "$driver"
case $BUILD in *san) skip "a sanitizer's costs are not the head's" ;; esac
[ -z "${SESSION_GB:-}" ] || { python3 test/lib/head_large.py "$BUILD/test/host/session_feed"; exit; }
python3 test/lib/head_load.py "$driver" "$BUILD/test/host/session_feed"
