#!/usr/bin/env bash
# test/lib/venv.sh FOLDER: a virtual environment with pip, as `python3 -m venv` makes it, in 0.3 s of CPU and
# not in 4.7: ensurepip runs once for a build, and what it installed is copied from there.
set -euo pipefail
folder=$1
unset "${!PYTHON@}"
bare=$(realpath -m "${BUILD:-build}")/venv-bare
mkdir -p "$(dirname "$bare")"
(
  flock 9 # two tests may come here at once
  # Where the Python is another one by now, its pip lies somewhere else.
  python3 -c 'import sys; print(sys.version, sys.prefix)' >"$bare.wanted"
  ! cmp -s "$bare.wanted" "$bare/.whole" || exit 0
  rm -rf "$bare"
  python3 -m venv "$bare"
  cp "$bare.wanted" "$bare/.whole"
) 9>"$bare.lock"
python3 -m venv --without-pip "$folder"
packages=$("$folder/bin/python" -c 'import os, sys, sysconfig; print(os.path.relpath(sysconfig.get_path("purelib"), sys.prefix))')
cp -a "$bare/$packages/." "$folder/$packages/"
for script in "$bare"/bin/pip*; do
  sed "1s,.*,#!$(realpath "$folder")/bin/python," "$script" >"$folder/bin/${script##*/}"
  chmod 755 "$folder/bin/${script##*/}"
done
