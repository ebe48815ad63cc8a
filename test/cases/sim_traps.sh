#!/usr/bin/env bash
# When is an operation finished? Late channels, waiting kernels, counts that are not known.
. "$(dirname "$0")/../lib/sim.sh"
verified traps
verified traps --interface v4
verified traps_unknown
verified collnet
verified collnet --nccl 2.27
verified overrun
finish
