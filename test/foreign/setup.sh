#!/usr/bin/env bash
# Makes the virtual environment with the foreign readers under $BUILD and prints its python.
#   test/foreign/setup.sh [extra packages...]       exit 77 when it cannot be made
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD:-build}
case $build in /*) ;; *) build=$root/$build ;; esac
venv=$build/venv-foreign
packages=(pyarrow duckdb polars "$@")
mkdir -p "$build"
exec 9>"$build/venv-foreign.lock"
flock 9   # two tests may come here at once

stamp="$venv/.has-$(printf '%s-' "${packages[@]}")"
if [ ! -e "$stamp" ]; then
  if ! { BUILD=$build "$root/test/lib/venv.sh" "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}"; } >"$build/venv-foreign.log" 2>&1; then
    echo "skip: no ${packages[*]} from pip ($(tail -n 1 "$build/venv-foreign.log"))" >&2
    exit 77
  fi
  touch "$stamp"
fi
echo "$venv/bin/python"
