#!/usr/bin/env bash
# `top` of a real agent, on whose node a real job hangs: who is stuck and who is missing.
set -euo pipefail
cd "$(dirname "$0")/../../.."
exec python3 test/lib/top_agent.py
