#!/usr/bin/env bash
# A hang is told when its job's own limit is over, and not 300 s after it began (test/lib/agent_limit.py).
# Takes 80 s, nearly all asleep.
. "$(dirname "$0")/../../lib/case.sh"
python3 test/lib/agent_limit.py
