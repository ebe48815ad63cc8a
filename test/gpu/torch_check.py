"""What torch_loop.py did against the plugin's logs: torch_check.py DIR, with truth-*.json and logs/ in it.

Rows on stdout, as gpu_check's: verdict, what, figures. Gradients are reduced exactly once a step, so the
bytes of all AllReduces (DDP), or of all ReduceScatters times the ranks (FSDP), are steps x parameters x 4.
"""
import glob
import gzip
import json
import os
import statistics
import sys

top = sys.argv[1]
truths = [json.load(open(p)) for p in sorted(glob.glob(os.path.join(top, "truth-*.json")))]
ops = {}
for path in sorted(glob.glob(os.path.join(top, "logs", "**", "*.jsonl.gz"), recursive=True)):
    with gzip.open(path, "rt") as f:
        for line in f:
            d = json.loads(line)
            if "coll_perf" in d:
                ops.setdefault(d["metadata"]["pid"], []).append(d["coll_perf"])


def row(good, what, figures):
    verdict = {True: "ok", False: "FAIL", None: "info"}[good]
    print(f"{verdict}\t{what}\t{figures}")


row(len(truths) > 0 and all(t["pid"] in ops for t in truths), "logs",
    f"{len(ops)} processes with records, {len(truths)} ranks; "
    f"PyTorch {truths[0]['torch'] if truths else '?'}, NCCL {truths[0]['nccl'] if truths else '?'}")
for t in truths:
    mine = ops.get(t["pid"], [])
    want = t["steps"] * t["parameters"] * 4
    if t["mode"] == "ddp":
        what, share = "AllReduce", 1
    else:
        what, share = "ReduceScatter", t["world"]
    grads = [o for o in mine if o["coll"] == what and o["coll_datatype"] == "ncclFloat32" and
             o["coll_msg_size_bytes"] >= 4096]
    got = sum(o["coll_msg_size_bytes"] for o in grads) * share
    row(got == want, f"rank {t['rank']}: gradients", f"{got} bytes in {len(grads)} {what}s, {want} expected")
    if t["mode"] == "fsdp":
        n = sum(o["coll"] == "AllGather" and o["coll_msg_size_bytes"] * t["world"] >= 4096 for o in mine)
        row(n >= t["steps"], f"rank {t['rank']}: parameters", f"{n} AllGathers in {t['steps']} steps")
    marked = [o for o in mine if o["coll"] == "AllReduce" and o["coll_msg_size_bytes"] == t["marker_bytes"]]
    row(len(marked) == t["markers"] and all(o["coll_datatype"] == "ncclFloat64" for o in marked),
        f"rank {t['rank']}: own operations",
        f"{len(marked)} of {t['markers']} AllReduces of {t['marker_bytes']} B")
    # the others are known from their call only: Broadcast since 2.29
    shown = [o for o in mine if o.get("coll_src") != "api"]
    gpu = sum(o["coll_timing_source"] == "kernel_gpu" for o in shown)
    row(gpu >= 0.99 * len(shown) if shown else False, f"rank {t['rank']}: timed by the GPU",
        f"{gpu} of {len(shown)}; {len(mine) - len(shown)} known from their call only")
    seen = [o["coll_exec_time_ns"] for o in mine if o["coll_msg_size_bytes"] == t["kernel_bytes"]]
    if t["kernel_ns"] and seen:
        a, b = statistics.median(seen), statistics.median(t["kernel_ns"])
        row(None, f"rank {t['rank']}: kernel time", f"log {a / 1e3:.1f} us, CUPTI {b / 1e3:.1f} us (medians of {len(seen)} and {len(t['kernel_ns'])})")
