#!/usr/bin/env bash
# Send and Recv: self pairs, all-to-all, a channel byte that is garbage and one that is plausible garbage.
. "$(dirname "$0")/../../lib/sim.sh"
for how in "--nccl 2.30" "--nccl 2.30 --interface v4 --set poison=plausible" \
  "--nccl 2.28 --interface v4 --set poison=aa" \
  "--nccl 2.27" "--nccl 2.29 --interface v5" "--nccl 2.32" "--nccl 2.31 --interface v5"; do
  # shellcheck disable=SC2086
  verified p2p $how
done
# A group in which not every rank has a part: nobody may wait for those who have none.
verified pipeline
verified pipeline --set procs=1 --nccl 2.27
verified NCCL_INSPECTOR_ENABLE_P2P=0 p2p
verified NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES=70000 p2p
verified NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING=1 p2p
finish
