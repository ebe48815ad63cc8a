#!/usr/bin/env bash
# --time-granularity against sums that Python works out line by line: starts on borders of buckets and a ns
# before and behind, an origin off the grid, widths of 1 ms to 1 h, roll-ups that end on a border, counters of
# two hosts, filters. Sums over the buckets are the totals. The same bytes whatever --jobs; what cannot be is
# refused.
. "$(dirname "$0")/../../lib/case.sh"
cd "$TMP"
python3 "$ROOT/test/lib/series_logs.py" logs
series() { # width options...
  rm -rf out
  rc=0; "$BUILD/nccl-inspector" summary logs --output-dir out --time-granularity "$1" --no-plots --no-html \
    --no-csv -q "${@:2}" >text || rc=$?
  [ $rc = 2 ] || { cat text; exit 1; } # these logs have no end
}
for w in 1:1ms 7:7ms 1000:1s 60000:1m 3600000:1h; do
  series "${w#*:}"
  python3 "$ROOT/test/lib/series_truth.py" logs out $((${w%:*} * 1000000)) | tee truth.txt
  # 400 operations in 4 s: whole seconds have 100 (2 by their dump)
  [ "$w" != 1000:1s ] || grep -q '\[70, 98, 102, 100, 30' truth.txt
done
series 1s --since 1790000001 --until 1790000003.5
python3 "$ROOT/test/lib/series_truth.py" logs out 1000000000 1790000001000000 1790000003500000
series 7ms --jobs 1 && mv out one
series 7ms --jobs 3
diff -r one/summary out/summary && diff -r one/parquet_series out/parquet_series
for bad in 0 1 0ms 2h 1.5s 90000000000000000000s 1us -1s; do
  rc=0; "$BUILD/nccl-inspector" summary logs --time-granularity=$bad 2>err.txt || rc=$?
  [ $rc = 64 ] && grep -q 'want 1ms to 1h' err.txt || { echo "$bad: $rc"; cat err.txt; exit 1; }
done

# More rows than a table takes are refused: 2,100 levels in 500 buckets of 1 ms.
python3 - "$ROOT/test/lib/counters" <<'P'
import os, shutil, sys
sys.path.insert(0, sys.argv[1])
from counter_series_write import Series
os.mkdir("many")
shutil.copy("logs/node-0-pid7000.jsonl", "many")
s = Series("many/node-0-counters-1790000000.jsonl.gz", "node-0",
           [{"source": "eth", "name": "eth%d" % i, "metrics": [
    {"name": "level%d" % k, "kind": "gauge", "unit": ""} for k in range(21)]} for i in range(100)], 10**6)
for i in range(501): s.sample(1790000000 * 10**9 + i * 10**6, list(range(2100)))
s.close()
P
rc=0; "$BUILD/nccl-inspector" summary many --output-dir out-many --time-granularity 1ms --no-plots --no-html \
  --no-csv 2>err.txt >/dev/null || rc=$?
[ $rc = 1 ] && [ ! -e out-many ] &&
  grep -q 'more than 1048576 rows in series_hosts.csv.*give wider buckets' err.txt ||
  { echo "$rc"; cat err.txt; exit 1; }
rc=0; "$BUILD/nccl-inspector" summary many --output-dir out-many --time-granularity 100ms --no-plots \
  --no-html --no-csv -q >/dev/null || rc=$?
[ $rc = 2 ] && [ "$(wc -l <out-many/summary/series_hosts.csv)" = $((6 * 2100 + 1)) ] ||
  { echo "$rc"; wc -l out-many/summary/*; exit 1; }

# --groups: the logs of a host each, and one log of its own before these; sums by group are those of its logs.
printf '# parts\nlate: node-1-pid7002.jsonl\nfirst: *node-0-pid*\nrest of it: nothing* *node-1-pid*\n' >groups
series 1s --groups groups
python3 "$ROOT/test/lib/series_truth.py" logs out 1000000000 groups
for bad in 'x: *.nothing|no log is of group .x.' 'x *|want NAME: GLOB' 'x: *\nx: *|is there already' \
  '# nothing|no group in it'; do
  printf '%b\n' "${bad%%|*}" >bad
  rc=0; "$BUILD/nccl-inspector" summary logs --output-dir none --groups bad 2>err.txt >/dev/null || rc=$?
  [ $rc = 1 ] && grep -q "${bad##*|}" err.txt && [ ! -e none ] || { echo "$bad: $rc"; cat err.txt; exit 1; }
done

# Sizes near 2^63: sums stay at 2^63 - 1 and that is said; none wraps. The same bytes whatever --jobs, and
# through partial results.
mkdir forged
PYTHONPATH=$ROOT/test/lib python3 - forged <<'P'
import sys
import logs
from logs import T0
S, most = 10**9, 2**63 - 1
for rank in range(4):
    log, about = logs.Log(rank, 4, "h", 7000 + rank, git_rev="x"), logs.header("0x5d1c", rank, 4, 1, "world")
    for sn, size in enumerate((most, 1 << 20, most - 5)):
        log.add(T0 // 1000, "coll_perf", logs.perf(
            "coll", "AllReduce", sn=sn, msg_size_bytes=size, exec_time_us=1000, timing_source="kernel_gpu",
            algobw_gbs=1.0, busbw_gbs=1.5, exec_time_ns=10**6, enqueue_ns=T0 + sn * 2 * S,
            gpu_start_delta_ns=0, rec_sn=sn), about)
    log.add(T0 // 1000, "rollup", logs.rollup("AllReduce", most, T0, T0 + S, 2**62, most, 2**62, 1, 2**62),
            about)
    log.write(sys.argv[1])
P
for jobs in 1 3; do
  rc=0; "$BUILD/nccl-inspector" summary forged --output-dir forged$jobs --time-granularity 1s --no-plots \
    --no-html -j$jobs >text || rc=$?
  [ $rc = 2 ] &&
    grep -q '^8 sums of sizes or times .* would be more than 9223372036854775807 and stand as that' text ||
    { echo "forged: $rc"; cat text; exit 1; }
done
for i in 1 2; do
  "$BUILD/nccl-inspector" summary forged --shard $i/2 --partial part$i --time-granularity 1s >/dev/null
done
rc=0; "$BUILD/nccl-inspector" merge part1 part2 --output-dir forged4 --no-plots --no-html >text || rc=$?
[ $rc = 2 ] || { echo "forged: merge ends with $rc"; cat text; exit 1; }
diff -r forged1/summary forged3/summary && diff forged1/summary/series.csv forged4/summary/series.csv &&
  diff forged1/summary/series_rollups.csv forged4/summary/series_rollups.csv
python3 - forged1/summary <<'P'
import csv, sys
most = 2**63 - 1
rows = lambda name: list(csv.DictReader(open("%s/%s.csv" % (sys.argv[1], name))))
assert [int(r["bytes"]) for r in rows("series")] == [most, 4 << 20, most], rows("series")
for r in rows("series_rollups"):
    assert ((int(r["operations"]), int(r["bytes"])) == (most, most) and
            float(r["exec_time_us"]) == most / 1e3), r
for r in rows("summary_rollups"):
    assert ((int(r["operations"]), int(r["sum_bytes"])) == (most, most) and
            abs(float(r["sum_us"]) - most / 1e3) < 1), r
P
