#!/usr/bin/env bash
# rpm.sh WORK VERSION ARCH OUT: nccl-inspector as .rpm from WORK/rpm-root. Called by dist.sh, which sets SOURCE_DATE_EPOCH.
# Without nccl-inspector-live: its libraries have other names on these systems.
set -euo pipefail
work=$1 version=$2 arch=$3 out=$4
top=$work/rpm
mkdir -p "$top"
mv "$work/rpm-root/usr/share/doc/nccl-inspector/licences" "$work/rpm-root/usr/share/doc/nccl-inspector/licences-of-others"
cat >"$top/nccl-inspector.spec" <<EOF
Name: nccl-inspector
Version: $version
Release: 1
Summary: Profiler plugin for NCCL, and the commands around it
License: Apache-2.0 AND BSD-3-Clause AND MIT
Requires(post): glibc
# Libraries of its own in /usr/lib/nccl-inspector, for nobody else.
%global __requires_exclude ^lib(simdjson|isal)\\\\.so
%global __provides_exclude ^lib(simdjson|isal)\\\\.so
%description
The plugin records every collective, send and receive of NCCL in a training job: what, how large, how long on the GPU. Jobs load
it with NCCL_PROFILER_PLUGIN=inspector. The commands say whether its logs are complete, where the time went, and which rank is
missing from a job that hangs. With nccl-sim all of it can be tried without a GPU.
agent, top, head and sessions are not in this package.
%install
mkdir -p %{buildroot}
cp -a $work/rpm-root/. %{buildroot}/
%post -p /sbin/ldconfig
%postun -p /sbin/ldconfig
%files
%defattr(-,root,root,-)
EOF
(cd "$work/rpm-root" && find . ! -type d -printf '/%P\n' | sort) | sed 's|\(/man/man./.*\)|\1*|' >>"$top/nccl-inspector.spec"
# Folders that are ours alone, or that a system without these shells has not, so that they go with the package.
(cd "$work/rpm-root" && find . -type d \( -path '*/nccl-inspector*' -o -path '*/share/zsh*' -o -path '*/share/fish*' -o -name pkgconfig \) -printf '%%dir /%P\n' | sort) >>"$top/nccl-inspector.spec"
rpmbuild -bb --quiet --target "$arch-linux" --define "_topdir $top" --define "_rpmdir $out" --define '_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' \
  --define "_buildhost reproducible" --define 'use_source_date_epoch_as_buildtime 1' --define 'clamp_mtime_to_source_date_epoch 1' \
  --define '_binary_payload w9.gzdio' --define '__os_install_post %{nil}' --define 'debug_package %{nil}' --define '_build_id_links none' \
  --define "_dbpath $top/db" "$top/nccl-inspector.spec" >"$top/log" 2>&1 || { tail -n 20 "$top/log" >&2; exit 1; }
