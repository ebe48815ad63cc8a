#!/bin/bash
# A day of the agent by a clock of its own (NI_AGENT_TURNS): memory and descriptors at the end are those after
# the first hour.
. "$(dirname "$0")/../lib/case.sh"
need python3
python3 test/lib/agent_day.py "${TURNS:-86400}"
