#!/usr/bin/env bash
# A rank is killed: `top` and /v1/now keep its row, and the agent tells the hang at once.
. "$(dirname "$0")/../../lib/case.sh"
python3 test/lib/agent_killed.py
