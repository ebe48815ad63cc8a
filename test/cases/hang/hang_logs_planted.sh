#!/usr/bin/env bash
# 34 hangs planted in jobs of 32 ranks, of which only logs are there: the operation that all others wait for is named first,
# with exactly the ranks that are missing from it. What is queued behind it, or waits for ranks in it, is a consequence.
set -euo pipefail
cd "$(dirname "$0")/../../.."
BUILD=$(realpath -m "${BUILD:-build}")
[ -x "$BUILD/nccl-inspector" ] || { echo "$BUILD/nccl-inspector is not built"; exit 77; }
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
python3 test/lib/hang_planted.py "$BUILD/nccl-inspector" "$TMP"
