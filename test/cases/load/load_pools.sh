#!/usr/bin/env bash
# Pools that do not grow, an arena that is full: what is dropped is counted exactly, named by gap lines, and
# it recovers.
. "$(dirname "$0")/../../host/lib.sh"
US=NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS
S=NCCL_INSPECTOR
IO=LD_PRELOAD=$BUILD/test/fault_io.so

# 100 slots, nothing is written before the finalize: the first 100 are kept.
run "fixed pool of 100" $US=30000000 ${S}_POOL_GROW=0 ${S}_COLL_POOL_SIZE=100 $IO fault write=ENOSPC init 0 \
  ops 0 1000 \
  fault all=ok fin 0
verify --lost 1-900 --end destroy
run "fixed pools, collectives and P2P, two threads" $US=500 ${S}_POOL_GROW=0 ${S}_COLL_POOL_SIZE=64 \
  ${S}_P2P_POOL_SIZE=16 init 0 \
  init 1 bg duet 0 30000 0 duetp 1 2000 0 join ops 0 100 p2p 0 100 ops 0 100 p2p 0 100 ops 1 200 fin 0 fin 1
verify --lost 1-33000 --end destroy
run "fixed pools, paced: large enough" $US=500 ${S}_POOL_GROW=0 ${S}_COLL_POOL_SIZE=4096 init 0 duet 0 5000 \
  10000 exit 0
verify --end exit
run "fixed pool of 1" $US=500 ${S}_POOL_GROW=0 ${S}_COLL_POOL_SIZE=1 init 0 ops 0 500 fin 0
verify --lost 1-499 --end destroy
# A setting of earlier releases: it is named, and the first are kept all the same.
run "fixed pool of 100, last" $US=30000000 ${S}_POOL_GROW=0 ${S}_POOL_KEEP=last ${S}_COLL_POOL_SIZE=100 $IO \
  fault write=ENOSPC \
  init 0 ops 0 1000 fault all=ok fin 0
verify --lost 1-900 --end destroy
said 'NCCL_INSPECTOR_POOL_KEEP is accepted, no effect'
python3 - "$TMP/logs" <<'PY' || fail "$CASE: not the first 100"
import glob, gzip, json, sys
n = sorted(json.loads(l)["coll_perf"]["rec_sn"] for p in glob.glob(sys.argv[1] + "/*") for l in gzip.open(p)
           if b'"coll_perf"' in l)
sys.exit(n[:100] != list(range(100)) or
         b'"overwritten"' in b"".join(gzip.open(p).read() for p in glob.glob(sys.argv[1] + "/*")))
PY
run "the example plugin's name, growth off" $US=500 ${S}_POOL_GROW=0 NCCL_PROFILE_COLL_POOL_SIZE=50 init 0 \
  open 0 60 fin 0
grep -q . "$TMP/truth"
zcat "$TMP"/logs/* | grep '"pool_full":10' >/dev/null || fail "$CASE: not 10 dropped"

# The dump thread tries again after a pause of up to 5 s, then writes what waited, then the log is at rest.
caught_up='for i in $(seq 40); do sleep 0.5; was=$n n=$(cat '"$TMP"'/logs/* | wc -c); [ "$n" -gt 50000 ] && [ "$n" = "$was" ] && exit; done; exit 1'
# 1 MiB holds about 8,000 operations.
run "arena full, then recovery" $US=500 ${S}_POOL_MAX_BYTES=1m $IO init 0 ops 0 100 sleep 120 fault \
  write=ENOSPC ops 0 20000 \
  fault all=ok sh "$caught_up" ops 0 500 sleep 120 ops 0 500 fin 0
verify --lost 1-20000 --end destroy
said "were not recorded"
n=$(python3 - "$TMP/logs" <<'PY'
import glob, gzip, json, sys
print(sum(json.loads(l)["coll_perf"]["rec_sn"] >= 20100 for p in glob.glob(sys.argv[1] + "/*")
          for l in gzip.open(p) if b'"coll_perf"' in l))
PY
)
[ "$n" = 1000 ] || fail "$CASE: $n of 1000 after the recovery"
run "arena full, two threads, many marks" $US=500 ${S}_POOL_MAX_BYTES=1m $IO init 0 fault write=ENOSPC duet \
  0 60000 100000 \
  fault all=ok sh "$caught_up" duet 0 20000 50000 fin 0
verify --lost 1-60000 --end destroy
run "interval -1, arena three quarters full: early" $US=-1 ${S}_POOL_MAX_BYTES=4m init 0 duet 0 60000 50000 \
  fin 0
# a sanitizer's dump thread may be too slow
verify --end destroy --lost 0-$([ -z "$VARIANT" ] && echo 0 || echo 60000)
grep -q 'three quarters full' "$TMP/verify" || fail "$CASE: the note is missing"
run "communicators beyond the arena are refused" ${S}_POOL_MAX_BYTES=1m init 300 many 200 0 sleep 4000 init \
  1 ops 1 50 fin 300 fin 1
python3 test/host/verify.py "$TMP/logs" "$TMP/truth" --refused 200 >"$TMP/verify" 2>&1 || true
n=$(sed -n 's/.*: \([0-9]*\) communicators are not in the log.*/\1/p' "$TMP/verify")
verify --refused "${n:-0}" --lost 0-50 # pages once given to communicators never hold a growth step of operations
[ "${n:-0}" -ge 50 ] && [ "${n:-0}" -le 195 ] || fail "$CASE: ${n:-0} of 200 refused"
said "is not recorded"
grep -q "some communicators were not recorded" "$TMP/verify" || fail "$CASE: the log does not say so"
finish
