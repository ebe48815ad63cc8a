#!/usr/bin/env bash
# As test/cases/head/head_kill.sh, 50 times with 60 clients.
set -euo pipefail
cd "$(dirname "$0")/../.."
KILLS=50 AGENTS=30 GSPROF=30 exec test/cases/head/head_kill.sh
