"""An independent reader of Kineto traces, whole files at once by Python's json: what `import` must have made
of them.

    kineto_reader.py LOGS TRACE...    compares count, function, bytes, start, duration and launch of each operation, to the ns
"""
import collections
import decimal
import gzip
import json
import os
import sys

SIZE = {"Float": 4, "BFloat16": 2, "Half": 2, "Double": 8, "Char": 1, "Byte": 1, "Int": 4, "Long": 8}
NAMES = {"allreduce": "AllReduce", "broadcast": "Broadcast", "_allgather_base": "AllGather",
         "_reduce_scatter_base": "ReduceScatter",
         "all_to_allv": "AlltoAll", "send": "Send", "recv": "Recv", "reduce": "Reduce"}
OUT = ("ReduceScatter", "Recv", "Scatter")


def opened(path):
    return gzip.open(path, "rt") if path.endswith(".gz") else open(path)


def of_trace(path):
    with opened(path) as f:
        t = json.load(f, parse_float=decimal.Decimal)
    base = t.get("baseTimeNanoseconds", 0)
    ns = lambda us: int(decimal.Decimal(us) * 1000)
    launch = {e["args"]["correlation"]: base + ns(e["ts"]) for e in t["traceEvents"]
              if e.get("cat") == "cuda_runtime" and "Launch" in e["name"] and
              "correlation" in e.get("args", {})}
    out = []
    for e in t["traceEvents"]:
        if e.get("cat") != "kernel" or not e["name"].startswith("nccl"):
            continue
        a = e["args"]
        func = e["name"].split("_")[1].split("(")[0]
        said = NAMES.get(a.get("Collective name"))
        if said and func in ("SendRecv", "Generic"):
            func = said
        size = 0
        if said == func:
            size = a["Out msg nelems" if func in OUT else "In msg nelems"] * SIZE.get(a["dtype"], 0)
            size //= a["Group size"] if func == "AlltoAll" else 1
        out.append((func, size, base + ns(e["ts"]), ns(e["dur"]), launch.get(a.get("correlation"))))
    return out


def of_logs(folder):
    out = []
    for name in os.listdir(folder):
        if not name.endswith(".jsonl.gz"):
            continue
        for text in gzip.open(os.path.join(folder, name), "rt"):
            line = json.loads(text)
            k = "coll" if "coll_perf" in line else "p2p" if "p2p_perf" in line else None
            if k:
                p = line[k + "_perf"]
                enqueue = p.get(k + "_enqueue_ns")
                start = enqueue + p[k + "_gpu_start_delta_ns"] if enqueue else p["event_trace_ts"]["kernel_events"][0]["kernel_start_ts"] * 1000
                out.append((p[k], p[k + "_msg_size_bytes"], start, p[k + "_exec_time_ns"], enqueue))
    return out


def main():
    want = collections.Counter(x for path in sys.argv[2:] for x in of_trace(path))
    got = collections.Counter(of_logs(sys.argv[1]))
    missing, more = want - got, got - want
    print(f"{sum(got.values())} operations, {sum(x[1] * n for x, n in got.items())} bytes, {sum(x[3] * n for x, n in got.items())} ns")
    for what, these in (("not in the logs", missing), ("not in the traces", more)):
        for x in list(these)[:5]:
            print(what + ":", x)
    sys.exit(bool(missing or more or not got))


if __name__ == "__main__":
    main()
