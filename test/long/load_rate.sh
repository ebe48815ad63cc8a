#!/usr/bin/env bash
# 100,000 collectives a second for 10 s at each interval: none lost, none twice, accounting exact. 2 minutes.
. "$(dirname "$0")/../host/lib.sh"
for us in 1000000 500 0 -1; do
  LIMIT=40 run "100,000/s for 10 s, interval $us" NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=$us init \
    0 \
    duet 0 1000000 100000 fin 0
  verify --files 1 --end destroy
done
finish
