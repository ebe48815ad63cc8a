#!/usr/bin/env bash
# deb.sh WORK VERSION ARCH OUT: nccl-inspector and nccl-inspector-live as .deb from WORK/root, which make install made. Called by
# dist.sh, which sets SOURCE_DATE_EPOCH and MAINTAINER.
#
# nccl-inspector takes only what every Debian and Ubuntu since glibc 2.28 has; nccl-inspector-live what its libraries take.
set -euo pipefail
work=$1 version=$2-1 out=$4
case $3 in x86_64) arch=amd64 ;; aarch64) arch=arm64 ;; *) exit 64 ;; esac
triple=$3-linux-gnu
main=$work/deb/nccl-inspector live=$work/deb/nccl-inspector-live
mkdir -p "$main" "$live"/usr/{bin,share/doc,share/man/man1}
cp -a "$work/root/." "$main/"
mv "$main/usr/bin/nccl-inspector-live" "$live/usr/bin/"
mv "$main/lib" "$live/lib"
for c in agent top head; do mv "$main/usr/share/man/man1/nccl-inspector-$c.1" "$live/usr/share/man/man1/"; done
printf '.so man1/nccl-inspector-agent.1\n' >"$live/usr/share/man/man1/nccl-inspector-live.1"

chmod 644 "$main/usr/lib/$triple/"*.so
doc=$main/usr/share/doc/nccl-inspector
{
  cat <<EOF
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: nccl-inspector

Files: *
Copyright: the authors of NCCL Inspector
License: Apache-2.0
 On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.

Files: usr/lib/nccl-inspector/libsimdjson.so.*
Copyright: 2018-2023 The simdjson authors
License: Apache-2.0

Files: usr/lib/nccl-inspector/libisal.so.*
Copyright: 2011-2022 Intel Corporation
License: BSD-3-clause

Comment: Linked into the programs and the library are libdeflate (MIT, Eric Biggers), zstd (BSD-3-clause, Facebook), snappy
 (BSD-3-clause, Google), SQLite (in the public domain) and parts of libstdc++ (GPL-3 with the runtime library exception). In nccl-inspector, and so in the pages that
 it writes, is what follows. The texts of all are in /usr/share/doc/nccl-inspector/licences.
EOF
  if [ -e "$doc/licences/zrender" ]; then
    cat <<EOF

Files: usr/bin/nccl-inspector
Copyright: 2017-2026 The Apache Software Foundation (Apache ECharts), 2017 Baidu Inc. (zrender), Microsoft Corporation (tslib)
License: Apache-2.0 and BSD-3-clause and 0BSD
Comment:
$(sed 's/^ *$/./; s/^/ /' "$doc/licences/echarts-NOTICE")

License: 0BSD
$(sed 's/^ *$/./; s/^/ /' "$doc/licences/tslib")
EOF
  fi
  printf '\nLicense: BSD-3-clause\n'
  sed -n '/Redistribution and use/,/POSSIBILITY OF SUCH/p' /usr/share/doc/libisal-dev/copyright | awk '/Redistribution and use/ && n++ {exit} {print}' |
    sed 's/^ *//; s/^$/./; s/^/ /'
} >"$doc/copyright"
rm "$doc/LICENSE"
gzip -n9 <"$doc/CHANGELOG.md" >"$doc/changelog.gz"
rm "$doc/CHANGELOG.md"
printf 'nccl-inspector (%s) stable; urgency=low\n\n  * See changelog.gz.\n\n -- %s  %s\n' "$version" "$MAINTAINER" \
  "$(date -Rud "@$SOURCE_DATE_EPOCH")" | gzip -n9 >"$doc/changelog.Debian.gz"
ln -s nccl-inspector "$live/usr/share/doc/nccl-inspector-live"
gzip -n9 "$main"/usr/share/man/man?/* "$live"/usr/share/man/man1/*

# NCCL opens the library by its plain name, so it has no version, and lies where the loader looks. Nothing links it.
overrides() { # FOLDER PACKAGE LINE...
  mkdir -p "$1/usr/share/lintian/overrides"
  printf '%s\n' "${@:3}" >"$1/usr/share/lintian/overrides/$2"
}
overrides "$main" nccl-inspector \
  '# NCCL opens the library by this plain name; nothing links it.' \
  "nccl-inspector: shared-library-lacks-version usr/lib/$triple/libnccl-profiler-inspector.so libnccl-profiler-inspector.so" \
  "nccl-inspector: package-name-doesnt-match-sonames libnccl-profiler-inspector" \
  '# As Debian has it.' \
  "nccl-inspector: specific-address-in-shared-library [usr/lib/nccl-inspector/libisal.so.2]" \
  '# It is no package of the archive.' \
  "nccl-inspector: initial-upload-closes-no-bugs *"

package() { # FOLDER NAME DEPENDS DESCRIPTION...
  local root=$1 name=$2 depends=$3
  mkdir -p "$root/DEBIAN"
  {
    printf '%s: %s\n' Package "$name" Source nccl-inspector Version "$version" Architecture "$arch" Maintainer "$MAINTAINER" \
      Installed-Size "$(du -k --apparent-size -s "$root" | cut -f1)" Depends "$depends" Section utils Priority optional
    [ "$name" = nccl-inspector ] && printf '%s: %s\n' Recommends gnuplot-nox Suggests nccl-inspector-live
    printf 'Description: %s\n' "$4"
    printf ' %s\n' "${@:5}"
  } >"$root/DEBIAN/control"
  [ "$name" != nccl-inspector ] || echo 'activate-noawait ldconfig' >"$root/DEBIAN/triggers"
  (cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\n' | sort | xargs -d '\n' md5sum) >"$root/DEBIAN/md5sums"
  find "$root" -depth -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
  dpkg-deb --root-owner-group -Zxz -z"${XZ_LEVEL:-6}" --build "$root" "$out" >/dev/null
}
package "$main" nccl-inspector "libc6 (>= 2.28), libgcc-s1 (>= 3.4) | libgcc1, libstdc++6 (>= 8), zlib1g (>= 1:1.2.11)" \
  "profiler plugin for NCCL, and the commands around it" \
  "The plugin records every collective, send and receive of NCCL in a training" \
  "job: what, how large, how long on the GPU. Jobs load it with" \
  "NCCL_PROFILER_PLUGIN=inspector. The commands say whether its logs are" \
  "complete, where the time went, and which rank is missing from a job that" \
  "hangs. With nccl-sim all of it can be tried without a GPU."
package "$live" nccl-inspector-live "nccl-inspector (= $version), libc6 (>= 2.28), libcurl3-gnutls (>= 7.66), libgcc-s1 (>= 3.4), libgnutls30 (>= 3.7.5), libmicrohttpd12 (>= 0.9.50), libncursesw6 (>= 6), libnghttp2-14 (>= 1.20), libstdc++6 (>= 11), libtinfo6 (>= 6), zlib1g (>= 1:1.2.11)" \
  "agent, top, head and sessions of NCCL Inspector" \
  "The agent of a node follows its jobs and serves metrics to Prometheus and" \
  "OTLP; top shows what every rank does now; the head gathers what the agents" \
  "of a cluster say into sessions. A systemd unit for the agent is here; it is" \
  "started by nobody but you."
