#!/usr/bin/env bash
# Forks of a process with the plugin on: the child is a no-op until its own init, and the parent's log is not
# touched.
. "$(dirname "$0")/../../host/lib.sh"
[ "$VARIANT" != tsan ] || skip "not under tsan: it does not follow threads through fork"
US=NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS

for how in fork rawfork; do
  for us in 1000000 500 0 -1; do
    run "$how, callbacks in the child, interval $us" $US=$us init 0 ops 0 500 $how fin 0 again 0 exit 0 end \
      ops 0 500 fin 0
    verify --files 1 --end destroy
  done
  run "$how, child leaves at once" $US=500 init 0 ops 0 500 $how end ops 0 500 exit 0
  verify --files 1 --end exit
done
# Callbacks with the parent's handles and contexts in the child do nothing: the parent's own numbers stay
# exact.
run "fork, operations in the child" $US=500 init 0 ops 0 500 fork muted-ops 0 300 _exit 0 end ops 0 500 fin 0
verify --files 1
own_init || finish
run "child with its own init" $US=500 init 0 ops 0 500 fork init 1 ops 1 700 timed 500 fin 1 exit 0 end ops \
  0 500 fin 0
verify --files 2 --end destroy
run "child with its own init, exit without finalize" $US=500 init 0 ops 0 500 timed 1500 fork init 1 ops 1 \
  700 exit 0 end \
  ops 0 500 exit 0
verify --files 2 --end exit
run "grandchild" init 0 ops 0 500 fork init 1 ops 1 70 fork init 2 ops 2 40 exit 0 end fin 1 exit 0 end ops \
  0 500 fin 0
verify --files 3
run "fork while callbacks run" $US=500 init 0 init 1 bg paced 0 60000 60000 bg duet 1 40000 60000 fork exit \
  0 end \
  fork init 2 ops 2 100 fin 2 exit 0 end rawfork end fork _exit 0 end fork quick 0 end join fin 0 fin 1
verify --end destroy
run "child of a finalized parent" init 0 ops 0 100 fin 0 timed 1000 fork exit 0 end timed 1500 fork init 1 \
  ops 1 50 exit 0 end
verify --files 2
run "fork during a write that hangs" LD_PRELOAD="$BUILD/test/fault_io.so" $US=500 init 0 ops 0 2000 fault \
  write=hang \
  ops 0 500 sleep 150 timed 1000 fork exit 0 end timed 1500 fork fault all=ok init 1 ops 1 20 fin 1 exit 0 \
  end fault all=ok fin 0
verify --files 2
run "the child outlives the parent" init 0 ops 0 100 forknowait sleep 300 end ops 0 100 fin 0
verify --files 1
finish
