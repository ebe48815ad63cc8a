#!/usr/bin/env bash
# No memory, no threads, a kernel without the newer calls: the job runs, the plugin is off or says what it
# cannot do.
. "$(dirname "$0")/../../host/lib.sh"
IO=LD_PRELOAD=$BUILD/test/fault_io.so
MEM=LD_PRELOAD=$BUILD/test/fault_mem.so
US=NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS
[ -z "$VARIANT" ] || skip "not under $VARIANT: its own allocator must come first"

# The nth allocation of the whole life fails, for every n: init of two communicators, operations, finalize.
recorded=0 off=0 refused=0 n=1
while :; do
  run "allocation $n fails" $MEM NI_FAULT=malloc=ENOMEM@$n $US=500 init 0 init 1 ops 0 200 p2p 1 50 sleep 20 \
    fin 0 fin 1 fired
  if grep -q 'fired 0' "$TMP/out"; then break; fi
  if [ ! -d "$TMP/logs" ]; then
    said "switched off"
    off=$((off + 1))
  elif grep -q 'is not recorded' "$TMP/nccl.log"; then
    # What NCCL sends for the refused one is counted, too: 2 starts an operation, and its channels.
    strays=(--stray process.bad_context=100 --stray process.null_parent=123)
    grep -q 'communicator 0xc0de0001 is not' "$TMP/nccl.log" ||
      strays=(--stray process.bad_context=400 --stray process.null_parent=500)
    verify --refused 1 "${strays[@]}"
    refused=$((refused + 1))
  else
    verify
    recorded=$((recorded + 1))
  fi
  n=$((n + 1))
  [ $n -le 200 ] || { fail "no end of allocations"; break; }
done
echo "ok   $((n - 1)) allocations: $off times off, $refused times one communicator refused, $recorded times all recorded"
[ $off -ge 1 ] && [ $refused -ge 2 ] || fail "the faults did not reach what they should"
# Everything fails from the nth on.
for n in 1 2 5 9 12 15 20 25 30; do
  run "allocations from $n on fail" $MEM NI_FAULT=malloc=ENOMEM@$n+ $US=500 init 0 init 1 ops 0 200 p2p 1 50 \
    sleep 20 \
    fault malloc=ok fin 0 fin 1
done
run "no memory while running, then again" $MEM $US=500 init 0 ops 0 2000 fault malloc=ENOMEM duet 0 30000 \
  100000 sleep 50 \
  fault malloc=ok ops 0 10 fin 0
verify --end destroy

run "no address space" $IO NI_FAULT=mmap=ENOMEM init 0 ops 0 100 fin 0
said "switched off"
[ ! -e "$TMP/logs" ] || fail "$CASE: a log nevertheless"
run "pthread_create fails" $IO NI_FAULT=pthread_create=EAGAIN init 0 init 1 ops 0 1000 ops 1 100 fin 0 ops 1 \
  100 exit 0
said "cannot create the dump thread"
verify
run "old kernel: no madvise advice" $IO NI_FAULT=madvise=EINVAL init 0 ops 0 1000 fork init 1 ops 1 10 fin 1 \
  exit 0 end fin 0
verify --files 2
run "no random numbers" $IO NI_FAULT=getrandom=ENOSYS init 0 ops 0 1000 fin 0
verify
run "no host name" $IO NI_FAULT=gethostname=ENAMETOOLONG init 0 ops 0 100 fin 0
verify
[ -n "$(find "$TMP/logs" -name 'unknown-host-*')" ] || fail "$CASE: $(ls "$TMP/logs")"
run "hostile host name" $IO NI_FAULT=gethostname=short init 0 ops 0 100 fin 0
verify
[ "$(ls "$TMP/logs" | tr -d 'a-zA-Z0-9._\n-')" = "" ] || fail "$CASE: $(ls "$TMP/logs")"
finish
