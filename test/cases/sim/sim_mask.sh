#!/usr/bin/env bash
# The activation mask changes while the job runs.
. "$(dirname "$0")/../../lib/sim.sh"
verified mask
verified mask --interface v4
finish
