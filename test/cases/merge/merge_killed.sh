#!/usr/bin/env bash
# What killed runs leave: nothing that has a name, a nonzero exit, and hidden files and folders that the next
# run into the same place removes; those of a run that is alive stay. summary --partial, and
# nccl-inspector-mpi whose rank 0 or rank 1 is killed.
. "$(dirname "$0")/../../lib/merge.sh"
pids=
at_exit 'for p in $pids; do kill -KILL "$p" 2>/dev/null; done'
"$BUILD/test/host/loggen" "$TMP/logs" --ranks 4 --node 2 --ops "${NI_OPS:-6000}" --format ours
hidden() { find "$1" -maxdepth "${2:-1}" -name '.tmp-*'; }
named() { find "$1" -mindepth 1 -maxdepth 1 ! -name '.tmp-*'; }
# Waits until something has the name PATTERN and stops PIDS at once: no process is started in between.
stop_at() {
  local pattern=$1 until=$((SECONDS + 30))
  shift
  until compgen -G "$pattern" >/dev/null; do
    [ $SECONDS -lt $until ] || { fail "waited in vain for $pattern"; return 1; }
  done
  kill -STOP "$@" || { fail "too late to stop at $pattern"; return 1; }
}
quick="--no-plots --no-html -q"

# ---- a shard, stopped while it reads, beside one that is whole; then killed --------------------------------
mkdir "$TMP/parts"
"$INSPECTOR" summary --shard 1/2 --partial "$TMP/parts/1" "$TMP/logs" >/dev/null &
slow=$! pids=$slow
stop_at "$TMP/parts/*/.tmp-*/output.log" "$slow"
"$INSPECTOR" summary --shard 2/2 --partial "$TMP/parts/2" "$TMP/logs" >/dev/null ||
  fail "a shard beside another"
"$INSPECTOR" summary --shard 1/2 --partial "$TMP/parts/1" "$TMP/logs" >/dev/null ||
  fail "the same shard twice at once"
[ -n "$(hidden "$TMP/parts" 2)" ] || fail "a run that is alive lost its folder"
kill -KILL "$slow"
wait "$slow" && fail "killed, and exits 0"
"$INSPECTOR" summary --shard 1/2 --partial "$TMP/parts/1" "$TMP/logs" >/dev/null
[ -z "$(hidden "$TMP/parts" 2)" ] || fail "left: $(hidden "$TMP/parts" 2)"

# A hidden partial: of a run that is over, of one that holds its lock, and files that are no partials.
cp "$TMP/parts/2" "$TMP/parts/.tmp-1"
cp "$TMP/parts/2" "$TMP/parts/.tmp-2"
echo other >"$TMP/parts/.tmp-3"
: >"$TMP/parts/.tmp-4"
flock "$TMP/parts/.tmp-2" "$INSPECTOR" merge --partial "$TMP/parts/all" "$TMP/parts/1" "$TMP/parts/2" \
  >/dev/null || fail "merge"
for n in 2 3 4; do [ -e "$TMP/parts/.tmp-$n" ] || fail ".tmp-$n is another's, and gone"; done
[ ! -e "$TMP/parts/.tmp-1" ] || fail ".tmp-1 is nobody's, and there"

# ---- ranks of MPI ------------------------------------------------------------------------------------------
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ranks_of() {
  pgrep -P "$1" -f nccl-inspector-mpi ||
    for p in $(pgrep -P "$1"); do pgrep -P "$p" -f nccl-inspector-mpi || true; done
}
any=
case $BUILD in *san) any=skipped ;; esac # libraries of MPI leak
for m in openmpi mpich; do
  [ "$any" != skipped ] || break
  command -v "mpicc.$m" >/dev/null && command -v "mpirun.$m" >/dev/null || continue
  any=1
  bin=$TMP/nccl-inspector-mpi.$m over=
  make -s mpi BUILD="$BUILD" MPICC="mpicc.$m" MPI_BIN="$bin"
  [ "$m" = mpich ] || over=--oversubscribe
  for victim in 1 2; do # its first and its second process, in the order in which they were started
    out=$TMP/out.$m$victim rc=0
    # shellcheck disable=SC2086
    timeout 60 "mpirun.$m" $over -n 3 "$bin" summary $quick --output-dir "$out" "$TMP/logs" >/dev/null 2>&1 &
    job=$! pids="$pids $job"
    mkdir -p "$out"
    all=
    for _ in $(seq 500); do
      run=$(pgrep -P "$job" | head -n 1)
      [ -z "$run" ] || all=$(ranks_of "$run")
      [ "$(echo "$all" | wc -w)" -lt 3 ] || break
      sleep 0.01
    done
    # shellcheck disable=SC2086
    stop_at "$out/.tmp-*" $all || continue
    kill -KILL "$(echo "$all" | sed -n "${victim}p")" || fail "$m: too late to kill one"
    # shellcheck disable=SC2086
    kill -CONT $all 2>/dev/null || true
    wait "$job" || rc=$?
    [ "$rc" != 0 ] || fail "$m: a rank was killed, and it exits 0"
    [ -z "$(named "$out")" ] || fail "$m: a rank was killed, and there is $(named "$out")"
    # shellcheck disable=SC2086
    if [ "$victim" = 1 ]; then "$INSPECTOR" summary $quick --output-dir "$out" "$TMP/logs" >/dev/null ||
      fail "$m: the next summary"
    else timeout 60 "mpirun.$m" $over -n 2 "$bin" summary $quick --output-dir "$out" "$TMP/logs" >/dev/null \
      2>&1 || fail "$m: the next MPI run"; fi
    [ -z "$(hidden "$out")" ] || fail "$m: left: $(hidden "$out")"
    [ -e "$out/summary/summary.json" ] || fail "$m: the next run wrote nothing"
  done
done
[ -n "$any" ] || echo "no mpicc.openmpi and no mpicc.mpich: no ranks of MPI"
finish
