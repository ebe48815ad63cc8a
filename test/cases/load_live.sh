#!/usr/bin/env bash
# The log of a running process is whole gzip members at any moment, and all of its lines are valid.
. "$(dirname "$0")/../host/lib.sh"
CASE="copies of a live log"
NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR="$TMP/logs" NCCL_INSPECTOR_FILE_MAX_BYTES=300k \
  NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=500 timeout 30 "$HOST" "$PLUGIN" "$TMP/truth" init 0 init 1 \
  bg paced 0 60000 20000 duet 1 60000 20000 join fin 0 fin 1 >"$TMP/out" 2>&1 &
pid=$!
copies=0
while kill -0 $pid 2>/dev/null; do
  for f in "$TMP"/logs/*; do
    [ -e "$f" ] || continue
    cp "$f" "$TMP/copy.gz"
    [ -s "$TMP/copy.gz" ] || continue # created, and not yet written
    gunzip -t "$TMP/copy.gz" || fail "$CASE: copy $copies of $f is not whole"
    [ -z "$(zcat "$TMP/copy.gz" | tail -c 1 | tr -d '\n')" ] || fail "$CASE: copy $copies ends within a line"
    copies=$((copies + 1))
  done
done
wait $pid || fail "$CASE: the host ended with $?"
[ $copies -ge 20 ] || fail "$CASE: only $copies copies"
verify --end destroy
echo "$copies copies"
finish
