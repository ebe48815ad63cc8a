#!/usr/bin/env bash
# When is an operation finished? Late channels, waiting kernels, counts that are not known, channels that
# overlap.
. "$(dirname "$0")/../../lib/sim.sh"
verified traps
verified traps --interface v4
verified traps_unknown
verified collnet
verified collnet --nccl 2.27
verified overrun
# Several works of a batch are open on one channel at once from 2.31 on.
verified groups
verified groups --nccl 2.32
verified groups --nccl 2.32 --interface v4
finish
