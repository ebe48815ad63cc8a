#!/usr/bin/env bash
# What make asks and says: libraries are looked for once, help asks nothing.
. "$(dirname "$0")/../../lib/case.sh"
mk() { env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make BUILD="$TMP/b" "$@"; }

# The best of five: the machine may be busy.
python3 - "$TMP/b" <<'P' || fail "make help and make clean take more than 0.2 s of CPU"
import os, resource, subprocess, sys
env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
def cpu(goal):
    used = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    before = used()
    subprocess.run(["make", "BUILD=" + sys.argv[1], goal], env=env, check=True, stdout=subprocess.DEVNULL)
    return used() - before
for goal in ("help", "clean"):
    best = min(cpu(goal) for _ in range(5))
    print(f"make {goal}: {best:.2f} s of CPU")
    assert best < 0.2
P
[ ! -e "$TMP/b" ] || fail "make help and make clean make a build folder"

# A header that refuses stands for one that is not there.
mkdir "$TMP/none"
for h in zstd.h simdjson.h; do echo '#error not here' >"$TMP/none/$h"; done
mk "$TMP/b/config.mk" >"$TMP/out" 2>&1
! grep 'zstd\|snappy\|error' "$TMP/out" || fail "something is said to be missing"
grep -q '^HAVE_ZSTD := 1$' "$TMP/b/config.mk" || skip "no libzstd-dev here, or it is not found"
cp -p "$TMP/b/config.mk" "$TMP/asked"
mk -n plugin >/dev/null
[ ! "$TMP/b/config.mk" -nt "$TMP/asked" ] || fail "asked again, with the same compilers and flags"
mk -n plugin CPPFLAGS="-I$TMP/none" >"$TMP/out" 2>&1
[ "$(grep -c 'zstd.h is missing: .*libzstd-dev' "$TMP/out")" = 1 ] || fail "other flags: that zstd is missing is not told once"
grep -q '^HAVE_ZSTD :=$' "$TMP/b/config.mk" || fail "other flags: not asked again"
mk -n plugin CPPFLAGS="-I$TMP/none" 2>&1 | grep 'is missing' && fail "told twice"
mk -n V=1 plugin CPPFLAGS="-I$TMP/none" LIBDEFLATE= | grep -- '-l:libdeflate.a' >/dev/null && fail "LIBDEFLATE= on the command line is not heard"
rc=0
mk exporter CPPFLAGS="-I$TMP/none" >"$TMP/out" 2>&1 || rc=$?
{ [ $rc != 0 ] && grep -q '^simdjson is missing.*apt-get install libsimdjson-dev' "$TMP/out"; } || fail "without simdjson: exit code $rc, $(head -n 5 "$TMP/out")"

finish "make asks once"
