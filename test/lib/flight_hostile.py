"""Flight Recorder dumps that nobody's PyTorch wrote, each under a name of its own.

  flight_hostile.py DIR WHAT    cuts: a pickle and a JSON cut at every byte; opcodes: one that is not data; forged: lengths,
                                memo, marks, depth, kinds; random: bytes changed; many: 10^6 entries; values:
                                too many of them
"""
import json
import pathlib
import pickle
import random
import struct
import sys

import flight_dumps

directory, what = pathlib.Path(sys.argv[1]), sys.argv[2]
directory.mkdir(parents=True)
job = flight_dumps.plant("never")[2]
job.entries = job.entries[-1:]
SOUND = {"torch": flight_dumps.torch_pickle(job.dump("torch")), "4": pickle.dumps(job.dump("4"), 4),
         "json": json.dumps(job.dump("json")).encode()}


def write(name, data):
    (directory / ("%s_%d" % (name, 2))).write_bytes(data)


def entry(**more):
    return dict({"process_group": ("0", "default_pg"), "profiling_name": "nccl:all_reduce",
                 "collective_seq_id": 1, "state": "scheduled"}, **more)


if what == "cuts":
    for form, data in SOUND.items():
        for n in range(3, len(data) - 1):
            (directory / ("%s_%d" % (form, n))).write_bytes(data[:n])
elif what == "opcodes":
    head = b"\x80\x02}X\x07\x00\x00\x00entries"
    write("global", head + b"cos\nsystem\nX\x02\x00\x00\x00id\x85R.")
    write("stack_global", head + b"\x8c\x02os\x8c\x06system\x93.")
    write("reduce", head + b"R.")
    write("inst", head + b"(ios\nsystem\n.")
    for op in range(256):
        write("op%d" % op, head + bytes([op]) * 12)
elif what == "forged":
    write("text", b"\x80\x02}X\xff\xff\xff\xff" + b"entries")
    write("text8", b"\x80\x04}\x8d" + b"\xff" * 8 + b"entries")
    write("long", b"\x80\x02}\x8a\xff\x01")
    write("memo_put", b"\x80\x02}r\xff\xff\xff\xff.")
    write("memo_far", b"\x80\x02}r\xff\xff\x7f\x00.")
    write("memo_get", b"\x80\x02}j\xff\xff\xff\xff.")
    write("memo_hole", b"\x80\x02}q\x05h\x03.")
    write("marks", b"\x80\x02}" + b"(" * 100000 + b"t" * 100000 + b".")
    write("deep", b"\x80\x02}" + b"]" * 100000 + b"a" * 99999 + b".")
    write("odd", b"\x80\x02}(Nu.")
    write("items_of_a_text", b"\x80\x02}X\x01\x00\x00\x00a(Ne.")
    write("empty_stack", b"\x80\x02}0a.")
    write("itself", b"\x80\x02}q\x00X\x07\x00\x00\x00entries]q\x01(h\x00h\x00h\x01esX\x09\x00\x00\x00pg_configh\x00s.")
    write("doubled", b"\x80\x02}X\x07\x00\x00\x00entries]q\x00" + b"(" + b"h\x00" * 60000 + b"es.")
    write("json_deep", b'{"entries":' + b"[" * 100000 + b"]" * 100000 + b"}")
    write("json_numbers", b'{"entries":[{"collective_seq_id":1e999}]}')
    for i, value in enumerate((None, [], {}, "x", -1, 2**63 - 1, -2**63, 2**64, 1.5, True, "\x1b[31m\n",
                               "9" * 400, [[[]]], [[2**62, 2**62]], ["Float"] * 100)):
        for key in list(job.entries[0]) + ["entries", "pg_config", "pg_status", "rank", "version"]:
            dump = pickle.loads(SOUND["4"])
            (dump if key in dump or key == "rank" else dump["entries"][-1])[key] = value
            write("value%d_%s" % (i, key), pickle.dumps(dump, 4))
            if key != "frames":
                write("json%d_%s" % (i, key), json.dumps(dump).encode())
elif what == "random":
    r = random.Random(5)
    for i in range(1500):
        data = bytearray(SOUND[r.choice(list(SOUND))])
        for _ in range(r.randrange(1, 6)):
            data[r.randrange(3, len(data))] = r.randrange(256)
        write("random%d" % i, bytes(data))
elif what in ("many", "values"):
    one = pickle.dumps(entry(), 2)[2:-1]
    n = 1000000 if what == "many" else 4000000
    if what == "many": # two keys of three in the memo
        keep = b"(X\x0d\x00\x00\x00process_groupq\x01X\x0e\x00\x00\x00profiling_nameq\x02X\x11\x00\x00\x00collective_seq_idq\x03X\x0f\x00\x00\x00nccl:all_reduceq\x04" \
               b"X\x01\x00\x00\x000\x85q\x05tX\x01\x00\x00\x00x"
        body = b"".join(b"}(h\x01h\x05h\x02h\x04h\x03J" + struct.pack("<i", i) + b"u" for i in range(n))
        write("many", b"\x80\x02}(X\x01\x00\x00\x00m" + keep[:-6] + b"X\x07\x00\x00\x00entries](" + body +
              b"eu.")
    else:
        write("values", b"\x80\x02}X\x07\x00\x00\x00entries](" + b"NNN" * n + b"es.")
