#!/usr/bin/env bash
# Many communicators: 10,000 one after the other, 2,000 at once, 100 and their memory.
. "$(dirname "$0")/../../host/lib.sh"
US=NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS
many=10000 at_once=2000 rounds=20
slow=1
[ -z "$VARIANT" ] || many=300 at_once=200 rounds=2 slow=40
# How many dead ones wait for the dump thread depends on the machine's load, up to the 64 MiB that all may
# have, and what it has of them beside; leaked ones would be 160 MB.
run "twice $many communicators one after the other" $US=500 NCCL_INSPECTOR_POOL_MAX_BYTES=64m init 1 cycle \
  $many 2 sleep 200 rss 0 \
  cycle $many 2 sleep 200 rss 81920 fin 1
verify --end destroy --files 1
# Memory for 90 or so at a time: init waits for the dump thread to give that of dead ones back, at each tick
# of 10 ms.
run "2,000 one after the other in 3 MiB" $US=500 NCCL_INSPECTOR_POOL_MAX_BYTES=3m NCCL_INSPECTOR_BLACKBOX=0 \
  init 1 cycle $at_once 2 fin 1
verify --end destroy --files 1
# 20 KiB each: its struct and the first page of both pools; 3 KiB of the dump thread's; and 2 MiB are touched
# ahead.
run "2,000 at once" init 9000 rss 0 many $at_once 5 sleep 300 rss 56000 fin 9000
verify --end destroy --files 1
run "init to finalize, 300 times, a file each" $US=1000000 cycle 20 10 rss 0 cycle 300 10 rss $((1024 * slow))
verify --end destroy --files 320
run "100 communicators live, exit" init 200 many 100 1 ops 200 5 exit 0
verify
for us in 1000000 500; do
  script=()
  for i in $(seq 0 99); do script+=(init $i); done
  for r in $(seq $rounds); do
    for i in $(seq 0 99); do script+=(paced $i 100 50000); done
  done
  run "memory of 100 communicators, 2,000 operations each, interval $us" $US=$us init 200 sleep 50 rss 0 \
    "${script[@]}" sleep 1200 rss 16384 exit 0
  verify --end exit
done
finish
