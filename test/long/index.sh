#!/usr/bin/env bash
# The long form of index_same: 200 random filters, all golden logs, 1,000 flipped bits and each length of an
# index, eight builders and four readers 100 times; what the index takes of logs with a record, or ten with
# their accounts, in each member.
. "$(dirname "$0")/../lib/case.sh"
run() { python3 test/lib/index_same.py "$BUILD/nccl-inspector" "$BUILD/test/host/loggen" "$TMP" "$@"; }
run same 200 test/golden/*/input
run change
run damage 1000 1
run size 40000
run crowd 100
test/cases/index/index_opens.sh 10000
