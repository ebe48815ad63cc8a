#!/usr/bin/env bash
# The main job, on a fresh Debian or Ubuntu: installs what is missing, builds, and runs a simulated training
# job of 2 nodes x 8 GPUs (one process per rank, the real plugin) by `nccl-inspector run`, which says whether
# its logs are complete, what stands out and where the report is.
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
  last="README.md goes on with a real job; sudo make install puts everything into /usr/local."
else
  bin=$(cd "$here/../../bin" && pwd)/
  # By its name where man looks here, else by its path; packages compress it, a wheel has none.
  page=$(find "$here/../man/man7" -name 'nccl-inspector.7*' -exec realpath {} \; 2>/dev/null || true)
  last="nccl-inspector help lists what else there is."
  [ -z "$page" ] || last="man $page goes on with a real job."
  [ -z "$page" ] || [ "$(man -w 7 nccl-inspector 2>/dev/null || true)" != "$page" ] ||
    last="man 7 nccl-inspector goes on with a real job."
  # Programs that the shell finds need no folder before their name.
  [ "$(command -v nccl-sim)" != "${bin}nccl-sim" ] || bin=
fi
out=${1:-out/demo}
rm -rf "$out"
mkdir -p "$out"
logs=$out/logs

echo "== simulated job: 40 training steps on 2 nodes x 8 GPUs; the GPU of rank 11 computes 30 % longer than the others"
# This is all a real job needs: run -- its command. What it finds there already, as a shell may have it, is
# none of the demo's.
unset "${!NCCL_INSPECTOR_@}" NCCL_PROFILER_PLUGIN
# Paced by what its GPUs compute, in simulated time: what is said of it is the same on any machine
# (test/scenarios/demo.scn).
SLURM_JOB_ID=${SLURM_JOB_ID:-demo} "${bin}"nccl-inspector run --out "$out" -- \
  "${bin}"nccl-sim --scenario demo --procs --truth "$out/truth.jsonl" --quiet

echo "== is that all that happened?"
"${bin}"nccl-sim --verify "$out/truth.jsonl" "$logs" | tail -n 1

cat <<NEXT

== what to try next (paste from this folder)
   ${bin}nccl-inspector summary $logs                         # tables and pictures: where did the time go?
   ${bin}nccl-inspector trace $logs -o $out/trace.json.gz     # a timeline: open it in https://ui.perfetto.dev
   ${bin}nccl-inspector pools $logs                           # how much memory the plugin needed
   ${bin}nccl-inspector summary --since +1s --output-dir $out/later $logs   # without its first second

   # A job that hangs, and who is missing from it:
   ${bin}nccl-inspector run --out $out/hang --hang-limit 5 --kill -- ${bin}nccl-sim --scenario hang_late --procs --quiet
   ${bin}nccl-inspector recover $out/hang/logs --remove       # what the killed processes had not written yet

   $last
NEXT
