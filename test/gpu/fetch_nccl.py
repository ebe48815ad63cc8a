#!/usr/bin/env python3
"""Real libnccl.so.2, as NVIDIA ships it in wheels nvidia-nccl-cu13: fetches releases from PyPI and keeps
them.

  fetch_nccl.py RELEASE...      prints the path of each library, in this order

They lie in ${XDG_CACHE_HOME:-~/.cache}/nccl-inspector/wheels/RELEASE/nvidia/nccl/ (lib/libnccl.so.2 and
include/nccl.h; the rest of a wheel goes) and are never fetched again. A wheel (200 to 300 MB) is held against
the SHA-256 of PyPI's JSON before anything of it is used. Several at a time wait for each other. NI_PYPI:
another registry of that form (default https://pypi.org).
Exit status: 0 all are there, 77 no registry answers (said on stderr), 1 anything else, such as a wrong hash
or a full disk.
"""
import fcntl
import hashlib
import http.client
import json
import os
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile

PACKAGE = "nvidia-nccl-cu13"
KEPT = ("nvidia/nccl/lib/libnccl.so.2", "nvidia/nccl/include/nccl.h")
SECONDS = 60  # without an answer
PIECE = 1 << 20


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "nccl-inspector", "wheels")


def wheel_of(release):
    """Address, SHA-256 and bytes of the x86-64 wheel."""
    page = f"{os.environ.get('NI_PYPI', 'https://pypi.org')}/pypi/{PACKAGE}/json"
    with urllib.request.urlopen(page, timeout=SECONDS) as answer:
        files = json.load(answer)["releases"].get(release, [])
    for file in files:
        if file["filename"].endswith("x86_64.whl"):
            return urllib.parse.urljoin(page, file["url"]), file["digests"]["sha256"], file["size"]
    sys.exit(f"fetch_nccl: {page} has no wheel of release {release} for x86-64")


def download(url, into):
    """Copies what lies there into the open file; its SHA-256."""
    digest = hashlib.sha256()
    with urllib.request.urlopen(url, timeout=SECONDS) as answer:
        while piece := answer.read(PIECE):
            digest.update(piece)
            into.write(piece)
    into.flush()
    return digest.hexdigest()


def fetch(release, folder):
    """The folder appears whole or not at all."""
    url, expected, size = wheel_of(release)
    print(f"fetch_nccl: fetching {PACKAGE} {release} ({size >> 20} MB) for {folder}", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(folder), prefix="fetch.") as scratch:
        with tempfile.TemporaryFile(dir=scratch) as file:
            found = download(url, file)
            if found != expected:
                sys.exit(f"fetch_nccl: {url} has SHA-256 {found}, not {expected} as the registry says")
            with zipfile.ZipFile(file) as wheel:
                for name in KEPT:
                    wheel.extract(name, os.path.join(scratch, "kept"))
        os.rename(os.path.join(scratch, "kept"), folder)


def main():
    os.makedirs(cache(), exist_ok=True)
    with open(os.path.join(cache(), "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for release in sys.argv[1:]:
            folder = os.path.join(cache(), release)
            try:
                if not os.path.exists(folder):
                    fetch(release, folder)
            except urllib.error.HTTPError as error:
                print(f"fetch_nccl: {error.url}: {error}", file=sys.stderr)
                sys.exit(1 if error.code == 404 else 77)
            except (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
                print(f"fetch_nccl: no registry answers, NCCL {release} is not there: {error}",
                      file=sys.stderr)
                sys.exit(77)
            print(os.path.join(folder, KEPT[0]), flush=True)


main()
