#!/usr/bin/env python3
"""Answers of RAS with a planted state, and what `hang --ras` must say of each: sound ones, and hostile ones.

    ras_cases.py INSPECTOR FOLDER sound|hostile       each case once as text and once as JSON

A case: its answers (one look or two), the exit status, patterns that the text holds and, behind "!", must not
hold.
"""

import gzip
import json
import os
import re
import subprocess
import sys
import time

import ras

A, B = 0xA1, 0xB2


def ranks(counts, **who):
    """One a rank: AllReduce, and three AllGathers before it."""
    return [ras.rank(i, {"AllReduce": n, "AllGather": 3}, **who) for i, n in enumerate(counts)]


def one(counts, at=0, gone=(), code=A, **who):
    return ras.answer([ras.comm(code, len(counts) + len(gone), ranks(counts, **who), gone)], at)


def pair(counts, apart, **more):
    return [one(counts, 0, **more), one(counts, apart, **more)]


def tensor(at):
    """Rank 3 owes tp1 (2, 3) a call; both are behind in the world because of it. Global ranks have a pid
    each."""
    def r(place, n, who):
        return ras.rank(place, {"AllReduce": n}, pid=1000 + who)
    world = ras.comm(A, 4, [r(0, 9, 0), r(1, 9, 1), r(2, 8, 2), r(3, 8, 3)])
    return ras.answer([world, ras.comm(B, 2, [r(0, 5, 0), r(1, 5, 1)]),
                       ras.comm(0xC3, 2, [r(0, 5, 2), r(1, 4, 3)])], at)


def shrunk(at, n):
    old = ras.comm(A, 4, ranks([7, 7, 7]), [ras.missing(3, dead=True)])
    return ras.answer([old, ras.comm(B, 3, ranks([n, n, n]))], at)


def elsewhere(at, n):
    return ras.answer([ras.comm(A, 3, ranks([7, 7, 6])),
                       ras.comm(B, 1, [ras.rank(0, {"AllReduce": n}, pid=1002)])], at)


def garbage():
    """As NCCL has shown them: no size, a rank beyond it, the same rank twice, other numbers than it says."""
    bad = [ras.comm(0x1, 0, ranks([1])), ras.comm(0x2, 1, ranks([1, 1])), ras.comm(0x3, 2, ranks([1]) * 2),
           ras.comm(0x4, 4, ranks([1, 1]), ranks_count=77), ras.comm(0x5, 2147483647, ranks([1, 1])),
           ras.comm(0x6, 8, []), ras.comm(0x7, -5, ranks([1, 2]))]
    return bad


