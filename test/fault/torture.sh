#!/usr/bin/env bash
# make torture: the long forms of the fault suite, about an hour. Ends with "N passed, N failed".
#   KILLS=1000  rounds of SIGKILL and recover      OPS=5000000  operations of the compressed day
. "$(dirname "$0")/../host/lib.sh"
US=NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS
kills=${KILLS:-1000} ops=${OPS:-5000000}
passed=0 failed=0
stage() { # title command...
  # shellcheck disable=SC2154 # failures: lib.sh
  local title=$1 before=$failures rc=0
  shift
  printf '== %s\n' "$title"
  "$@" || rc=$?
  if [ $rc = 0 ] && [ "$failures" = "$before" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

kill_at_random() { python3 test/fault/kill.py "$BUILD" "$kills" "${SEED:-$RANDOM}"; }
every_write() { NTH=99 test/cases/fault/fault_nth.sh; }

threads_64() {
  local i cycles=()
  for ((i = 0; i < 64; i++)); do cycles+=(bg cycle $i 100 30); done
  LIMIT=600 run "64 threads, 100 communicators each" $US=20000 init 9000 "${cycles[@]}" join fin 9000 exit 0
  verify
}
comms_10000() {
  LIMIT=600 run "10,000 communicators at once" NCCL_INSPECTOR_POOL_MAX_BYTES=512m $US=1000000 init 9000 many \
    10000 5 sleep 300 fin 9000 exit 0
  verify
}

# A day of training, 600 collectives a second for 24 hours, takes 52 M: compressed into OPS at 150,000 a
# second, with rotation and retention, and with communicators that come and go beside.
day() {
  LIMIT=3000 run "a day" $US=1000000 NCCL_INSPECTOR_FILE_MAX_BYTES=20m NCCL_INSPECTOR_DIR_MAX_BYTES=100m \
    init 0 init 1 sleep 500 rss 0 \
    bg duet 0 "$ops" 150000 bg cycle 2 2000 200 duetp 1 $((ops / 10)) 15000 join sleep 1500 rss 400000 fin 0 \
    fin 1 exit 0
  "$BUILD/nccl-inspector" check "$TMP/logs" --json >"$TMP/check" 2>&1 || true
  python3 - "$TMP/check" "$ops" <<'PY' || fail "a day: the accounts"
import json, sys
d = json.load(open(sys.argv[1]))
print({k: d[k] for k in d if isinstance(d[k], (int, str))}, d["problems"])
# Nothing but what retention removed, and that with the rest is all that was done; ranks: this process is the
# only one.
gone = sum(p["count"] for p in d["problems"] if p["code"] in ("dropped", "expired"))
there = gone + d["operations"]
left = int(sys.argv[2]) // 10 + int(sys.argv[2]) + 2000 * 200
sys.exit(d["bad_lines"] != 0 or
         {p["code"] for p in d["problems"]} - {"dropped", "expired", "ranks"} != set() or there != left)
PY
}

# The out-of-memory killer, where a memory cgroup may be made: what it leaves is recovered like any kill.
oom() {
  local g=/sys/fs/cgroup/memory/ni-test-$$ limit=memory.limit_in_bytes rc=0
  [ -d /sys/fs/cgroup/memory ] || { g=/sys/fs/cgroup/ni-test-$$ limit=memory.max; }
  mkdir "$g" 2>/dev/null && echo 80000000 2>/dev/null >"$g/$limit" ||
    { rmdir "$g" 2>/dev/null; echo "no memory cgroup can be made here: left out"; return 0; }
  CASE="out of memory"
  rm -rf "$TMP/logs" "$TMP/truth"
  # shellcheck disable=SC2016
  NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR="$TMP/logs" NCCL_INSPECTOR_BLACKBOX="$BOXES" \
    NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=-1 NCCL_INSPECTOR_POOL_MAX_BYTES=1g \
    sh -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' sh "$g" "$HOST" "$PLUGIN" "$TMP/truth" live \
    "$TMP/live" init 0 duet 0 100000000 50000 || rc=$?
  rmdir "$g"
  [ $rc = 137 ] || fail "$CASE: the host ended with $rc, not 137"
  "$BUILD/nccl-inspector" recover --box-dir "$BOXES" "$TMP/logs" || true
  verify --live "$TMP/live" --cut --started-free --open
  rm -f "$BOXES"/*.box
}

stage "$kills kills" kill_at_random
stage "every write" every_write
stage "64 threads" threads_64
stage "10,000 communicators" comms_10000
stage "out of memory" oom
stage "a day" day
printf '%d passed, %d failed\n' $passed $failed
[ $failed = 0 ]
