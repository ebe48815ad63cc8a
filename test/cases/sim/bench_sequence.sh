#!/usr/bin/env bash
# The collective of `make bench` is NCCL's: test/bench/bench_burst on the recorder beside recordings of real
# NCCL, by interface.
# Their plan `mix` alone: in the others groups hold several operations, and non-blocking communicators launch
# after the group's end.
. "$(dirname "$0")/../../lib/case.sh"
set +e +o pipefail # the case looks at each exit status itself
need python3
[ -x "$BUILD/test/bench/bench_burst" ] && [ -e "$BUILD/test/recorder.so" ] ||
  skip "bench_burst or the recorder is not built"
for release in 4:2.27.7 5:2.28.9 6:2.29.7 6:2.30.7 6:2.32.3; do
  echo "NCCL ${release#*:}, interface v${release%:*}"
  NI_RECORDER_FILE=$TMP/bench.rec "$BUILD/test/bench/bench_burst" "$BUILD/test/recorder.so" --interface \
    "${release%:*}" \
    --ops 8 --batch 4 --channels 2 --bursts 0 >/dev/null &&
    python3 test/lib/bench_sequence.py "$TMP/bench.rec" \
    test/data/real/*-nccl"${release#*:}"-*-mix-*.rec.gz || failures=$((failures + 1))
done
finish
