# For test/cases/python/*.sh: the package, installed by pip into a venv as a user does. Sourced; sets BUILD, TMP, PY (the venv's
# python) and NCCL_INSPECTOR_COMMAND; all else of a developer's shell is taken away.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
BUILD=$(realpath "${BUILD:-build}")
[ -x "$BUILD/nccl-inspector" ] || { echo "$BUILD/nccl-inspector is not built"; exit 77; }
for v in $(env | sed -n 's/^\(NCCL_INSPECTOR_[A-Z0-9_]*\|NCCL_PROFILE[A-Z0-9_]*\|PYTHON[A-Z]*\)=.*/\1/p'); do unset "$v"; done
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT

# What the package is made of; a venv is made anew when that changes. Two tests may come here at once.
made_of=$(cat python/pyproject.toml python/README.md python/nccl_inspector/* 2>/dev/null | sha256sum | cut -c1-16)
PY=$BUILD/venv-python/$made_of/bin/python
(
  flock 9
  [ ! -e "$PY.ready" ] || exit 0
  rm -rf "$BUILD/venv-python"
  mkdir -p "$BUILD/venv-python"
  cp -rL python "$TMP/python" # pip builds beside the sources
  rm -rf "$TMP/python/build" "$TMP/python"/*.egg-info
  # Offline where the venv has setuptools (Python up to 3.11); newer ones ask the registry for it.
  { python3 -m venv "$BUILD/venv-python/$made_of" &&
    { "$PY" -m pip install -q --disable-pip-version-check --no-index --no-build-isolation "$TMP/python" ||
      "$PY" -m pip install -q --disable-pip-version-check "$TMP/python"; }; } >"$BUILD/venv-python/log" 2>&1 &&
    : >"$PY.ready"
) 9>"$BUILD/venv-python.lock" || { echo "no venv with the package: $(tail -n 1 "$BUILD/venv-python/log")"; exit 77; }
export NCCL_INSPECTOR_COMMAND=$BUILD/nccl-inspector
