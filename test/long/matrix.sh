#!/usr/bin/env bash
# The whole matrix of releases and sets of kinds (test/cases/sim/sim_matrix.sh has its short form).
NI_LONG=1 exec "$(dirname "$0")/../cases/sim_matrix.sh"
