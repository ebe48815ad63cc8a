#!/usr/bin/env bash
# What a distribution hardens its programs with is in those that were built, read from the binaries
# (scripts/check_hardening.sh). Those of packages are read in build_packages and by make dist. That the reader
# sees each thing that is missing is tried with a program that is built without it.
. "$(dirname "$0")/../../lib/case.sh"
[ -z "$VARIANT" ] || skip "a sanitizer takes the place of these flags"
need readelf objdump gcc
scripts/check_hardening.sh "$BUILD"/nccl-inspector "$BUILD"/nccl-sim "$PLUGIN" ||
  fail "the build is not hardened"
[ ! -e "$BUILD/nccl-inspector-live" ] || scripts/check_hardening.sh "$BUILD/nccl-inspector-live" ||
  fail "nccl-inspector-live is not hardened"

# A program with as many functions as the reader wants to see, each with a text to guard and called by its
# address.
[ "$(uname -m)" = x86_64 ] || finish "the build is hardened"
{
  echo '#include <stdio.h>'
  for i in {1..30}; do
    echo "int f$i(const char *s) { char t[64]; return snprintf(t, sizeof t, \"%s $i\", s) + t[3]; }"
  done
  echo 'int (*const all[])(const char *) = {'
  for i in {1..30}; do echo "f$i,"; done
  echo '}; int main(int n, char **w) { return all[n % 30](w[0]); }'
} >"$TMP/p.c"
# shellcheck disable=SC2054 # the linker's options have commas
hardened=(-fPIE -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fcf-protection=full -pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
marked=("-Wl,-z,shstk")
seen() { # FLAG... : what the reader misses
  gcc -O2 -w "${hardened[@]}" "${marked[@]}" "$@" -o "$TMP/p" "$TMP/p.c"
  scripts/check_hardening.sh "$TMP/p" 2>&1 >/dev/null | sed "s|^check_hardening: $TMP/p: ||"
}
[ -z "$(seen)" ] || fail "a hardened program is refused: $(seen)"
missed() { # WORDS FLAG...: without that one alone
  local said
  said=$(seen "${@:2}" || true)
  [[ $said == *"$1"* ]] || fail "with ${*:2} it does not say: $1; but: $said"
}
missed '-pie' -fno-pie -no-pie
missed '-z relro' -Wl,-z,norelro
missed '-z now' -Wl,-z,lazy
missed 'stack may be executed' -Wl,-z,execstack
missed '0 functions look for a canary' -fno-stack-protector
missed '_FORTIFY_SOURCE' -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=0
missed 'indirect branches' -fcf-protection=return
marked=()
missed 'shadow stacks' -fcf-protection=none
finish "what was built is hardened, and what is not is seen"
