#!/bin/bash
# As root the agent reads each user's jobs by a process with that user's rights: figures are right, and nobody gets at another's files.
set -euo pipefail
cd "$(dirname "$0")/../../.."
command -v python3 >/dev/null || { echo "skip: no python3"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "skip: needs root, which becomes two users"; exit 77; }
setpriv --reuid 64001 --regid 64001 --clear-groups true 2>/dev/null || { echo "skip: setpriv cannot become another user here"; exit 77; }
exec python3 test/lib/agent_users.py
