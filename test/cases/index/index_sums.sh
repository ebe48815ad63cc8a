#!/usr/bin/env bash
# summary --approximate: counts, sums, least and largest are those of summary, percentiles within 0.4 %; the second time no record is
# read, of a log that has grown the new ones; sums that were forged.
set -euo pipefail
cd "$(dirname "$0")/../../.."
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
B=$(realpath "${BUILD:-build}")
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
python3 test/lib/index_sums.py "$B/nccl-inspector" "$B/test/host/loggen" "$TMP"
