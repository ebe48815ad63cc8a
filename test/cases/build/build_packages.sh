#!/usr/bin/env bash
# Packages from the build that is there: .deb, .rpm, wheel and SBOM have what they should, the same bytes twice, and what lintian,
# rpm, pip and SPDX's own library say of them. `make dist` itself, with programs for old systems and each package installed into a
# root of its own, is test/long/packages.sh.
. "$(dirname "$0")/../../lib/case.sh"
BUILD=${BUILD#"$PWD"/}
for f in nccl-inspector nccl-sim nccl-inspector-live; do need "$BUILD/$f"; done
command -v dpkg-deb >/dev/null && command -v python3 >/dev/null || skip "no dpkg-deb or python3"
seen=
export LC_ALL=C SOURCE_DATE_EPOCH=1790000000 MAINTAINER='NCCL Inspector <maintainers@example.com>'
version=$(sed -n 's/^NI_VERSION := //p' scripts/version.mk)
arch=$(uname -m)
mkdir -p "$TMP/built" "$TMP/out" "$TMP/private"
cp "$BUILD"/nccl-{inspector,sim,inspector-live} "$BUILD/libnccl-profiler-inspector.so" "$TMP/built/"
strip "$TMP"/built/*
[ "$(stat -c %s "$TMP/built/libnccl-profiler-inspector.so")" -lt 500000 ] || fail "the library has 500 kB or more"
for l in libsimdjson.so.14 libisal.so.2; do
  f=$(gcc -print-file-name=$l)
  [ "$f" = $l ] || cp "$f" "$TMP/private/"
done
# What make install puts, with the stripped programs.
env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make -s BUILD="$BUILD" MANIFEST=no PREFIX=/usr LIBDIR="/usr/lib/$arch-linux-gnu" \
  UNITDIR=/lib/systemd/system DESTDIR="$TMP/1/root" PRIVATE_LIBS="$(echo "$TMP"/private/*)" install >"$TMP/log" 2>&1 ||
  { cat "$TMP/log"; exit 1; }
cp "$TMP"/built/nccl-* "$TMP/1/root/usr/bin/"
cp "$TMP"/built/*.so "$TMP/1/root/usr/lib/$arch-linux-gnu/"
cp -a "$TMP/1" "$TMP/2"

for n in 1 2; do
  mkdir "$TMP/out/$n"
  packaging/deb.sh "$TMP/$n" "$version" "$arch" "$TMP/out/$n" || fail "deb.sh"
done
main=$(ls "$TMP"/out/1/nccl-inspector_"$version"-1_*.deb) live=$(ls "$TMP"/out/1/nccl-inspector-live_"$version"-1_*.deb)
dpkg-deb -c "$main" | awk '$1 ~ /^-/ {print $6}' | sort >"$TMP/list"
for f in ./usr/bin/nccl-inspector ./usr/bin/nccl-sim "./usr/lib/$arch-linux-gnu/libnccl-profiler-inspector.so" ./usr/share/nccl-inspector/demo.sh \
  ./usr/share/man/man7/nccl-inspector.7.gz ./usr/share/zsh/site-functions/_nccl-inspector; do
  grep -qxF "$f" "$TMP/list" || fail "the .deb has no $f"
done
dpkg-deb -c "$live" | grep ' ./lib/systemd/system/nccl-inspector-agent.service$' >/dev/null || fail "nccl-inspector-live has no unit"
both=$({ dpkg-deb -c "$main"; dpkg-deb -c "$live"; } | awk '$1 ~ /^-/ {print $6}' | sort | uniq -d)
[ -z "$both" ] || fail "both packages have $both"
if command -v lintian >/dev/null; then
  seen+=" lintian"
  # This build has its libraries from the system; the packages of make dist say what they need of it.
  lintian --allow-root --suppress-tags undeclared-elf-prerequisites "$main" "$live" >"$TMP/lintian" 2>&1 || true
  [ ! -s "$TMP/lintian" ] || { fail "lintian:"; cat "$TMP/lintian"; }
fi

# The wheel: pip takes it, Python finds the programs in it, and nothing stays.
tree=$TMP/tree
mkdir -p "$tree/lib" "$tree/share/doc/nccl-inspector/licences"
cp -a "$TMP/1/root/usr/." "$tree/"
mv "$tree/lib/$arch-linux-gnu/"* "$tree/lib/"
cp LICENSE "$tree/share/doc/nccl-inspector/licences/a"
for n in 1 2; do python3 packaging/wheel.py "$tree" python "$version" "$arch" "$TMP/out/$n" || fail "wheel.py"; done
wheel=$(ls "$TMP"/out/1/*.whl)
python3 -m venv "$TMP/venv" 2>"$TMP/log" || skip "no venv: $(tail -n 1 "$TMP/log")"
in_venv() { (cd "$TMP/venv" && find . ! -name '*.pyc' ! -name __pycache__ | sort); }
in_venv >"$TMP/before"
if "$TMP/venv/bin/pip" install -q --disable-pip-version-check --no-index --no-deps "$wheel" 2>"$TMP/log"; then
  [ "$("$TMP/venv/bin/nccl-inspector" --version)" = "$("$BUILD/nccl-inspector" --version)" ] || fail "nccl-inspector of the wheel"
  [ "$("$TMP/venv/bin/nccl-sim" --list-scenarios | wc -l)" = "$(ls test/scenarios/*.scn | wc -l)" ] || fail "the wheel's nccl-sim finds no scenarios"
  (cd "$TMP" && venv/bin/python -c 'import nccl_inspector as n, os; p = n.env("logs")["NCCL_PROFILER_PLUGIN"]; assert "/nccl_inspector/lib/" in p and os.path.isfile(p), p') ||
    fail "Python does not find the wheel's library"
  "$TMP/venv/bin/pip" uninstall -q -y nccl-inspector >"$TMP/log" 2>&1 || fail "pip uninstall"
  in_venv | diff "$TMP/before" - || fail "the wheel leaves something behind"
else
  fail "pip: $(tail -n 3 "$TMP/log")"
fi

if command -v rpmbuild >/dev/null; then
  seen+=" rpm"
  for n in 1 2; do
    mkdir -p "$TMP/$n/rpm-root"
    cp -a "$tree" "$TMP/$n/rpm-root/usr"
    packaging/rpm.sh "$TMP/$n" "$version" "$arch" "$TMP/out/$n" || fail "rpm.sh"
  done
  rpm=$(ls "$TMP"/out/1/*.rpm)
  rpm -qp --requires "$rpm" | grep -E 'simdjson|isal' && fail "the .rpm asks for its own libraries"
  rpm -qp --requires "$rpm" | grep -xF 'libz.so.1()(64bit)' >/dev/null || fail "the .rpm does not say that it needs zlib"
fi

for n in 1 2; do python3 packaging/sbom.py "$version" 0123456789abcdef "$TMP/out/$n" 2>"$TMP/log" || fail "sbom.py: $(tail -n 1 "$TMP/log")"; done
spdx=$BUILD/venv-spdx
[ -e "$spdx/.whole" ] || { rm -rf "$spdx" && python3 -m venv "$spdx" && "$spdx/bin/pip" install -q --disable-pip-version-check spdx-tools==0.8.5 &&
  touch "$spdx/.whole"; } >"$TMP/log" 2>&1 || true
if [ -e "$spdx/.whole" ]; then
  seen+=" spdx-tools"
  sbom=$(ls "$TMP"/out/1/*.spdx.json)
  "$spdx/bin/pyspdxtools" -i "$sbom" >"$TMP/log" 2>&1 || { fail "SPDX: $sbom"; head -n 20 "$TMP/log"; }
  sed 's/"relatedSpdxElement": "SPDXRef-nccl-inspector"/"relatedSpdxElement": "SPDXRef-nobody"/' "$sbom" >"$TMP/bad.spdx.json"
  ! "$spdx/bin/pyspdxtools" -i "$TMP/bad.spdx.json" >"$TMP/log" 2>&1 || fail "the SPDX library accepts anything"
fi
diff -r "$TMP/out/1" "$TMP/out/2" || fail "two packages of the same files differ"
finish "$(ls "$TMP/out/1" | wc -l) packages, twice the same; judged by: pip$seen"
