#!/usr/bin/env bash
# As test/cases/head/head_load.sh, with 2,000 clients for ten minutes (LOAD_S: another time).
set -euo pipefail
cd "$(dirname "$0")/../.."
CLIENTS=2000 LOAD_S=${LOAD_S:-600} exec test/cases/head/head_load.sh
