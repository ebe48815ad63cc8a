"""mark_logs.py LOGS OUT N TEXT [EVERY]: the logs of step_logs.py with N marks, evenly apart or so many ms, each seen by rank r about r * 100 us after rank 0."""
import json, pathlib, sys
logs, out, n, text = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
every = float(sys.argv[5]) if len(sys.argv) > 5 else None
out.mkdir()
begin, length = 1790000000 * 10**9, 1_100_000_000
for log in sorted(logs.iterdir()):
    lines = log.read_text().splitlines()
    head = json.loads(lines[-1])
    rank = int(log.name.split("pid")[1].split(".")[0]) - 4000
    for i in range(n):
        at = begin + int(every * 1e6 * i if every else length * i // n) + rank * 100_000 + 1
        lines.append(json.dumps({"header": {"id": "0x0", "rank": rank, "n_ranks": 8, "nnodes": 0}, "metadata": head["metadata"], "control": {
            "source": "file", "file": "nccl-inspector.control", "line": 1, "command": "mark x", "mark": text.replace("#", str(7 + i)),
            "result": "done", "why": None, "events": "coll,p2p,kernelch", "verbose": False, "sample": 1, "ns": at}}))
    (out / log.name).write_text("\n".join(lines) + "\n")
