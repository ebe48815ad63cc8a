#!/usr/bin/env bash
# A write() that hangs: callbacks go on, finalize and exit stay bounded, and nothing is lost when it comes
# back.
. "$(dirname "$0")/../../host/lib.sh"
IO=LD_PRELOAD=$BUILD/test/fault_io.so
US=NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS

run "hang for 0.5 s" $IO $US=500 init 0 ops 0 2000 fault write=hang ops 0 3000 sleep 500 fault all=ok ops 0 \
  2000 fin 0 fired
verify --end destroy --files 1
grep -q 'fired 0' "$TMP/out" && fail "$CASE: no call hung, so nothing was tested"
# finalize waits 2 s for what has piled up: under a sanitizer less does, and the dump thread has a second
# before that.
pile=50000
[ -z "$VARIANT" ] || pile=5000
run "hang while callbacks run" $IO $US=500 init 0 duet 0 2000 0 fault write=hang timed 3000 duet 0 $pile 0 \
  fault all=ok sleep 1000 fin 0
verify --end destroy
run "hang at finalize" $IO init 0 ops 0 2000 fault write=hang timed 2300 fin 0 sleep 20 fault all=ok sleep \
  200 init 0 ops 0 10 fin 0
verify --end destroy
said "finalize waits no longer"
run "hang at finalize, then init and finalize of another" $IO init 0 ops 0 2000 fault write=hang timed 2300 \
  fin 0 \
  timed 100 init 1 ops 1 500 timed 2300 fin 1 fault all=ok sleep 300
verify --end destroy
run "hang at destroy, others live" $IO init 0 init 1 ops 0 500 fault write=hang sleep 1100 timed 50 fin 0 \
  ops 1 500 \
  fault all=ok fin 1
verify --end destroy
started=$SECONDS
run "hang at exit" $IO init 0 ops 0 2000 fault write=hang exit 0
[ $((SECONDS - started)) -le 4 ] || fail "$CASE: exit took $((SECONDS - started)) s"
started=$SECONDS
run "hang at quick_exit" $IO init 0 ops 0 2000 fault write=hang quick 0
[ $((SECONDS - started)) -le 4 ] || fail "$CASE: quick_exit took $((SECONDS - started)) s"

# A disk that refuses for good: the same bounds, and the dump thread does not spin on it.
run "ENOSPC at finalize, 2 s at most" $IO init 0 ops 0 2000 fault write=ENOSPC timed 2300 fin 0 cpu 1000 50 \
  100 fault all=ok \
  sleep 5200
verify --end destroy
said "finalize waits no longer"
run "ENOSPC for good: exit is bounded" $IO init 0 ops 0 2000 fault write=ENOSPC exit 0
run "no dump thread, ENOSPC" $IO NCCL_INSPECTOR_DUMP_THREAD_ENABLE=0 init 0 ops 0 2000 fault write=ENOSPC \
  timed 500 fin 0 \
  fault all=ok exit 0
verify --end destroy
finish
