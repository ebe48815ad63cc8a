#!/usr/bin/env bash
# What a reader would remark, said by machines first: widths and blanks, the one format, shell scripts, faults
# that clang-tidy sees, file lengths, paths of one machine. Ends with "N passed, N failed"; a missing tool
# skips its part.
#   scripts/lint.sh [fast]     fast: without clang-tidy
set -u
cd "$(dirname "$0")/.." || exit 2
passed=0 failed=0 skipped=0
MAX_WIDTH=110
MAX_WIDTH_TEST=128 # literal log lines, and usage texts that are tables
MAX_LINES=900

files() { # patterns: tracked and new files that are text of ours
  git ls-files -co --exclude-standard -- "$@" | grep -v '^test/fuzz/corpus/\|package-lock.json' |
    while read -r f; do [ -f "$f" ] && echo "$f"; done
}
part() { # name findings
  local name=$1 findings=$2
  if [ -z "$findings" ]; then
    passed=$((passed + 1))
    echo "ok    $name"
  else
    failed=$((failed + 1))
    echo "FAIL  $name"
    echo "$findings" | head -n 40 | sed 's/^/      /'
  fi
}
skip() {
  skipped=$((skipped + 1))
  echo "skip  $*"
}

# Bytes that continue a UTF-8 character are no columns.
# shellcheck disable=SC2046
part "widths and blanks" "$(LC_ALL=C awk -v product=$MAX_WIDTH -v tests=$MAX_WIDTH_TEST '
  {line = $0; gsub(/[\200-\277]/, "", line); max = FILENAME ~ /^test/ ? tests : product}
  length(line) > max && FILENAME ~ /\.(c|h|cc|js|mjs)$/ {print FILENAME ":" FNR ": " length(line) " columns, at most " max}
  /[ \t]$/ {print FILENAME ":" FNR ": blanks at the end of the line"}
  /^ *\t/ && FILENAME ~ /\.(c|h|cc|py)$/ {print FILENAME ":" FNR ": a tab"}' $(files '*.c' '*.h' '*.cc' '*.js' '*.mjs' '*.py' '*.sh' '*.mk' '*.pml' Makefile))"

part "lengths" "$(for f in $(files '*.c' '*.h' '*.cc' '*.py' '*.sh' '*.js' '*.css'); do
  [ "$f" != python/nccl_inspector/types.py ] || continue # scripts/schemas.py makes it
  n=$(wc -l <"$f")
  [ "$n" -le $MAX_LINES ] || echo "$f: $n lines, at most $MAX_LINES: split it by what its parts know"
done)"

# A folder is a room, or a shelf in it: what does not fit into a glance is two.
part "folders" "$(files '*.c' '*.h' '*.cc' | xargs -n1 dirname | sort | uniq -c | awk '$1 > 25 {print $2 ": " $1 " sources, at most 25"}')"

if [ -d "${BUILD:-build}/obj" ]; then
  part "rooms" "$(scripts/check_rooms.sh | grep -v '^0 upward, 0 circles$')"
else
  skip "rooms: no build (make all)"
fi

# grep ends when it has found its line, and under pipefail whoever still writes into it has failed then: "!"
# takes that for success.
# shellcheck disable=SC2046
part "tests that cannot fail" "$(grep -nE '(^|[ ;(])! [^#]*[^|]\| *grep -[a-zA-Z]*q' $(files '*.sh'))"

part "paths of one machine" "$(files '*' | grep -v '^scripts/lint.sh$' |
  xargs -d '\n' grep -nIE '(^|[^A-Za-z0-9_.-])/(work|home/[a-z]+|root)/|/tmp/brief' 2>/dev/null)"

part "words (scripts/check_words.sh)" "$(scripts/check_words.sh | grep -v '^ok \|passed, \|^skip')"

findings=$(scripts/format.sh --check 2>&1)
rc=$?
if [ $rc = 77 ]; then
  skip "$findings"
else
  # A tool that fails without a word is no format that fits.
  [ $rc = 0 ] || findings=${findings:-scripts/format.sh --check ended with $rc}
  part "format (scripts/format.sh)" "$findings"
fi

if command -v shellcheck >/dev/null; then
  # Sourced libraries set what others use; words are split on purpose where they are options.
  # shellcheck disable=SC2046
  part "shell scripts" "$(shellcheck -s bash -S warning -e SC2034,SC2048,SC2164,SC2206,SC2046,SC1091 -f gcc $(files '*.sh'))"
else
  skip "shellcheck is missing"
fi

if [ "${1:-}" = fast ]; then
  skip "clang-tidy, as asked"
elif command -v clang-tidy >/dev/null; then
  part "clang-tidy on plugin/ and format/" "$(files 'plugin/*.c' 'format/*.c' |
    xargs -P "$(nproc)" -I{} clang-tidy --quiet {} -- -std=c11 -D_GNU_SOURCE -I. -Iinclude \
    -DNI_VERSION='"0"' -DNI_GIT_REV='"0"' 2>/dev/null |
    grep -E '(warning|error): ' | sort -u)"
else
  skip "clang-tidy is missing"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
