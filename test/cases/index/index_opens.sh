#!/usr/bin/env bash
# Many small logs: a command asks the file system once for each, reads the first lines of each once, and of
# those that an index knows opens again only what it reads. Usage: index_opens.sh [LOGS=200]
. "$(dirname "$0")/../../lib/case.sh"
need strace
strace -o /dev/null true 2>/dev/null || skip "strace may not trace here"
BIN=$(realpath "$BUILD")/nccl-inspector
N=${1:-200}
python3 - "$TMP/logs" "$N" <<'P'
import os, sys
sys.path.insert(0, "test/lib")
import logs
from logs import T0
out, n = sys.argv[1], int(sys.argv[2])
os.mkdir(out)
for r in range(n):
    log = logs.Log(r, n, "node-%d" % (r // 8), 7000 + r, git_rev="x")
    log.add(T0 // 1000, "process", logs.process(T0, r, n, "b", exe="p", local_rank=r % 8))
    about = logs.header("0x5d1c7e9000", r, n, n // 8, "world")
    for i in range(5):
        log.add(T0 // 1000, "coll_perf", logs.perf(
            "coll", "AllReduce", sn=i, msg_size_bytes=1 << 20, exec_time_us=1000, timing_source="kernel_gpu",
            algobw_gbs=1.0, busbw_gbs=1.5, exec_time_ns=10**6 + i, enqueue_ns=T0 + i * 10**7,
            gpu_start_delta_ns=10**4, rec_sn=i), about)
    log.write(out, 1790000000)
P
cd "$TMP"
calls() { # WANTED_OPENS command...
  local rc=0 opens stats
  strace -f -qq -e trace=open,openat,openat2,stat,lstat,newfstatat,statx -o trace "$BIN" \
    "${@:2}" >text 2>&1 || rc=$?
  [ $rc = 0 ] || [ $rc = 2 ] || { echo "$*: exit $rc"; cat text; exit 1; }
  opens=$(grep -cE ' open[a-z0-9]*\(.*logs/node-' trace)
  stats=$(grep -cE ' (stat|lstat|newfstatat|statx)\(.*node-[0-9]+-pid' trace)
  printf '%-40s %6d opens, %6d stats\n' "${*:2}" "$opens" "$stats"
  [ "$stats" = "$N" ] && [ "$opens" = "$1" ] || { echo "wanted $1 opens and $N stats"; exit 1; }
}
sums=(--no-plots --no-html --no-parquet --no-csv -q)
calls $((2 * N)) check --no-index logs
calls $((2 * N)) summary --no-index logs --output-dir out "${sums[@]}"
sleep 2.1 # what changed just before it was looked at is compared by its bytes
"$BIN" index logs >/dev/null
calls "$N" check logs
calls $((2 * N)) summary logs --output-dir out "${sums[@]}"
calls $((N + 2)) summary logs --output-dir out --rank 7 "${sums[@]}"
calls $((N + 2)) show logs --comm world --sn 3 --rank 9
