#!/usr/bin/env bash
# make bench-netprof: two sweeps of eight Cassini NICs (15,120 counters each) summarized, as Markdown:
# `counters summarize`, and the real net_prof beside it in the same run, on the same files.
#   RUNS=5   RUNS_NETPROF=1   CASSINI=folder with before.txt.gz and after.txt.gz
# Wall and CPU are medians, peak memory the largest. net_prof comes from PyPI into $BUILD, with stand-ins for
# its libraries of pictures, which neither run draws; without it one line says so.
set -euo pipefail
cd "$(dirname "$0")/../.."
BUILD=$(realpath "${BUILD:-build}")
CASSINI=${CASSINI:-${NI_TEST_DATA:-../shared/data}/cassini}
RUNS=${RUNS:-5} RUNS_NETPROF=${RUNS_NETPROF:-1}
[ -e "$CASSINI/before.txt.gz" ] || { echo "counters were not measured: no $CASSINI/before.txt.gz"; exit 0; }
tmp=$(mktemp -d -p "$BUILD")
trap 'rm -rf "$tmp"' EXIT
for f in before after; do
  zcat "$CASSINI/$f.txt.gz" >"$tmp/$f.txt"
  python3 test/lib/counters/netprof.py sweep "$tmp/$f.json" --cassini "$CASSINI/$f.txt.gz"
done
measure() { # runs what command...
  local runs=$1 what=$2
  shift 2
  for _ in $(seq "$runs"); do
    /usr/bin/time -q -f "%e %U %S %M" -a -o "$tmp/times" "$@" >/dev/null ||
      { echo "$what failed" >&2; exit 1; }
  done
  local middle=$(((runs + 1) / 2))
  printf '| %s | %.3f | %.3f | %.0f |\n' "$what" "$(cut -d' ' -f1 "$tmp/times" | sort -g | sed -n ${middle}p)" \
    "$(awk '{print $2 + $3}' "$tmp/times" | sort -g | sed -n ${middle}p)" \
    "$(awk '$4 > m {m = $4} END {print m / 1024}' "$tmp/times")"
  rm "$tmp/times"
}
echo "| 2 x 15,120 counters | wall s | CPU s | peak MB |"
echo "|---|---|---|---|"
for form in txt.gz txt json; do
  files=("$tmp/before.$form" "$tmp/after.$form")
  [ $form != txt.gz ] || files=("$CASSINI/before.txt.gz" "$CASSINI/after.txt.gz")
  measure "$RUNS" "counters summarize, .$form" "$BUILD/nccl-inspector" counters summarize "${files[@]}"
done
measure "$RUNS" "counters summarize --json, .json" "$BUILD/nccl-inspector" counters summarize --json \
  "$tmp/before.json" "$tmp/after.json"
if [ ! -e "$BUILD/netprof-0.1.11/net_prof" ] &&
  ! python3 -m pip install -q --disable-pip-version-check --no-deps --target "$BUILD/netprof-0.1.11" \
  net_prof==0.1.11 >/dev/null 2>&1; then
  echo
  echo "net_prof was not measured: it cannot be had."
  exit 0
fi
cat >"$tmp/run.py" <<'PY'
import sys
from unittest import mock
sys.path.insert(0, sys.argv[1])
for name in ("matplotlib", "matplotlib.pyplot", "numpy"): sys.modules[name] = mock.MagicMock()
from net_prof import engine
engine.dump(engine.summarize(sys.argv[2], sys.argv[3]))
PY
for form in txt json; do
  measure "$RUNS_NETPROF" "net_prof 0.1.11 summarize and dump, .$form" python3 "$tmp/run.py" \
    "$BUILD/netprof-0.1.11" "$tmp/before.$form" "$tmp/after.$form"
done
