#!/usr/bin/env bash
# The gate notices what is planted: a branch in a callback, a copy in the parser (test/gate/plants.txt).
. "$(dirname "$0")/../lib/case.sh"
make -s -j"$(nproc)" BUILD="$BUILD" gate_tools
rc=0
make -s BUILD="$BUILD" gate GATE_RUNS='^dump$' >/dev/null || rc=$?
# make has an exit status of its own: what the gate says of another compiler is looked at here.
if [ $rc != 0 ] && python3 test/gate/gate.py "$BUILD" --runs '^dump$' | grep 'not judged' >/dev/null; then
  skip "the gate's table holds for another compiler or other libraries"
fi
python3 test/gate/plants.py "$BUILD"
