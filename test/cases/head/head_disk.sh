#!/usr/bin/env bash
# The disk below a head is full, cannot be written, or belongs to another head (test/lib/head_disk.py).
set -euo pipefail
. "$(dirname "$0")/../../lib/head.sh"
full=
mkdir "$WORK/full"
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=512k,mode=700 tmpfs "$WORK/full" 2>/dev/null; then
  full=$WORK/full
  trap 'umount "$WORK/full"; finish' EXIT
  mkdir "$full/out"
fi
python3 test/lib/head_disk.py "$full"
