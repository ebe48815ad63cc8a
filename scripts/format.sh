#!/usr/bin/env bash
# The one format of the sources: C and C++ by clang-format (.clang-format), the page's JavaScript by prettier
# (.prettierrc.json).
#   scripts/format.sh            writes it
#   scripts/format.sh --check    names the files that have another one, and ends with 1 if there are such
# Both tools are of one version, since another one breaks lines elsewhere; they come from PyPI and npm into
# the build folder.
# Ends with 77 where they cannot be had.
set -euo pipefail
cd "$(dirname "$0")/.."
CLANG_FORMAT=19.1.7
PRETTIER=3.6.2
tools=${BUILD:-build}/format-$CLANG_FORMAT-$PRETTIER

install_tools() {
  command -v npm >/dev/null || return 1
  rm -rf "$tools.new"
  test/lib/venv.sh "$tools.new/python" || return 1
  "$tools.new/python/bin/pip" install --quiet --disable-pip-version-check \
    "clang-format==$CLANG_FORMAT" || return 1
  npm install --prefix "$tools.new" --ignore-scripts --no-audit --no-fund \
    --loglevel=error "prettier@$PRETTIER" || return 1
  rm -rf "$tools"
  mv "$tools.new" "$tools"
}
mkdir -p "${tools%/*}"
if [ ! -d "$tools" ] && ! install_tools >"$tools.log" 2>&1; then
  echo "format.sh: clang-format $CLANG_FORMAT and prettier $PRETTIER cannot be had ($tools.log)" >&2
  exit 77
fi

sources() { # patterns: tracked and new files
  git ls-files -z -co --exclude-standard -- "$@" ':!test/fuzz/corpus'
}
clang_format=$(echo "$tools"/python/lib/python*/site-packages/clang_format/data/bin/clang-format)
clang_options=(-i) prettier_options=(--write --log-level warn)
if [ "${1:-}" = --check ]; then
  clang_options=(--dry-run -Werror) prettier_options=(--list-different)
fi
rc=0
# Of a file's findings the first is shown.
sources '*.c' '*.h' '*.cc' | xargs -0 -n 32 -P "$(nproc)" "$clang_format" "${clang_options[@]}" 2>&1 |
  sed -n 's/^\([^:]*:[0-9]*\):.*\[-Wclang-format-violations\]$/\1: scripts\/format.sh writes this line otherwise/p' |
  sort -t: -u -k1,1 || rc=1
sources '*.js' '*.mjs' | xargs -0 "$tools/node_modules/.bin/prettier" "${prettier_options[@]}" || rc=1
exit $rc
