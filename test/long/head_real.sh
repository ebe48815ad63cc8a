#!/usr/bin/env bash
# Half an hour of our agent against the head of the real gswarm (test/lib/head_real.py). REAL_S: another time.
set -euo pipefail
cd "$(dirname "$0")/../.."
REAL_S=${REAL_S:-1800} exec test/cases/head/head_gswarm.sh
