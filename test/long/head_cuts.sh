#!/usr/bin/env bash
# As test/cases/head/head_cuts.sh, with a minute in which nothing passes.
set -euo pipefail
cd "$(dirname "$0")/../.."
HOLE_S=60 exec test/cases/head/head_cuts.sh
