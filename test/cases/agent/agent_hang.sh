#!/usr/bin/env bash
# A job hangs and the agent tells it everywhere: /metrics, /v1/now, the program of --on-hang. When the job is
# killed its series go.
. "$(dirname "$0")/../../lib/case.sh"
python3 test/lib/agent_hang.py
