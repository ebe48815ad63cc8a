#!/usr/bin/env bash
# The disk below a head is full, cannot be written, or belongs to another head (test/lib/head_disk.py).
. "$(dirname "$0")/../../lib/head.sh"
full=
mkdir "$TMP/full"
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=512k,mode=700 tmpfs "$TMP/full" 2>/dev/null; then
  full=$TMP/full
  at_exit 'umount "$TMP/full"'
  mkdir "$full/out"
fi
python3 test/lib/head_disk.py "$full"
