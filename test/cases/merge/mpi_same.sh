#!/usr/bin/env bash
# nccl-inspector-mpi, with Open MPI and with MPICH: summary and check by 1 to 4 ranks say and write what one process does.
set -euo pipefail
cd "$(dirname "$0")/../../.."
BUILD=${BUILD:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. test/lib/merge.sh
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
kinds=
for m in openmpi mpich; do command -v "mpicc.$m" >/dev/null && command -v "mpirun.$m" >/dev/null && kinds="$kinds $m"; done
[ -n "$kinds" ] || { echo "no mpicc.openmpi and no mpicc.mpich (apt-get install libopenmpi-dev mpich)"; exit 77; }
"$BUILD/test/ni-jobs" --layout A --kind late --size 30 --seed 7 --steps 20 --out "$work/late" >/dev/null
one late --no-plots --json --since=+100ms "$work/late"
"$inspector" check --json "$work/late" >"$work/check.one" || true

for m in $kinds; do
  make -s mpi BUILD="$BUILD" MPICC="mpicc.$m" MPI_BIN="$work/mpi.$m"
  over=
  [ "$m" = mpich ] || over=--oversubscribe
  ranks() { # N ARGS...
    local n=$1
    shift
    timeout 120 "mpirun.$m" $over -n "$n" "$work/mpi.$m" "$@"
  }
  for n in 1 2 3 4; do
    as=$m$n rc=0
    mkdir "$work/late.$as"
    (cd "$work/late.$as" && ranks "$n" summary --no-plots --json --output-dir out --since=+100ms "$work/late" >said 2>errors) || rc=$?
    echo "$rc" >"$work/late.$as/rc"
    same late "$as"
  done
  ranks 3 check --json "$work/late" >"$work/check.$m" 2>/dev/null || true
  cmp "$work/check.one" "$work/check.$m" || fail "$m: check says something else"
  rc=0
  ranks 2 summary --output-dir "$work/no" "$work/none" >/dev/null 2>"$work/errors" || rc=$?
  [ "$rc" = 1 ] && grep -q "$work/none: No such file" "$work/errors" || fail "$m: without logs: $rc $(cat "$work/errors")"
done
finish
