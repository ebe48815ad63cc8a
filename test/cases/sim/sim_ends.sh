#!/usr/bin/env bash
# Every end of a process and of a communicator: what finished before it is in the logs.
. "$(dirname "$0")/../../lib/sim.sh"
for how in exit quick_exit; do
  for interval in 1000000 500 -1; do
    verified NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=$interval exits --set how=$how
  done
done
verified NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=20000 exits --set how=_exit
RC=137 verified NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=20000 exits --set how=sigkill
verified abort
verified abort --interface v4
verified hang
verified hang --nccl 2.27
finish
