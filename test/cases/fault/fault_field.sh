#!/usr/bin/env bash
# What public bug reports found of ends of processes, played again: a container that was killed (another pid namespace).
cd "$(dirname "$0")/../../.." || exit 2
[ "$(basename "${BUILD:-build}")" = build ] || { echo "of the plain build alone"; exit 77; }
unshare --pid --fork --mount-proc true 2>/dev/null || { echo "needs root: unshare --pid is refused"; exit 77; }
cases=$PWD/../shared/field-cases
[ -d "$cases" ] || { echo "$cases is not there"; exit 77; }
PROD=$PWD timeout 250 bash "$cases"/13-*/run.sh
