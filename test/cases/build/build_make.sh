#!/usr/bin/env bash
# What make asks and says: libraries are looked for once, help asks nothing; make dist asks for its compilers
# first.
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
[ "$(grep -c 'zstd.h is missing: .*libzstd-dev' "$TMP/out")" = 1 ] ||
  fail "other flags: that zstd is missing is not told once"
grep -q '^HAVE_ZSTD :=$' "$TMP/b/config.mk" || fail "other flags: not asked again"
mk -n plugin CPPFLAGS="-I$TMP/none" 2>&1 | grep 'is missing' && fail "told twice"
mk -n V=1 plugin CPPFLAGS="-I$TMP/none" LIBDEFLATE= | grep -- '-l:libdeflate.a' >/dev/null &&
  fail "LIBDEFLATE= on the command line is not heard"
# What goes to a machine without libraries links all that its sources were compiled for.
mk -n V=1 gpu-portable PORTABLE_BUILD="$TMP/portable" >"$TMP/out" 2>&1 ||
  fail "make gpu-portable: $(tail -n 3 "$TMP/out")"
grep -E -- " -o $TMP/portable/nccl-inspector " "$TMP/out" >"$TMP/link" ||
  fail "make gpu-portable links no nccl-inspector"
! grep -q '^HAVE_SQLITE.* 1$' "$TMP/portable/config.mk" || grep -q sqlite3 "$TMP/link" ||
  fail "make gpu-portable links without SQLite: $(cat "$TMP/link")"
rc=0
mk exporter CPPFLAGS="-I$TMP/none" >"$TMP/out" 2>&1 || rc=$?
{ [ $rc != 0 ] && grep -q '^simdjson is missing.*apt-get install libsimdjson-dev' "$TMP/out"; } ||
  fail "without simdjson: exit code $rc, $(head -n 5 "$TMP/out")"

# make dist without the other architecture's compilers: it ends at once, names all packages, and removes
# nothing.
other=aarch64
[ "$(uname -m)" = x86_64 ] || other=x86_64
mkdir "$TMP/tools" "$TMP/dist"
for folder in /usr/local/bin /usr/bin /bin; do cp -rs $folder/. "$TMP/tools/" 2>/dev/null || true; done
rm -f "$TMP/tools/$other-linux-gnu-"*
echo kept >"$TMP/dist/former"
rc=0
PATH=$TMP/tools timeout 60 packaging/dist.sh "$TMP/dist" "$(uname -m)" $other >"$TMP/out" 2>&1 || rc=$?
names=${other/_/-}-linux-gnu
[ $rc = 1 ] || { fail "make dist without compilers for $other: exit code $rc"; cat "$TMP/out"; }
for tool in gcc g++ ar strip; do
  grep -qx "dist: $other-linux-gnu-$tool is missing" "$TMP/out" ||
    { fail "make dist: $tool is not named"; cat "$TMP/out"; }
done
grep -q "^dist: nothing was built\. apt-get install .*binutils-$names .*g++-$names gcc-$names " "$TMP/out" ||
  { fail "make dist: the packages are not named"; cat "$TMP/out"; }
! grep -q '^== ' "$TMP/out" || fail "make dist: something was built before it asked"
[ "$(cat "$TMP/dist/former")" = kept ] || fail "make dist: the former packages are gone"
[ "$(grep -c ' is missing$' "$TMP/out")" != 4 ] ||
  grep -qx "dist: for $(uname -m) alone: make dist DIST_ARCHS=$(uname -m)" "$TMP/out" ||
  fail "make dist: what can be had is not told"
rc=0
packaging/dist.sh "$TMP/dist" $other >"$TMP/out" 2>&1 || rc=$?
{ [ $rc = 64 ] && grep -q "DIST_ARCHS=\"$(uname -m) $other\"" "$TMP/out"; } ||
  fail "make dist of $other alone: exit code $rc, $(cat "$TMP/out")"

finish "make asks once"
