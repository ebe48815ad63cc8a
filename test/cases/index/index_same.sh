#!/usr/bin/env bash
# Results are the same with an index, without one and while it is made; logs that change; damaged indexes;
# several commands at once. test/long/index.sh is the long form.
. "$(dirname "$0")/../../lib/case.sh"
need python3
run() { python3 test/lib/index_same.py "$BUILD/nccl-inspector" "$BUILD/test/host/loggen" "$TMP" "$@"; }
run same 20 test/golden/check_ours/input test/golden/check_nvidia_v43/input
run change
run damage 40 149
run size 4000
run crowd 1
