#!/usr/bin/env bash
# Rotation: every file stands alone, what expired is counted, and nothing else is missing.
. "$(dirname "$0")/../../host/lib.sh"
US=NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS

each_file_knows_its_communicators() {
  python3 - "$TMP/logs" <<'PY' || fail "$CASE: a file has records of a communicator that it does not announce"
import glob, gzip, json, sys
bad = 0
for path in sorted(glob.glob(sys.argv[1] + "/*")):
    known = set()
    for line in gzip.open(path, "rt"):
        o = json.loads(line)
        if "comm" in o: known.add(o["header"]["id"])
        if ("coll_perf" in o or "p2p_perf" in o) and o["header"]["id"] not in known:
            bad += 1
            if bad < 5: print(path, line[:200])
sys.exit(bad > 0)
PY
}

ONLYX=1
run "FILE_MAX_BYTES 20k" NCCL_INSPECTOR_FILE_MAX_BYTES=20k $US=500 init 0 duet 0 5000 10000 init 1 duet 1 \
  5000 20000 fin 0 \
  duet 1 5000 20000 fin 1
verify --end destroy
[ "$(ls "$TMP/logs" | wc -l)" -ge 5 ] || fail "$CASE: no rotation"
each_file_knows_its_communicators
run "FILE_MAX_BYTES smaller than a block" NCCL_INSPECTOR_FILE_MAX_BYTES=100 $US=500 init 0 duet 0 5000 20000 \
  fin 0
verify --end destroy
each_file_knows_its_communicators
at_most() { # FILE ALL: bytes of the longest file, and of all together
  python3 - "$TMP/logs" "$@" <<'PY' || fail "$CASE: $(ls -l "$TMP/logs")"
import os, sys
sizes = [e.stat().st_size for e in os.scandir(sys.argv[1])]
sys.exit(max(sizes) > int(sys.argv[2]) or sum(sizes) > int(sys.argv[3]))
PY
}
# What a second of the default interval has brought is more than a file may hold.
run "FILE_MAX_BYTES 200k, much at once" NCCL_INSPECTOR_FILE_MAX_BYTES=200k init 0 duet 0 40000 40000 fin 0
verify --end destroy
at_most 204800 99999999
each_file_knows_its_communicators
run "DIR_MAX_BYTES 256k, much at once" NCCL_INSPECTOR_DIR_MAX_BYTES=256k init 0 duet 0 40000 40000 fin 0
verify --lost 1-40000 --end destroy
at_most 32768 270336
run "the same, as text" NCCL_INSPECTOR_DIR_MAX_BYTES=4m NCCL_INSPECTOR_DUMP_FORMAT=jsonl init 0 duet 0 40000 \
  40000 fin 0
verify --lost 1-40000 --end destroy
at_most 524288 4259840
run "DIR_MAX_BYTES 40k" NCCL_INSPECTOR_DIR_MAX_BYTES=40k $US=500 init 0 duet 0 20000 40000 fin 0
python3 - "$TMP/logs" <<'PY' || fail "$CASE: $(ls -l "$TMP/logs")"
import os, sys
sizes = sorted(e.stat().st_size for e in os.scandir(sys.argv[1]))
sys.exit(sum(sizes[:-1]) > 45056)
PY
verify --lost 1-20000 --end destroy
checked 2 --partial
[ "$(grep -c '^problem' "$TMP/check")" = 1 ] ||
  fail "$CASE: one loss is told as several: $(grep '^problem' "$TMP/check")"
run "DIR_MAX_BYTES 40k, communicators come and go" NCCL_INSPECTOR_DIR_MAX_BYTES=40k $US=500 init 0 cycle 40 \
  200 duet 0 10000 20000 fin 0
checked 2 --partial
[ "$(grep -c '^problem' "$TMP/check")" = 1 ] || fail "$CASE: one loss is told as several: $(grep '^problem' "$TMP/check")"
run "KEEP_SECONDS 1" NCCL_INSPECTOR_KEEP_SECONDS=1 $US=500 init 0 duet 0 6000 1500 fin 0
verify --lost 1-6000 --end destroy

# Of a killed process recover says it, also of communicators that were over. Without a dump thread each is
# written when it ends, by who ends it: killed then, or behind a write() before anything was made of it, every
# run is the same.
if [ -z "$VARIANT" ] && [ "$BOXES" != 0 ] && [ -x "$BUILD/nccl-inspector" ]; then
  KILLED=(NCCL_INSPECTOR_DIR_MAX_BYTES=60k NCCL_INSPECTOR_DUMP_THREAD_ENABLE=0 LD_PRELOAD="$BUILD/test/fault_io.so")
  expired_of() { # EXPECTED: of a host that was killed
    "$BUILD/nccl-inspector" recover --box-dir "$BOXES" "$TMP/logs" >"$TMP/recover" 2>&1 ||
      { fail "$CASE: recover"; cat "$TMP/recover"; }
    rm -f "$BOXES"/*.box
    "$BUILD/nccl-inspector" check "$TMP/logs" --partial --json >"$TMP/check" 2>&1 || true
    python3 - "$TMP/check" "$1" <<'PY' || fail "$CASE: $(cut -c1-600 "$TMP/check")"
import json, sys
d = json.load(open(sys.argv[1]))
gone = d["dropped_by"].get("expired", 0)
assert {p["code"] for p in d["problems"]} <= {"expired", "in_flight"}, d["problems"]
assert eval(sys.argv[2], {"gone": gone, "there": d["operations"]}), (gone, d["operations"])
PY
  }
  RC=137 run "killed, most communicators over" "${KILLED[@]}" init 9 cycle 40 400 init 0 duet 0 4000 40000 fin 0 ops 9 50 kill
  expired_of "gone > 10000 and gone + there == 40 * 400 + 4000 + 50"
  for n in 200 201 202 203 204; do
    RC=137 run "killed in write $n" "${KILLED[@]}" NI_FAULT=write=killafter@$n init 9 ops 9 50 cycle 40 400 init 0 duet 0 4000 40000 fin 0 fin 9 kill
    expired_of "gone > 4000 and (gone + there) % 400 == 50"
  done
fi

# A new file because of a failure must stand alone as well.
run "new file after EIO" LD_PRELOAD="$BUILD/test/fault_io.so" $US=500 init 0 ops 0 500 sleep 150 \
  fault write=EIO@1,ftruncate=EIO@1 ops 0 500 sleep 150 ops 0 500 fin 0
verify --end destroy --files 2
each_file_knows_its_communicators
run "directory deleted" $US=500 init 0 ops 0 500 sleep 150 sh "rm -rf $TMP/logs" ops 0 500 fin 0
verify --lost 500 --files 1
each_file_knows_its_communicators
finish
