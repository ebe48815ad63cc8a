#!/usr/bin/env bash
# dist.sh OUT ARCH...: the packages of the last commit, in OUT, for x86_64 and aarch64. On a Debian 12 of x86_64 both are made.
#
# The same commit and the same Debian give the same bytes: all is built from an archive of the commit in a folder of its own,
# whose path no file holds; times are the commit's; lists are sorted. Between the steps lies one folder an architecture,
# OUT.work/ARCH: src (the sources and their build), root (what make install put there, with /usr as its prefix).
# Programs and library run on glibc 2.28 and newer (portable.mk); a program that asks for more fails this script.
# SOURCE_DATE_EPOCH, MAINTAINER ("Name <address>"): otherwise the commit's.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 2 ] || { echo "usage: $0 OUT ARCH..." >&2; exit 64; }
out=$1 archs=("${@:2}")
here=$PWD
umask 022
export LC_ALL=C TZ=UTC
commit=$(git rev-parse HEAD) || { echo "dist: packages are made from a commit, and this is no git checkout" >&2; exit 1; }
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export MAINTAINER=${MAINTAINER:-$(git log -1 --format='%an <%ae>')}
version=$(sed -n 's/^NI_VERSION := //p' scripts/version.mk)
name=nccl-inspector-$version
so=libnccl-profiler-inspector.so

# All that is needed is asked for before anything is built or removed, and told in one go.
missing=() # "WHAT PACKAGE"
want() { command -v "$1" >/dev/null || missing+=("$1 $2"); }
for tool in gcc:gcc g++:g++ make:make npm:npm dpkg-deb:dpkg rpmbuild:rpm python3:python3 readelf:binutils strip:binutils; do
  want "${tool%:*}" "${tool#*:}"
done
native=
for arch in "${archs[@]}"; do
  case $arch in x86_64 | aarch64) ;; *) echo "dist: $arch: want x86_64 or aarch64 (make dist DIST_ARCHS=\"x86_64 aarch64\")" >&2; exit 64 ;; esac
  triple=$arch-linux-gnu
  if [ "$arch" = "$(uname -m)" ]; then
    native=1
    continue
  fi
  for tool in gcc:gcc g++:g++ ar:binutils strip:binutils; do want "$triple-${tool%:*}" "${tool#*:}-${triple/_/-}"; done
  want apt-get apt
  [ -n "$native" ] || { echo "dist: $arch needs the programs of $(uname -m), which print its man pages: DIST_ARCHS=\"$(uname -m) $arch\"" >&2; exit 64; }
