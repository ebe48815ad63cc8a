#!/usr/bin/env bash
# Nothing is lost at full speed at any interval; with fixed pools every loss is stated.
. "$(dirname "$0")/../../lib/sim.sh"
ops=30000
[ "${NI_VARIANT:-}" != tsan ] || ops=5000 # the races are the same, and it takes a fifth of the time
for interval in 1000000 500 0 -1; do
  verified NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=$interval burst --set ops=$ops
done
verified NCCL_INSPECTOR_POOL_GROW=0 pool_fixed
verified NCCL_INSPECTOR_POOL_GROW=0 NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=500 pool_fixed
verified NCCL_INSPECTOR_POOL_GROW=0 NCCL_INSPECTOR_COLL_POOL_SIZE=10 pool_fixed
finish
