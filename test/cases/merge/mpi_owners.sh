#!/usr/bin/env bash
# What ranks of MPI do for each other: records joined by their owners, the judge's tables from who read a
# process. Messages, both kinds of logs, several sizes, buckets, marks, roll-ups, an operation that hangs,
# cells cut into many ranges or left whole, a process whose logs lie in two folders. The bytes of one process,
# and rank 0 takes no records where it need not.
. "$(dirname "$0")/../../lib/merge.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
m=mpich over=
command -v mpicc.mpich >/dev/null && command -v mpirun.mpich >/dev/null || m=openmpi over=--oversubscribe
command -v mpicc.$m >/dev/null && command -v mpirun.$m >/dev/null ||
  skip "no mpicc.openmpi and no mpicc.mpich (apt-get install libopenmpi-dev mpich)"
make -s mpi BUILD="$BUILD" MPICC="mpicc.$m" MPI_BIN="$TMP/mpi"
loggen=$BUILD/test/host/loggen
# check NAME RANKS OPTIONS... LOGS
check() {
  local name=$1 n=$2 rc=0
  shift 2
  one "$name" --no-plots --no-html --json "$@"
  mkdir "$TMP/$name.mpi"
  # shellcheck disable=SC2086
  (cd "$TMP/$name.mpi" && timeout 120 mpirun.$m $over -n "$n" "$TMP/mpi" summary --output-dir out --no-plots --no-html --json "$@" >said 2>errors) || rc=$?
  echo "$rc" >"$TMP/$name.mpi/rc"
  sed -i 's/^nccl-inspector-mpi summary:/nccl-inspector summary:/' "$TMP/$name.mpi/errors"
  same "$name" mpi
}
"$loggen" "$TMP/nvidia" --ranks 6 --node 3 --ops 300 --comm-name --p2p 10 --gzip --member-lines 100
"$loggen" "$TMP/ours" --ranks 6 --node 3 --ops 2500 --format ours --p2p 10 --outliers 20
check both 4 --no-parquet "$TMP/nvidia" "$TMP/ours"
check skip 3 --no-parquet --skip-first 3 "$TMP/ours"
check some 5 --no-parquet --coll AllReduce,Send --rank 0-4 --size 1M-64M "$TMP/ours"
python3 test/lib/series_logs.py "$TMP/series"
printf 'late: node-1-pid7002.jsonl\nrest: *\n' >"$TMP/groups"
check series 3 --time-granularity 7ms --groups "$TMP/groups" "$TMP/series"
python3 test/lib/step_logs.py "$TMP/steps"
python3 test/lib/mark_logs.py "$TMP/steps" "$TMP/marks" 40 "step #"
check steps 5 --no-csv "$TMP/steps"
check marks 3 "$TMP/marks"
python3 test/lib/hang_plant.py "$TMP/hang" late B 1 >/dev/null
check hang 3 "$TMP/hang"
"$BUILD/test/ni-jobs" --layout A --kind late --size 30 --seed 7 --steps 20 --out "$TMP/job" >/dev/null
check job 7 --no-parquet "$TMP/job"
mkdir "$TMP/again"
cp "$(find "$TMP/job" -name '*.jsonl*' | sort | head -n 1)" "$TMP/again"
check again 3 --no-parquet "$TMP/job" "$TMP/again"
finish
