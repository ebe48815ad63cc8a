#!/bin/bash
# The sums of /metrics are those of the logs, to the operation, also through an agent that is killed 20 times while the job runs.
set -euo pipefail
cd "$(dirname "$0")/../../.."
command -v python3 >/dev/null || { echo "skip: no python3"; exit 77; }
exec python3 test/lib/agent_sums.py
