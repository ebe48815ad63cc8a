"""A copy of logs of hosts whose CPUs were starved at first. Stamps came late, so the first clock lines state
an offset of the GPU's clock that is too large, by another 5 to 60 ms for each rank, and GPU times are as much
too late, until one is delivered in time: a second line. Every third rank's CPU was quick from the beginning.

  starve_clock.py FROM TO SECONDS        so long it takes
  starve_clock.py FROM TO SECONDS set    what comes then is no quick delivery: a clock was set, by 2 s
  starve_clock.py FROM TO SECONDS cut    every second log is two files, and one is so wide that it is read in parts
"""
import gzip
import json
import os
import sys

source, target, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
is_set, is_cut = sys.argv[4:] == ["set"], sys.argv[4:] == ["cut"]
WIDE = 1  # number of the log that is read in parts, of 8 MiB each


class Starved:
    """What becomes of the lines of one communicator in one log."""

    def __init__(self, late_ns):
        self.late_ns, self.until_ns, self.first, self.is_over = late_ns, None, None, False

    def settle(self, line, now_ns):
        """A second clock line before a record that needs it."""
        self.is_over = True
        x = json.loads(json.dumps(self.first))
        x["metadata"] = line["metadata"]
        passed_ns = now_ns - x["clock"]["realtime_ns"]
        x["clock"]["ticks"] += passed_ns * 5 // 2
        x["clock"]["monotonic_ns"] += passed_ns
        x["clock"]["realtime_ns"] = now_ns
        self.settled_ns = x["clock"]["gpu_offset_at_ns"] = now_ns
        return x

    def take(self, line):
        out = [line]
        record = line.get("coll_perf") or line.get("p2p_perf")
        kind = "coll" if "coll_perf" in line else "p2p"
        if record and record.get(kind + "_timing_source") == "kernel_gpu":
            now_ns = record[kind + "_enqueue_ns"]
            if self.until_ns is None:
                self.until_ns = now_ns + int(seconds * 1e9)
            if not self.is_over and now_ns >= self.until_ns:
                out.insert(0, self.settle(line, now_ns))
            if not self.is_over:
                record[kind + "_gpu_start_delta_ns"] += self.late_ns
        for x in out:
            clock = x.get("clock")
            if not clock or clock.get("gpu_offset_ns") is None:
                continue
            if self.first is None:
                self.first = json.loads(json.dumps(x))
            if not self.is_over:
                clock["gpu_offset_ns"] += self.late_ns
            else:
                clock["gpu_offset_at_ns"] = self.settled_ns
                clock["gpu_offset_ns"] += 2 * 10**9 * is_set
        return out


def write(name, texts):
    data = "".join(texts).encode()
    with open(os.path.join(target, name), "wb") as f:
        f.write(gzip.compress(data, 1, mtime=0) if name.endswith(".gz") else data)


def opened(path):
    return gzip.open(path, "rt") if path.endswith(".gz") else open(path)


os.makedirs(target)
for number, name in enumerate(sorted(n for n in os.listdir(source) if ".jsonl" in n)):
    late_ns = 0 if number % 3 == 2 else int((5 + 5.5 * (number * 7 % 11)) * 1e6)
    comms, out = {}, []
    with opened(os.path.join(source, name)) as f:
        for text in f:
            line = json.loads(text)
            comm = comms.setdefault(line["header"]["id"], Starved(late_ns))
            out += comm.take(line) if late_ns else [line]
    texts = [json.dumps(x, separators=(",", ":")) + "\n" for x in out]
    if is_cut and number == WIDE:
        blanks = " " * ((20 << 20) // len(texts))
        write(name.removesuffix(".gz"), [x[:-2] + blanks + x[-2:] for x in texts])
    elif is_cut and number % 2 == 0:
        records = [i for i, x in enumerate(out) if "coll_perf" in x]
        middle = records[len(records) // 4]
        head = [t for t, x in zip(texts, out[:middle]) if "process" in x or "comm" in x]
        write(name, texts[:middle])
        write(name.replace(".jsonl", ".1.jsonl"), head + texts[middle:])
    else:
        write(name, texts)
