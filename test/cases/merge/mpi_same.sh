#!/usr/bin/env bash
# nccl-inspector-mpi, with Open MPI and with MPICH: summary, check and trace by 1 to 4 ranks say and write what one process does.
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
logs=$(find "$work/late" -name "node-*" | wc -l)
part=(trace --json --since=+100ms --until=+200ms) # read by maps, which ranks share
"$inspector" "${part[@]}" --index-dir "$work/index.one" -o "$work/t.json.gz" "$work/late" >"$work/trace.one"
mv "$work/t.json.gz" "$work/t.one"
"$inspector" trace --json -o "$work/t.json.gz" "$work/late" >"$work/whole.one"
mv "$work/t.json.gz" "$work/whole.gz"
drawn() { # WHAT SAID DRAWN
  cmp "$work/t.json.gz" "$work/$3" && cmp "$work/said" "$work/$2" || fail "$1: trace draws something else: $(cat "$work/errors")"
}

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
    ranks "$n" "${part[@]}" --index-dir "$work/index.$as" -o "$work/t.json.gz" "$work/late" >"$work/said" 2>"$work/errors" || true
    drawn "$as" trace.one t.one
    for i in "$work/index.one"/*; do # all but the times of the logs
      cmp -n $(($(stat -c %s "$i") - 32 * logs - 4)) "$i" "$work/index.$as/${i##*/}" || fail "$as: another index"
    done
    ranks "$n" "${part[@]}" --index-dir "$work/index.one" -o "$work/t.json.gz" "$work/late" >"$work/said" 2>"$work/errors" || true
    drawn "$as, indexed" trace.one t.one
  done
  ranks 2 trace --json -o "$work/t.json.gz" "$work/late" >"$work/said" 2>"$work/errors" || true
  drawn "$m, all of it" whole.one whole.gz
  if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then # each log is somebody's
    # shellcheck disable=SC2016
    timeout 120 "mpirun.$m" $over -n 2 bash -c 'exec strace -f -qq -e trace=open,openat -o "$0.${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" "$@"' \
      "$work/opens" "$work/mpi.$m" "${part[@]}" --no-index -o "$work/t.json.gz" "$work/late" >"$work/said" 2>"$work/errors" || true
    drawn "$m, traced" trace.one t.one
    others=$(grep -o 'late/node-[^"]*' "$work/opens.1" | sort -u | wc -l)
    [ "$others" = $((logs / 2)) ] || fail "$m: rank 1 of 2 has opened $others of $logs logs"
    rm -f "$work"/opens.*
  fi
  ranks 3 check --json "$work/late" >"$work/check.$m" 2>/dev/null || true
  cmp "$work/check.one" "$work/check.$m" || fail "$m: check says something else"
  rc=0
  ranks 2 summary --output-dir "$work/no" "$work/none" >/dev/null 2>"$work/errors" || rc=$?
  [ "$rc" = 1 ] && grep -q "$work/none: No such file" "$work/errors" || fail "$m: without logs: $rc $(cat "$work/errors")"
  rc=0
  ranks 2 check --no-index --reindex "$work/late" >/dev/null 2>"$work/errors" || rc=$?
  [ "$rc" = 64 ] && grep -q -- "--reindex does not go with --no-index" "$work/errors" || fail "$m: a contradiction: $rc $(cat "$work/errors")"
done
finish
