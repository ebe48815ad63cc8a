#!/usr/bin/env bash
# Packages from the build that is there: .deb, .rpm, wheel and SBOM have what they should, the same bytes
# twice, and what lintian, rpm, pip and SPDX's own library say of them. `make dist` itself, with programs for
# old systems and each package installed into a root of its own, is test/long/packages.sh.
. "$(dirname "$0")/../../lib/case.sh"
BUILD=${BUILD#"$PWD"/}
for f in nccl-inspector nccl-sim nccl-inspector-live; do need "$BUILD/$f"; done
command -v dpkg-deb >/dev/null && command -v python3 >/dev/null || skip "no dpkg-deb or python3"
seen=
export XZ_LEVEL=0 # 9 s of CPU less, for four packages that nobody installs
export LC_ALL=C SOURCE_DATE_EPOCH=1790000000 MAINTAINER='NCCL Inspector <maintainers@example.com>'
version=$(sed -n 's/^NI_VERSION := //p' scripts/version.mk)
arch=$(uname -m)
mkdir -p "$TMP/built" "$TMP/out" "$TMP/private"
cp "$BUILD"/nccl-{inspector,sim,inspector-live} "$BUILD/libnccl-profiler-inspector.so" "$TMP/built/"
strip "$TMP"/built/*
[ "$(stat -c %s "$TMP/built/libnccl-profiler-inspector.so")" -lt 500000 ] ||
  fail "the library has 500 kB or more"
for l in libsimdjson.so.14 libisal.so.2; do
  f=$(gcc -print-file-name=$l)
  [ "$f" = $l ] || cp "$f" "$TMP/private/"
done
# What make install puts, with the stripped programs.
env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make -s BUILD="$BUILD" MANIFEST=no PREFIX=/usr \
  LIBDIR="/usr/lib/$arch-linux-gnu" \
  UNITDIR=/lib/systemd/system DESTDIR="$TMP/1/root" PRIVATE_LIBS="$(echo "$TMP"/private/*)" install \
  >"$TMP/log" 2>&1 ||
  { cat "$TMP/log"; exit 1; }
cp "$TMP"/built/nccl-* "$TMP/1/root/usr/bin/"
cp "$TMP"/built/*.so "$TMP/1/root/usr/lib/$arch-linux-gnu/"
cp -a "$TMP/1" "$TMP/2"

for n in 1 2; do
  mkdir "$TMP/out/$n"
  packaging/deb.sh "$TMP/$n" "$version" "$arch" "$TMP/out/$n" || fail "deb.sh"
done
main=$(ls "$TMP"/out/1/nccl-inspector_"$version"-1_*.deb) \
  live=$(ls "$TMP"/out/1/nccl-inspector-live_"$version"-1_*.deb)
dpkg-deb -c "$main" | awk '$1 ~ /^-/ {print $6}' | sort >"$TMP/list"
for f in ./usr/bin/nccl-inspector ./usr/bin/nccl-sim \
  "./usr/lib/$arch-linux-gnu/libnccl-profiler-inspector.so" ./usr/share/nccl-inspector/demo.sh \
  ./usr/share/man/man7/nccl-inspector.7.gz ./usr/share/zsh/site-functions/_nccl-inspector; do
  grep -qxF "$f" "$TMP/list" || fail "the .deb has no $f"
done
dpkg-deb -c "$main" |
  grep "^l.* ./usr/lib/$arch-linux-gnu/librccl-profiler-inspector.so -> libnccl-profiler-inspector.so$" \
  >/dev/null ||
  fail "the .deb has no second name of the library"
dpkg-deb -c "$live" | grep ' ./lib/systemd/system/nccl-inspector-agent.service$' >/dev/null ||
  fail "nccl-inspector-live has no unit"
both=$({ dpkg-deb -c "$main"; dpkg-deb -c "$live"; } | awk '$1 ~ /^-/ {print $6}' | sort | uniq -d)
[ -z "$both" ] || fail "both packages have $both"
for p in "$main" "$live"; do dpkg-deb -x "$p" "$TMP/unpacked"; done
scripts/check_hardening.sh "$TMP"/unpacked/usr/bin/nccl-* \
  "$TMP/unpacked/usr/lib/$arch-linux-gnu/libnccl-profiler-inspector.so" >"$TMP/hardened" 2>&1 ||
  { fail "the packages' programs are not hardened"; cat "$TMP/hardened"; }
# What is in the pages comes with its licence: in the packages, and in each page.
doc=$TMP/unpacked/usr/share/doc/nccl-inspector page=$BUILD/report
if [ -s "$page/report_assets.tail" ]; then
  grep -q 'Redistributions in binary form must reproduce' "$doc/licences/zrender" ||
    fail "the packages have no BSD text of zrender"
  grep -q 'Copyright .* The Apache Software Foundation' "$doc/licences/echarts-NOTICE" ||
    fail "the packages have no NOTICE of Apache ECharts"
  grep -q 'Apache License' "$doc/licences/echarts" || fail "the packages have no licence of Apache ECharts"
  for said in 'Redistributions in binary form must reproduce' \
    'This product includes software developed at'; do
    grep -q "$said" "$page/report_assets.tail" || fail "the page itself does not say: $said"
  done
  grep -q 'This product includes software developed at' "$doc/copyright" ||
    fail "the .deb's copyright has no NOTICE of Apache ECharts"
fi
if command -v lintian >/dev/null; then
  seen+=" lintian"
  # This build has its libraries from the system; the packages of make dist say what they need of it.
  lintian --allow-root --suppress-tags undeclared-elf-prerequisites "$main" "$live" >"$TMP/lintian" \
    2>&1 || true
  [ ! -s "$TMP/lintian" ] || { fail "lintian:"; cat "$TMP/lintian"; }
fi

# The image: of a base that cannot change under its name, and not root's.
for line in 'ARG BASE=debian:12-slim@sha256:[0-9a-f]{64}' 'FROM \$\{BASE\}' 'USER [1-9][0-9]*:[1-9][0-9]*'; do
  grep -qxE "$line" packaging/Containerfile || fail "the Containerfile has no line $line"
done

# The wheel: pip takes it, Python finds the programs in it, and nothing stays.
tree=$TMP/tree
mkdir -p "$tree/lib" "$tree/share/doc/nccl-inspector/licences"
cp -a "$TMP/1/root/usr/." "$tree/"
mv "$tree/lib/$arch-linux-gnu/"* "$tree/lib/"
cp LICENSE "$tree/share/doc/nccl-inspector/licences/a"
for n in 1 2; do
  python3 packaging/wheel.py "$tree" python "$version" "$arch" "$TMP/out/$n" || fail "wheel.py"
done
wheel=$(ls "$TMP"/out/1/*.whl)
test/lib/venv.sh "$TMP/venv" 2>"$TMP/log" || skip "no venv: $(tail -n 1 "$TMP/log")"
in_venv() { (cd "$TMP/venv" && find . ! -name '*.pyc' ! -name __pycache__ | sort); }
in_venv >"$TMP/before"
if "$TMP/venv/bin/pip" install -q --disable-pip-version-check --no-index --no-deps "$wheel" 2>"$TMP/log"; then
  [ "$("$TMP/venv/bin/nccl-inspector" --version)" = "$("$BUILD/nccl-inspector" --version)" ] ||
    fail "nccl-inspector of the wheel"
  [ "$("$TMP/venv/bin/nccl-sim" --list-scenarios | wc -l)" = "$(ls test/scenarios/*.scn | wc -l)" ] ||
    fail "the wheel's nccl-sim finds no scenarios"
  (cd "$TMP" && venv/bin/python -c 'import nccl_inspector as n, os; p = n.env("logs")["NCCL_PROFILER_PLUGIN"]; assert "/nccl_inspector/lib/" in p and os.path.isfile(p), p') ||
    fail "Python does not find the wheel's library"
  cmp "$TMP"/venv/lib/python3*/site-packages/nccl_inspector/lib/lib{nccl,rccl}-profiler-inspector.so ||
    fail "the wheel has no second name of the library"
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
  rpm -qpl "$rpm" | grep '/librccl-profiler-inspector.so$' >/dev/null ||
    fail "the .rpm has no second name of the library"
  rpm -qp --requires "$rpm" | grep -E 'simdjson|isal' && fail "the .rpm asks for its own libraries"
  rpm -qp --requires "$rpm" | grep -xF 'libz.so.1()(64bit)' >/dev/null ||
    fail "the .rpm does not say that it needs zlib"
fi

for n in 1 2; do
  python3 packaging/sbom.py "$version" 0123456789abcdef "$TMP/out/$n" "$page" "$TMP"/built/* 2>"$TMP/log" ||
    fail "sbom.py: $(tail -n 1 "$TMP/log")"
done
# All that the binaries ask the loader for, all archives that are linked in, all that is to be in the pages:
# no less and no more.
python3 - "$(ls "$TMP"/out/1/*.spdx.json)" "$page/report_assets.tail" \
  exporter/output/report/package-lock.json "$TMP"/built/* <<'P' || fail "the SBOM is not what is in the files"
import json, os, re, subprocess, sys
sbom, page, lock, binaries = json.load(open(sys.argv[1])), sys.argv[2], json.load(open(sys.argv[3])), sys.argv[4:]
said = {p["packageFileName"] for p in sbom["packages"] if "packageFileName" in p}
needed = set()
for b in binaries:
    needed |= set(re.findall(r"\(NEEDED\).*\[(.*)\]",
                             subprocess.run(["readelf", "-dW", b], check=True, capture_output=True,
                                            text=True).stdout))
for library in ("libmicrohttpd", "libnghttp2", "libgnutls", "libcurl", "libncursesw", "libz", "libisal",
                "libsimdjson"):
    assert any(n.startswith(library) for n in needed), "this build is without " + library
archives = set(re.findall(r"-l:(lib[a-z0-9+]+\.a)",
                          open("Makefile").read() + open("packaging/portable.mk").read())) | {"libstdc++.a"}
assert said == needed | archives, "libraries: not named %s; not there %s" % (sorted((needed | archives) - said), sorted(said - needed - archives))
scripts = {(p["name"], p["versionInfo"]) for p in sbom["packages"] if p["SPDXID"].startswith("SPDXRef-npm-")}
locked = {(k.split("node_modules/")[1], v["version"]) for k, v in lock["packages"].items() if k and
          not v.get("dev") and not v.get("optional")}
if os.path.getsize(page):
    assert scripts == locked, "scripts: %s are in the SBOM, %s are to be installed" % (sorted(scripts), sorted(locked))
    text = open(page, errors="replace").read()
    assert all("%s %s (" % s in text for s in scripts), "the page names others than %s" % sorted(scripts)
assert all(p["licenseConcluded"] not in ("", "NOASSERTION")
           for p in sbom["packages"]), "a package without a licence"
P
spdx=$BUILD/venv-spdx
[ -e "$spdx/.whole" ] || { rm -rf "$spdx" && test/lib/venv.sh "$spdx" && "$spdx/bin/pip" install -q --disable-pip-version-check spdx-tools==0.8.5 &&
  touch "$spdx/.whole"; } >"$TMP/log" 2>&1 || true
if [ -e "$spdx/.whole" ]; then
  seen+=" spdx-tools"
  sbom=$(ls "$TMP"/out/1/*.spdx.json)
  "$spdx/bin/pyspdxtools" -i "$sbom" >"$TMP/log" 2>&1 || { fail "SPDX: $sbom"; head -n 20 "$TMP/log"; }
  sed 's/"relatedSpdxElement": "SPDXRef-nccl-inspector"/"relatedSpdxElement": "SPDXRef-nobody"/' "$sbom" \
    >"$TMP/bad.spdx.json"
  ! "$spdx/bin/pyspdxtools" -i "$TMP/bad.spdx.json" >"$TMP/log" 2>&1 ||
    fail "the SPDX library accepts anything"
fi
diff -r "$TMP/out/1" "$TMP/out/2" || fail "two packages of the same files differ"
finish "$(ls "$TMP/out/1" | wc -l) packages, twice the same; judged by: pip$seen"
