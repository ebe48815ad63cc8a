#!/usr/bin/env bash
# What ranks of MPI do for each other: records joined by their owners, the judge's tables from who read a process. Messages, both
# kinds of logs, several sizes, buckets, marks, roll-ups, an operation that hangs, cells cut into many ranges or left whole, a process
# whose logs lie in two folders. The bytes of one process, and rank 0 takes no records where it need not.
set -euo pipefail
cd "$(dirname "$0")/../../.."
BUILD=${BUILD:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. test/lib/merge.sh
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
m=mpich over=
command -v mpicc.mpich >/dev/null && command -v mpirun.mpich >/dev/null || m=openmpi over=--oversubscribe
command -v mpicc.$m >/dev/null && command -v mpirun.$m >/dev/null || { echo "no mpicc.openmpi and no mpicc.mpich (apt-get install libopenmpi-dev mpich)"; exit 77; }
make -s mpi BUILD="$BUILD" MPICC="mpicc.$m" MPI_BIN="$work/mpi"
loggen=$BUILD/test/host/loggen
# check NAME RANKS OPTIONS... LOGS
check() {
  local name=$1 n=$2 rc=0
  shift 2
  one "$name" --no-plots --no-html --json "$@"
  mkdir "$work/$name.mpi"
  # shellcheck disable=SC2086
  (cd "$work/$name.mpi" && timeout 120 mpirun.$m $over -n "$n" "$work/mpi" summary --output-dir out --no-plots --no-html --json "$@" >said 2>errors) || rc=$?
  echo "$rc" >"$work/$name.mpi/rc"
  sed -i 's/^nccl-inspector-mpi summary:/nccl-inspector summary:/' "$work/$name.mpi/errors"
  same "$name" mpi
}
"$loggen" "$work/nvidia" --ranks 6 --node 3 --ops 300 --comm-name --p2p 10 --gzip --member-lines 100
"$loggen" "$work/ours" --ranks 6 --node 3 --ops 2500 --format ours --p2p 10 --outliers 20
check both 4 --no-parquet "$work/nvidia" "$work/ours"
check skip 3 --no-parquet --skip-first 3 "$work/ours"
check some 5 --no-parquet --coll AllReduce,Send --rank 0-4 --size 1M-64M "$work/ours"
python3 test/lib/series_logs.py "$work/series"
printf 'late: node-1-pid7002.jsonl\nrest: *\n' >"$work/groups"
check series 3 --time-granularity 7ms --groups "$work/groups" "$work/series"
python3 test/lib/step_logs.py "$work/steps"
python3 test/lib/mark_logs.py "$work/steps" "$work/marks" 40 "step #"
check steps 5 --no-csv "$work/steps"
check marks 3 "$work/marks"
python3 test/lib/hang_plant.py "$work/hang" late B 1 >/dev/null
check hang 3 "$work/hang"
"$BUILD/test/ni-jobs" --layout A --kind late --size 30 --seed 7 --steps 20 --out "$work/job" >/dev/null
check job 7 --no-parquet "$work/job"
mkdir "$work/again"
cp "$(find "$work/job" -name '*.jsonl*' | sort | head -n 1)" "$work/again"
check again 3 --no-parquet "$work/job" "$work/again"
finish
