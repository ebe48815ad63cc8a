#!/usr/bin/env python3
"""counters_mangle.py KIND SEED IN OUT: a hostile copy of a series (series), of net_prof's JSON (json) or of
its text (text).

What is changed follows from the seed: lines or bytes lost, doubled, moved, cut; numbers replaced by huge,
negative, broken ones;
names by control characters, markup, formulas, names of 100,000 bytes; nesting; other hosts; claims of 2^32
counters.
"""
import gzip
import json
import random
import re
import sys

kind, seed, source, out = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
rnd = random.Random(seed)
opened = gzip.open(source, "rb") if source.endswith(".gz") else open(source, "rb")
data = opened.read()
NUMBERS = [b"-1", b"0", b"4294967296", b"18446744073709551615", b"18446744073709551616", b"9" * 400, b"1e308",
           b"1e999", b"NaN", b"-9223372036854775808",
           b"0.5", b"null", b"true", b'"7"', b"[]", b"{}", b"[" * 40 + b"]" * 40]
NAMES = [b'"\\u001b[31mred\\u0007"', b'"</script><b>x"', b'"=cmd|1"', b'"' + b"n" * 100000 + b'"', b'""',
         b'"../../x"', b'"a,b\\"c"', b'"\\ud800"', b"null", b"3"]


def swap(pattern, choices, text, most):
    places = list(re.finditer(pattern, text))
    for m in sorted(rnd.sample(places, min(len(places), rnd.randint(1, most))), key=lambda m: -m.start(1)):
        text = text[:m.start(1)] + rnd.choice(choices) + text[m.end(1):]
    return text


for _ in range(rnd.randint(1, 3)):
    what = rnd.randrange(8)
    lines = data.split(b"\n")
    if what == 0 and len(lines) > 2:
        del lines[rnd.randrange(len(lines))]
        data = b"\n".join(lines)
    elif what == 1 and len(lines) > 2:
        i = rnd.randrange(len(lines))
        lines[i:i] = [lines[i]] * rnd.choice([1, 50])
        data = b"\n".join(lines)
    elif what == 2 and len(lines) > 2:
        i, j = rnd.randrange(len(lines)), rnd.randrange(len(lines))
        lines[i], lines[j] = lines[j], lines[i]
        data = b"\n".join(lines)
    elif what == 3:
        data = swap(rb"[:\[,](-?\d+)[,\]}]", NUMBERS, data, 6)
    elif what == 4:
        data = swap(rb':("[^"\\]*")', NAMES, data, 4)
    elif what == 5:
        data = data[:rnd.randrange(len(data))]
    elif what == 6:
        i = rnd.randrange(len(data))
        data = data[:i] + bytes(rnd.randrange(256)
                                for _ in range(rnd.randint(1, 9))) + data[i + rnd.randint(0, 9):]
    else:
        data = swap(rb'"(?:n_counters|first|entity|n_entities|set_sn|sample_sn|since_sn|interval_ns|realtime_ns|monotonic_ns|id|interface|value|scale|width)":(\d+)',
                    NUMBERS, data, 5)
if out.endswith(".gz"):
    data = gzip.compress(data, 1)
    if rnd.randrange(6) == 0:
        data = data[:rnd.randrange(len(data))]
open(out, "wb").write(data)
