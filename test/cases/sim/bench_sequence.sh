#!/usr/bin/env bash
# The collective of `make bench` is NCCL's: test/bench/bench_burst on the recorder beside recordings of real NCCL, by interface.
# Their plan `mix` alone: in the others groups hold several operations, and non-blocking communicators launch after the
# group's end.
set -u
cd "$(dirname "$0")/../../.."
BUILD=${BUILD:-build}
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
[ -x "$BUILD/test/bench/bench_burst" ] && [ -e "$BUILD/test/recorder.so" ] || { echo "bench_burst or the recorder is not built"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failures=0
for release in 4:2.27.7 5:2.28.9 6:2.29.7 6:2.30.7 6:2.32.3; do
  echo "NCCL ${release#*:}, interface v${release%:*}"
  NI_RECORDER_FILE=$tmp/bench.rec "$BUILD/test/bench/bench_burst" "$BUILD/test/recorder.so" --interface "${release%:*}" \
    --ops 8 --batch 4 --channels 2 --bursts 0 >/dev/null &&
    python3 test/lib/bench_sequence.py "$tmp/bench.rec" test/data/real/*-nccl"${release#*:}"-*-mix-*.rec.gz || failures=$((failures + 1))
done
[ $failures = 0 ] || { echo "$failures failures"; exit 1; }
