#!/usr/bin/env bash
# summary --approximate: counts, sums, least and largest are those of summary, percentiles within 0.4 %; the
# second time no record is read, of a log that has grown the new ones; sums that were forged.
. "$(dirname "$0")/../../lib/case.sh"
need python3
python3 test/lib/index_sums.py "$BUILD/nccl-inspector" "$BUILD/test/host/loggen" "$TMP"
