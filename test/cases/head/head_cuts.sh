#!/usr/bin/env bash
# The network between clients and the head is cut and comes back (test/lib/head_cuts.py).
. "$(dirname "$0")/../../lib/head.sh"
python3 test/lib/head_cuts.py
