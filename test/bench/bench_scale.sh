#!/usr/bin/env bash
# make bench-scale: time and memory of `summary` against records, as Markdown: one process, shards and their
# merge, ranks of MPI; and what logs cost beside their records. Seconds are CPU seconds (user and system) of
# all processes, wall in brackets; memory is the largest of one process. Tables alone: no pictures, page,
# Parquet, CSV, index.
#   SIZES="100000 1000000 10000000"   SHARDS=4   RANKS=2   FILES=10000   LOGS=folder with ours-<records>/,
#                                                made where they are missing
#   RUNS=5   of 1 M records in few and in many files; BEFORE=another nccl-inspector: measured with them, in
#            turn
set -eu
cd "$(dirname "$0")/../.."
BUILD=$(realpath "${BUILD:-build}")
SIZES=${SIZES:-100000 1000000 10000000} SHARDS=${SHARDS:-4} RANKS=${RANKS:-2} FILES=${FILES:-10000} \
  RUNS=${RUNS:-5}
inspector=$BUILD/nccl-inspector logs=${LOGS:-$BUILD/bench-logs/scale}
tmp=$(mktemp -d -p "$BUILD")
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$logs"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpirun='' over=''
for m in mpich openmpi; do
  [ -z "$mpirun" ] && command -v "mpicc.$m" >/dev/null && command -v "mpirun.$m" >/dev/null || continue
  mpirun=mpirun.$m
  [ "$m" = mpich ] || over=--oversubscribe
  make -s mpi MPICC="mpicc.$m" MPI_BIN="$tmp/mpi" BUILD="$BUILD"
done
plain=(--no-plots --no-html --no-parquet --no-csv -q)

# timed KEY COMMAND...: adds "cpu wall MB" of the command to the key's file.
timed() {
  local key=$1 rc=0
  shift
  rm -rf "$tmp/out"
  /usr/bin/time -q -a -f "%U %S %e %M" -o "$tmp/$key" "$@" >/dev/null 2>"$tmp/err" || rc=$?
  [ "$rc" = 0 ] || [ "$rc" = 2 ] || { cat "$tmp/err" >&2; exit 1; }
}
# say KEY: sum of CPU, of wall (of ranks: the longest), largest memory.
say() { awk -v ranks="${2:-}" '{ cpu += $1 + $2; wall = ranks ? ($3 > wall ? $3 : wall) : wall + $3; if ($4 > mem) mem = $4 }
  END { printf "%.2f (%.2f) s, %.0f MB", cpu, wall, mem / 1024 }' "$tmp/$1"; }

echo "| records | logs | one process | $SHARDS shards, one after the other | a partial's bytes a record | merge | MPI, $RANKS ranks |"
echo "|---|---|---|---|---|---|---|"
for n in $SIZES; do
  dir=$logs/ours-$n ranks=32
  [ "$n" -lt 30000000 ] || ranks=96
  if [ ! -e "$dir.done" ]; then
    rm -rf "$dir"
    "$BUILD/test/host/loggen" "$dir" --ranks $ranks --node 8 --ops $((n / ranks / 2)) --format ours --gzip \
      --member-lines 1000 --comm-name
    touch "$dir.done"
  fi
  rm -f "$tmp"/key.*
  timed key.one "$inspector" summary "${plain[@]}" --no-index --output-dir "$tmp/out" "$dir"
  for i in $(seq "$SHARDS"); do
    timed key.shards "$inspector" summary --no-parquet --shard "$i/$SHARDS" --partial "$tmp/part.$i" "$dir"
  done
  bytes=$(cat "$tmp"/part.* | wc -c)
  timed key.merge "$inspector" merge --no-plots --no-html --no-csv -q --output-dir "$tmp/out" "$tmp"/part.*
  mpi="-"
  if [ -n "$mpirun" ]; then
    rm -rf "$tmp/out"
    # shellcheck disable=SC2086
    "$mpirun" $over -n "$RANKS" /usr/bin/time -q -a -f "%U %S %e %M" -o "$tmp/key.mpi" "$tmp/mpi" summary \
      "${plain[@]}" --jobs 1 --output-dir "$tmp/out" "$dir" \
      >/dev/null 2>"$tmp/err" || [ $? = 2 ] || { cat "$tmp/err" >&2; exit 1; }
    mpi=$(say key.mpi ranks)
  fi
  echo "| $n | $ranks | $(say key.one) | $(say key.shards) | $((bytes / n)).$((bytes * 10 / n % 10)) | $(say key.merge) | $mpi |"
  rm -f "$tmp"/part.*
done

# 1 M records in many logs and in few, one thread.
echo
echo "| 1 M records in | which | CPU s: median, least of $RUNS | records/s and core | memory |"
echo "|---|---|---|---|---|"
for n in 1024 32; do
  dir=$logs/in-$n
  if [ ! -e "$dir.done" ]; then
    rm -rf "$dir"
    "$BUILD/test/host/loggen" "$dir" --ranks "$n" --node 8 --ops $((500000 / n)) --format ours --gzip \
      --member-lines 1000 --comm-name
    touch "$dir.done"
  fi
  records=$((500000 / n * n * 2))
  for _ in $(seq "$RUNS"); do
    for which in ${BEFORE:+before} now; do
      program=$inspector
      [ "$which" = now ] || program=$BEFORE
      timed "in.$n.$which" "$program" summary --jobs 1 --no-plots --no-html --no-parquet -q --no-index \
        --output-dir "$tmp/out" "$dir"
    done
  done
  for which in ${BEFORE:+before} now; do
    awk '{ print $1 + $2, $4 }' "$tmp/in.$n.$which" | sort -n |
      awk -v of="$n files | $which" -v records=$records '{ cpu[NR] = $1; if ($2 > mem) mem = $2 }
      END { m = cpu[int((NR + 1) / 2)]; printf "| %s | %.2f, %.2f | %.2f M | %.0f MB |\n", of, m, cpu[1], records / m / 1e6, mem / 1024 }'
  done
done

# What a log costs: all are listed by each shard, one of them is read.
dir=$logs/files-$FILES
if [ ! -e "$dir.done" ]; then
  rm -rf "$dir"
  "$BUILD/test/host/loggen" "$dir" --ranks "$FILES" --node 8 --ops 1 --format ours --gzip --member-lines 100
  touch "$dir.done"
fi
timed list "$inspector" summary --no-parquet --shard "1/$FILES" --partial "$tmp/part" "$dir"
timed all "$inspector" summary "${plain[@]}" --no-index --output-dir "$tmp/out" "$dir"
echo
echo "$FILES logs of 2 records: to list them $(say list), the whole summary $(say all)."

# Many partials: the bound is 1 s for 64 of 1 M records in all.
dir=$logs/parts-64
if [ ! -e "$dir.done" ]; then
  rm -rf "$dir"
  "$BUILD/test/host/loggen" "$dir" --ranks 64 --node 8 --ops 7813 --format ours --gzip --member-lines 1000 \
    --comm-name
  touch "$dir.done"
fi
for i in $(seq 64); do
  "$inspector" summary --no-parquet --shard "$i/64" --partial "$tmp/part.$i" "$dir" >/dev/null
done
timed parts "$inspector" merge --no-plots --no-html --no-csv -q --output-dir "$tmp/out" "$tmp"/part.*
echo "64 partials of 1 M records in all, merged: $(say parts)."
