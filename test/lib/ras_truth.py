#!/usr/bin/env python3
"""What RAS would answer of a job of the simulator that stands still: from the simulator's truth (who is who)
and the scenario's planted calls. The plugin is not asked.

    ras_truth.py TRUTH FUNC=N@COMM[:ranks=N,...] ... [dead=RANK]     the answer on standard output

FUNC=N@COMM: how often each rank of the communicator launched it; ranks of it after the colon have launched
another number.
dead: a rank of `world` whose process RAS has given up.
"""

import json
import sys

import ras

comms, hosts = {}, {}
for line in open(sys.argv[1], encoding="utf-8"):
    d = json.loads(line)
    if d["t"] == "proc":
        hosts[d["pid"]] = d["host"]
    if d["t"] == "comm":
        comms.setdefault(d["name"], {"hash": int(d["hash"], 16), "size": d["n_ranks"],
                                     "pid": {}})["pid"][d["rank"]] = d["pid"]
count = {name: {r: {} for r in c["pid"]} for name, c in comms.items()}
dead = None
for word in sys.argv[2:]:
    func, _, rest = word.partition("=")
    if func == "dead":
        dead = comms["world"]["pid"][int(rest)]
        continue
    rest, _, other = rest.partition(":")
    n, _, name = rest.partition("@")
    for r in count[name]:
        count[name][r][func] = int(n)
    for one in filter(None, other.split(",")):
        r, _, n = one.partition("=")
        count[name][int(r)][func] = int(n)
out = []
for name, c in comms.items():
    here = [ras.rank(r, count[name][r], host=hosts[p], pid=p) for r, p in sorted(c["pid"].items())
            if p != dead]
    gone = [ras.missing(r, host=hosts[p], pid=p, dead=True) for r, p in c["pid"].items() if p == dead]
    out.append(ras.comm(c["hash"], c["size"], here, gone))
sys.stdout.write(ras.answer(out))
