#!/usr/bin/env bash
# What public bug reports found of ends of processes, played again: a container that was killed (another pid
# namespace).
. "$(dirname "$0")/../../lib/case.sh"
[ "$(basename "$BUILD")" = build ] || skip "of the plain build alone"
unshare --pid --fork --mount-proc true 2>/dev/null || skip "needs root: unshare --pid is refused"
cases=$PWD/../shared/field-cases
[ -d "$cases" ] || skip "$cases is not there"
PROD=$PWD timeout 250 bash "$cases"/13-*/run.sh
