#!/usr/bin/env bash
# As python_net_prof, with whole sweeps as JSON: net_prof takes half a minute for each.
exec "$(dirname "$0")/../cases/python/python_net_prof.sh" long
