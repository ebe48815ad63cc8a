#!/usr/bin/env bash
# The walls between the rooms stand (scripts/check_rooms.sh), and a file that looks up, a call that goes up
# and a circle are seen.
. "$(dirname "$0")/../../lib/case.sh"
[ -z "${NI_VARIANT:-}" ] || skip "a sanitizer's objects have names of its own"
need git
BUILD=$BUILD scripts/check_rooms.sh || exit 1

# A small house of its own.
mkdir -p "$TMP"/{scripts,include,format,plugin/os,plugin/life,b/obj/plugin/os,b/obj/plugin/life}
cd "$TMP"
cp "$OLDPWD/scripts/check_rooms.sh" scripts/
echo "include format plugin/os plugin/life" >scripts/rooms
git init -q .
put() { # FILE TEXT: a source and its object
  echo "$2" >"$1"
  case $1 in *.c) gcc -I. -c "$1" -o "b/obj/${1%.c}.o" 2>gcc.log || { cat gcc.log; exit 1; } ;; esac
}
expect() { # WHAT PATTERN
  local out rc=0
  out=$(BUILD=b scripts/check_rooms.sh 2>&1) || rc=$?
  grep -E "$2" <<<"$out" >/dev/null || { fail "$1: $out"; }
  [ $rc = "${3:-1}" ] || { fail "$1: exit $rc"; }
}
put plugin/os/low.h 'void ni_low(void);'
put plugin/life/high.h 'void ni_high(void);'
put plugin/os/low.c '#include "low.h"
void ni_low(void) {}'
put plugin/life/high.c '#include "high.h"
#include "plugin/os/low.h"
void ni_high(void) { ni_low(); }'
expect "a sound house" '^0 upward, 0 circles$' 0
put plugin/os/low.c '#include "plugin/life/high.h"
void ni_low(void) {}'
expect "an include that goes up" '^UP .*plugin/os/low.c -> plugin/life/high.h'
put plugin/os/low.c 'void ni_high(void);
void ni_low(void) { ni_high(); }'
expect "a call that goes up" '^UP .*plugin/os/low -> plugin/life/high  \(ni_high\)'
put plugin/os/low.c 'void ni_other(void);
void ni_low(void) { ni_other(); }'
put plugin/os/other.c 'void ni_low(void);
void ni_other(void) { ni_low(); }'
expect "a circle within a room" '^CIRCLE .*plugin/os/'
expect "a circle within a room" '^0 upward, 1 circles$'
finish
