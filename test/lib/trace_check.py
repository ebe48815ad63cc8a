"""The trace-event format's rules, and what viewers ask beyond them, checked on a file of `nccl-inspector
trace`.

    trace_check.py FILE...        each file: one line, or what is wrong and exit 1

load(path) gives a Trace for tests that compare values; times are integers, ns from the start of the timeline.
"""
import gzip
import json
import sys
from decimal import Decimal


def ns(v):
    d = v * 1000 if isinstance(v, int) else Decimal(v) * 1000
    assert d == int(d), f"time {v} is no whole number of ns"
    return int(d)


class Trace:
    def __init__(self, path):
        raw = open(path, "rb").read()
        text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
        no_double = lambda pairs: dict(pairs) if len({k for k, _ in pairs}) == len(pairs) else bad(f"a key twice: {pairs}")
        self.doc = json.loads(text.decode("utf-8"), parse_float=Decimal, object_pairs_hook=no_double,
                              parse_constant=lambda x: bad(f"{x} is no JSON"))
        self.other = self.doc["otherData"]
        self.start = int(self.other["start_unix_ns"])
        self.process, self.thread, self.slices, self.instants = {}, {}, [], []
        self.begins, self.arrows = {}, []
        self.check()

    def check(self):
        assert list(self.doc) == ["displayTimeUnit", "traceEvents", "otherData"], list(self.doc)
        last, tops, sort, latest = -1, {}, set(), {}
        for e in self.doc["traceEvents"]:
            ph = e["ph"]
            assert ph in "MXisf" and len(ph) == 1, f"phase {ph}"
            assert isinstance(e["pid"], int) and 0 < e["pid"] < 2**31, e
            assert isinstance(e["name"], str) and e["name"], e
            if ph == "M":
                self.metadata(e, sort)
                continue
            at = (e["pid"], e["tid"])
            assert e["pid"] in self.process, f"no name for process {e['pid']} before its first event"
            assert at in self.thread, f"no name for thread {at} before its first event"
            assert isinstance(e["cat"], str) and e["cat"], e
            t = ns(e["ts"])
            assert t >= 0 and t >= last, f"time goes back from {last} to {t}: {e}"
            last = t
            if ph == "X":
                d = ns(e["dur"])
                assert d >= 0, e
                stack = tops.setdefault(at, [])
                while stack and stack[-1] <= t:
                    stack.pop()
                assert (not stack or
                        t + d <= stack[-1]), f"crosses the slice before it on {self.thread[at]}: {e}"
                stack.append(t + d)
                s = {"t": t, "d": d, "name": e["name"], "cat": e["cat"], "pid": e["pid"], "tid": e["tid"],
                     "track": self.thread[at], "process": self.process[e["pid"]], "args": e.get("args", {})}
                self.slices.append(s)
                latest[at] = s
            elif ph == "i":
                assert e["s"] in ("t", "p", "g"), e
                self.instants.append({"t": t, "name": e["name"], "cat": e["cat"], "track": self.thread[at],
                                      "process": self.process[e["pid"]], "args": e.get("args", {})})
            else:
                self.flow(e, at, t, latest)
        begun = {a["id"] for a in self.arrows}
        self.open_arrows = [k for k in self.begins if k not in begun]

    def metadata(self, e, sort):
        if e["name"] == "process_name":
            assert e["pid"] not in self.process, f"process {e['pid']} named twice"
            self.process[e["pid"]] = e["args"]["name"]
        elif e["name"] == "thread_name":
            at = (e["pid"], e["tid"])
            assert at not in self.thread, f"thread {at} named twice"
            assert (e["tid"] not in {t for _, t in self.thread} and
                    e["tid"] not in self.process), f"thread id {e['tid']} is not unique"
            assert e["args"]["name"] not in {n for (p, _), n in self.thread.items()
                                             if p == e["pid"]}, f"two tracks {e['args']['name']}"
            self.thread[at] = e["args"]["name"]
        elif e["name"] in ("process_sort_index", "thread_sort_index"):
            key = (e["name"], e["pid"], e.get("tid"))
            assert key not in sort and isinstance(e["args"]["sort_index"], int), e
            sort.add(key)
        else:
            assert e["name"] == "process_labels" and e["args"]["labels"], e

    def flow(self, e, at, t, latest):
        """Bound to the slice that begins at the same place and time, right before it in the file."""
        s = latest.get(at)
        assert s and s["t"] == t, f"arrow without a slice: {e}"
        key = (e["cat"], e["name"], e["id"])
        assert int(e["id"], 16) > 0
        if e["ph"] == "s":
            assert key not in self.begins, f"begins twice: {e}"
            self.begins[key] = (t, s)
        else:
            assert e["bp"] == "e", e
            assert key in self.begins, f"ends but never began: {e}"
            self.arrows.append({"id": key, "name": e["name"], "from": self.begins[key][1], "to": s})
            assert self.begins[key][0] <= t


def bad(text):
    raise AssertionError(text)


def load(path):
    return Trace(path)


if __name__ == "__main__":
    for p in sys.argv[1:]:
        try:
            x = load(p)
        except (AssertionError, KeyError, ValueError) as err:
            print(f"{p}: {type(err).__name__}: {err}")
            sys.exit(1)
        print(f"{p}: {len(x.slices)} slices on {len(x.thread)} tracks of {len(x.process)} processes, "
              f"{len(x.arrows)} arrows, {len(x.instants)} marks")
