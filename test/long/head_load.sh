#!/usr/bin/env bash
# As test/cases/head/head_load.sh, with 2,000 clients for two minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."
CLIENTS=2000 LOAD_S=120 exec test/cases/head/head_load.sh
