#!/usr/bin/env bash
# What make asks, says and installs: libraries are looked for once, help asks nothing, uninstall leaves nothing behind.
set -euo pipefail
cd "$(dirname "$0")/../../.."
BUILD=${BUILD:-build}
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
failures=0
fail() {
  echo "FAIL $*"
  failures=$((failures + 1))
}
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
grep -q '^HAVE_ZSTD := 1$' "$TMP/b/config.mk" || { echo "no libzstd-dev here, or it is not found"; exit 77; }
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

# Installed and removed again, man pages that somebody made included.
mkdir -p "$TMP/man"
echo '.TH NCCL-INSPECTOR 1' >"$TMP/man/nccl-inspector-check.1"
as_user() { mk BUILD="$BUILD" PREFIX=/opt/ni DESTDIR="$TMP/root" MANPAGES="$TMP/man/nccl-inspector-check.1" "$@"; }
as_user install >"$TMP/out" 2>&1 || fail "make install: $(tail -n 5 "$TMP/out")"
for f in bin/nccl-inspector bin/nccl-sim lib/libnccl-profiler-inspector.so share/man/man1/nccl-inspector-check.1; do
  [ -s "$TMP/root/opt/ni/$f" ] || fail "make install: no $f"
done
pc=$TMP/root/opt/ni/lib/pkgconfig/nccl-inspector.pc
[ "$(sed -n 's/^Version: //p' "$pc")" = "$(sed -n 's/^NI_VERSION := //p' scripts/version.mk)" ] || fail "the version in $(cat "$pc")"
grep -qx 'NCCL_PROFILER_PLUGIN=${libdir}/libnccl-profiler-inspector.so' "$pc" || fail "what NCCL is to load is not in $(cat "$pc")"
if command -v pkg-config >/dev/null; then
  said=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --variable=NCCL_PROFILER_PLUGIN nccl-inspector)
  [ "$said" = /opt/ni/lib/libnccl-profiler-inspector.so ] || fail "pkg-config says $said"
fi
as_user uninstall >/dev/null
[ -z "$(find "$TMP/root" -type f)" ] || fail "make uninstall leaves $(find "$TMP/root" -type f)"
[ $failures = 0 ] || exit 1
echo "make asks once, and uninstall removes what install brought"
