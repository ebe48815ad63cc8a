#!/usr/bin/env bash
# --enable-bandwidth and GPUs that do not count PCIe's bytes (test/lib/head_pcie.py).
. "$(dirname "$0")/../../lib/head.sh"
[ -e "$BUILD/test/nvml/libnvidia-ml.so.1" ] || skip "no fake NVML is built"
python3 test/lib/head_pcie.py
