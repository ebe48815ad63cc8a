#!/usr/bin/env bash
# Three agents, a job and a session: what is in its frames (test/lib/head_job.py).
. "$(dirname "$0")/../../lib/head.sh"
[ -e "$BUILD/test/nvml/libnvidia-ml.so.1" ] || skip "no fake NVML is built"
python3 test/lib/head_job.py
