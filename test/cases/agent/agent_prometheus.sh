#!/bin/bash
# A real Prometheus scrapes the agent while a simulated job runs: its own queries of bandwidth give what
# `summary` says of the logs, and each expression of the dashboards and rules gives a value, the planted one
# where there is one.
. "$(dirname "$0")/../../lib/case.sh"
need python3
python3 test/lib/agent_prometheus.py
