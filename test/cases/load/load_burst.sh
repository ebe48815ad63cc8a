#!/usr/bin/env bash
# 100,000 collectives in a burst, and 100,000 a second, on two threads, at every interval: none lost, none
# twice.
. "$(dirname "$0")/../../host/lib.sh"
US=NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS
n=100000 rate=100000 ops=50000
[ -z "$VARIANT" ] || n=10000 rate=5000 ops=5000
for us in 1000000 500 0 -1; do
  run "burst of $n, interval $us" $US=$us init 0 duet 0 $n 0 fin 0
  verify --files 1 --end destroy
  # What an exit finds unformatted it has 1.5 s for (docs/embedding.md), and a busy machine may leave it
  # little of them: the dump thread comes after the load, and finds 2,000 at exit.
  run "$ops at $rate/s, interval $us" $US=$us init 0 duet 0 $ops $rate rested ops 0 2000 exit 0
  verify --files 1 --end exit
done
run "Send and Recv with collectives" $US=500 init 0 init 1 bg duet 0 $n 0 duetp 1 $n 0 join p2p 0 1000 self \
  1 1000 fin 0 fin 1
verify --end destroy

# Everything on one CPU, the dump thread starved by two spinning threads (SCHED_IDLE).
if taskset -c 0 true 2>/dev/null; then
  run "one CPU" $US=500 sh "taskset -acp 0 \$PPID >/dev/null" init 0 duet 0 $n 0 fin 0
  verify --end destroy
  # It is fed before the end: finalize waits 2 s for it, and on a CPU that others keep busy SCHED_IDLE may get
  # nothing for longer.
  # What is then not in the log lies in the box (recover_kill).
  run "dump thread starved 100 ms, again and again" $US=500 sh "taskset -acp 0 \$PPID >/dev/null" init 0 \
    sleep 30 starve \
    bg paced 0 20000 10000 spin 100 sleep 10 spin 100 sleep 10 spin 100 sleep 10 spin 300 join feed fin 0
  verify --end destroy
fi
finish
