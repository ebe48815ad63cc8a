#!/usr/bin/env bash
# Many small logs: a command asks the file system once for each, reads the first lines of each once, and of those that an index
# knows opens again only what it reads. Usage: index_opens.sh [LOGS=200]
. "$(dirname "$0")/../../lib/case.sh"
need strace
strace -o /dev/null true 2>/dev/null || skip "strace may not trace here"
BIN=$(realpath "$BUILD")/nccl-inspector
N=${1:-200}
python3 - "$TMP/logs" "$N" <<'P'
import json, os, sys
out, n, t0 = sys.argv[1], int(sys.argv[2]), 1790000000 * 10**9
os.mkdir(out)
for r in range(n):
    meta = {"inspector_output_format_version": "v4.0", "git_rev": "x", "rec_mechanism": "nccl_profiler_interface", "dump_timestamp_us": t0 // 1000,
            "hostname": "node-%d" % (r // 8), "pid": 7000 + r, "producer": "nccl-inspector-c 0.1.0"}
    lines = [{"header": {"id": "0x0", "rank": r, "n_ranks": n, "nnodes": 0}, "metadata": meta, "process": {
        "start_ns": t0, "boot_id": "b", "exe": "p", "rank": r, "local_rank": r % 8, "world_size": n, "env": {}, "nccl_version": 23007, "interface": "v4", "settings": {}}}]
    lines += [{"header": {"id": "0x5d1c7e9000", "comm_name": "world", "rank": r, "n_ranks": n, "nnodes": n // 8}, "metadata": meta, "coll_perf": {
        "coll": "AllReduce", "coll_sn": i, "coll_msg_size_bytes": 1 << 20, "coll_exec_time_us": 1000, "coll_timing_source": "kernel_gpu", "coll_algobw_gbs": 1.0,
        "coll_busbw_gbs": 1.5, "coll_exec_time_ns": 10**6 + i, "coll_enqueue_ns": t0 + i * 10**7, "coll_gpu_start_delta_ns": 10**4, "rec_sn": i}} for i in range(5)]
    with open("%s/node-%d-pid%d-1790000000.jsonl" % (out, r // 8, 7000 + r), "w") as f:
        f.writelines(json.dumps(x, separators=(",", ":")) + "\n" for x in lines)
P
cd "$TMP"
calls() { # WANTED_OPENS command...
  local rc=0 opens stats
  strace -f -qq -e trace=open,openat,openat2,stat,lstat,newfstatat,statx -o trace "$BIN" "${@:2}" >text 2>&1 || rc=$?
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
