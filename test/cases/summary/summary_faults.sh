#!/usr/bin/env bash
# Every fault that logs can have, one at a time.
set -euo pipefail
cd "$(dirname "$0")/../../.."
BUILD=${BUILD:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 test/lib/summary_faults.py "$BUILD/nccl-inspector" "$BUILD/test/host/loggen" "$work"
