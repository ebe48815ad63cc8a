#!/usr/bin/env bash
# The log of a running process is whole gzip members of whole lines, whenever it is copied. Only a copy taken
# while a write() is under way may end within a member (the kernel makes a file longer page by page): one
# taken a little later must not.
. "$(dirname "$0")/../../host/lib.sh"
CASE="copies of a live log"
NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR="$TMP/logs" NCCL_INSPECTOR_FILE_MAX_BYTES=300k \
  NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=500 timeout 200 "$HOST" "$PLUGIN" "$TMP/truth" init 0 \
  init 1 \
  bg paced 0 60000 20000 duet 1 60000 20000 join fin 0 fin 1 >"$TMP/out" 2>&1 &
pid=$!
copies=0 within=0
while kill -0 $pid 2>/dev/null; do
  # The two newest: the one being written, and the one before it, which has just been closed.
  for f in $(find "$TMP/logs" -type f 2>/dev/null | sort -V | tail -n 2); do
    cp "$f" "$TMP/copy.gz"
    [ -s "$TMP/copy.gz" ] || continue # created, and not yet written
    for pause in 0.02 0.1 0.5; do # the writer may be without a processor in the middle of it
      gunzip -t "$TMP/copy.gz" 2>/dev/null && break
      sleep $pause
      cp "$f" "$TMP/copy.gz"
      within=$((within + 1))
    done
    gunzip -t "$TMP/copy.gz" || fail "$CASE: copy $copies of $f is not whole"
    [ -z "$(zcat "$TMP/copy.gz" | tail -c 1 | tr -d '\n')" ] || fail "$CASE: copy $copies ends within a line"
    copies=$((copies + 1))
  done
done
wait $pid || fail "$CASE: the host ended with $?"
[ $copies -ge 5 ] || fail "$CASE: only $copies copies"
verify --end destroy
[ $within -le $((copies / 5)) ] || fail "$CASE: $within of $copies copies ended within a member"
echo "$copies copies, $within taken within a write()"
finish
