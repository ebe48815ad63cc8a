"""A copy of logs in which one host's clock was wrong: all Unix times of its files are moved; the others'
files are links.

  shift_clock.py FROM TO HOST SECONDS          from the beginning on
  shift_clock.py FROM TO HOST SECONDS AFTER    in the middle: AFTER seconds behind the first time in its files
"""
import os
import re
import sys
import zlib

source, target, host, seconds = sys.argv[1:5]
by_ns = round(float(seconds) * 1e9)
after = float(sys.argv[5]) if len(sys.argv) > 5 else None
NS = re.compile(rb'(?<![0-9a-zA-Z."])1[78]\d{17}(?!\d)')
US = re.compile(rb'(?<![0-9a-zA-Z."])1[78]\d{14}(?!\d)')


def text_of(path):
    with open(path, "rb") as f:
        data = f.read()
    text = b"" if data[:2] == b"\x1f\x8b" else data
    while data[:2] == b"\x1f\x8b":
        z = zlib.decompressobj(31)
        text += z.decompress(data)
        data = z.unused_data
    return text


def packed(text, like):
    if not like.endswith(".gz"):
        return text
    z = zlib.compressobj(1, zlib.DEFLATED, 31)
    return z.compress(text) + z.flush()


def is_of_host(text):
    head, name = text[:4096], host.encode()
    return b'"hostname":"%s"' % name in head or b'"hostname": "%s"' % name in head


os.makedirs(target)
texts = {}
for name in sorted(os.listdir(source)):
    path = os.path.join(source, name)
    if not os.path.isfile(path) or ".json" not in name or name == "truth.json":
        continue
    text = text_of(path)
    if is_of_host(text):
        texts[name] = text
    else:
        os.symlink(os.path.abspath(path), os.path.join(target, name))
if not texts:
    sys.exit("no log of %s in %s" % (host, source))
first = min(int(NS.search(t).group()) for t in texts.values())
since = -1 if after is None else first + int(after * 1e9)


def moved(ns):
    return ns + by_ns if ns >= since else ns


for name, text in texts.items():
    text = NS.sub(lambda m: b"%d" % moved(int(m.group())), text)
    text = US.sub(lambda m: b"%d" % (moved(int(m.group()) * 1000) // 1000), text)
    path = os.path.join(target, name)
    with open(path, "wb") as f:
        f.write(packed(text, name))
    at = os.stat(os.path.join(source, name))
    os.utime(path, ns=(at.st_atime_ns, at.st_mtime_ns))
