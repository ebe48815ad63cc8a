#!/usr/bin/env bash
# A part of a timeline: as the whole one has it, and the same bytes without an index, while one is made, and
# with it. Logs of many granules, rotated, plain and gzip of one and of many members; clocks that are seconds
# and an hour apart; losses larger than the window; every kind of line; jobs of the simulator with network
# operations and calls.
. "$(dirname "$0")/../../lib/case.sh"
part() { # name options...
  python3 test/lib/trace_window.py "$BUILD/nccl-inspector" "$TMP" "$TMP/$1" "${@:2}" >"$TMP/out" 2>&1 || {
    fail "$*"
    tail -3 "$TMP/out"
  }
}
logs() { python3 test/lib/trace_logs.py "$TMP/$1" "$TMP/$1.truth" "${@:2}"; }
members() { # every second log as one member, the others as many of 100 lines
  python3 - "$TMP/$1" <<'P'
import gzip, os, sys
for i, name in enumerate(sorted(os.listdir(sys.argv[1]))):
    path = os.path.join(sys.argv[1], name)
    with open(path, "rb") as f:
        lines = f.read().splitlines(True)
    step = 100 if i % 3 else len(lines)
    with open(path.replace(".jsonl", ".jsonl.gz"), "wb") as f:
        for k in range(0, len(lines), step):
            f.write(gzip.compress(b"".join(lines[k:k + step]), 1, mtime=0))
    os.remove(path)
P
}
T=1790000

logs far --full --ops 1500 --gpu-drift 20
members far
part far --since=${T}050 --until=${T}052
part far --rank=1,4 --until=${T}003.5
part far --since=${T}118 --comm=tp
logs hour --ops 1500 --offset 0,3600,-0.004 --hosts 3 --per-host 1
members hour
part hour --since=${T}050 --until=${T}052
part hour --host=node-1,node-2 --since=$((${T}050 + 3600)) --until=$((${T}052 + 3600))

# One loss over half a minute and from one log into the next, told by one line and by a hundred.
logs lost --hosts 1 --per-host 2 --ops 2000 --offset 0 --drift 0
for f in "$TMP"/lost/*0.jsonl; do python3 test/lib/trace_lose.py "$f" 300 999 700; done
for f in "$TMP"/lost/*0.jsonl.10; do python3 test/lib/trace_lose.py "$f" 1000 1200 201; done
for f in "$TMP"/lost/*1.jsonl; do python3 test/lib/trace_lose.py "$f" 300 800 5; done
members lost
part lost --since=${T}030 --until=${T}030.5
part lost --since=${T}066 --until=${T}066.5
part lost --rank=1 --since=${T}040 --until=${T}040.2

# Network operations, steps, calls.
NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR=$TMP/sim NCCL_INSPECTOR_EVENTS=all \
  "$BUILD/nccl-sim" --plugin "$BUILD/libnccl-profiler-inspector.so" --job 2x2 --procs --iterations=60 \
  --quiet >/dev/null 2>&1
end=$("$BUILD/nccl-inspector" trace "$TMP/sim" -o - 2>/dev/null | python3 -c 'import json, sys
d = json.load(sys.stdin)
print(int(d["otherData"]["start_unix_ns"]) / 1e9 + max(e.get("ts", 0) for e in d["traceEvents"]) / 1e6)')
part sim --since="$(python3 -c "print('%.6f' % ($end - 0.05))")"
part sim --rank=3
finish
finish
