#!/usr/bin/env bash
# 100 healthy or slow runs, looked at all the time: no false verdict. And every planted hang, with other
# seeds.
. "$(dirname "$0")/../lib/hang.sh"
runs=${1:-100} looks=0
for ((i = 1; i <= runs; i++)); do
  pause=$((200 + i * 37 % 2000))
  job slow --seed "$i" --set pause=$pause --set rounds=$((1 + i % 2)) --set vary_percent=$((i % 60))
  while kill -0 "$JOB" 2>/dev/null; do
    look --stuck-after 10
    looks=$((looks + 1))
    [ "$RC" != 3 ] ||
      { fail "run $i (pause $pause ms): a healthy job is said to hang"; head -c 2000 "$TMP/verdict"; break; }
    sleep 0.2
  done
  wait "$JOB" || fail "run $i: nccl-sim ended with $?"
  JOB=
  look --stuck-after 10
  [ "$RC" = 0 ] || fail "run $i: exit code $RC after its end"
done
echo "$runs runs, $looks looks"
for seed in 2 3 4 5 6; do
  job hang_late --seed $seed
  hangs "late rank, seed $seed" world "ReduceScatter 0" never_called=2 inside=0,1,3
  job hang_dead --seed $seed
  hangs "dead rank, seed $seed" world "AllReduce 50" gone=2 inside=0,1,3
  job hang_mismatch --seed $seed
  hangs "another function, seed $seed" world "AllReduce 50" mismatch=function other_call=2 inside=0,1,3
  job hang_deadlock --seed $seed
  hangs "deadlock, seed $seed" a "AllReduce 30" ring=2 never_called=1 inside=0
done
finish
