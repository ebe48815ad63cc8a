#!/usr/bin/env bash
# Real NCCL as NVIDIA ships it, without a GPU: gpu_nccl_wheels on a release of each interface, with all ends
# and all older interfaces, half a minute each. The releases are fetched once (test/gpu/fetch_nccl.py: 1.3 GB,
# kept). 77 where no registry answers.
. "$(dirname "$0")/../lib/case.sh"
[ "$(uname -m)" = x86_64 ] || skip "no_device.so is for x86-64"
export NI_NCCL_RELEASES="2.27.7 2.28.9 2.29.7 2.30.7 2.31.2 2.32.3" NI_NCCL_LONG=1 NI_TEST_LIMIT=900
test/runner.sh gpu_nccl_wheels
