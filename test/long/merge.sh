#!/usr/bin/env bash
# The long form of merge_borders: 50 random trees of 1, 7 and 64 shards, groups of 262,144 distinct values and
# of one more.
exec env NI_TREES=50 NI_LARGE="262144 262145" "$(dirname "$0")/../cases/merge/merge_borders.sh"
