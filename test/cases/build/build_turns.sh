#!/usr/bin/env bash
# Which tests check.sh runs with which commit: with each commit every test runs on one build at least, but for
# those that have turns.
. "$(dirname "$0")/../../lib/case.sh"
# asked COMMITS SANITIZER: what the two builds of that commit run.
asked() {
  env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u NI_ONLY -u NI_SKIP -u NI_DRAWN -u NI_NOT_DRAWN -u NI_NOT_THERE \
    -u NI_TURNS NI_LIST=1 NI_COMMITS="$1" SANITIZER_SHARE=3 \
    make -s -o tests -o "$2" BUILD="${BUILD#"$PWD"/}" BESIDE="$2" check-plain "check-$2"
}
for t in test/unit/*/test_*.c test/cases/*/*.sh; do
  t=${t##*/}
  echo "${t%.*}"
done | sort >"$TMP/all"
grep -vxE "$(sed -n '/^BY_TURNS/,/[^\\]$/p' test/test.mk | sed 's/^BY_TURNS ?=//' | tr -d '\\' | xargs | tr ' ' '|')" "$TMP/all" >"$TMP/each"
asked 0 asan | sort -u >"$TMP/0"
asked 1 tsan | sort -u >"$TMP/1"
asked 2 asan | sort -u >"$TMP/2"
for commits in 0 1; do
  left_out=$(comm -23 "$TMP/each" "$TMP/$commits")
  [ -z "$left_out" ] || fail "with commit $commits nobody runs" $left_out
done
never=$(cat "$TMP/0" "$TMP/2" | sort -u | comm -23 "$TMP/all" -)
[ -z "$never" ] || fail "with neither turn of those that have turns runs" $never
finish "$(wc -l <"$TMP/all") tests, $(wc -l <"$TMP/0") and $(wc -l <"$TMP/1") of them with two commits"
