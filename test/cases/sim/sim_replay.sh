#!/usr/bin/env bash
# Callbacks recorded on four H100 are replayed: the log has their device times. Then a recording of our own.
. "$(dirname "$0")/../../lib/sim.sh"
replay() { # file [options]
  local file=$1; shift
  rm -rf "$TMP/truth" "$TMP/logs"
  NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR="$TMP/logs" timeout 50 "$SIM" --quiet --plugin "$PLUGIN" \
    --replay "$file" --truth "$TMP/truth" "$@" >"$TMP/out" 2>&1 ||
    { cat "$TMP/out"; failures=$((failures + 1)); return; }
  if "$SIM" --verify "$TMP/truth" "$TMP/logs" >"$TMP/verify" 2>&1; then
    echo "ok   replay $(basename "$file") $* $(tail -n 1 "$TMP/verify")"
  else
    fail "replay $(basename "$file") $*"; cat "$TMP/verify"
  fi
}
need "$BUILD/test/recorder.so"
for s in groups p2p symmetric; do
  release=2.30
  [ $s != symmetric ] || release=2.31
  NI_RECORDER_FILE=$TMP/$s.rec "$SIM" --quiet --plugin "$BUILD/test/recorder.so" --scenario $s \
    --nccl $release --truth "$TMP/first"
  replay "$TMP/$s.rec" --nccl $release
  # Device times of the recorded run itself, not only those that the replay saw.
  exec_of() { grep '"t":"op"' "$1" | sed 's/.*\("hash":"[^"]*","rank":[0-9]*,"kind":"[^"]*","func":"[^"]*"\).*\("rec":[0-9]*\).*\("exec_ns":[0-9]*\).*/\1 \2 \3/' | sort; }
  if ! diff <(exec_of "$TMP/first") <(exec_of "$TMP/truth"); then
    fail "$s: the replay's truth differs from the recorded run's"
  fi
done
real=${NI_TEST_DATA:-../shared/data}/real-callbacks/h100x4-allreduce-v5.jsonl
if [ ! -e "$real" ]; then
  skip "$real is not there: only our own recordings were replayed"
fi
replay "$real" --nccl 2.28
replay "$real" --nccl 2.30 --interface v4
replay "$real" --nccl 2.30
[ "$(grep -c '"exec_ns":15135904,' "$TMP/truth")" = 1 ] || fail "rank 0's first AllReduce ran 15135904 ns"
finish
