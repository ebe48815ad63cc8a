#!/usr/bin/env bash
# What a release is: `make dist` twice with the same bytes, for both architectures; each package into a root
# of its own that has nothing else, the demo from there, and out again without a trace. About ten minutes on
# two idle cores; as root, with a network.
#   DIST=folder   takes the packages there and does not make them again
#   ROOT_MIRROR   where mmdebstrap finds Debian
. "$(dirname "$0")/../lib/case.sh"
here=$PWD
[ "$(id -u)" = 0 ] && command -v mmdebstrap >/dev/null || skip "mmdebstrap, and to be root, are needed"
export LC_ALL=C

# ---- the same bytes twice: here, and from a clone at another place ----
if [ -z "${DIST:-}" ]; then
  make -s dist BUILD="$BUILD" >"$TMP/dist.log" 2>&1 || { tail -n 20 "$TMP/dist.log"; exit 1; }
  DIST=$BUILD/dist
  git clone -q . "$TMP/a-clone-at-another-place"
  make -s -C "$TMP/a-clone-at-another-place" dist >"$TMP/dist.log" 2>&1 ||
    { tail -n 20 "$TMP/dist.log"; exit 1; }
  diff "$DIST/SHA256SUMS" "$TMP/a-clone-at-another-place/build/dist/SHA256SUMS" ||
    fail "a second make dist makes other bytes"
  rm -rf "$TMP/a-clone-at-another-place"
fi
DIST=$(cd "$DIST" && pwd)
version=$(sed -n 's/^NI_VERSION := //p' scripts/version.mk)
name=nccl-inspector-$version
(cd "$DIST" && sha256sum --quiet -c SHA256SUMS) || fail "the checksums"
[ "$(wc -l <"$DIST/SHA256SUMS")" = $((3 + 5 * 2)) ] ||
  fail "not all packages of both architectures: $(ls "$DIST")"

