#!/usr/bin/env bash
# Some 120 made-up endings, healthy and quiet jobs, two of each kind: what hang says of them is at least as
# often right as stated here, never differs between sentence, document and exit code, and never calls a job
# without a hang HANG or DEAD.
# `make hangs` plays all of them (docs/hang.md has its table).
. "$(dirname "$0")/../../lib/case.sh"
test/hangs/score.py --exporter "$BUILD/nccl-inspector" --short --held "" --least 97,97,97,100
