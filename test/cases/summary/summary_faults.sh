#!/usr/bin/env bash
# Every fault that logs can have, one at a time.
. "$(dirname "$0")/../../lib/case.sh"
python3 test/lib/summary_faults.py "$BUILD/nccl-inspector" "$BUILD/test/host/loggen" "$TMP"
