#!/usr/bin/env bash
# 34 hangs planted in jobs of 32 ranks, of which only logs are there: the operation that all others wait for
# is named first, with exactly the ranks that are missing from it. What is queued behind it, or waits for
# ranks in it, is a consequence.
. "$(dirname "$0")/../../lib/case.sh"
need "$BUILD/nccl-inspector"
need python3
python3 test/lib/hang_planted.py "$BUILD/nccl-inspector" "$TMP"
