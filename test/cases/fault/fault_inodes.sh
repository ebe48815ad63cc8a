#!/usr/bin/env bash
# Rotation where no new file can be made: the old one goes on, every record is in it, and it is said once.
. "$(dirname "$0")/../../host/lib.sh"
own_mounts
US=NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS
mkdir "$TMP/logs"
mount -t tmpfs -o size=64m,nr_inodes=3 ni-test "$TMP/logs" || skip "a tmpfs with few inodes cannot be mounted"
at_exit 'umount "$TMP/logs" 2>/dev/null || true'

run "one inode in all" NCCL_INSPECTOR_FILE_MAX_BYTES=20k $US=500 sh "touch $TMP/logs/full" init 0 duet 0 \
  20000 20000 fin 0
verify --files 1 --end destroy
said "cannot begin the next file: No space left on device"
[ "$(grep -c 'cannot begin the next' "$TMP/nccl.log")" = 1 ] || fail "$CASE: said more than once"
unsaid "cannot write"

run "an inode comes back" NCCL_INSPECTOR_FILE_MAX_BYTES=20k $US=500 sh "touch $TMP/logs/full" init 0 duet 0 \
  10000 20000 \
  sh "rm $TMP/logs/full" sleep 5200 duet 0 5000 20000 fin 0
verify --files 2 --end destroy
finish