# ---- roots ----
# ROOT COMMAND...: with /proc, /dev/shm and a network as on any machine, and an environment of its own
within() {
  local root=$1
  shift
  unshare --mount --pid --fork bash -c '
    root=$1; shift
    mount -t proc proc "$root/proc" && mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm" && mount -t tmpfs tmpfs "$root/run" || exit 77
    cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null
    exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"' _ "$root" "$@"
}
# All that is there, but for what installing anything at all leaves: logs, caches, apt's and dpkg's own lists.
listing() { # ROOT
  (cd "$1" && find . -xdev \( -path ./proc -o -path ./run -o -path ./tmp -o -path ./var/log -o -path ./var/cache -o -path './var/lib/apt' -o -path './var/lib/dpkg' \) -prune -o -print | sort)
}
demo() { # WHAT ROOT|- DEMO: the planted rank is named
  local said
  said=$(if [ "$2" = - ]; then bash "$3" "$TMP/demo-out"; else within "$2" bash "$3" /tmp/out; fi 2>&1) ||
    { fail "$1: demo"; tail -n 5 <<<"$said"; return; }
  grep '^  first   rank 11 on sim-node1 ' <<<"$said" >/dev/null ||
    { fail "$1: the demo does not name rank 11"; grep -A 5 '^nccl-inspector run' <<<"$said"; }
  grep '^nccl-inspector run: .*, COMPLETE$' <<<"$said" >/dev/null || fail "$1: the demo's log is not complete"
  echo "ok   $1: $(grep -m1 '^  first   ' <<<"$said")"
  if [ "$2" != - ]; then rm -rf "$2/tmp/out"; else rm -rf "$TMP/demo-out"; fi
}
mirror=${ROOT_MIRROR:-http://deb.debian.org/debian}
mmdebstrap --quiet --variant=apt bookworm "$TMP/empty" "$mirror" || skip "no root could be made from $mirror"
cp -a "$TMP/empty" "$TMP/deb"
cp -a "$TMP/empty" "$TMP/rpm"
cp -a "$TMP/empty" "$TMP/tar"
within "$TMP/empty" true || skip "nothing can be mounted here"

# ---- .deb: from the empty root to the first report ----
root=$TMP/deb
listing "$root" >"$TMP/before"
cp "$DIST"/*_amd64.deb "$root/tmp/"
began=$(date +%s.%N)
within "$root" apt-get -qq update >"$TMP/log" 2>&1 || fail "apt-get update"
within "$root" sh -c 'apt-get -qq install -y --no-install-recommends /tmp/nccl-inspector_*.deb' >"$TMP/log" \
  2>&1 || { fail "apt-get install"; tail -n 5 "$TMP/log"; }
demo ".deb" "$root" /usr/share/nccl-inspector/demo.sh
took=$(awk -v a="$began" -v b="$(date +%s.%N)" 'BEGIN {printf "%.0f", b - a}')
echo "     from the empty root to the first report: $took s"
[ "$took" -lt 120 ] || fail "from the empty root to the first report: $took s, and 120 are allowed"
said=$(within "$root" env NCCL_PROFILER_PLUGIN=inspector NCCL_INSPECTOR_ENABLE=1 nccl-inspector doctor --no-sim 2>&1 || true)
grep '^ok *plugin *.*/libnccl-profiler-inspector.so loads' <<<"$said" >/dev/null ||
  { fail "doctor: NCCL_PROFILER_PLUGIN=inspector"; echo "$said"; }
said=$(within "$root" nccl-inspector top --once 2>&1 || true)
grep 'nccl-inspector-live' <<<"$said" >/dev/null || fail "without nccl-inspector-live: $said"
within "$root" sh -c 'apt-get -qq install -y --no-install-recommends /tmp/nccl-inspector-live_*.deb' \
  >"$TMP/log" 2>&1 || { fail "nccl-inspector-live"; tail -n 5 "$TMP/log"; }
said=$(within "$root" nccl-inspector top --once 2>&1 || true)
grep 'no job with the plugin runs here' <<<"$said" >/dev/null || fail "top --once: $said"
# The agent's unit as it was installed, where nobody has made settings.
# shellcheck disable=SC2016
within "$root" sh -c '$(sed -n "s/^ExecStart=//p" /lib/systemd/system/nccl-inspector-agent.service) 2>/tmp/agent.err &
  for i in $(seq 100); do grep -q " serves " /tmp/agent.err && break; sleep 0.2; done
  kill -TERM $! && wait $!' || { fail "the agent's unit does not run as it is"; cat "$root/tmp/agent.err"; }
grep ' serves ' "$root/tmp/agent.err" >/dev/null ||
  { fail "the agent's unit: it does not serve"; cat "$root/tmp/agent.err"; }
rm -rf "$root/tmp/agent.err" "$root/var/lib/nccl-inspector"
within "$root" sh -c 'ldd /usr/bin/nccl-*' | grep 'not found' && fail "a library is missing"
within "$root" sh -c 'apt-get -qq purge -y --autoremove nccl-inspector nccl-inspector-live' >"$TMP/log" \
  2>&1 || { fail "apt-get purge"; tail -n 5 "$TMP/log"; }
rm -f "$root"/tmp/*.deb
listing "$root" >"$TMP/after"
diff "$TMP/before" "$TMP/after" || fail ".deb: left after purge"
command -v lintian >/dev/null && { lintian --allow-root "$DIST"/*.deb >"$TMP/log" 2>&1 || true; [ ! -s "$TMP/log" ] || { fail "lintian"; cat "$TMP/log"; }; }

# ---- .rpm: without its dependencies into such a root; what it asks for is there ----
root=$TMP/rpm
listing "$root" >"$TMP/before"
rpm=$(ls "$DIST"/*.x86_64.rpm)
within_rpm() {
  rpm --root "$root" --dbpath /tmp/rpmdb --define '_install_script_path /bin:/usr/bin:/sbin:/usr/sbin' "$@"
}
within_rpm --nodeps -i "$rpm" >"$TMP/log" 2>&1 || { fail "rpm -i"; cat "$TMP/log"; }
find "$root/lib" "$root/usr/lib" -name '*.so*' -type f -exec chmod +x {} + -print |
  /usr/lib/rpm/elfdeps --provides | sort -u >"$TMP/provided"
rpm -qp --requires "$rpm" | grep '\.so' | grep -v '^rtld' |
  while read -r need; do grep -xF "$need" "$TMP/provided" >/dev/null || echo "$need"; done >"$TMP/missing"
[ ! -s "$TMP/missing" ] || fail "the .rpm asks for what is not there: $(cat "$TMP/missing")"
demo ".rpm" "$root" /usr/share/nccl-inspector/demo.sh
within_rpm --nodeps -e nccl-inspector >"$TMP/log" 2>&1 || { fail "rpm -e"; cat "$TMP/log"; }
listing "$root" >"$TMP/after"
diff "$TMP/before" "$TMP/after" || fail ".rpm: left after rpm -e"

# ---- the tarball, anywhere ----
root=$TMP/tar
mkdir "$root/opt/x"
tar -C "$root/opt/x" -xf "$DIST/$name-x86_64.tar.gz"
demo "tarball" "$root" "/opt/x/$name-x86_64/share/nccl-inspector/demo.sh"

# ---- the wheel, in a fresh venv ----
test/lib/venv.sh "$TMP/venv"
in_venv() { (cd "$TMP/venv" && find . ! -name '*.pyc' ! -name __pycache__ | sort); }
in_venv >"$TMP/before"
"$TMP/venv/bin/pip" install -q --no-index --no-deps "$DIST"/*_x86_64.whl || fail "pip install"
demo "wheel" - "$(echo "$TMP"/venv/lib/python3*/site-packages/nccl_inspector/share/nccl-inspector/demo.sh)"
"$TMP/venv/bin/pip" uninstall -q -y nccl-inspector || fail "pip uninstall"
in_venv | diff "$TMP/before" - || fail "wheel: left after pip uninstall"
if "$TMP/venv/bin/pip" install -q --disable-pip-version-check auditwheel spdx-tools >"$TMP/log" 2>&1; then
  for w in "$DIST"/*_x86_64.whl; do
    "$TMP/venv/bin/auditwheel" show "$w" 2>&1 | tr '\n' ' ' |
      grep 'consistent with the following platform tag: "manylinux_2_28_' >/dev/null || fail "auditwheel: $w"
  done
  "$TMP/venv/bin/pyspdxtools" -i "$DIST/$name.spdx.json" || fail "SBOM"
fi

# ---- the source tarball builds where there is no git, and knows its revision ----
tar -C "$TMP" -xf "$DIST/$name.tar.gz"
revision=$(cd "$TMP/$name" && env -u GIT_DIR GIT_CEILING_DIRECTORIES="$TMP" make -s -f - revision <<<'include scripts/version.mk
revision: ; @echo $(NI_GIT_REV)')
[ "$revision" = "$(git rev-parse HEAD | cut -c1-9)" ] ||
  [ -n "${DIST_OLD:-}" ] || fail "the source tarball says revision $revision"

# ---- aarch64, emulated ----
if command -v qemu-aarch64 >/dev/null && [ -d /usr/aarch64-linux-gnu/lib ]; then
  tar -C "$TMP" -xf "$DIST/$name-aarch64.tar.gz"
  arm=$TMP/$name-aarch64
  scripts/sysroot.sh "$TMP/sysroot" zlib1g libstdc++6 libgcc-s1 >"$TMP/log" 2>&1 ||
    fail "arm64's zlib and libstdc++: $(tail -n 1 "$TMP/log")"
  emulated() { env NCCL_PROFILER_PLUGIN="$arm/lib/libnccl-profiler-inspector.so" NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR="$TMP/arm-logs" \
    qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$TMP/sysroot/usr/lib/aarch64-linux-gnu:$TMP/sysroot/lib/aarch64-linux-gnu" "$@"; }
  emulated "$arm/bin/nccl-sim" --job 1x2 --iterations 2 --truth "$TMP/truth" --quiet >"$TMP/log" 2>&1 ||
    { fail "aarch64: nccl-sim"; tail -n 5 "$TMP/log"; }
  emulated "$arm/bin/nccl-inspector" check "$TMP/arm-logs" >"$TMP/log" 2>&1 ||
    { fail "aarch64: check"; tail -n 5 "$TMP/log"; }
  tail -n 1 "$TMP/log" | grep '^COMPLETE' >/dev/null || fail "aarch64: $(tail -n 1 "$TMP/log")"
  emulated "$arm/bin/nccl-sim" --verify "$TMP/truth" "$TMP/arm-logs" >"$TMP/log" 2>&1 ||
    { fail "aarch64: verify"; tail -n 5 "$TMP/log"; }
  echo "ok   aarch64 under emulation: $(tail -n 1 "$TMP/log")"
  for w in "$DIST"/*_arm64.deb; do dpkg-deb -f "$w" Architecture | grep -x arm64 >/dev/null || fail "$w"; done
else
  fail "qemu-aarch64 or libc6-dev-arm64-cross is missing: the library of aarch64 was not loaded"
fi
cd "$here"
finish "all packages came, ran and went"
