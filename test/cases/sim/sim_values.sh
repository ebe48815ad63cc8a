#!/usr/bin/env bash
# Every value of every operation, through each interface that NCCL 2.27 to 2.30 can bring.
. "$(dirname "$0")/../../lib/sim.sh"
for how in "--nccl 2.30" "--nccl 2.30 --interface v4" "--nccl 2.30 --interface v5" "--nccl 2.29" \
  "--nccl 2.28" \
  "--nccl 2.28 --interface v4" "--nccl 2.27"; do
  for s in allreduce multirank groups missing; do
    # shellcheck disable=SC2086
    verified $s $how
  done
done
verified groups --seed 2
verified multirank --set gpu_offset_us=900000 --set gpu_drift_ppm=100
verified multirank --set gpu_offset_us=-5000000 --set gpu_drift_ppm=-100
verified multirank --set poll_delay_us=2000
verified names
verified names --interface v4
finish
