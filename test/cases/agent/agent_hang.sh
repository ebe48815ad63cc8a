#!/usr/bin/env bash
# A job hangs and the agent tells it everywhere: /metrics, /v1/now, the program of --on-hang. When the job is killed its series go.
cd "$(dirname "$0")/../../.." || exit 2
exec python3 test/lib/agent_hang.py
