#!/usr/bin/env bash
# Communicators come and go: shared progress threads, unload and reload, many at once.
. "$(dirname "$0")/../lib/sim.sh"
verified split_share
verified reload
verified reload --interface v4
verified churn
verified churn --seed 2
verified many_comms --set n=2000
finish
