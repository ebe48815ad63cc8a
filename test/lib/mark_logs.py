"""The logs of step_logs.py with marks: mark_logs.py LOGS OUT N TEXT [EVERY]

N marks, evenly apart or so many ms, each seen by rank r about r * 100 us after rank 0.
"""
import json
import pathlib
import sys

import logs

folder, out, n, text = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
every = float(sys.argv[5]) if len(sys.argv) > 5 else None
out.mkdir()
LENGTH = 1_100_000_000
for log in sorted(folder.iterdir()):
    lines = log.read_text().splitlines()
    meta = json.loads(lines[-1])["metadata"]
    rank = int(log.name.split("pid")[1].split(".")[0]) - 4000
    for i in range(n):
        at = logs.T0 + int(every * 1e6 * i if every else LENGTH * i // n) + rank * 100_000 + 1
        said = logs.mark(text.replace("#", str(7 + i)), at, "mark x")
        lines.append(logs.text(logs.line(logs.own_header(rank, 8), meta, "control", said), spaced=True))
    logs.write(out / log.name, lines)
