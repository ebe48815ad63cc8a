#!/usr/bin/env bash
# make bench-counters: what `counters record` costs at 1 Hz, on a tree of a real node's 8 Cassini NICs in
# memory: CPU of SECONDS (20) more of it, so that finding, and both sweeps over all counters, are apart.
set -eu
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build} SECONDS_=${SECONDS_:-20}
export NI_TEST_DATA=${NI_TEST_DATA:-../shared/data}
[ -r "$NI_TEST_DATA/cassini/before.txt.gz" ] ||
  { echo "no $NI_TEST_DATA/cassini: no recording is measured"; exit 0; }
tmp=$(mktemp -d /dev/shm/ni-bench.XXXXXX 2>/dev/null || mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 test/lib/counters/counter_trees.py "$tmp" cxi before 8 -- host
TIMEFORMAT='%U %S'
cpu() { # SECONDS: CPU ms
  { time NI_ROOT=$tmp "$BUILD/nccl-inspector" counters record --for "$1s" "$tmp/out" 2>"$tmp/said"; } 2>&1 |
    awk '{printf "%.0f", 1000 * ($1 + $2)}'
}
short=$(cpu 1)
long=$(cpu $((SECONDS_ + 1)))
n=$(sed -n 's/^.* record: \([0-9]*\) counters of.*/\1/p' "$tmp/said")
printf '\n| %-60s | %10s | %-9s | %s |\n|---|---|---|---|\n' "recording $n counters each second" value bound \
  unit
row() { printf '| %-60s | %10s | %-9s | %s |\n' "$@"; }
row "a core's share, at 1 Hz" "$(awk -v a="$short" -v b="$long" -v s="$SECONDS_" 'BEGIN {printf "%.2f", (b - a) / s / 10}')" "<= 1" %
row "CPU of finding, the first second and both sweeps" "$short" "" ms