def sound():
    behind = r"rank 2 \(10.0.0.1, pid 1002\) is behind: AllReduce 9, the others 10"
    state = ras.comm(A, 3, [ras.rank(0, {}, error=6), ras.rank(1, {}, abort=True), ras.rank(2, {}, init=7)])
    other = [ras.answer([ras.comm(A, 3, [ras.rank(0, {"AllReduce": 5}), ras.rank(1, {"AllReduce": 5}),
                                         ras.rank(2, {"AllReduce": 4, "Broadcast": 1})])], t)
                                         for t in (0, 400)]
    yield "one look", [one([10, 10, 9, 10])], 2, ["^CANNOT TELL", behind, "one look"]
    yield "one look, equal", [one([10, 10,
                                   10])], 2, ["^CANNOT TELL: all that have answered .* 3 processes in 1 comm"]
    yield "two looks, before the limit", pair([10, 10, 9, 10],
                                              15), 0, [r"^not yet a hang \(a hang from 300 s on\)", behind]
    yield "two looks, at the limit", pair([10, 10, 9, 10],
                                          300), 3, [r"^HANG \(likely\)", behind, "for 300 s", "launched, not"]
    yield "the later one first", pair([10, 10, 9, 10], 400)[::-1], 3, [r"^HANG \(likely\)", "for 400 s"]
    yield "most lag (NCCL issue 1911)", pair([5, 5] + [4] * 30,
                                             400), 3, [r"30 ranks \(2-31\) on 10.0.0.1 are behind"]
    yield "all hang alike (NCCL issue 1730)", pair([10, 10, 10],
                                                   1800), 2, ["^CANNOT TELL", "look alike to RAS", "!no hang"]
    yield "running", [one([10, 10, 9]), one([12, 11, 11], 10)], 0, ["^no hang: all of 3 processes"]
    yield "some run", [one([10, 10, 9]),
                       one([12, 10, 9], 400)], 2, ["^CANNOT TELL", "1 of 3 processes", "!HANG"]
    yield "dead, one look", [one([4, 4], gone=[ras.missing(2, dead=True)])], 2, [r"rank 2 \(10.0.0.1, pid 1002\) is dead"]
    yield "dead, 15 s", pair([4, 4], 15,
                             gone=[ras.missing(2, dead=True)]), 2, ["^CANNOT TELL", "is dead", "for 15 s"]
    yield "dead, 400 s", pair([4, 4], 400,
                              gone=[ras.missing(2, dead=True)]), 3, [r"^HANG \(likely\)", "is dead"]
    yield "unresponsive", pair([4, 4], 400,
                               gone=[ras.missing(2, unresponsive=True)]), 3, ["does not answer RAS", "!dead"]
    yield "no member any more", pair([4, 4], 400,
                                     gone=[ras.missing(2)]), 2, ["has no such communicator", "!HANG"]
    yield "survivors of a shrink", [shrunk(0, 1), shrunk(400, 9)], 2, ["^CANNOT TELL", "is dead", "!HANG"]
    yield "it works elsewhere", [elsewhere(0, 1),
                                 elsewhere(400, 9)], 2, ["!HANG", "not all of its processes stand still"]
    yield "a consequence", [tensor(0), tensor(400)], 3, [r"^HANG \(likely\): communicator 0xc3 \(2 ranks\): rank 1 \(10.0.0.1, pid 1003\)",
                                                        "because of another"]
    yield "another function", other, 3, ["rank 2 .* has launched others: Broadcast 1, the others 0; AllReduce 4, the others 5"]
    yield "states", [ras.answer([state])], 2, [r"rank 0 .* reports an error \(ncclResult_t 6\)",
                                               "rank 1 .* aborts", "rank 2 .* in its init"]
    yield "nobody knows the processes", pair([4, 3], 400, host="unknown", pid=-1), 3, ["rank 1 is behind"]
    yield "garbage beside a sound one (NCCL issue 1762)", [ras.answer(garbage() + [ras.comm(A, 4, ranks([10, 10, 9, 10]))])], 2, \
        [behind, "7 communicators make no sense", "0x1: a size that no", "0x2: a rank beyond its size",
         "0x3: the same rank twice"]
    yield "garbage alone", [ras.answer(garbage())], 2, ["none of 7 communicators that RAS knows makes sense"]
    yield "no communicator", [ras.answer([])], 2, ["RAS knows of no communicator"]


def replaced(old, new, counts=(10, 10, 9, 10)):
    text = one(list(counts))
    assert old in text
    return text.replace(old, new, 1)


