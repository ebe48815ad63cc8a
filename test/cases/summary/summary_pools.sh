#!/usr/bin/env bash
# pools: what it recommends is enough. A run with pools that are too small drops; the same run with the
# recommended size does not; and what is stated is what the simulator's own pool report says.
. "$(dirname "$0")/../../lib/case.sh"
export TMPDIR=$TMP
inspector=$BUILD/nccl-inspector
field() { python3 -c 'import json,sys; v=json.load(open(sys.argv[1]))
for k in sys.argv[2].split("."): v=v[k]
print(v)' "$TMP/json" "$1"; }
sim() { # log dir, settings...
  local logs=$TMP/$1
  shift
  env NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_BLACKBOX=0 NCCL_INSPECTOR_DUMP_DIR="$logs" "$@" \
    "$BUILD/nccl-sim" \
    --plugin "$BUILD/libnccl-profiler-inspector.so" --pool-report --scenario pool_fixed --truth \
    "$logs.truth" >"$logs.report"
}

# Nothing is written before the end: what is needed at once does not depend on how fast the machine is.
HOLD=NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=30000000
sim small $HOLD NCCL_INSPECTOR_POOL_GROW=0 NCCL_INSPECTOR_COLL_POOL_SIZE=512
rc=0
"$inspector" pools "$TMP/small" --json >"$TMP/json" || rc=$?
[ $rc = 2 ]
dropped=$(field coll.dropped)
[ "$dropped" -gt 0 ] && [ "$(field dropped_pool_full)" = "$dropped" ] && [ "$(field growth_off)" = True ]
# The report's line: ... | capacity high growths bytes dropped agreement
grep '^0x' "$TMP/small.report" |
  awk -v d="$dropped" -v h="$(field coll.high_water)" -v c="$(field coll.capacity)" \
  '{ if ($(NF-1) != d || $(NF-4) != h || $(NF-5) != c || $NF != "agrees") exit 1; n++ } END { exit n != 1 }'
want=$(field coll.recommended_slots)
rc=0
"$inspector" pools "$TMP/small" >"$TMP/text" || rc=$?
[ $rc = 2 ] && grep -qx "  NCCL_INSPECTOR_COLL_POOL_SIZE=$want" "$TMP/text" &&
  grep -q "^$(grouped "$dropped") operations were dropped" "$TMP/text"

sim right $HOLD NCCL_INSPECTOR_POOL_GROW=0 NCCL_INSPECTOR_COLL_POOL_SIZE="$want"
"$inspector" pools "$TMP/right" --json >"$TMP/json"
[ "$(field dropped)" = 0 ] && [ "$(field coll.capacity)" = "$want" ] &&
  [ "$(field coll.recommended_slots)" = "$want" ]
# What it says a process takes at most is not less than what was in use.
[ "$(field fixed_bytes_per_process)" -ge "$(field arena_high_water_bytes)" ]

sim grown
"$inspector" pools "$TMP/grown" --json >"$TMP/json"
cap=$(field recommended_max_bytes)
sim capped NCCL_INSPECTOR_POOL_MAX_BYTES="$cap"
"$inspector" pools "$TMP/capped" >/dev/null

mkdir "$TMP/theirs"
"$BUILD/test/host/loggen" "$TMP/theirs" --ranks 1 --ops 10
rc=0
"$inspector" pools "$TMP/theirs" 2>"$TMP/err" || rc=$?
[ $rc = 1 ] && grep -q 'no pool_stats lines' "$TMP/err"
echo "recommended sizes suffice"
