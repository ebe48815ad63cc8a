#!/usr/bin/env bash
# The n-th write() fails, for every n, by each error a disk gives: nothing is lost, nothing is there twice.
. "$(dirname "$0")/../../host/lib.sh"
US=NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS
for how in ENOSPC short EIO EROFS; do
  for ((n = 1; n < 40; n++)); do
    # Under a sanitizer one in three of the later ones.
    [ -z "$VARIANT" ] || [ $n -le 10 ] || [ $((n % 3)) = 0 ] || continue
    case $how in EIO | EROFS) [ $n -gt "${NTH:-2}" ] && break ;; esac # all of them: make torture
    run "write $n $how" LD_PRELOAD="$BUILD/test/fault_io.so" NI_FAULT="write=$how@$n" $US=1000 \
      NCCL_INSPECTOR_FILE_MAX_BYTES=60k \
      init 0 ops 0 800 sleep 20 init 1 ops 1 800 sleep 20 ops 0 800 sleep 20 fin 1 ops 0 800 fin 0 fired
    verify >"$TMP/said"
    grep -q '^FAIL' "$TMP/said" && cat "$TMP/said"
    grep -q 'fired 0' "$TMP/out" && break
  done
  [ $n -gt 2 ] || fail "$how: only $n writes, too few to mean anything"
  echo "$how: each of $((n - 1)) writes"
done
finish
