#!/usr/bin/env bash
# Network operations, operations of other processes (PXN), copy-engine collectives, several processes.
. "$(dirname "$0")/../../lib/sim.sh"
for how in "--nccl 2.30" "--nccl 2.30 --interface v4" "--nccl 2.27"; do
  # shellcheck disable=SC2086
  verified net $how
done
verified ce
verified nodes
verified nodes --nccl 2.27
verified 2x4 --set straggler=3
verified 2x4 --procs --set rate=0
verified 4x2 --procs --nccl 2.27
finish
