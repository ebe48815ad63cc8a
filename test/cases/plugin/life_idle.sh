#!/usr/bin/env bash
# An idle dump thread takes less than 0.1 % of a core, at every interval.
. "$(dirname "$0")/../../host/lib.sh"
[ -z "$VARIANT" ] || skip "not under $VARIANT: it measures CPU time"
for us in 0 500 1000000 30000000 -1; do
  run "idle, interval $us" NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=$us init 0 init 1 ops 0 1000 p2p \
    1 100 sleep 1400 \
    cpu 1500 10 10 fin 0 fin 1
  echo "ok   $CASE: $(cat "$TMP/out")"
  verify
done
run "idle with operations in flight" init 0 ops 0 1000 half 0 20 open 0 20 sleep 1400 cpu 1500 10 10 fin 0
echo "ok   $CASE: $(cat "$TMP/out")"
run "idle after the last finalize" init 0 ops 0 10 fin 0 sleep 50 cpu 1000 10 0
echo "ok   $CASE: $(cat "$TMP/out")"
run "unfinished, finalized: idle, then parked" init 0 half 0 20 fin 0 sleep 300 cpu 1000 10 10
echo "ok   $CASE: $(cat "$TMP/out")"
finish
