#!/usr/bin/env bash
# A session of 10 GB (SESSION_GB: another size): stop, resume, `stat` and memory (test/lib/head_large.py).
# Wants twice as much disk.
set -euo pipefail
cd "$(dirname "$0")/../.."
SESSION_GB=${SESSION_GB:-10} exec test/cases/head/head_load.sh
