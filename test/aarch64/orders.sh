#!/usr/bin/env bash
# Memory orders, read from aarch64 instructions: orders.sh [root of the tree]. Exit 0 as expected, 1 not, 77
# no compiler.
# Compiled with -march=armv8.2-a -mno-outline-atomics, so that each exchange is one instruction with its order
# in its name.
set -euo pipefail
cd "$(dirname "$0")/../.."
CC=${CROSS_CC:-aarch64-linux-gnu-gcc}
root=${1:-.}
command -v "$CC" >/dev/null || { echo "$CC is missing (apt-get install gcc-aarch64-linux-gnu)"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
flags="-std=c11 -D_GNU_SOURCE -O2 -march=armv8.2-a -mno-outline-atomics -fno-strict-aliasing -I$root -I$root/include"
failures=0

# The mnemonics of one function, one a line.
code_of() {
  aarch64-linux-gnu-objdump -d --no-show-raw-insn "$1" |
    awk -v f="<$2>:" '$2 == f {on = 1; next} /^$/ {on = 0} on {print $2}'
}

# Each mnemonic wanted must be there, each time it is named ("a/b": either). Their order in the code is the
# compiler's.
expect() { # object function mnemonics...
  local object=$1 name=$2 want line
  shift 2
  code_of "$object" "$name" >"$tmp/code"
  [ -s "$tmp/code" ] ||
    { echo "FAIL $name: no such function in the object"; failures=$((failures + 1)); return; }
  cp "$tmp/code" "$tmp/left"
  for want; do
    line=$(grep -nxE "${want//\//|}" "$tmp/left" | head -n 1 | cut -d: -f1) || true
    if [ -z "$line" ]; then
      echo "FAIL $name: wants $*; lacks $want. It has: $(grep -E '^(ldar|ldapr|stlr|ldset|ldadd|cas|swp|dmb)' "$tmp/code" | tr '\n' ' ')"
      failures=$((failures + 1))
      return
    fi
    sed -i "${line}d" "$tmp/left"
  done
  echo "ok   $name: $*"
}

# Headers: the functions of orders.c, over the headers of the tree given.
cp test/aarch64/orders.c "$tmp/orders.c"
# shellcheck disable=SC2086
$CC $flags -c "$tmp/orders.c" -o "$tmp/orders.o"
while read -r name rest; do
  # shellcheck disable=SC2086
  expect "$tmp/orders.o" "$name" ${rest%%--*}
done < <(sed -n 's,^/\* expect: *\([a-z_]*\) *\(.*\)\*/$,\1 \2,p' test/aarch64/orders.c)

# Functions that are compiled as they are.
for f in slots/slot_pool slots/arena callbacks/callbacks callbacks/callbacks_channel \
  callbacks/callbacks_call dump/thread drain/judge drain/call_drain; do
  # shellcheck disable=SC2086
  $CC $flags -DNI_VERSION='"0"' -DNI_GIT_REV='"0"' -c "$root/plugin/$f.c" -o "$tmp/${f##*/}.o"
done
expect "$tmp/slot_pool.o" ni_pool_get ldar/ldapr casa ldar/ldapr casa casal casl
expect "$tmp/slot_pool.o" ni_pool_put_chain casl/casal
expect "$tmp/arena.o" ni_arena_take ldar/ldapr casa/casal
expect "$tmp/arena.o" ni_arena_give casl/casal
# The interval-0 handshake: both sides read after they wrote, with a load that cannot pass the write (ldar,
# not ldapr).
expect "$tmp/callbacks.o" ni_cb_op_start stlr
expect "$tmp/callbacks.o" op_stop ldar/ldapr casal casl ldsetl ldsetal ldar
expect "$tmp/callbacks_channel.o" ni_channel_stop ldar/ldapr casal casl ldsetl ldsetal ldar
# A call's cell: settled before it is written anew, a fence before its fields; the reader's fences come after
# the same fields.
expect "$tmp/callbacks_call.o" ni_cb_call_note ldar/ldapr dmb stlr stlr
expect "$tmp/callbacks_call.o" ni_call_seen stlr
expect "$tmp/callbacks_call.o" ni_user_group_stop stlr
expect "$tmp/call_drain.o" ni_calls_take ldar/ldapr ldar/ldapr dmb ldar/ldapr ldar/ldapr dmb ldar/ldapr
expect "$tmp/thread.o" thread_main stlr ldar
expect "$tmp/callbacks_channel.o" check_retired dmb ldar/ldapr
expect "$tmp/judge.o" ni_judge casal dmb # retire, inlined
expect "$tmp/judge.o" scan_one casal dmb
[ $failures = 0 ] || { echo "$failures functions are weaker than they must be"; exit 1; }
