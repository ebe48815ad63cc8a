#!/usr/bin/env bash
# nccl-inspector-mpi, with Open MPI and with MPICH: summary, check and trace by 1 to 4 ranks say and write
# what one process does.
. "$(dirname "$0")/../../lib/merge.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
kinds=
for m in openmpi mpich; do
  command -v "mpicc.$m" >/dev/null && command -v "mpirun.$m" >/dev/null && kinds="$kinds $m"
done
[ -n "$kinds" ] || skip "no mpicc.openmpi and no mpicc.mpich (apt-get install libopenmpi-dev mpich)"
"$BUILD/test/ni-jobs" --layout A --kind late --size 30 --seed 7 --steps 20 --out "$TMP/late" >/dev/null
# A clock that is set back: whoever sums a part of the numbers hears from which one on.
"$BUILD/test/ni-jobs" --layout A --kind late --size 30 --seed 7 --steps 20 --stored --out "$TMP/right" \
  >/dev/null
python3 "$ROOT/test/lib/shift_clock.py" "$TMP/right" "$TMP/set" node-1 -1 2.4
one set --no-plots --json "$TMP/set"
one late --no-plots --json --since=+100ms "$TMP/late"
"$INSPECTOR" check --json "$TMP/late" >"$TMP/check.one" || true
logs=$(find "$TMP/late" -name "node-*" | wc -l)
part=(trace --json --since=+100ms --until=+200ms) # read by maps, which ranks share
"$INSPECTOR" "${part[@]}" --index-dir "$TMP/index.one" -o "$TMP/t.json.gz" "$TMP/late" >"$TMP/trace.one"
mv "$TMP/t.json.gz" "$TMP/t.one"
"$INSPECTOR" trace --json -o "$TMP/t.json.gz" "$TMP/late" >"$TMP/whole.one"
mv "$TMP/t.json.gz" "$TMP/whole.gz"
drawn() { # WHAT SAID DRAWN
  cmp "$TMP/t.json.gz" "$TMP/$3" && cmp "$TMP/said" "$TMP/$2" ||
    fail "$1: trace draws something else: $(cat "$TMP/errors")"
}

for m in $kinds; do
  make -s mpi BUILD="$BUILD" MPICC="mpicc.$m" MPI_BIN="$TMP/mpi.$m"
  over=
  [ "$m" = mpich ] || over=--oversubscribe
  ranks() { # N ARGS...
    local n=$1
    shift
    timeout 120 "mpirun.$m" $over -n "$n" "$TMP/mpi.$m" "$@"
  }
  for n in 1 2 3 4; do
    as=$m$n rc=0
    mkdir "$TMP/late.$as"
    (cd "$TMP/late.$as" && ranks "$n" summary --no-plots --json --output-dir out --since=+100ms "$TMP/late" >said 2>errors) || rc=$?
    echo "$rc" >"$TMP/late.$as/rc"
    same late "$as"
    mkdir "$TMP/set.$as"
    rc=0
    (cd "$TMP/set.$as" && ranks "$n" summary --no-plots --json --output-dir out "$TMP/set" >said 2>errors) || rc=$?
    echo "$rc" >"$TMP/set.$as/rc"
    same set "$as"
    ranks "$n" "${part[@]}" --index-dir "$TMP/index.$as" -o "$TMP/t.json.gz" "$TMP/late" >"$TMP/said" 2>"$TMP/errors" || true
    drawn "$as" trace.one t.one
    for i in "$TMP/index.one"/*; do # all but the times of the logs
      cmp -n $(($(stat -c %s "$i") - 32 * logs - 4)) "$i" \
        "$TMP/index.$as/${i##*/}" || fail "$as: another index"
    done
    ranks "$n" "${part[@]}" --index-dir "$TMP/index.one" -o "$TMP/t.json.gz" "$TMP/late" >"$TMP/said" 2>"$TMP/errors" || true
    drawn "$as, indexed" trace.one t.one
  done
  ranks 2 trace --json -o "$TMP/t.json.gz" "$TMP/late" >"$TMP/said" 2>"$TMP/errors" || true
  drawn "$m, all of it" whole.one whole.gz
  if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then # each log is somebody's
    # shellcheck disable=SC2016
    timeout 120 "mpirun.$m" $over -n 2 bash -c 'exec strace -f -qq -e trace=open,openat -o "$0.${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" "$@"' \
      "$TMP/opens" "$TMP/mpi.$m" "${part[@]}" --no-index -o "$TMP/t.json.gz" "$TMP/late" >"$TMP/said" 2>"$TMP/errors" || true
    drawn "$m, traced" trace.one t.one
    others=$(grep -o 'late/node-[^"]*' "$TMP/opens.1" | sort -u | wc -l)
    [ "$others" = $((logs / 2)) ] || fail "$m: rank 1 of 2 has opened $others of $logs logs"
    rm -f "$TMP"/opens.*
  fi
  ranks 3 check --json "$TMP/late" >"$TMP/check.$m" 2>/dev/null || true
  cmp "$TMP/check.one" "$TMP/check.$m" || fail "$m: check says something else"
  rc=0
  ranks 2 summary --output-dir "$TMP/no" "$TMP/none" >/dev/null 2>"$TMP/errors" || rc=$?
  [ "$rc" = 1 ] && grep -q "$TMP/none: No such file" "$TMP/errors" ||
    fail "$m: without logs: $rc $(cat "$TMP/errors")"
  rc=0
  ranks 2 check --no-index --reindex "$TMP/late" >/dev/null 2>"$TMP/errors" || rc=$?
  [ "$rc" = 64 ] && grep -q -- "--reindex does not go with --no-index" "$TMP/errors" ||
    fail "$m: a contradiction: $rc $(cat "$TMP/errors")"
done
finish
