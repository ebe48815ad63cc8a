#!/bin/bash
# A day of the agent by a clock of its own (NI_AGENT_TURNS): memory and descriptors at the end are those after the first hour.
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v python3 >/dev/null || { echo "skip: no python3"; exit 77; }
exec python3 test/lib/agent_day.py "${TURNS:-86400}"
