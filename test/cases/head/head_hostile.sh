#!/usr/bin/env bash
# A head's folders with what another user, or a kill, may have left in them (test/lib/head_hostile.py).
. "$(dirname "$0")/../../lib/head.sh"
timeout -k 5 400 python3 test/lib/head_hostile.py
