#!/usr/bin/env bash
# nccl-inspector check comes to the same verdict as verify.py: 0 where nothing is missing, 2 where something
# is.
. "$(dirname "$0")/../../host/lib.sh"
need "$BUILD/nccl-inspector"
S=NCCL_INSPECTOR
US=NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS
IO=LD_PRELOAD=$BUILD/test/fault_io.so
one=(ranks 1) # the other ranks of a larger communicator would be missing

run "finalize" "${one[@]}" init 0 ops 0 1000 self 0 10 fin 0
verify
checked 0 --expect AllReduce=200
! grep -q '^0x0 ' < <("$BUILD/nccl-inspector" check "$TMP/logs") ||
  fail "$CASE: the process is shown as a communicator"
checked 2 --expect AllReduce=201
run "exit" "${one[@]}" init 0 ops 0 1000 exit 0
verify
checked 0
run "ten lives" "${one[@]}" cycle 10 500
verify
checked 0
if own_init; then
  run "fork" "${one[@]}" init 0 ops 0 500 fork init 1 ops 1 700 exit 0 end ops 0 500 exit 0
  verify
  checked 0
fi
run "rotation" ${S}_FILE_MAX_BYTES=20k $US=500 "${one[@]}" init 0 duet 0 5000 10000 sleep 1100 init 1 duet 1 5000 20000 fin 0 fin 1
verify
checked 0 # read in the order of writing: the clock of the last file is a second later than that of the first
run "a torn file, nothing lost" $IO $US=500 "${one[@]}" init 0 ops 0 2000 sleep 150 fault write=EIO,ftruncate=EIO ops 0 3000 \
  sleep 60 fault all=ok fin 0
verify --cut
checked 0
run "filtered" ${S}_DUMP_MIN_SIZE_BYTES=100000 "${one[@]}" init 0 ops 0 2000 fin 0
verify --min-size 100000
checked 0
run "unfinished" "${one[@]}" init 0 ops 0 1000 half 0 2 fin 0
verify --incomplete
checked 2
run "directory deleted" $US=500 "${one[@]}" init 0 ops 0 500 sleep 150 sh "until rm -rf $TMP/logs; do :; done 2>/dev/null" ops 0 500 fin 0
verify --lost 500
checked 2
run "fixed pool" $US=30000000 ${S}_POOL_GROW=0 ${S}_COLL_POOL_SIZE=100 "${one[@]}" init 0 ops 0 1000 fin 0
verify --lost 900
checked 2
run "expired" ${S}_DIR_MAX_BYTES=40k $US=500 "${one[@]}" init 0 duet 0 20000 40000 fin 0
verify --lost 1-20000
checked 2
run "communicators refused" ${S}_POOL_MAX_BYTES=1m "${one[@]}" many 200 2 ops 0 1 fin 0
checked 2
run "killed" $US=500 "${one[@]}" init 0 ops 0 3000 sleep 250 ops 0 100 _exit 0
verify --no-final --unflushed
checked 2
finish
