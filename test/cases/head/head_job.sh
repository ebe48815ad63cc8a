#!/usr/bin/env bash
# Three agents, a job and a session: what is in its frames (test/lib/head_job.py).
set -euo pipefail
. "$(dirname "$0")/../../lib/head.sh"
[ -e "$BUILD/test/nvml/libnvidia-ml.so.1" ] || { echo "no fake NVML is built"; exit 77; }
python3 test/lib/head_job.py
