#!/usr/bin/env bash
# The command line of summary: filters, spellings, exit codes, the file names and columns of NVIDIA's
# exporter, stop by signal.
. "$(dirname "$0")/../../lib/case.sh"
inspector=$BUILD/nccl-inspector loggen=$BUILD/test/host/loggen
cd "$TMP"
"$loggen" logs --ranks 8 --node 4 --ops 300 --format ours --comm-name --p2p 10

code() { # wanted command...
  local want=$1 rc=0
  shift
  "$@" >stdout 2>stderr || rc=$?
  [ "$rc" = "$want" ] || { echo "exit $rc, wanted $want: $*"; cat stdout stderr; exit 1; }
}
records() {
  python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["records"])' "$1/summary/summary.json"
}
counted() { # wanted options...
  local want=$1
  shift
  rm -rf out
  "$inspector" summary logs --output-dir out --no-plots --no-html "$@" >/dev/null 2>stderr ||
    { cat stderr; exit 1; }
  [ "$(records out)" = "$want" ] || { echo "$(records out) records, wanted $want: $*"; exit 1; }
}
fast="--no-plots --no-html"
# shellcheck disable=SC2086
{
  code 0 "$inspector" --input_dir=logs --output_dir=paths --no-plots
  # What it says is written is there, the page too.
  grep -q '^  paths/report.html: ' stdout || { echo "the page's path is not said"; cat stdout; exit 1; }
  sed -n '/^written:/,$s/^  \(.*\): .*/\1/p' stdout |
    while read -r f; do [ -e "$f" ] || { echo "$f: said, and not there"; exit 1; }; done
  code 0 "$inspector" --input_dir=logs --output_dir=ref $fast
  code 0 "$inspector" summary --input-dir logs $fast
  [ -d logs-analysis ] && cmp ref/summary/summary.csv logs-analysis/summary/summary.csv
  code 0 "$inspector" summary logs/node-0-pid400?.log 'logs/node-1*' --output-dir ref2 $fast
  diff -r -x output.log ref ref2
}
code 64 "$inspector" summary
code 64 "$inspector" summary logs --jobs 0
code 64 "$inspector" summary logs --memory 1k
grep -q '16M or more' stderr
code 64 "$inspector" summary logs --since yesterday
code 64 "$inspector" summary logs --compression lzma
code 64 "$inspector" summary logs --only tables,nonsense
grep -qF -- '--only=tables,nonsense: want a list of tables, operations, plots, page, parquet' stderr

# --only and the options it took the place of make the same files; without a word on standard error.
parts() { # what is in a result, without the words of the run
  (cd "$1" && find . -name 'msg_size_*' -prune -o -type f ! -name output.log -print && find . -path '*/msg_size_*.csv' | head -n 1) | sort
}
for pair in "tables:--no-csv --no-plots --no-html --no-parquet" "page,parquet:--no-csv --no-plots" \
  "operations:--no-plots --no-html --no-parquet" \
  "parquet:--no-plots --no-html --no-csv"; do
  # shellcheck disable=SC2086
  code 0 "$inspector" summary logs -q --output-dir old ${pair#*:}
  code 0 "$inspector" summary logs -q --output-dir new --only "${pair%%:*}"
  [ ! -s stderr ] || { cat stderr; exit 1; }
  [ "$(parts old)" = "$(parts new)" ] ||
    { echo "--only ${pair%%:*}:"; diff <(parts old) <(parts new); exit 1; }
done
rm -rf old new

# Codecs that are gone write what no option writes, and are named once, but not where JSON is asked for.
code 0 "$inspector" summary logs -q --output-dir default --only parquet
code 0 "$inspector" summary logs -q --output-dir gone --only parquet --compression gzip --compression none \
  --compression=gzip
[ "$(cat stderr)" = "nccl-inspector summary: no effect any more: --compression=gzip, --compression=none" ] ||
  { cat stderr; exit 1; }
diff -r default/parquet_files gone/parquet_files
code 0 "$inspector" summary logs -q --output-dir gone --only tables --compression gzip --json
[ ! -s stderr ] || { cat stderr; exit 1; }
rm -rf default gone
code 1 "$inspector" summary nowhere
code 1 "$inspector" summary logs --output-dir /proc/nowhere

# Up to 2.26 NCCL does not say how many nodes there are: no kind of link is made up from that, but with
# --compat.
mkdir unsized
sed 's/"n_ranks":[0-9]*,"nnodes":[0-9]*/"n_ranks":0,"nnodes":0/' logs/node-0-pid4000.log >unsized/x.log
# shellcheck disable=SC2086
code 0 "$inspector" summary unsized --output-dir unsized-out $fast
types() { python3 -c 'import json,sys; print(*sorted({g["comm_type"] for g in json.load(open(sys.argv[1]))["groups"]}))' "$1/summary/summary.json"; }
[ "$(types unsized-out)" = unknown ] ||
  { echo "types without a number of nodes: $(types unsized-out)"; exit 1; }
# shellcheck disable=SC2086
code 0 "$inspector" summary unsized --output-dir unsized-compat --compat $fast
[ -n "$(ls unsized-compat/summary/*/summary_hca-only_*)" ] &&
  [ -z "$(ls unsized-compat/summary/*/summary_unknown_* 2>/dev/null)" ] ||
  { echo "--compat: not NVIDIA's types"; exit 1; }

# Hosts of one name (containers): where all ranks are there no host is missing, as check says.
mkdir one-name
for f in logs/*.log; do sed 's/"hostname":"node-[0-9]*"/"hostname":"pod"/' "$f" >"one-name/${f##*/}"; done
code 0 "$inspector" check one-name --quiet
# shellcheck disable=SC2086
code 0 "$inspector" summary one-name --output-dir one-name-out $fast
rm one-name/node-1-*
# shellcheck disable=SC2086
code 2 "$inspector" summary one-name --output-dir one-name-out $fast

