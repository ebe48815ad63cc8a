#!/usr/bin/env bash
# Mutations of the plugin: each breaks one rule, and some test must fail (mutate.py, mutations.txt).
#   test/mutation/run.sh [part of a name...]
#   NI_MUTATION_SHARE=N    one in N of them, another one with each commit
set -eu
cd "$(dirname "$0")/../.."
command -v python3 >/dev/null || { echo "python3 is missing"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
BUILD=${BUILD:-build}
export NI_TEST_DATA=${NI_TEST_DATA:-../shared/data}
case $NI_TEST_DATA in /*) ;; *) NI_TEST_DATA=$PWD/$NI_TEST_DATA ;; esac
make -s -j"$(nproc)" BUILD="$BUILD" tests >/dev/null
exec python3 test/mutation/mutate.py test/mutation/mutations.txt "$BUILD" "$@"
