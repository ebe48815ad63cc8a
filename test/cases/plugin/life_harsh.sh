#!/usr/bin/env bash
# Hosts that treat the plugin harshly (test/host/harsh.c): its lives are recorded all the same, and the host
# goes on.
. "$(dirname "$0")/../../host/lib.sh"
[ -z "$VARIANT" ] || skip "not under $VARIANT: its own memory, stacks and threads would be measured"

# harsh [NAME=value ...] WHAT [N]: runs it. Leaves $TMP/logs and $TMP/out; returns 1 when this machine cannot
# do it.
harsh() {
  local -a vars=()
  local rc=0
  while [[ $1 == *=* ]]; do vars+=("$1"); shift; done
  CASE="$* ${vars[*]}"
  rm -rf "$TMP/logs"
  env NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR="$TMP/logs" NCCL_INSPECTOR_DUMP_FORMAT=jsonl \
    NCCL_INSPECTOR_BLACKBOX="$BOXES" "${vars[@]}" \
    timeout --kill-after=2 10 "$BUILD/test/host/harsh" "$PLUGIN" "$@" >"$TMP/out" 2>&1 || rc=$?
  [ $rc != 77 ] || { echo "skip $CASE: $(tail -n 1 "$TMP/out")"; return 1; }
  [ $rc = 0 ] || { fail "$CASE: ended with $rc"; tail -n 5 "$TMP/out"; }
}

# recorded N: all N operations of the last run are in its log, and check has nothing to say.
recorded() {
  local n
  n=$(cat $(find "$TMP/logs" -type f 2>/dev/null) /dev/null | grep -c '"coll_perf"') || true
  [ "$n" = "$1" ] || { fail "$CASE: $n records, not $1"; return 0; }
  checked 0
  echo "ok   $CASE: $n records"
}

# A lock that a cancelled thread took with it would hold up every later init.
harsh cancel && recorded 40

# exit() while another thread is within init: what is left behind is empty, and the next process takes it
# away.
if [ "$BOXES" != 0 ] && harsh leave; then
  harsh again 1 && recorded 40
  [ -z "$(ls "$BOXES")" ] || fail "$CASE: a black box stayed: $(ls "$BOXES")"
fi

# A filter that knows no statx: log and black box are there.
if harsh nostatx; then
  recorded 20
  [ "$BOXES" = 0 ] || grep -q '"blackbox":"' "$TMP"/logs/* || fail "$CASE: no black box"
fi

# The smallest stack that a thread can have, also where that thread writes the log itself.
NOBODY=NCCL_INSPECTOR_DUMP_THREAD_ENABLE=0
for settings in NCCL_INSPECTOR_ENABLE=1 $NOBODY "$NOBODY NCCL_INSPECTOR_DUMP_VERBOSE=1 NCCL_INSPECTOR_EVENTS=trace" \
  "$NOBODY NCCL_INSPECTOR_FILE_MAX_BYTES=4096 NCCL_INSPECTOR_DUMP_DIR=$TMP/logs/a/b/c"; do
  # shellcheck disable=SC2086
  harsh $settings small && recorded 20 && sed -n '/stack:/p' "$TMP/out"
done

# A host that locks all memory it will ever map: reserved is not resident. Blocks are of 512 bytes.
if harsh locked; then
  recorded 20
  kb=$(sed -n 's/^resident: \([0-9]*\) kB/\1/p' "$TMP/out") \
    blocks=$(sed -n 's/^box: \([0-9]*\) blocks/\1/p' "$TMP/out")
  [ "${kb:-0}" -lt 65536 ] || fail "$CASE: $kb kB are resident"
  [ "${blocks:-0}" -lt 131072 ] || fail "$CASE: the box has $blocks blocks"
  echo "     $kb kB resident, $((${blocks:-0} / 2)) kB of box"
fi

# One hash and rank again as soon as the last life is finalized, in one file: each life is told from the one
# before.
for settings in NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=0 $NOBODY; do
  harsh $settings again 20 && recorded 420
done
finish