def hostile():
    whole = one([10, 10, 9, 10])
    for share in range(1, 12):
        yield "cut at %d of 12" % share, [whole[: len(whole) * share // 12]], 1, ["no JSON: it is cut"]
    yield "empty", [""], 1, ["it is empty"]
    yield "plain text", ["NCCL version 2.31.2 compiled with CUDA 13.0\n"], 1, ["ncclras -f json"]
    yield "two answers", [whole + whole], 1, ["no JSON"]
    yield "something else", ['{"schema": 1}'], 1, ['it has no "communicators"']
    yield "a list", ["[1]"], 1, ["no JSON: want what"]
    yield "communicators of another type", ['{"communicators": {"0": 1}}'], 1, ["is no list"]
    yield "a communicator that is none", ['{"communicators": [7]}'], 1, [r"communicators\[0\] is no object"]
    yield "deep", ['{"communicators": [' + "[" * 100000 + "]" * 100000 + "]}"], 1, ["nested too deep|no JSON"]
    yield "deep in a rank", [replaced('"pid": 1001', '"pid": ' + "[" * 40 + "]" * 40)], 1, ["nested too deep"]
    yield "a byte 0", [whole.replace("10.0.0.1", "10.0\0.1", 1)], 1, ["a byte 0 at"]
    odd = ["1 communicator makes no sense"]
    yield "a number of 400 digits", [replaced('"AllReduce": 9', '"AllReduce": ' + "9" * 400)], 2, odd
    yield "a number below 0", [replaced('"AllReduce": 9', '"AllReduce": -9')], 2, odd
    yield "2^64 - 1", [replaced('"AllReduce": 9', '"AllReduce": 18446744073709551615')], 2, odd
    yield "the largest counts", [one([2**63 - 1, 2**63 - 2])], 2, ["AllReduce 9,223,372,036,854,775,806"]
    yield "a rank as text", [replaced('"rank": 2', '"rank": "2"')], 2, odd
    yield "a size as text", [replaced('"size": 4', '"size": "4"')], 2, odd
    yield "ranks as text", [replaced('"ranks": [', '"ranks": "", "x": [')], 2, odd
    yield "a status that is a number", [replaced('"status": {', '"status": 5, "x": {')], 2, odd
    yield "a flag that is a number", [replaced('"abort_flag": false', '"abort_flag": 3')], 2, odd
    yield "a hash that is none", [replaced('"0xa1"', '"0xa1 x"')], 2, odd
    yield "time that is none", [replaced("0.004", "nan")], 2, ["is behind"]
    yield "a thousand functions", [replaced('"AllReduce": 10', ", ".join('"F%d": 1' % i for i in range(1000)))], 2, ["CANNOT TELL"]
    # NCCL 2.28.7 and 2.28.9 leave out the comma behind nvml_dev of each missing rank.
    gone = re.sub(r'("nvml_dev": \d+),(\s*"status": {\s*"unresponsive")', r"\1\2",
                  one([10, 10], gone=[ras.missing(2, dead=True), ras.missing(3)]))
    yield "no comma in missing ranks", [gone], 2, [r"rank 2 \(.*\) is dead", "rank 3 ", "mended"]
    yield "quotes in a host", [replaced("10.0.0.1",
                                        'a"b"c')], 2, ["is behind", "its text was no JSON and was mended"]
    yield "a backslash in a host", [replaced("10.0.0.1", "a\\qb")], 2, ["is behind", "mended"]
    yield "control text", [one([10, 9], host="\x1b[31mred\x07",
                               pid=4)], 2, [r"rank 1 \(\?\[31mred\?, pid 4\)"]
    yield "control text, escaped", [one([10, 9], host="\\u001b[31mred\\u202e",
                                        pid=4)], 2, [r"rank 1 \(\?\[31mred\?, pid 4\)"]
    yield "a long host", [one([10, 9], host="h" * 100000, pid=4)], 2, [r"rank 1 \(h{47}, pid 4\)"]
    yield "no UTF-8", [one([10, 9], host="\udcff\udcfe", pid=4)], 2, [r"rank 1 \(\?\?, pid 4\)"]
    yield "100,000 ranks", [one([10] * 50000 +
                                [9] * 50000)], 2, [r"50,000 ranks \(50000-99999\) on 10.0.0.1 are behind"]
    yield "20,000 communicators", [ras.answer([ras.comm(i + 1, 2, ranks([2, 1]))
                                               for i in range(20000)])], 2, ["and 19,999 more communicators"]
    yield "a gzip file", [gzip.compress(whole.encode())], 2, ["is behind"]
    yield "128 MiB of blanks", [gzip.compress(b"{" + b" " * (129 << 20), 1)], 1, ["more than 128 MiB"]
    yield "three", [whole] * 3, 64, ["want one HOST:PORT, or one or two files"]


def run(inspector, folder, files, more=()):
    """(exit status, text, seconds)"""
    begun = time.monotonic()
    p = subprocess.run([inspector, "hang", *("--ras=" + f for f in files), "--box-dir", folder, *more],
                       stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, timeout=120, check=False)
    return p.returncode, p.stdout.decode("utf-8", "surrogateescape"), time.monotonic() - begun


def wrong(inspector, folder, case):
    """What is wrong with it, as text."""
    _, answers, code, patterns = case
    files = []
    for i, a in enumerate(answers):
        files.append(os.path.join(folder, "answer%d.json" % i))
        with open(files[-1], "wb") as f:
            f.write(a if isinstance(a, bytes) else a.encode("utf-8", "surrogateescape"))
    rc, text, seconds = run(inspector, folder, files)
    bad = []
    if rc != code:
        bad.append("exit status %d, not %d" % (rc, code))
    for p in patterns:
        if bool(re.search(p.lstrip("!"), text, re.M)) == p.startswith("!"):
            bad.append("text: %s" % p)
    if len(text) > 8192 or seconds > 20 or re.search("[\0-\x09\x0b-\x1f\x7f]", text):
        bad.append("%d bytes in %.1f s, or control characters" % (len(text), seconds))
    rc, text, _ = run(inspector, folder, files, ["--json"])
    if code in (0, 2, 3):
        doc = json.loads(text)
        if rc != code or doc["answer"] != doc["ras"]["answer"] or doc["sentence"] != doc["ras"]["sentence"]:
            bad.append("JSON: exit status %d, %s" % (rc, doc["answer"]))
        if len(text) > 64 << 20:
            bad.append("%d bytes of JSON" % len(text))
    elif rc != code:
        bad.append("--json: exit status %d" % rc)
    return "; ".join(bad) + "\n" + text[:600] if bad else ""


def main():
    inspector, folder, which = sys.argv[1:]
    n = failed = 0
    for case in {"sound": sound, "hostile": hostile}[which]():
        bad = wrong(inspector, folder, case)
        n += 1
        failed += bool(bad)
        if bad:
            print("FAIL %s: %s" % (case[0], bad))
    print("%d answers of RAS (%s), %d wrong" % (n, which, failed))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
