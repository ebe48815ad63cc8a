#!/usr/bin/env bash
# Graph replays on the host-function thread, also beside the application thread on one communicator.
. "$(dirname "$0")/../../lib/sim.sh"
for seed in 1 2 3; do
  verified graph --seed $seed
  verified graph --interface v4 --seed $seed
done
verified graph --nccl 2.27
finish
