#!/bin/bash
# The sums of /metrics are those of the logs, to the operation, also through an agent that is killed 20 times
# while the job runs.
. "$(dirname "$0")/../../lib/case.sh"
need python3
python3 test/lib/agent_sums.py
