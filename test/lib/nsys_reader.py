"""A second opinion of exports of Nsight Systems, by SQL joins alone: what `import nsys` must have made of
them.

    nsys_reader.py LOGS EXPORT...    compares count, function, bytes, start, duration and launch of each operation, to the ns

Knows calls by themselves, groups of one call and PyTorch's nccl:all_to_all; kernels of larger groups and of
graphs have the function of their name and no size.
"""
import collections
import re
import sqlite3
import struct
import sys

import kineto_reader

SQL = """SELECT k.start, k.end, s.value, r.start, r.globalTid FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.shortName
  LEFT JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId {pid} WHERE s.value GLOB 'nccl*Kernel*'"""
RANGES = """SELECT coalesce(n.text, s.value), n.start, n.end, n.globalTid, n.jsonText {data} FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId
  WHERE n.eventType = 59 AND coalesce(n.text, s.value) GLOB 'nccl[A-Z:]*'"""


def of_export(path):
    db = sqlite3.connect(path)
    has = {t: {c[1] for c in db.execute(f"PRAGMA table_info({t})")}
           for t in ("CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS", "TARGET_INFO_SESSION_START_TIME")}
    base = db.execute("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME").fetchone()[0] if has["TARGET_INFO_SESSION_START_TIME"] else 1577836800 * 10**9
    blob = "binaryData" in has["NVTX_EVENTS"]
    ranges = collections.defaultdict(list)
    for text, start, end, tid, js, *data in db.execute(RANGES.format(data=", n.binaryData" if blob else "")):
        size = None
        if data and data[0]:
            size = struct.unpack_from("<Q", data[0], 32 + 8)[0]
        elif js:
            m = re.search(r'"Message size \[bytes\]": (\d+)', js)
            size = int(m.group(1)) if m else None
        ranges[tid].append((start, end, text[4:], size))
    pid = "AND (r.globalTid >> 24) = (k.globalPid >> 24)" if "globalPid" in has["CUPTI_ACTIVITY_KIND_KERNEL"] else ""
    out, launched = [], collections.Counter()
    rows = db.execute(SQL.format(pid=pid)).fetchall()
    for start, end, name, launch, tid in rows:
        launched[(tid, launch)] += 1
    for start, end, name, launch, tid in rows:
        func = re.match(r"nccl(?:Sym)?k?(?:Dev)?Kernel_(\w+?)(?:_|$)|nccl(\w+?)(?:Ring|Tree|Kernel)", name)
        func = func.group(1) or func.group(2)
        size, around = 0, [r for r in ranges[tid] if launch is not None and r[0] <= launch <= r[1]]
        if around:
            call = max(around)
            if call[2] == "GroupEnd":
                begin = max(r[0] for r in ranges[tid] if r[2] == "GroupStart" and r[0] < call[0])
                calls = [r for r in ranges[tid] if begin < r[0] < call[0]]
                same = [r for r in calls if r[2] == func or func == "Generic" or
                        (func == "SendRecv" and r[2] in ("Send", "Recv"))]
                kernels = sum(n for (t, at), n in launched.items() if t == tid and at is not None and
                              call[0] <= at <= call[1])
                call = same[0] if len(same) == 1 and kernels == 1 else None
            if not call and any(r[2] == ":all_to_all" for r in around):
                func = "AlltoAll"
            elif call and (func in ("SendRecv", "Generic") or func == call[2]):
                func, size = call[2], call[3] or 0
        out.append((func, size, base + start, end - start, None if launch is None else base + launch))
    return out


def main():
    want = collections.Counter(x for path in sys.argv[2:] for x in of_export(path))
    got = collections.Counter(kineto_reader.of_logs(sys.argv[1]))
    missing, more = want - got, got - want
    print(f"{sum(got.values())} operations, {sum(x[1] * n for x, n in got.items())} bytes, {sum(x[3] * n for x, n in got.items())} ns")
    for what, these in (("not in the logs", missing), ("not in the exports", more)):
        for x in list(these)[:5]:
            print(what + ":", x)
    sys.exit(bool(missing or more or not got))


if __name__ == "__main__":
    main()
