# For test/cases/python/*.sh: the package, installed by pip into a venv as a user does. Sourced; sets PY (the
# venv's python) and NCCL_INSPECTOR_COMMAND, beside what test/lib/case.sh has; Python's variables of a
# developer's shell are taken away.
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/case.sh"
need "$INSPECTOR"
unset "${!PYTHON@}"

# What the package is made of; a venv is made anew when that changes. Two tests may come here at once.
made_of=$(cat python/pyproject.toml python/README.md python/nccl_inspector/* 2>/dev/null | sha256sum |
  cut -c1-16)
PY=$BUILD/venv-python/$made_of/bin/python
(
  flock 9
  [ ! -e "$PY.ready" ] || exit 0
  rm -rf "$BUILD/venv-python"
  mkdir -p "$BUILD/venv-python"
  cp -rL python "$TMP/python" # pip builds beside the sources
  rm -rf "$TMP/python/build" "$TMP/python"/*.egg-info
  # Offline where the venv has setuptools (Python up to 3.11); newer ones ask the registry for it.
  { test/lib/venv.sh "$BUILD/venv-python/$made_of" &&
    { "$PY" -m pip install -q --disable-pip-version-check --no-index --no-build-isolation "$TMP/python" ||
      "$PY" -m pip install -q --disable-pip-version-check "$TMP/python"; }; } >"$BUILD/venv-python/log" \
      2>&1 &&
    : >"$PY.ready"
) 9>"$BUILD/venv-python.lock" || skip "no venv with the package: $(tail -n 1 "$BUILD/venv-python/log")"
export NCCL_INSPECTOR_COMMAND=$BUILD/nccl-inspector
