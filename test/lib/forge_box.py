#!/usr/bin/env python3
"""Makes a black box as an attacker would: sound in its layout (include/ni_box.h, docs/internals/blackbox.md),
with any numbers in it.

    forge_box.py PATH [NAME=value ...]      PATH that ends in /: a folder, the file gets the usual name. Prints the path.

The same names are the arguments of forge(), for tests in Python. Defaults stand there. The list of fields is
read from include/ni_box.h, so a field that is added needs nothing here.
"""
import os
import re
import struct
import sys
import time

PAGE = 4096
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
OPS, COMM = 3, 7  # page classes
HEADER = struct.Struct("<8s8IQ4I32s16sqQQ2IQ40s256s256s3q2I" + "QQII" * 5 + "2Q4I2Q2I16Q4Q4Q")
# the texts; numbers from 1
FUNCS = ["AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce", "Send", "Recv", "ncclFloat32"]


def fields():
    text = open(os.path.join(ROOT, "include", "ni_box.h"), encoding="utf-8").read()
    return [("%s_%s" % (of, n), int(b))
            for of, n, b in re.findall(r"^  X\((\w+), (\w+), [\w.]+,[\s\\]+(\d)\)", text, re.M)]


def place(names, slot_bytes):
    """{field: (at, size)}: of a slot what fits into slot_bytes, the most needed first."""
    at = {}
    need = ["OP_STATE", "OP_TICKS_START", "OP_SN", "OP_REC_SN", "OP_COUNT", "OP_PROG", "OP_COMM_PAGE",
            "OP_ROOT", "OP_KIND", "OP_FUNC", "OP_DATATYPE", "OP_DIR", "OP_NCHANNELS", "OP_ORIGIN",
            "OP_CALL_SN", "OP_TICKS_DONE", "OP_TICKS_FIRST",
            "OP_TICKS_STOP"]
    size = dict(names)
    room = 0
    for n in need:
        here = -(-room // size[n]) * size[n]
        if here + size[n] <= slot_bytes:
            at[n] = (here, size[n])
            room = here + size[n]
    room = 0
    for n, b in names:
        if n.startswith("COMM_") and n not in ("COMM_KIND", "COMM_CELL"):
            many = {"COMM_NAME": 64, "COMM_GPU_UUID": 48, "COMM_GPU_PCI": 16, "COMM_STRAY": 72,
                    "COMM_CALLS": 16,
                    "COMM_API_SN": 80}.get(n, b)
            room = -(-room // 8) * 8
            at[n] = (room, many)
            room += many
    at["COMM_KIND"] = (1024, 1)
    room = 0
    for n, b in names:
        if n.startswith("KIND_"):
            many = {"KIND_FILTERED": 24, "KIND_DROPPED": 40, "KIND_FALLBACK": 48}.get(n, b)
            at[n] = (room, many)
            room += many
    for n, where in (("TEXT_READY", (0, 1)), ("TEXT_ELEM_BYTES", (1, 1)), ("TEXT_TEXT", (2, 24))):
        at[n] = where
    return at


def namespace():
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def life_of(life, pid):
    """(boot_id, pid_namespace, start_ticks) that make a reader on this machine take it for dead, alive or
    unknown."""
    boot = open("/proc/sys/kernel/random/boot_id", encoding="ascii").read().strip()
    if life == "alive":
        return boot, namespace(), int(open("/proc/%d/stat" % pid,
                                           encoding="ascii").read().rsplit(")", 1)[1].split()[19])
    if life == "unknown":
        return boot, namespace() + 1, 1
    return boot, namespace(), 1


def forge(path, ops=10, comms=1, slot_bytes=64, length=0, host="forged", pid=4000001, rank=0, world=2,
          n_ranks=2, comm_rank=None, hash=0xabc, name="world", dir="/nonexistent", file="", line="",
          start_ns=None, made_ns=None, life="dead", state=1, phase=1, func="AllReduce", same=0, first_sn=0,
          recv=0, flags=3, want=8, started=8, stopped=0, count=1024, root=0, peers=0, kind_started=None,
          records=0, uid=None, hex16="0123456789abcdef", exe="forged", version=2, heartbeat_ns=None, holes=0):
    """ops: slots in flight (flags LIVE and CLOSED) spread over `comms` communicators with one hash each from
    `hash` on.
    same: all have that many operations of one number. func Send or Recv: P2P, to rank root, with peers to
    root + i % peers.
    records: so many more slots that are finished (DONE). length: bytes of the file, a hole at the end. life:
    dead, alive (the process of pid), unknown. dir, file, line: session texts; file "" and line "" is a log
    never begun.
    holes: so many more pages are said to hold operations, and are not there.
    kind_started: what the accounts say was started; default what the slots are. Returns the path."""
    now = time.time_ns() if made_ns is None else made_ns
    start_ns = now if start_ns is None else start_ns
    names = fields()
    at = place(names, slot_bytes)
    per_page = PAGE // slot_bytes
    total = ops + records
    op_pages = -(-total // per_page)
    pages_of_data = 2 * comms + op_pages
    dir_b, file_b, line_b = (t.encode() if isinstance(t, str) else t for t in (dir, file, line))
    session = struct.pack("<QIIII", start_ns, len(dir_b), len(file_b), len(line_b),
                          0) + dir_b + file_b + line_b
    session_pages = -(-len(session) // PAGE)
    map_pages = 1
    while map_pages * PAGE < 3 + session_pages + map_pages + pages_of_data + holes:
        map_pages += 1
    map_page = 3 + session_pages
    data = map_page + map_pages
    pages = data + pages_of_data
    image = bytearray(pages * PAGE)
    p2p = func in ("Send", "Recv")
    kind = 1 if p2p else 0

    def put(base, field, value, size=0):
        if field in at:
            size = size or dict(names)[field]
            image[base + at[field][0]:base + at[field][0] +
                  size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")

    for i, t in enumerate(FUNCS if func in FUNCS else FUNCS + [func], 1):
        base = 2 * PAGE + i * 32
        image[base:base + 2] = bytes([1, 4 if t == "ncclFloat32" else 1])
        image[base + 2:base + 2 + len(t)] = t.encode()
    func_number = FUNCS.index(func) + 1 if func in FUNCS else len(FUNCS) + 1
    image[3 * PAGE:3 * PAGE + len(session)] = session
    for c in range(comms):
        page = data + 2 * c
        image[map_page * PAGE + page] = image[map_page * PAGE + page + 1] = COMM
        base = page * PAGE
        put(base, "COMM_STATE", 5 | phase << 32)
        for f, v in (("COMM_HASH", hash + c), ("COMM_RANK", rank if comm_rank is None else comm_rank),
                     ("COMM_N_RANKS", n_ranks),
                     ("COMM_N_NODES", 1), ("COMM_HAS_NAME", 1 if name else 0), ("COMM_INIT_NS", start_ns + c),
                     ("COMM_INIT_TICKS", 1), ("COMM_GPU_INDEX", 0xffffffff)):
            put(base, f, v)
        b = name.encode()[:63]
        image[base + at["COMM_NAME"][0]:base + at["COMM_NAME"][0] + len(b)] = b
        mine = total // comms + (1 if c < total % comms else 0)
        k = base + at["COMM_KIND"][0] + kind * 256
        put(k, "KIND_STARTED", mine if kind_started is None else kind_started)
    offsets = {f: at[f] for f in at if f.startswith("OP_")}
    for i in range(total):
        page = data + 2 * comms + i // per_page
        image[map_page * PAGE + page] = OPS
        base = page * PAGE + i % per_page * slot_bytes
        c, n = i % comms, i // comms
        done = i >= ops
        values = {"OP_STATE": 9 | (15 if done else flags) << 32 | want << 40,
                  "OP_PROG": (want if done else started) << 16 | (want if done else stopped),
                  "OP_COMM_PAGE": data + 2 * c, "OP_KIND": kind, "OP_DIR": 1 if func == "Recv" else 0,
                  "OP_TICKS_START": now - 10**12 + i, "OP_TICKS_DONE": now - 10**12 + i + 1000 if done else 0,
                  "OP_TICKS_FIRST": now - 10**12 + i, "OP_SN": first_sn + (n // same if same else n),
                  "OP_REC_SN": n, "OP_COUNT": count, "OP_ROOT": root + (i % peers if peers else 0),
                  "OP_FUNC": func_number, "OP_DATATYPE": 8,
                  "OP_NCHANNELS": want & 63}
        for f, v in values.items():
            if f in offsets:
                here, size = offsets[f]
                image[base + here:base + here + size] = (v & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    image[map_page * PAGE + pages:map_page * PAGE + pages + holes] = bytes([OPS]) * holes
    pages += holes
    length = max(length, pages * PAGE)
    boot, space, ticks = life_of(life, pid)
    mult = 1 << 40
    clock = (mult, now, now, now)  # a tick is a ns since 1970
    struct.pack_into("<I", image, PAGE, pages)
    image[0:HEADER.size] = HEADER.pack(
        b"NIBLKBOX", 0x01020304, version, 2160, len(names), PAGE, slot_bytes, 2, COMM, 1 << OPS, data, pages,
        256, 16, b"nccl-inspector-c 0.0.forged", b"", pid, space, ticks, os.getuid() if uid is None else uid,
        0, now, boot.encode(), host.encode(), exe.encode(), rank, rank % 8 if rank >= 0 else -1, world, 23007,
        6,
        PAGE, 64, 0, 0, map_page * PAGE, map_pages * PAGE, 1, 0, 2 * PAGE, PAGE, 32, 128,
        3 * PAGE, session_pages * PAGE, 0, 0, 3 * PAGE, session_pages * PAGE, 0, 0,
        PAGE, PAGE + 4, state, pages, 0, 0, time.monotonic_ns(),
        now if heartbeat_ns is None else heartbeat_ns, 100, 0, *([0] * 16),
        *clock, *clock)
    for i, (n, _) in enumerate(names):
        struct.pack_into("<HH", image, 1104 + 4 * i, *at.get(n, (0, 0)))
    if path.endswith("/"):
        path += "nccl-inspector-%s-pid%d-%s.box" % (host, pid, hex16)
    with open(path, "wb") as f:
        os.fchmod(f.fileno(), 0o600)
        f.write(image)
        if length > len(image):
            f.truncate(length)
    return path


def main(argv):
    if len(argv) < 2 or argv[1].startswith("-"):
        sys.exit(__doc__)
    known = {}
    for a in argv[2:]:
        n, _, v = a.partition("=")
        if n not in forge.__code__.co_varnames[1:forge.__code__.co_argcount]:
            sys.exit("forge_box.py: no parameter %s" % n)
        known[n] = v if n in ("host", "name", "dir", "file", "line", "life", "func", "hex16",
                              "exe") else int(v, 0)
    print(forge(argv[1], **known))


if __name__ == "__main__":
    main(sys.argv)
