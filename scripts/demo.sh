#!/usr/bin/env bash
# The main job, on a fresh Debian or Ubuntu: installs what is missing, builds, runs a simulated training job of 2 nodes x
# 8 GPUs (one process per rank, the real plugin set by NCCL's environment variables), checks its logs and summarises them.
#   scripts/demo.sh [OUT]        OUT: folder for logs and results, default out/demo
# As /usr/share/nccl-inspector/demo.sh it builds nothing, but runs the programs of that installation.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if [ -e "$here/../Makefile" ]; then
  cd "$here/.."
  scripts/install-deps.sh build
  echo "== build (a minute or two the first time)"
  # One line that counts instead of one a file; what compilers say goes to standard error as always.
  tty=0
  [ -t 1 ] && tty=1
  make -j"$(nproc)" all | awk -v tty=$tty '
    /^  [A-Z]+ / {n++; if (tty) {printf "\r   %d steps", n; fflush()}; next}
    /Nothing to be done/ {next}
    {if (n && tty) print ""; n = 0; print "   " $0}
    END {if (n && tty) print ""}'
  bin=build/
  plugin=$PWD/build/libnccl-profiler-inspector.so
  last="README.md goes on with a real job; sudo make install puts everything into /usr/local."
else
  bin=$(cd "$here/../../bin" && pwd)/
  plugin=$(find "$here"/../../lib* -maxdepth 2 -name libnccl-profiler-inspector.so -exec realpath {} \; | head -n 1)
  # By its name where man looks here, else by its path; packages compress it, a wheel has none.
  page=$(find "$here/../man/man7" -name 'nccl-inspector.7*' -exec realpath {} \; 2>/dev/null || true)
  last="nccl-inspector help lists what else there is."
  [ -z "$page" ] || last="man $page goes on with a real job."
  [ -z "$page" ] || [ "$(man -w 7 nccl-inspector 2>/dev/null || true)" != "$page" ] || last="man 7 nccl-inspector goes on with a real job."
  # Programs that the shell finds need no folder before their name.
  [ "$(command -v nccl-sim)" != "${bin}nccl-sim" ] || bin=
fi
out=${1:-out/demo}
rm -rf "$out"
mkdir -p "$out"
logs=$out/logs

echo "== simulated job: 40 training steps on 2 nodes x 8 GPUs; the GPU of rank 11 computes 30 % longer than the others"
# These two lines are all a real job needs.
export NCCL_PROFILER_PLUGIN=$plugin
export NCCL_INSPECTOR_ENABLE=1
# Paced by what its GPUs compute, in simulated time: what is said of it is the same on any machine (test/scenarios/demo.scn).
NCCL_INSPECTOR_DUMP_DIR=$logs SLURM_JOB_ID=${SLURM_JOB_ID:-demo} \
  "${bin}"nccl-sim --scenario demo --procs --truth "$out/truth.jsonl" --quiet
ls "$logs" | head -n 4 | sed 's|^|   |'
echo "   ... $(ls "$logs" | wc -l) files, $(du -sh "$logs" | cut -f1)"

echo "== is the log complete and sound?"
"${bin}"nccl-inspector check "$logs"
"${bin}"nccl-sim --verify "$out/truth.jsonl" "$logs" | tail -n 1

echo "== who is slow, and where did the time go?"
"${bin}"nccl-inspector summary --input_dir "$logs" --output_dir "$out/summary"

cat <<NEXT

== what to try next (paste from this folder)
   ${bin}nccl-inspector trace $logs -o $out/trace.json.gz     # a timeline: open it in https://ui.perfetto.dev
   ${bin}nccl-inspector pools $logs                           # how much memory the plugin needed
   ${bin}nccl-inspector summary --coll AllReduce --skip-first 5 --output-dir $out/allreduce $logs

   # A job that hangs, and who is missing from it:
   export NCCL_PROFILER_PLUGIN=$NCCL_PROFILER_PLUGIN NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR=$out/hang
   ${bin}nccl-sim --scenario hang_late --procs --quiet & sleep 15
   ${bin}nccl-inspector hang $out/hang --stuck-after 5        # exit code 3: it hangs
   kill \$!; ${bin}nccl-inspector recover $out/hang --remove  # what the killed processes had not written yet

   $last
NEXT
