#!/usr/bin/env bash
# hang says the same with an index and without one, of logs that grow step by step: all kinds of logs,
# NVIDIA's, two ranks that hang and began again (test/lib/hang_logs.py), a job of 32 ranks. What is indexed
# step by step is what is indexed at once.
. "$(dirname "$0")/../../lib/case.sh"
need python3
for how in "AllReduce AllReduce" "AllReduce -" "AllReduce Broadcast" "AllReduce AllReduce 1 2" \
  "AllReduce AllReduce 1500 2"; do
  mkdir "$TMP/${how// /.}"
  # shellcheck disable=SC2086
  python3 test/lib/hang_logs.py "$TMP/${how// /.}" $how
done
"$BUILD/test/host/hanggen" "$TMP/job" 32 logs 80
python3 test/lib/index_same.py "$BUILD/nccl-inspector" "$BUILD/test/host/loggen" "$TMP" hang kinds \
  "$TMP"/AllReduce* "$TMP/job" \
  test/golden/check_ours/input test/golden/check_nvidia_v43/input
python3 test/lib/index_same.py "$BUILD/nccl-inspector" "$BUILD/test/host/loggen" "$TMP" hostile \
  "$TMP/AllReduce.AllReduce"
