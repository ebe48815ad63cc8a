#!/usr/bin/env bash
# `top` of a real agent, on whose node a real job hangs: who is stuck and who is missing.
. "$(dirname "$0")/../../lib/case.sh"
python3 test/lib/top_agent.py