total=$((8 * 300 * 2 + 8 * 30))
counted $total
counted $((8 * 30 / 2)) --coll Send
counted $((8 * 60 * 2 + 8 * 15)) --coll AllReduce,Recv
counted $((8 * 300)) --comm node
counted $((8 * 300 + 8 * 30)) --comm 0x5d1c7e90aa4101
counted $((total / 2)) --node node-1
counted $((total / 2)) --host node-1 # its earlier spelling
counted $((300 * 3 + 30)) --rank 2
counted $((3 * (300 * 3 + 30))) --rank 0,2-3
# Options that leave nothing are mostly misspelt: said, and the earlier result stays.
for o in '--until 2020-01-01T00:00:00Z' '--coll allreduces' '--host nowhere' '--rank 99' \
  '--skip-first 1000000'; do
  # shellcheck disable=SC2086
  code 1 "$inspector" summary logs --output-dir ref $fast $o
  grep -q "nothing is left: all of $total records are left out by the options; ref is as it was" stderr
  [ "$(records ref)" = "$total" ]
done
# What a filter asks for and nobody has is named, with what there is; a folder that nobody made is not.
code 1 "$inspector" summary logs --output-dir not-made $fast --coll allreduces
grep -qx "nccl-inspector summary: --coll allreduces: there is none in these logs; there are AllReduce, .*" \
  stderr || { cat stderr; exit 1; }
{ grep -q not-made stderr || [ -e not-made ]; } && { echo "a folder that was not made"; cat stderr; exit 1; }
for o in "--host node-1,node-9|--node node-9: there is none in these logs; there are node-[01], node-[01]" \
  "--comm NODE|--comm NODE: there is none in these logs; there are node (0x[0-9a-f]*), .*" \
  "--rank 2,77-80|--rank 77-80: there is none in these logs; the lowest is 0, the highest 7"; do
  # shellcheck disable=SC2086
  "$inspector" summary logs --output-dir out $fast ${o%%|*} >/dev/null 2>stderr || true
  [ "$(grep -cx "nccl-inspector summary: ${o#*|}" stderr)" = 1 ] || { echo "not told: $o"; cat stderr; exit 1; }
  # shellcheck disable=SC2086
  "$inspector" trace logs -o t.json ${o%%|*} >/dev/null 2>stderr || true
  [ "$(grep -c "^nccl-inspector trace: ${o#*|}" stderr)" = 1 ] || { echo "trace has not told: $o"; cat stderr; exit 1; }
done
code 0 "$inspector" summary logs --output-dir out $fast --comm world --coll AllReduce --sn 3,4000
grep -qx "nccl-inspector summary: --sn 4000: there is none in what the other filters leave; the lowest is 0, the highest [0-9]*" stderr
[ "$(records out)" = 8 ] || { echo "one operation of eight ranks: $(records out)"; exit 1; }
counted $((8 * 60 * 2)) --coll ALLREDUCE
[ ! -s stderr ] || { echo "told for nothing:"; cat stderr; exit 1; }
counted $((8 * 300 + 8 * 30)) --comm 0X5D1C7E90AA4101
for c in summary trace; do
  for o in "--since 2026-11-21T08:00:00Z --until 2026-11-20T08:00:00Z" \
    "--since -1m --until -2m" "--since +2m --until +1m"; do
    # shellcheck disable=SC2086
    code 64 "$inspector" $c logs $o
    grep -q -- '--since is later than --until' stderr
  done
done
code 1 "$inspector" summary logs --output-dir not-made $fast --since 2030-01-01T00:00:00Z --until +1m
grep -q -- '--since is later than --until' stderr
for o in --rank=abc --rank=-1 --rank=3-1 --rank= '--coll=,' --output-dir=; do
  code 64 "$inspector" summary logs "$o"
done
counted $total --since 2020-01-01T00:00:00+02:00 --until +1h
counted $((8 * 150 * 2)) --since -745.5ms --comm node,0x5d1c7e90aa4101 \
  --coll AllReduce,AllGather,ReduceScatter,Broadcast,Reduce
# Warm-up: two operations of each function, size and communicator (15 cells x 3 communicators; P2P: two
# numbers a rank).
counted $((total - 2 * 15 * (8 + 8) - 8 * 2)) --skip-first 2

[ "$(head -n 1 ref/summary/msg_size_8192_8.19KB/summary_mixed_AllReduce_8192.csv)" = \
  "id,coll_sn,coll_msg_size_bytes,mean_coll_busbw_gbs,log_count,n_ranks,nnodes,coll_start_timestamp_us,coll_end_timestamp_us,coll_duration_us,human_readable_coll_msg_size_bytes,coll_start_datetime,coll_end_datetime,coll_duration_human" ]
sed -n 2p ref/summary/msg_size_8192_8.19KB/summary_mixed_AllReduce_8192.csv |
  grep -Eq '^0x5d1c7e90aa4101,0,8192,[0-9.]+,8,\[8\],\[2\],1790000001500000,1790000001500091,91,8.19KB,2026-09-21 14:13:21.500,2026-09-21 14:13:21.500,91.0μs$'

code 0 "$inspector" summary logs --output-dir compat --compat --no-plots
tail -n 1 stdout | grep -qx 'Done!'
(cd compat && find . -type f ! -name '.*' | grep -Ev '^./(output.log|parquet_files/node-.-pid400.\.parquet|summary/msg_size_[0-9]+_[0-9.]+[KMGB]+/summary_(mixed|nvlink-only)_(AllReduce|AllGather|ReduceScatter|Broadcast)_[0-9]+\.csv)$') && exit 1
[ -d compat/parquet_files/invalid ]
TZ=Asia/Tokyo "$inspector" summary logs --output-dir tokyo --compat --no-plots >/dev/null
grep -q '2026-09-21 23:13:21.500' tokyo/summary/msg_size_8192_8.19KB/summary_mixed_AllReduce_8192.csv

code 0 "$inspector" summary logs --output-dir out2 $fast --json
python3 -c 'import json; assert json.load(open("stdout"))["schema_version"] == "nccl-inspector-summary-1"'
cmp stdout out2/summary/summary.json
code 0 "$inspector" summary logs --output-dir out2 $fast --format nccl-tests
grep -Eq '^ +8192 +160 +kernel_gpu' stdout
grep -Eq '^ +65536 +160 +kernel_gpu' stdout
# The time of an enqueue is no time of a transfer: no bandwidth is made of it.
cp -r logs enqueue
for f in enqueue/*; do
  zcat -f "$f" | sed 's/"kernel_gpu"/"collective_cpu"/; s/_gbs":[0-9.]*/_gbs":null/g' >"$f.new"
  case $f in *.gz) gzip <"$f.new" >"$f"; rm "$f.new" ;; *) mv "$f.new" "$f" ;; esac
done
code 0 "$inspector" summary enqueue --output-dir out3 $fast --format nccl-tests
grep -Eq '^ +8192 +160 +collective_cpu +[0-9.]+ +[0-9.]+ +- +-$' stdout
code 0 "$inspector" summary logs --output-dir out2 $fast --progress=json -q
python3 -c 'import json, sys
lines = [x for x in (json.loads(l) for l in open("stderr")) if x["phase"] == "read"]
assert sorted({l["ranges_done"] for l in lines} - {0}) == list(range(1, lines[0]["ranges"] + 1)), lines'
# A table that fits on a terminal of 80 columns, in words that say what is known; files keep NVIDIA's.
code 0 "$inspector" summary logs --output-dir out2 $fast
{ grep -q '^ *[0-9.]*% one node  *AllReduce' stdout && ! grep -q nvlink-only stdout && grep -q 'nvlink-only,' out2/summary/summary.csv &&
  grep -q '^  | kernel_gpu: ' stdout && grep -q '^  | peak: ' stdout; } ||
  { echo "words of the table"; cat stdout; exit 1; }
awk '/^ time/, /^$/ { if (length($0) > 80) { print "too wide: " $0; exit 1 } n++ } END { exit n < 5 }' stdout

# Stopped in the middle: the earlier result stays, nothing is left behind.
"$loggen" many --ranks 8 --node 4 --ops 24000
"$inspector" summary many --output-dir out2 --no-plots --no-html --jobs 1 >/dev/null 2>stderr &
pid=$!
# It may be over before it is seen.
reads_into() { compgen -G "$1/.tmp-*/output.log"; }
wait_for 1 reads_into out2 || true
kill -TERM $pid
rc=0
wait $pid || rc=$?
if [ $rc = 1 ]; then
  grep -q 'stopped by signal 15' stderr
  [ "$(records out2)" = "$total" ]
fi
[ -z "$(find out2 -name '.tmp-*')" ]
# Killed outright, it cannot clean up; the next run into that folder does, but not while the other one lives.
"$inspector" summary many --output-dir out3 --no-plots --no-html --jobs 1 -q >/dev/null 2>&1 &
pid=$!
wait_for 5 reads_into out3 || true
tmp=$(compgen -G 'out3/.tmp-*') || true
"$inspector" summary logs --output-dir out3 $fast -q >/dev/null 2>&1 || [ $? = 2 ]
kill -0 $pid 2>/dev/null && { [ -e "$tmp/.lock" ] || { echo "a living run lost its folder"; exit 1; }; }
kill -KILL $pid 2>/dev/null || true
wait $pid 2>/dev/null || true
if [ -e "$tmp" ]; then
  "$inspector" summary logs --output-dir out3 $fast -q >/dev/null 2>&1 || [ $? = 2 ]
  [ -z "$(find out3 -name '.tmp-*')" ] || { echo "what a killed run left is still there"; exit 1; }
fi
# Points of a picture are thinned, and where communicators take turns no communicator goes.
"$inspector" summary many --output-dir many-plots --no-csv --no-parquet --keep-scripts -q >/dev/null
if command -v gnuplot >/dev/null; then
  for f in combined_scatter_plot scatter_plot; do
    script=many-plots/summary/gnuplot/${f}_nvlink-only_AllReduce.png.gp
    grep -q 'up to one of [0-9]* operations shown' "$script"
    awk -v name="$script" 'NF == 3 && $1 + 0 == $1 && !/[^0-9. ]/ { n[$3]++; all++ }
      END { for (c in n) { kinds++; if (n[c] < all / 4) { print name ": of " all " points " n[c] " of communicator " c; exit 1 } }
            if (all < 2000 || kinds != 2) { print name ": " kinds + 0 " communicators, " all + 0 " points"; exit 1 } }' "$script"
  done
fi
# The key has its own room above what is drawn.
"$loggen" near --ranks 2 --node 2 --ops 40 --sizes 8388608,52428800
"$inspector" summary near --output-dir near-plots --no-csv --no-parquet --no-html --keep-scripts -q >/dev/null
if command -v gnuplot >/dev/null; then
  for f in near-plots/summary/gnuplot/*histogram*AllReduce*.gp; do
    awk -v name="$f" '/^set yrange/ { split($3, r, /[:\]]/); top = r[2] } /^\$h/ { on = 1; next } /^EOD/ { on = 0 }
      on && $4 > most { most = $4 } END { if (!(most > 0 && most * 1.1 < top)) { print name ": bars to " most " of " top; exit 1 } }' "$f"
  done
fi
# A full disk is told, and is no result.
if ulimit -f 64 2>/dev/null; then
  code 1 env "$inspector" summary many --output-dir full --no-plots --no-html
  [ ! -e full/summary ]
fi
echo "command line as promised"
