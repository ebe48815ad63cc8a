#!/usr/bin/env bash
# Impossible GPU stamps are found, and nothing else is taken for impossible.
. "$(dirname "$0")/../../lib/sim.sh"
verified stamps
verified stamps --interface v4 --seed 7
finish
