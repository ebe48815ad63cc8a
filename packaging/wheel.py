#!/usr/bin/env python3
"""wheel.py TREE PYTHON VERSION ARCH OUT: the wheel of one platform, from the binary tarball's TREE and the package in PYTHON.

The package's folder is a prefix of its own in the wheel: nccl_inspector/bin, lib and share beside the modules, so that programs find
their libraries and scenarios there as after any installation. Written as a zip by hand: sorted, with SOURCE_DATE_EPOCH as the time.
"""
import base64
import hashlib
import os
import pathlib
import sys
import time
import zipfile

tree, python, version, arch, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5]
tag = "py3-none-manylinux_2_28_" + arch
info = "nccl_inspector-%s.dist-info" % version
when = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800))[:6]
files = {}


def take(name, path):
    files[name] = (path.read_bytes(), 0o755 if path.stat().st_mode & 0o100 else 0o644)


for p in sorted(python.glob("nccl_inspector/**/*")):
    if p.is_file() and "__pycache__" not in p.parts:
        take(p.relative_to(python).as_posix(), p)
for part in ("bin", "lib", "share/nccl-inspector"):
    for p in sorted((tree / part).rglob("*")):
        if p.is_file() and "pkgconfig" not in p.parts:
            take("nccl_inspector/" + p.relative_to(tree).as_posix(), p)
for p in sorted((tree / "share/doc/nccl-inspector/licences").iterdir()):
    take(info + "/licenses/" + p.name, p)
take(info + "/licenses/LICENSE", tree / "share/doc/nccl-inspector/LICENSE")
project = (python / "pyproject.toml").read_text()
assert 'version = "%s"' % version in project, "python/pyproject.toml has another version than scripts/version.mk"
metadata = ["Metadata-Version: 2.1", "Name: nccl-inspector", "Version: " + version]
metadata += ["Summary: Profiler plugin for NCCL, the commands around it, and Python for both", "License: Apache-2.0"]
metadata += ["Requires-Python: >=3.9", "Provides-Extra: arrow", "Requires-Dist: pyarrow; extra == 'arrow'"]
metadata += ["Description-Content-Type: text/markdown", "", (python / "README.md").read_text()]
wheel = "Wheel-Version: 1.0\nGenerator: nccl-inspector\nRoot-Is-Purelib: false\nTag: %s\n" % tag
files[info + "/METADATA"] = ("\n".join(metadata).encode(), 0o644)
files[info + "/WHEEL"] = (wheel.encode(), 0o644)
command = "#!python\nimport os, sys\nfrom nccl_inspector import __path__ as path\nprogram = os.path.join(path[0], 'bin', '%s')\n" \
          "os.execv(program, [program] + sys.argv[1:])\n"
for name in ("nccl-inspector", "nccl-sim"):
    files["nccl_inspector-%s.data/scripts/%s" % (version, name)] = ((command % name).encode(), 0o755)
record = ""
for name, (data, _) in sorted(files.items()):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record += "%s,sha256=%s,%d\n" % (name, digest, len(data))
files[info + "/RECORD"] = ((record + info + "/RECORD,,\n").encode(), 0o644)
with zipfile.ZipFile(os.path.join(out, "nccl_inspector-%s-%s.whl" % (version, tag)), "w", zipfile.ZIP_DEFLATED) as z:
    for name in sorted(files, key=lambda n: (n.startswith(info), n)):
        entry = zipfile.ZipInfo(name, when)
        entry.external_attr = (0o100000 | files[name][1]) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        z.writestr(entry, files[name][0], compresslevel=9)
