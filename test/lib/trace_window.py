#!/usr/bin/env python3
"""Is a part of a timeline that of the whole one, and the same bytes however the logs are known?
test/cases/trace/trace_index.sh.

  trace_window.py BIN TMP LOGS [--edge US] OPTION...

The part is drawn without an index, while one is made, and with it. In time it is compared with the timeline
of everything: what that has within the window must be there, and nothing that it has not. EDGE: clocks of the
two may differ by so much, for the part has its own sample of collectives.
"""
import gzip, json, os, re, shutil, subprocess, sys
from collections import Counter

BIN, TMP, LOGS, *OPTIONS = sys.argv[1:]
EDGE = 100.0
if OPTIONS and OPTIONS[0] == "--edge":
    EDGE, OPTIONS = float(OPTIONS[1]), OPTIONS[2:]
INDEX = os.path.join(TMP, "window.index")
OUT = os.path.join(TMP, "window.json.gz")


def draw(*options):
    if os.path.exists(OUT):
        os.remove(OUT)
    p = subprocess.run([BIN, "trace", "-o", OUT, *options, LOGS], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=200)
    data = open(OUT, "rb").read() if os.path.exists(OUT) else b""
    return p.returncode, p.stdout.decode(), p.stderr.decode(), data


def events(data):
    """What is drawn, but for metadata and arrows: Unix us of begin and end, and what it says."""
    d = json.loads(gzip.decompress(data))
    start = int(d["otherData"]["start_unix_ns"]) / 1000
    names = {e["pid"]: e["args"]["name"] for e in d["traceEvents"] if e["ph"] == "M" and
             e["name"] == "process_name"}
    for e in d["traceEvents"]:
        if e["ph"] in "Xi":
            args = {k: v for k, v in e.get("args", {}).items() if k != "from_enqueue_us"}
            yield start + e["ts"], start + e["ts"] + e.get("dur", 0), (names[e["pid"]], e["ph"], e["name"], e.get("cat"), json.dumps(args, sort_keys=True))


def main():
    shutil.rmtree(INDEX, ignore_errors=True)
    want = draw("--no-index", *OPTIONS)
    assert want[0] in (0, 2), want[:3]
    for how in ("while it is made", "with the index"):
        got = draw("--index-dir", INDEX, *OPTIONS)
        assert got == want, (how, got[:3], want[:3], got[3] == want[3])
        assert os.listdir(INDEX), "no index"
    name = os.path.join(INDEX, os.listdir(INDEX)[0])
    before = open(name, "rb").read()
    chosen = [o for o in OPTIONS if not re.match("--(since|until)", o)]
    times = {k: v for k, v in (re.match("--(since|until)=(.*)", o).groups() for o in OPTIONS
                               if re.match("--(since|until)=", o))}
    whole = draw("--no-index", *chosen)
    has = list(events(whole[3]))
    ops = [e for e in has if e[2][3] in ("coll", "p2p")]
    since, until = float("-inf"), float("inf")
    if "since" in times:
        since = float(times["since"]) * 1e6
    if "until" in times:
        until = float(times["until"]) * 1e6
    part = Counter(e[2] for e in events(want[3]))
    inner = Counter(e[2] for e in has if e[1] >= since + EDGE and e[0] <= until - EDGE)
    outer = Counter(e[2] for e in has if e[1] >= since - EDGE and e[0] <= until + EDGE)
    assert inner and ops, "nothing to compare"
    assert not inner - part, ("is missing", sum((inner - part).values()), list(inner - part)[:3])
    assert not part - outer, ("is too much", sum((part - outer).values()), list(part - outer)[:3])
    assert open(name, "rb").read() == before


main()
