"""Files for `trace --with` that nobody's profiler writes: kineto_hostile.py GOOD.json DIR. Each names a
fault; hostile_NAME_0.json."""
import gzip
import json
import sys

good, out = open(sys.argv[1]).read(), sys.argv[2]
event = lambda **k: json.dumps({"ph": "X", "name": "x", "cat": "c", "pid": 1, "tid": 1, "ts": 1.5, "dur": 2,
                                **k})
wrap = lambda *e: '{"baseTimeNanoseconds": 1790000000000000000, "traceEvents": [' + ",".join(e) + "]}"
files = {
    "empty": "", "array": "[]", "number": "17", "nolist": "{}", "text": '{"traceEvents": "x"}',
    "unclosed": '{"traceEvents": [{"ph": "X"',
    "quote": '{"traceEvents": [{"ph": "X", "name": "' + "a" * 5000000,
    "deep": '{"traceEvents": [' + '{"args": ' * 100000, "closers": "]}" * 1000, "twice": wrap() + wrap(),
    "lists": '{"traceEvents": [], "traceEvents": [' + event() + "]}",
    "long": wrap(event(name="n" * 3000000), event(args={"a": "b" * 900000}), event()),
    "types": wrap(*(json.dumps({"ph": p, "name": n, "cat": c, "pid": i, "tid": i, "ts": t, "dur": t,
                                "args": a, "id": i})
                    for p in ("X", "i", "s", "f", "M", "", 5, None)
                    for n in ("x", "ac2g", "thread_name", None, 5, "\x1b]0;x\x07\u202e")
                    for c in ("c", "", None) for i in (1, -1, "x", None, 10**19, 1.5, [1])
                    for t in (0, -5, 1e300, "x", 9.2e15, 10**18, None)
                    for a in ({}, None, [1], {"name": 5}, {"name": "\ud83d\ude00" * 60}))),
    "nan": wrap('{"ph": "X", "name": "x", "ts": NaN, "dur": Infinity, "pid": 1, "tid": 1}',
                '{"ph":"X","ph":"X","name":"a","name":"b","ts":1,"ts":2}'),
    "base": '{"baseTimeNanoseconds": 9223372036854775807, "traceEvents": [' + event(ts=9e15) +
    event(name="ncclDevKernel_AllReduce_(") + "]}",
    "endless": wrap(event(name="ncclDevKernel_AllReduce_(", cat="kernel", ts=1.5e9, dur=9e15),
                    event(name="ncclDevKernel_AllReduce_(", cat="kernel")),
    "tracks": wrap(*(event(tid=i) for i in range(20000)),
                   *(json.dumps({"ph": "M", "name": "thread_name", "pid": 1, "tid": i,
                                 "args": {"name": f"t{i}"}})
                                                             for i in range(20000))),
    "crowd": wrap(*(event(ts=i, dur=10**7 + 3 * i) for i in range(20000))),
    "stack": wrap(*(event(ts=i, dur=10**5 - 2 * i) for i in range(3000))),
    "digits": wrap('{"ph": "X", "name": "million", "pid": 1, "tid": 1, "ts": 5, "dur": 2, "args": {"id": ' +
                   "9" * 10**6 + "}}", '{"ph": "X", "name": "fraction", "pid": 1, "tid": 1, "ts": 15, "dur": 2, "args": {"id": -0.' + "7" * 10**6 + "e-7}}",
                   '{"ph": "X", "name": "exponent", "pid": 1, "tid": 1, "ts": 25, "dur": 2, "args": {"id": 1e' + "8" * 10**6 + "}}",
                   '{"ph": "X", "name": "many", "pid": 1, "tid": 1, "ts": 35, "dur": 2, "args": {"ids": [' +
                   "NaN," * 200000 + "1e999]}}", '{"ph": "X", "name": "too long", "pid": 1, "tid": 1, "ts": 45, "dur": 2, "args": {"id": ' + "3" * 5 * 10**6 + "}}",
                   '{"ph": "X", "name": "no number", "pid": 1, "tid": 1, "ts": 55, "dur": 2, "args": {"id": 01' + "0" * 30 + ', "x": 1e999}}',
                   '{"ph": "X", "name": "when", "pid": 1, "tid": 1, "ts": ' + "1" * 10**6 + ', "dur": 2}'),
    "bytes": good.replace("thread", "\xff\xfe\x00"), "cut": good[:len(good) // 2],
}
for name, text in files.items():
    raw = text.encode("latin-1" if name == "bytes" else "utf-8", "surrogatepass")
    with open(f"{out}/hostile_{name}_0.json", "wb") as f:
        f.write(raw)
whole = gzip.compress(good.encode())
for name, raw in (("gzcut", whole[:len(whole) // 2]), ("gzbad", whole[:300] + b"\x00\xff" * 50 + whole[400:]),
                  ("gzhead", b"\x1f\x8b\x08\xff" + b"x" * 100)):
    with open(f"{out}/hostile_{name}_0.json.gz", "wb") as f:
        f.write(raw)
