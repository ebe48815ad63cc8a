#!/usr/bin/env bash
# Ends of the process without finalize: exit, quick_exit, exit by another thread, and the ends that nobody can
# catch.
. "$(dirname "$0")/../../host/lib.sh"
US=NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS

for us in 30000000 1000000 500 0 -1; do
  for how in exit quick; do
    run "$how, interval $us" $US=$us init 0 init 1 ops 0 700 p2p 1 300 half 1 2 open 0 1 $how 0
    verify --end exit --files 1
  done
done
run "return from main" init 0 ops 0 700
verify --end exit
run "exit with one destroyed, one live" init 0 init 1 ops 0 700 ops 1 300 fin 0 exit 0
verify
run "exit after finalize of all" init 0 ops 0 700 fin 0 exit 0
verify --end destroy --files 1
run "no dump thread, quick_exit" NCCL_INSPECTOR_DUMP_THREAD_ENABLE=0 init 0 ops 0 3000 quick 0
verify --end exit

# Callbacks run on other threads while the process leaves: what had finished before is there.
for us in 1000000 500 0 -1; do
  for how in exit quick; do
    run "$how while callbacks run, interval $us" $US=$us init 0 init 1 init 2 bg paced 0 60000000 20000 \
      bg paced 1 60000000 5000 ops 2 10 sleep 60 $how 0
    verify --started-free --end exit
  done
done
# As fast as two threads can, more than the dump thread can write in its 2 s: what is not there is stated.
for how in exit quick; do
  run "$how in a flood" $US=500 init 0 init 1 bg forever 0 bg duet 1 100000000 0 sleep 60 timed 2600 $how 0
  verify --started-free --end exit --lost 0-10000000
done
run "exit from another thread than init's" $US=500 init 0 bg paced 0 600000 10000 sleep 20 init 1 ops 1 400 \
  exit 0
verify --started-free --end exit
run "exit while finalize runs" init 0 init 1 ops 0 60000 ops 1 1000 bg fin 0 bg fin 1 exit 0
verify
run "init after exit has begun is refused" init 0 ops 0 100 atexit-init 7 exit 0
verify --refused 1

# Nobody can catch these: whole members are there up to the last write, which may be cut where it was when
# they came.
for how in "_exit 0" kill abort; do
  rc=0
  [ "$how" = kill ] && rc=137
  [ "$how" = abort ] && rc=134
  RC=$rc run "$how at 500 us" $US=500 init 0 ops 0 3000 sleep 250 ops 0 100 $how
  verify --no-final --unflushed
  grep -q 'verified: 3[01]..* records' "$TMP/verify" ||
    fail "$CASE: records written 0.25 s before are not there"
  RC=$rc run "$how while writing" $US=500 init 0 bg forever 0 sleep 200 $how
  verify --no-final --unflushed --cut
done
# Daemons and launchers close what they do not know. Nothing goes into what was opened under the same number.
# (To TSan a descriptor closed under another thread is a race: here it is the host's, and the point of the
# case.)
if [ "$VARIANT" != tsan ]; then
  run "a host that closes and reuses all descriptors" $US=500 init 0 ops 0 500 sleep 150 closeall \
    "$TMP/other" ops 0 500 sleep 150 fin 0
  verify --files 2 --end destroy
  [ ! -s "$TMP/other" ] || fail "$CASE: somebody's file was written into"
fi
finish
