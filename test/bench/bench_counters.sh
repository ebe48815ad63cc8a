#!/usr/bin/env bash
# make bench-counters: what sweeps of counters cost, on a tree of a real node's 8 Cassini NICs in memory;
# medians of ROUNDS (101).
set -eu
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build}
export NI_TEST_DATA=${NI_TEST_DATA:-../shared/data}
[ -r "$NI_TEST_DATA/cassini/before.txt.gz" ] ||
  { echo "no $NI_TEST_DATA/cassini: no sweep is measured"; exit 0; }
tmp=$(mktemp -d /dev/shm/ni-bench.XXXXXX 2>/dev/null || mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 test/lib/counters/counter_trees.py "$tmp" cxi before 8
echo "machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores; $(uname -sr); load $(cut -d' ' -f1-3 /proc/loadavg)"
NI_ROOT=$tmp "$BUILD/test/bench/bench_sweep" "${ROUNDS:-101}" >"$tmp/out"
get() { awk -v n="$1" '$1 == n {print $2}' "$tmp/out"; }
row() { printf '| %-60s | %10s | %-9s | %s |\n' "$@"; }
printf '\n| %-60s | %10s | %-9s | %s |\n|---|---|---|---|\n' \
  "sweep of $(get counters) counters, $(get entities) NICs" value bound unit
row "found and opened" "$(get open_ms)" "<= 150" ms
row "bare pread() of the same descriptors, a counter" "$(get bare_us)" "" us
row "collector, a counter, one thread" "$(get ours_us)" "" us
row "collector's own share, a counter" "$(get own_us)" "<= 1" us
row "whole sweep, one thread" "$(get serial_ms)" "<= 130" ms
row "whole sweep, a thread a NIC" "$(get threads_ms)" "<= 20" ms
row "CPU of the latter" "$(get threads_cpu_ms)" "" ms
