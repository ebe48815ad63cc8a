#!/usr/bin/env bash
# The main job, on a fresh Debian or Ubuntu: installs what is missing, builds, runs a simulated training job of 2 nodes x
# 8 GPUs (one process per rank, the real plugin set by NCCL's environment variables), checks its logs and summarises them.
#   scripts/demo.sh [OUT]        OUT: folder for logs and results, default out/demo
set -eu
cd "$(dirname "$0")/.."
out=${1:-out/demo}
scripts/install-deps.sh build
echo "== build"
make -s -j"$(nproc)" all
rm -rf "$out"
mkdir -p "$out"
logs=$out/logs

echo "== simulated job: 2 nodes x 8 GPUs, rank 11 comes 8 ms late to every collective"
# These two lines are all a real job needs.
export NCCL_PROFILER_PLUGIN=$PWD/build/libnccl-profiler-inspector.so
export NCCL_INSPECTOR_ENABLE=1
# The simulated GPUs and links are ten times slower than real ones, so that 16 processes on a laptop do not show as late, too.
NCCL_INSPECTOR_DUMP_DIR=$logs SLURM_JOB_ID=${SLURM_JOB_ID:-demo} \
  build/nccl-sim --job 2x8 --procs --iterations 30 --rate 100 --time-scale 10 --set straggler=11 --set straggler_ms=8 \
  --truth "$out/truth.jsonl" --quiet
ls "$logs" | head -n 4 | sed 's|^|   |'
echo "   ... $(ls "$logs" | wc -l) files, $(du -sh "$logs" | cut -f1)"

echo "== is the log complete and sound?"
build/nccl-inspector check "$logs"
build/nccl-sim --verify "$out/truth.jsonl" "$logs" | tail -n 1

echo "== where did the time go?"
build/nccl-inspector summary --input_dir "$logs" --output_dir "$out/summary"
