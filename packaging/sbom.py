#!/usr/bin/env python3
"""sbom.py VERSION COMMIT OUT REPORT_DIR BINARY...: OUT/nccl-inspector-VERSION.spdx.json, what is in the files of a release, as SPDX 2.3.

What the binaries are linked with is read from them: each library that they need, of whose Debian package this machine has, is a package
whose packageFileName is that name. Archives that are linked in are named here. What is in the pages comes from REPORT_DIR/bundled.json, as the
bundler saw it. A library or a package whose licence is not known here stops it.
"""
import datetime
import hashlib
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import uuid

version, commit, out, report, binaries = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4]), sys.argv[5:]
name = "nccl-inspector-%s.spdx.json" % version
created = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
MAIN = "SPDXRef-nccl-inspector"
GCC = "GPL-3.0-or-later WITH GCC-exception-3.1"
# Archives that packages link in (Makefile, packaging/portable.mk): the file, Debian's package, its licence.
ARCHIVES = [("libdeflate.a", "libdeflate-dev", "MIT"), ("libzstd.a", "libzstd-dev", "BSD-3-Clause"),
            ("libsnappy.a", "libsnappy-dev", "BSD-3-Clause"), ("libsqlite3.a", "libsqlite3-dev", "blessing"),
            ("libstdc++.a", "libstdc++-12-dev", GCC)]
# Licences of libraries, by their names before ".so".
LICENCES = {"libc": "LGPL-2.1-or-later", "libm": "LGPL-2.1-or-later", "libpthread": "LGPL-2.1-or-later", "libdl": "LGPL-2.1-or-later",
            "ld-linux-x86-64": "LGPL-2.1-or-later", "ld-linux-aarch64": "LGPL-2.1-or-later", "libgcc_s": GCC, "libstdc++": GCC, "libz": "Zlib",
            "libsimdjson": "Apache-2.0", "libisal": "BSD-3-Clause", "libzstd": "BSD-3-Clause", "libsnappy": "BSD-3-Clause",
            "libmicrohttpd": "LGPL-2.1-or-later", "libcurl-gnutls": "curl", "libcurl": "curl", "libnghttp2": "MIT", "libgnutls": "LGPL-2.1-or-later",
            "libncursesw": "X11-distribute-modifications-variant", "libtinfo": "X11-distribute-modifications-variant"}


def said_by(*words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout.decode()


def needed(paths):
    """The libraries that these ask the loader for, by name."""
    found = set()
    for path in paths:
        found |= set(re.findall(r"\(NEEDED\).*\[(.*)\]", said_by("readelf", "-dW", path)))
    return sorted(found)


def package_of(library):
    """Debian's package that brings it. Of another machine's library it is that of this one."""
    library = "libc.so.6" if library.startswith("ld-linux") else library
    owners = said_by("dpkg-query", "-S", "*/%s-linux-gnu/%s" % (platform.machine(), library)).splitlines()
    return sorted(o.split(":")[0] for o in owners)[0]


def package(ref, called, release, licence, **more):
    p = {"SPDXID": ref, "name": called, "versionInfo": release, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
         "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION"}
    p.update(more)
    return p


def relation(a, kind, b):
    return {"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}


packages = [package(MAIN, "nccl-inspector", version, "Apache-2.0", sourceInfo="commit " + commit, primaryPackagePurpose="APPLICATION")]
relations = [relation("SPDXRef-DOCUMENT", "DESCRIBES", MAIN)]
linked = [(file, debian, licence, "STATIC_LINK") for file, debian, licence in ARCHIVES]
for library in needed(binaries):
    stem = library.split(".so")[0]
    if stem not in LICENCES:
        sys.exit("sbom: the binaries need %s, whose licence packaging/sbom.py does not know: name it in LICENCES" % library)
    linked.append((library, package_of(library), LICENCES[stem], "DYNAMIC_LINK"))
for file, debian, licence, how in linked:
    release = said_by("dpkg-query", "-W", "-f=${Version}\\n", debian).splitlines()[0]
    ref = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", file)
    locator = "pkg:deb/debian/%s@%s" % (debian.replace("+", "%2B"), release.replace("+", "%2B"))
    packages.append(package(ref, debian, release, licence, packageFileName=file, supplier="Organization: Debian", externalRefs=[
        {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}]))
    relations.append(relation(MAIN, how, ref))
for p in json.loads((report / "bundled.json").read_text()) if (report / "bundled.json").exists() else []:
    ref = "SPDXRef-npm-" + re.sub(r"[^A-Za-z0-9.-]", "-", p["name"])
    packages.append(package(ref, p["name"], p["version"], p["license"], externalRefs=[
        {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": "pkg:npm/%s@%s" % (p["name"], p["version"])}]))
    relations.append(relation(MAIN, "CONTAINS", ref))
files = []
for i, path in enumerate(sorted(p for p in out.iterdir() if p.is_file() and p.name not in (name, "SHA256SUMS"))):
    data = path.read_bytes()
    ref = "SPDXRef-File-%d" % i
    files.append({"SPDXID": ref, "fileName": "./" + path.name, "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION",
                  "checksums": [{"algorithm": a, "checksumValue": hashlib.new(a.lower(), data).hexdigest()} for a in ("SHA1", "SHA256")]})
    relations.append(relation(ref, "GENERATED_FROM", MAIN))
document = {
    "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "nccl-inspector-" + version,
    "documentNamespace": "https://spdx.org/spdxdocs/nccl-inspector-%s-%s" % (version, uuid.uuid5(uuid.NAMESPACE_URL, commit)),
    "creationInfo": {"created": created, "creators": ["Tool: nccl-inspector-packaging", "Organization: NCCL Inspector"]},
    "packages": packages, "files": files, "relationships": relations}
(out / name).write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
