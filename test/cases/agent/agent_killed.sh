#!/usr/bin/env bash
# A rank is killed: `top` and /v1/now keep its row, and the agent tells the hang at once.
cd "$(dirname "$0")/../../.." || exit 2
exec python3 test/lib/agent_killed.py
