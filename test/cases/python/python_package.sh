#!/usr/bin/env bash
# The package as pip installs it, with a real job: variables, marks, check, summary, and what is said when
# something is wrong.
. "$(dirname "$0")/../../lib/python.sh"

# One version, and a wheel that is the same bytes whoever builds it when.
version=$(sed -n 's/^NI_VERSION := //p' scripts/version.mk)
said=$(cd "$TMP" && "$PY" -c 'import importlib.metadata as m, nccl_inspector as n; print(n.__version__, m.version("nccl-inspector"))')
[ "$said" = "$version $version" ] ||
  { echo "versions differ: $said, scripts/version.mk has $version"; exit 1; }
if "$PY" -c 'import setuptools, wheel' 2>/dev/null ||
  "$PY" -m pip install -q --disable-pip-version-check wheel 2>/dev/null; then
  for k in 1 2; do
    cp -rL python "$TMP/tree$k" && rm -rf "$TMP/tree$k/build" "$TMP/tree$k"/*.egg-info
    (umask 022 && find "$TMP/tree$k" -exec touch -d "200$k-01-01" {} + &&
      SOURCE_DATE_EPOCH=1790000000 "$PY" -m pip wheel -q --disable-pip-version-check --no-build-isolation \
      --no-deps -w "$TMP/wheel$k" "$TMP/tree$k")
  done
  cmp "$TMP"/wheel[12]/nccl_inspector-"$version"-py3-none-any.whl
else
  echo "without the wheels: no package wheel"
fi
"$PY" test/lib/python/package.py "$BUILD" "$TMP"
