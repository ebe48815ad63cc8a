#!/bin/bash
# As root the agent reads each user's jobs by a process with that user's rights: figures are right, and nobody
# gets at another's files.
. "$(dirname "$0")/../../lib/case.sh"
need python3
need_users 64001
python3 test/lib/agent_users.py
