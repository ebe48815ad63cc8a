#!/usr/bin/env bash
# Disks that fail: every record is in a file in the end, or its loss is counted; nothing is there twice or
# torn.
. "$(dirname "$0")/../../host/lib.sh"
IO=LD_PRELOAD=$BUILD/test/fault_io.so
US=NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS

# A fault for a while, and then none: nothing is lost.
for how in ENOSPC EIO EROFS EDQUOT; do
  run "write $how for 0.3 s" $IO $US=500 init 0 ops 0 3000 fault write=$how ops 0 5000 sleep 300 fault \
    all=ok \
    ops 0 2000 fin 0 fired
  verify --end destroy
  grep -q 'fired 0' "$TMP/out" && fail "$CASE: no call failed, so nothing was tested"
  said "cannot write"
done
run "every write ENOSPC until finalize" $IO $US=500 fault write=ENOSPC init 0 ops 0 3000 sleep 200 fault \
  all=ok fin 0
verify
run "short writes" $IO $US=500 fault write=short init 0 ops 0 20000 fin 0
verify --files 1
run "half a block, then full" $IO $US=500 init 0 ops 0 2000 sleep 150 fault write=short ops 0 9000 sleep 150 \
  fault write=ENOSPC sleep 100 fault all=ok fin 0
verify
run "EINTR" $IO $US=500 fault write=EINTR@2 init 0 ops 0 3000 sleep 150 ops 0 3000 fin 0
verify --files 1
# The file cannot be cut back to whole blocks: it stays torn, the block goes into the next one.
run "short, EIO, no ftruncate" $IO $US=500 init 0 ops 0 2000 sleep 150 fault write=EIO,ftruncate=EIO ops 0 \
  3000 sleep 60 \
  fault all=ok fin 0
verify --cut
run "open EACCES for a while" $IO $US=500 fault open=EACCES init 0 ops 0 2000 sleep 200 fault all=ok fin 0
verify --files 1
run "no descriptors for a while" $US=500 init 1 sleep 30 nofile 3 init 0 ops 0 2000 sleep 100 nofile 1000 \
  sleep 200 fin 0 fin 1
verify --files 1
run "mkdir EROFS for a while" $IO $US=500 fault mkdir=EROFS init 0 ops 0 2000 sleep 100 fault all=ok sleep \
  200 fin 0
verify --files 1
run "statx fails" $IO $US=500 init 0 ops 0 10 sleep 50 fault statx=EIO@3 ops 0 2000 sleep 150 ops 0 2000 \
  sleep 150 ops 0 10 fin 0
verify
run "close fails" $IO $US=500 init 0 ops 0 2000 fault close=EIO fin 0
verify
said "closing the log failed"

# A file system that is really full.
mkdir "$TMP/small"
if mount -t tmpfs -o size=128k ni-test "$TMP/small" 2>/dev/null; then
  at_exit 'umount "$TMP/small" 2>/dev/null || true'
  rm -rf "$TMP/logs" "$TMP/truth"
  ln -s "$TMP/small/logs" "$TMP/link"
  run "full tmpfs, room later" NCCL_INSPECTOR_DUMP_DIR="$TMP/small/logs" $US=500 sh \
    "head -c 100000 /dev/zero > $TMP/small/fill" \
    init 0 ops 0 5000 sleep 200 sh "rm $TMP/small/fill; mount -o remount,size=4m $TMP/small" ops 0 3000 fin 0
  mv "$TMP/small/logs" "$TMP/logs"
  verify
  said "No space left on device"
  run "full tmpfs until the end" NCCL_INSPECTOR_DUMP_DIR="$TMP/small/logs" $US=500 sh \
    "mount -o remount,size=64k $TMP/small" \
    init 0 ops 0 20000 sleep 100 timed 2300 fin 0
  rm -rf "$TMP/logs"
  cp -r "$TMP/small/logs" "$TMP/logs"
  verify --unflushed --no-final
  umount "$TMP/small"
else
  echo "no tmpfs can be mounted here: left out"
fi

# The directory.
run "directory deleted while running" $US=500 init 0 ops 0 2000 sleep 200 sh "rm -rf $TMP/logs" ops 0 3000 \
  sleep 100 fin 0
verify --lost 2000 --files 1
run "directory moved away" $US=500 init 0 ops 0 2000 sleep 200 sh "mv $TMP/logs $TMP/elsewhere" ops 0 3000 \
  sleep 200 fin 0
rm -rf "$TMP/logs"
mv "$TMP/elsewhere" "$TMP/logs"
verify --files 1
run "directory is a file at first" NCCL_INSPECTOR_DUMP_DIR="$TMP/logs/d" $US=500 sh "echo x > $TMP/logs" \
  init 0 ops 0 2000 \
  sleep 100 sh "rm $TMP/logs" sleep 250 fin 0
verify
said "Not a directory"
run "directory is a file" NCCL_INSPECTOR_DUMP_DIR="$TMP/logs" sh "echo x > $TMP/logs" init 0 ops 0 2000 \
  timed 2300 fin 0
said "cannot write"
# What waits is not lost while there is a black box, and the lines say who gets it.
if [ "$BOXES" != 0 ]; then
  said "cannot write .*nccl-inspector recover gets them from the black box"
  said "waits no longer.*nccl-inspector recover gets them from the black box"
fi
[ "$(cat "$TMP/logs")" = x ] || fail "$CASE: somebody's file was changed"
rm "$TMP/logs"
run "directory is a file, no black box" NCCL_INSPECTOR_BLACKBOX=0 NCCL_INSPECTOR_DUMP_DIR="$TMP/logs" sh \
  "echo x > $TMP/logs" \
  init 0 ops 0 2000 timed 2300 fin 0
said "waits no longer.* are lost if the process ends before that succeeds"
unsaid "nccl-inspector recover"
rm "$TMP/logs"

# RLIMIT_FSIZE: new files, no signal.
run "RLIMIT_FSIZE 64 KiB" $US=500 fsize 65536 init 0 duet 0 20000 50000 fin 0
verify
[ "$(find "$TMP/logs" -size +64k | wc -l)" = 0 ] || fail "$CASE: a file above the limit"
# What a second or a stalled disk leaves behind is more than one file may hold: it goes out in several blocks.
run "RLIMIT_FSIZE below an interval" $US=1000000 fsize 65536 init 0 ops 0 60000 fin 0
verify
run "RLIMIT_FSIZE of a few records" $US=200000 fsize 3000 init 0 ops 0 500 fin 0
verify
finish
