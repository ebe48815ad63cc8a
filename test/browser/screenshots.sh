#!/usr/bin/env bash
# Makes docs/img/*.png anew: the page from the demo's job, in which rank 11 computes longer, a picture from
# logs of many sizes with a slow node, the counters' page from two sweeps of a real node (NI_TEST_DATA):
# BUILD=build test/browser/screenshots.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
BUILD=$(realpath "${BUILD:-build}")
[ -d "$BUILD/browser/node_modules" ] ||
  { echo "run test/cases/summary/report_browser.sh first: it gets playwright-core"; exit 1; }
cp test/browser/*.mjs "$BUILD/browser/"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p docs/img
root=$PWD
cd "$work"
"$BUILD/test/host/loggen" logs --ranks 32 --node 8 --ops 4000 --sizes 1024,8192,65536,524288,2097152,8388608 \
  --format ours \
  --comm-name --straggler 19 --slow-node 3 --outliers 8 --p2p 200 --gzip
"$BUILD/nccl-inspector" summary --input-dir logs --output-dir out --quiet >/dev/null
NCCL_PROFILER_PLUGIN=$BUILD/libnccl-profiler-inspector.so NCCL_INSPECTOR_ENABLE=1 \
  NCCL_INSPECTOR_DUMP_DIR=$work/demo SLURM_JOB_ID=4242 \
  "$BUILD/nccl-sim" --scenario "$root/test/scenarios/demo.scn" --procs --quiet
"$BUILD/nccl-inspector" summary --input-dir demo --output-dir page --quiet >/dev/null
for when in before after; do
  python3 "$root/test/lib/counters/counter_trees.py" tree cxi $when -- host
  NI_ROOT=$work/tree "$BUILD/nccl-inspector" counters collect -q $when.json
done
"$BUILD/nccl-inspector" counters summarize --html counters.html before.json after.json >/dev/null
node "$BUILD/browser/screenshots.mjs" "$work/page/report.html" "$root/docs/img" "$work/counters.html"
cp out/summary/scatter_plot_nvlink-only_AllReduce.png \
  "$root/docs/img/plot-scatter_plot_nvlink-only_AllReduce.png"
ls -l "$root/docs/img"
