#!/usr/bin/env bash
# sysroot.sh FOLDER PACKAGE...: these packages for arm64, from Debian's or Ubuntu's own archive, unpacked in
# FOLDER. What is installed is not touched: apt-get with state folders of its own needs no root. Does nothing
# when FOLDER has them already.
set -eu
[ $# -gt 1 ] || { echo "usage: $0 FOLDER PACKAGE..." >&2; exit 64; }
mkdir -p "$1"
root=$(cd "$1" && pwd)
shift
[ "$(cat "$root/complete" 2>/dev/null)" != "$*" ] || exit 0
[ -e "$root/complete" ] || [ -d "$root/apt" ] || [ -z "$(ls -A "$root")" ] ||
  { echo "$root holds something else" >&2; exit 1; }
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
  { echo "no apt-get and dpkg-deb here" >&2; exit 1; }
state=$root/apt
rm -rf "${root:?}"/* && mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
apt="apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::lists=$state/lists
  -o Dir::State::status=/dev/null -o Dir::Cache=$state/cache -o APT::Sandbox::User= -o Acquire::Languages=none"
cd "$root"
# shellcheck disable=SC2086
$apt update && $apt download "$@"
for deb in *.deb; do
  dpkg-deb -x "$deb" "$root"
  dpkg-deb -f "$deb" Package Version | tr '\n' ' ' |
    sed 's/Package: \([^ ]*\) Version: \([^ ]*\).*/\1 \2\n/' >>versions
done
rm -rf "$state" "$root"/*.deb
# Links of -dev packages lead to /lib/..., as it is on a machine.
find "$root" -type l -lname '/*' | while IFS= read -r l; do ln -sf "$root$(readlink "$l")" "$l"; done
echo "$*" >complete
