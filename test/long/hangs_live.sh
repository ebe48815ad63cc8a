#!/usr/bin/env bash
# One live job a kind of ending (test/hangs/live.py has the list): the simulator with the real plugin, looked
# at by hang. About a minute on two cores. And 1,024 made-up ranks, judged in under a second from each source.
. "$(dirname "$0")/../lib/case.sh"
rc=0
test/hangs/live.py --build "$BUILD" || rc=1
test/hangs/large.py --exporter "$BUILD/nccl-inspector" --most 1 || rc=1
exit $rc
