#!/usr/bin/env bash
# Finalize: nothing is lost, whatever the interval; twice, by many threads, with operations unfinished.
. "$(dirname "$0")/../../host/lib.sh"
US=NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS
slow=1
[ -z "$VARIANT" ] || slow=10 # sanitizers

for us in 30000000 1000000 500 0 -1; do
  for try in 1 2 3 4 5; do # the machine may be busy with something else: the best of five counts
    { host $US=$us init 0 sleep 30 timed $((20 * slow)) fin 0; } 2>/dev/null && break
  done
  run "interval $us, finalize with nothing pending" $US=$us init 0 sleep 30 timed \
    $((try < 5 ? 2000 : 20 * slow)) fin 0
  verify --end destroy
  run "interval $us, immediate finalize" $US=$us init 0 ops 0 1000 p2p 0 200 self 0 10 timed $((500 * slow)) \
    fin 0
  verify --end destroy
  run "interval $us, destroy, others live" $US=$us init 0 init 1 ops 0 500 ops 1 500 fin 0 ops 1 700 sleep \
    30 fin 1
  verify --end destroy
done
run "no dump thread" NCCL_INSPECTOR_DUMP_THREAD_ENABLE=0 init 0 init 1 ops 0 3000 ops 1 3000 fin 0 ops 1 10 \
  fin 1
verify --end destroy
run "no dump thread, exit" NCCL_INSPECTOR_DUMP_THREAD_ENABLE=0 init 0 ops 0 3000 exit 0
verify --end exit
run "v4, v5" iface 4 init 0 ops 0 500 fin 0
verify --end destroy
run "v5" iface 5 init 0 ops 0 500 p2p 0 500 fin 0
verify --end destroy
run "init and finalize ten times" cycle 10 500 rss 0
verify --files 10 --end destroy

# Aborted communicators: channels that never stop, operations that never start.
run "unfinished, destroy" init 0 ops 0 50 half 0 3 open 0 4 timed $((1000 * slow)) fin 0
verify --incomplete --files 1 --end destroy
# Their slots rest 5 s; that must open no second file.
run "unfinished, then a while, then another" init 0 ops 0 50 half 0 3 open 0 4 fin 0 sleep 5600 init 0 ops 0 \
  20 fin 0
verify --incomplete --files 2

run "finalize twice, callbacks after finalize" init 0 init 1 ops 0 300 fin 0 again 0 again 0 ops 1 100 fin 1 \
  again 1 again 0
verify --end destroy

# Many threads at once.
script=()
for i in $(seq 0 15); do script+=(bg cycle $i 20 30); done
run "16 threads, init to finalize, 20 times each" $US=500 iface 6 init 100 "${script[@]}" join fin 100
verify --end destroy
script=(init 40)
for i in $(seq 0 31); do script+=(bg init $i); done
script+=(join)
for i in $(seq 0 31); do script+=(bg ops $i 300); done
script+=(join)
for i in $(seq 0 31); do script+=(bg fin $i); done
run "32 inits at once, 32 finalizes at once" "${script[@]}" join fin 40
verify --end destroy --files 1
script=(init 40)
for i in $(seq 0 15); do script+=(bg fin 40); done
run "one communicator finalized by 16 threads" init 41 ops 41 100 "${script[@]}" join fin 41
verify --end destroy
finish
