#!/bin/bash
# A real Prometheus scrapes the agent while a simulated job runs: its own queries of bandwidth give what `summary` says of the logs,
# and each expression of the dashboards and rules gives a value, the planted one where there is one.
set -euo pipefail
cd "$(dirname "$0")/../../.."
command -v python3 >/dev/null || { echo "skip: no python3"; exit 77; }
exec python3 test/lib/agent_prometheus.py
