#!/usr/bin/env python3
"""sbom.py VERSION COMMIT OUT: OUT/nccl-inspector-VERSION.spdx.json, what is in the files of a release, as SPDX 2.3.

What is linked in or lies beside the programs comes from the Debian packages that this machine has; the charts of the pages from
package-lock.json.
"""
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import uuid

version, commit, out = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
name = "nccl-inspector-%s.spdx.json" % version
created = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
MAIN = "SPDXRef-nccl-inspector"
# Debian's package, its licence, how it goes along.
PARTS = [("libdeflate-dev", "MIT", "STATIC_LINK"), ("libzstd-dev", "BSD-3-Clause", "STATIC_LINK"),
         ("libsnappy-dev", "BSD-3-Clause", "STATIC_LINK"), ("libsimdjson-dev", "Apache-2.0", "DYNAMIC_LINK"),
         ("libisal-dev", "BSD-3-Clause", "DYNAMIC_LINK"), ("libstdc++-12-dev", "GPL-3.0-or-later WITH GCC-exception-3.1", "STATIC_LINK")]


def package(ref, called, release, licence, **more):
    p = {"SPDXID": ref, "name": called, "versionInfo": release, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
         "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION"}
    p.update(more)
    return p


def relation(a, kind, b):
    return {"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}


packages = [package(MAIN, "nccl-inspector", version, "Apache-2.0", sourceInfo="commit " + commit, primaryPackagePurpose="APPLICATION")]
relations = [relation("SPDXRef-DOCUMENT", "DESCRIBES", MAIN)]
for debian, licence, how in PARTS:
    release = subprocess.run(["dpkg-query", "-W", "-f=${Version}", debian], check=True, stdout=subprocess.PIPE).stdout.decode()
    ref = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", debian)
    locator = "pkg:deb/debian/%s@%s" % (debian.replace("+", "%2B"), release.replace("+", "%2B"))
    packages.append(package(ref, debian, release, licence, supplier="Organization: Debian", externalRefs=[
        {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}]))
    relations.append(relation(MAIN, how, ref))
lock = json.loads(pathlib.Path("exporter/output/report/package-lock.json").read_text())["packages"]
for path, entry in sorted(lock.items()):
    if path and not entry.get("dev") and not entry.get("optional"):
        called = path.split("node_modules/")[-1]
        ref = "SPDXRef-npm-" + re.sub(r"[^A-Za-z0-9.-]", "-", called)
        packages.append(package(ref, called, entry["version"], entry.get("license", "NOASSERTION"), externalRefs=[
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": "pkg:npm/%s@%s" % (called, entry["version"])}]))
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