done
licensed="libsimdjson-dev:simdjson libisal-dev:isa-l libzstd-dev:zstd libsnappy-dev:snappy libsqlite3-dev:sqlite libdeflate-dev:libdeflate gcc-12-base:libstdc++"
for p in $licensed; do [ -e "/usr/share/doc/${p%:*}/copyright" ] || missing+=("/usr/share/doc/${p%:*}/copyright ${p%:*}"); done
if [ ${#missing[@]} != 0 ]; then
  printf 'dist: %s is missing\n' "${missing[@]% *}" >&2
  echo "dist: nothing was built. apt-get install $(printf '%s\n' "${missing[@]#* }" | sort -u | tr '\n' ' ')(or scripts/install-deps.sh long)" >&2
  # Of the other architecture alone: this machine's packages can be had without it.
  here=$(printf '%s\n' "${missing[@]% *}" | grep -v -e '-linux-gnu-' || true)
  if [ -z "$here" ]; then
    echo "dist: for $(uname -m) alone: make dist DIST_ARCHS=$(uname -m)" >&2
  fi
  exit 1
fi
rm -rf "$out" "$out.work"
mkdir -p "$out" "$out.work"
out=$(cd "$out" && pwd)
work=$out.work

step() { echo "== $*"; }
libraries_there() { # CONFIG.MK: a missing one would leave a part out of the packages
  ! grep ' :=$' "$1" >&2 || { echo "dist: that is missing here (scripts/install-deps.sh long)" >&2; exit 1; }
}
make -s BUILD="$work/asks" "$work/asks/config.mk"
libraries_there "$work/asks/config.mk"
packed() { # FOLDER NAME: a tar.gz of FOLDER/NAME
  tar -C "$1" --sort=name --owner=0 --group=0 --numeric-owner --format=gnu --mtime="@$SOURCE_DATE_EPOCH" -cf - "$2" | gzip -n9
}

# What programs of another machine are linked with: from Debian's archive, before minutes go into building.
sysroot_of() { echo "$here/${BUILD:-build}/sysroot-$1"; }
for arch in "${archs[@]}"; do
  [ "$arch" != "$(uname -m)" ] || continue
  step "$arch: libraries"
  scripts/sysroot.sh "$(sysroot_of "$arch")" zlib1g-dev zlib1g libdeflate-dev libsimdjson-dev libsimdjson14 libisal-dev libisal2 libzstd-dev \
    libsnappy-dev libsqlite3-dev libsqlite3-0 libmicrohttpd-dev libmicrohttpd12 libcurl4-gnutls-dev libcurl3-gnutls libncurses-dev libncursesw6 libtinfo6 \
    libnghttp2-dev libnghttp2-14 libgnutls28-dev libgnutls30 >"$work/sysroot.log" 2>&1 || { tail -n 5 "$work/sysroot.log" >&2; exit 1; }
done

step "source"
git archive --format=tar --prefix="$name/" "$commit" | gzip -n9 >"$out/$name.tar.gz"

# ---- programs and library of an architecture ----

newest() { # FILE SPACE: the newest version of GLIBC or GLIBCXX that it asks for
  readelf --dyn-syms -W "$1" | sed -n "s/.*@$2_\([0-9.]*\).*/\1/p" | sort -uV | tail -n 1
}
no_newer() { # FILE SPACE VERSION
  local v
  v=$(newest "$1" "$2")
  [ "$(printf '%s\n%s\n' "$v" "$3" | sort -V | tail -n 1)" = "$3" ] ||
    { echo "dist: $1 asks for $2_$v, newer than $3 (packaging/portable.c says what to do)" >&2; exit 1; }
}
build() { # ARCH
  local arch=$1 w=$work/$1 triple=$1-linux-gnu cross lib root log=$work/$1/make.log
  local flags=("-ffile-prefix-map=$w/src/$name=.")
  mkdir -p "$w/src"
  tar -C "$w/src" -xf "$out/$name.tar.gz"
  cross=()
  lib=
  if [ "$arch" != "$(uname -m)" ]; then
    root=$(sysroot_of "$arch")
    lib=$root/usr/lib/$triple
    flags+=("-ffile-prefix-map=$root=/")
    cross=(CC="$triple-gcc" CXX="$triple-g++" AR="$triple-ar" CPPFLAGS="-I$root/usr/include -I$root/usr/include/$triple"
      LDFLAGS="-L$lib -L$root/lib/$triple -Wl,--allow-shlib-undefined" ZLIB_A="$lib/libz.a" MADE="$work/$(uname -m)/src/$name/out")
  fi
  local made=(make -s -C "$w/src/$name" BUILD=out REPORT_DIR=../../../report PACKAGE=1 OPT=-O2 NI_GIT_REV="${commit:0:9}"
    CFLAGS="${flags[*]}" CXXFLAGS="${flags[*]}" "${cross[@]}")
  "${made[@]}" out/config.mk >"$log" 2>&1 || { tail -n 30 "$log" >&2; exit 1; }
  libraries_there "$w/src/$name/out/config.mk"
  "${made[@]}" -j"$(nproc)" all >"$log" 2>&1 || { tail -n 30 "$log" >&2; exit 1; }
  [ -s "$work/report/report_assets.tail" ] || { echo "dist: no page could be built: $(grep '^report.html' "$log")" >&2; exit 1; }
  [ "$arch" != "$(uname -m)" ] || "${made[@]}" out/settings_man
  scripts/check_symbols.sh "$w/src/$name/out/$so"
  "${cross[0]:+$triple-}strip" "$w/src/$name/out/$so" "$w/src/$name"/out/nccl-{inspector,sim,inspector-live}
  READELF="${cross[0]:+$triple-}readelf" OBJDUMP="${cross[0]:+$triple-}objdump" scripts/check_hardening.sh \
    "$w/src/$name/out/$so" "$w/src/$name"/out/nccl-{inspector,sim,inspector-live}
  local f
  for f in nccl-inspector nccl-sim nccl-inspector-live; do no_newer "$w/src/$name/out/$f" GLIBC 2.28; done
  for f in nccl-inspector nccl-sim; do no_newer "$w/src/$name/out/$f" GLIBCXX 3.4.25; done
  [ "$(stat -c %s "$w/src/$name/out/$so")" -lt 500000 ] || { echo "dist: $so has 500 kB or more" >&2; exit 1; }
  # Beside our programs: libraries that a system need not have, under the names by which they are asked for.
  mkdir "$w/private"
  for f in simdjson isal; do
    f=$(cd "${lib:-$(dirname "$(gcc -print-file-name=lib$f.so)")}" && readlink -f lib$f.so)
    install -m 644 "$f" "$w/private/$(readelf -d "$f" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')"
  done
  "${made[@]}" install MANIFEST=no PREFIX=/usr LIBDIR="/usr/lib/$triple" UNITDIR=/lib/systemd/system DESTDIR="$w/root" \
    PRIVATE_LIBS="$(echo "$w"/private/*)" >>"$log" 2>&1 || { tail -n 30 "$log" >&2; exit 1; }
  # Beside the licences of what is in the pages those of what is linked in or lies beside the programs.
  local p licences=$w/root/usr/share/doc/nccl-inspector/licences
  for p in $licensed; do
    install -m 644 "/usr/share/doc/${p%:*}/copyright" "$licences/${p#*:}"
  done
}

# What a package without nccl-inspector-live has: TO gets /usr of root, the library in LIB.
portable_tree() { # ARCH TO LIB
  mkdir -p "$2"
  cp -a "$work/$1/root/usr/." "$2/"
  rm "$2/bin/nccl-inspector-live"
  mkdir -p "$2/$3"
  mv "$2/lib/$1-linux-gnu/"* "$2/$3/"
  rmdir "$2/lib/$1-linux-gnu"
  sed -i "s|^libdir=.*|libdir=\${prefix}/$3|" "$2/$3/pkgconfig/nccl-inspector.pc"
}

for arch in "${archs[@]}"; do
  step "$arch: build"
  build "$arch"
  step "$arch: tarball"
  portable_tree "$arch" "$work/$arch/$name-$arch" lib
  sed -i 's|^prefix=.*|prefix=${pcfiledir}/../..|; s|^bindir=.*|bindir=${prefix}/bin|' "$work/$arch/$name-$arch/lib/pkgconfig/nccl-inspector.pc"
  packed "$work/$arch" "$name-$arch" >"$out/$name-$arch.tar.gz"
  step "$arch: deb"
  packaging/deb.sh "$work/$arch" "$version" "$arch" "$out"
  step "$arch: rpm"
  portable_tree "$arch" "$work/$arch/rpm-root/usr" lib64
  packaging/rpm.sh "$work/$arch" "$version" "$arch" "$out"
  step "$arch: wheel"
  python3 packaging/wheel.py "$work/$arch/$name-$arch" python "$version" "$arch" "$out"
done
step "Containerfile, SBOM, checksums"
sed "s/@VERSION@/$version/g" packaging/Containerfile >"$out/Containerfile"
python3 packaging/sbom.py "$version" "$commit" "$out" "$work/report" "$work"/*/src/"$name"/out/{nccl-inspector,nccl-sim,nccl-inspector-live,"$so"}
(cd "$out" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS)
rm -rf "$work"
(cd "$out" && du -h --apparent-size -- * | sed 's/^/   /')
