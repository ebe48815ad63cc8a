"""Writes black boxes as the plugin would have left them at an instant (include/ni_box.h): no code of the
reader's is used."""

import os
import re
import struct

PAGE = 4096
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
HEAD = struct.Struct("<8s8IQ4I32s16sqQQ2IQ40s256s256s3q2I" + "QQII" * 5 + "2Q4I2Q2I16Q4Q4Q")
TAIL = struct.Struct(
    "<4I2Q" "IiQQ2Q"
)  # what stands behind the field table; from the `end` on only since the box says how it ended
OLD_HEADER, NEW_HEADER = 2160, 2200
SLOT, COMM_PAGES, COMM_CLASS, OP_CLASS, KIND_STRIDE, CELL_STRIDE = 128, 3, 1, 2, 320, 64
LIVE, CLOSED, KDONE, DONE, RETIRED, GIVEN_UP = 1, 2, 4, 8, 16, 32
NOT_YET, FINALIZED, EXITED = 1, 2, 3
TEXTS = [
    "",
    "AllReduce",
    "AllGather",
    "ReduceScatter",
    "Broadcast",
    "Reduce",
    "Send",
    "Recv",
    "AlltoAll",
    "ncclFloat32",
    "RING",
    "SIMPLE",
    "AGxLL_R",
]
DTYPE, RING, SIMPLE = TEXTS.index("ncclFloat32"), TEXTS.index("RING"), TEXTS.index("SIMPLE")
# Where fields lie, as in boxes of the simulator's jobs: place and size in the operation, the communicator,
# an account, a channel's cell.
AT = {
    "OP_STATE": (0, 8),
    "OP_PROG": (12, 4),
    "OP_GPU_START_NS": (16, 8),
    "OP_GPU_STOP_NS": (24, 8),
    "OP_TICKS_FIRST": (32, 8),
    "OP_TICKS_DONE": (40, 8),
    "OP_GROUP_ORD": (48, 4),
    "OP_COMM_PAGE": (52, 4),
    "OP_KIND": (56, 1),
    "OP_DIR": (57, 1),
    "OP_BAD": (58, 1),
    "OP_MASK_DOUBT": (59, 1),
    "OP_CALL_SN": (60, 4),
    "OP_TICKS_START": (64, 8),
    "OP_TICKS_STOP": (72, 8),
    "OP_SN": (80, 8),
    "OP_COUNT": (88, 8),
    "OP_REC_SN": (96, 8),
    "OP_ROOT": (104, 4),
    "OP_FUNC": (108, 1),
    "OP_DATATYPE": (109, 1),
    "OP_ALGO": (110, 1),
    "OP_PROTO": (111, 1),
    "OP_NCHANNELS": (112, 1),
    "OP_ORIGIN": (114, 1),
    "COMM_STATE": (0, 8),
    "COMM_HASH": (8, 8),
    "COMM_RANK": (24, 4),
    "COMM_N_RANKS": (28, 4),
    "COMM_N_NODES": (32, 4),
    "COMM_HAS_NAME": (36, 1),
    "COMM_NAME": (38, 256),
    "COMM_INIT_NS": (296, 8),
    "COMM_INIT_TICKS": (304, 8),
    "COMM_GPU_INDEX": (312, 4),
    "COMM_GPU_UUID": (316, 48),
    "COMM_GPU_PCI": (364, 32),
    "COMM_GROUP_ORD": (512, 4),
    "COMM_NEWEST_GROUP": (1216, 4),
    "COMM_STRAY": (1288, 72),
    "COMM_KIND": (576, 640),
    "COMM_CELL": (4032, 8192),
    "COMM_FIT_OFFSET_NS": (448, 8),
    "COMM_FIT_AT_NS": (456, 8),
    "COMM_FIT_SAMPLES": (464, 8),
    "COMM_POISONED": (472, 1),
    "COMM_CALLS": (1544, 16),
    "COMM_API_SN": (1840, 88),
    "KIND_STARTED": (40, 8),
    "KIND_FILTERED": (48, 32),
    "KIND_DROPPED": (80, 40),
    "KIND_LATE": (120, 8),
    "KIND_WRITTEN": (192, 8),
    "KIND_JUDGED_OUT": (200, 8),
    "KIND_INCOMPLETE": (208, 8),
    "KIND_LOST_WRITE": (216, 8),
    "KIND_FALLBACK": (224, 56),
    "CELL_OPEN": (0, 8),
    "CELL_START_NS": (24, 8),
    "TEXT_READY": (0, 1),
    "TEXT_ELEM_BYTES": (1, 1),
    "TEXT_TEXT": (2, 46),
}
SLOT_PACK = struct.Struct(
    "<QIIQQQQII4BIQQQQQi7B"
)  # one operation, from OP_STATE to OP_ORIGIN in the order of the table above


def rccl():
    """NI_JOB_LIBRARY=rccl: logs and boxes as of AMD's RCCL: its name and ticks of 10 ns."""
    return os.environ.get("NI_JOB_LIBRARY", "").startswith("rccl")


def unnamed():
    """NI_JOB_LIBRARY=rccl-unnamed: no communicator has a name besides, as in jobs that give none."""
    return os.environ.get("NI_JOB_LIBRARY") == "rccl-unnamed"


def field_names():
    text = open(os.path.join(ROOT, "include", "ni_box.h"), encoding="utf-8").read()
    return ["%s_%s" % pair for pair in re.findall(r"^  X\((\w+), (\w+),", text, re.M)]


FIELDS = field_names()
BOOT = open("/proc/sys/kernel/random/boot_id", encoding="ascii").read().strip()


def namespace():
    return os.stat("/proc/self/ns/pid").st_ino


class Box:
    """What a box says. Times are ticks, which are ns of the writer's CLOCK_MONOTONIC. comms: dicts with name,
    hash, rank, n_ranks, init (ticks), phase, calls (2), kinds: 2 dicts started, written, incomplete; ops:
    dicts as slot() takes them, with comm (index).
    """

    def __init__(self, host, pid, rank, world, clock, start_ns, session, beat):
        self.host, self.pid, self.rank, self.world = host, pid, rank, world
        self.ticks, self.unix = clock  # the same moment
        self.start_ns, self.session, self.beat = start_ns, session, beat
        self.comms, self.ops = [], []
        self.state, self.end, self.unwritten, self.error, self.end_unix = 1, NOT_YET, 0, 0, 0
        self.longest_operation = self.longest_gap = 0
        self.boot, self.start_ticks, self.space = BOOT, 1, namespace()
        self.local = 0
        self.old = False
        self.nccl = 23007, 6

    def image(self):
        per_page = PAGE // SLOT
        n_ops = -(-max(len(self.ops), 1) // per_page)
        session_page = 3
        parts = [t.encode() for t in self.session]
        session = struct.pack("<QIIII", self.start_ns, *(len(p) for p in parts), 0) + b"".join(parts)
        map_page = session_page + -(-len(session) // PAGE)
        data = map_page + 1
        pages = data + COMM_PAGES * len(self.comms) + n_ops
        b = bytearray(pages * PAGE)
        struct.pack_into("<II", b, PAGE, pages, 0)
        for i, t in enumerate(TEXTS[1:], 1):
            at = 2 * PAGE + 48 * i
            b[at : at + 2 + len(t)] = bytes((1, 4 if i == DTYPE else 1)) + t.encode()
        b[session_page * PAGE : session_page * PAGE + len(session)] = session
        for i, c in enumerate(self.comms):
            page = data + COMM_PAGES * i
            b[map_page * PAGE + page : map_page * PAGE + page + COMM_PAGES] = bytes([COMM_CLASS]) * COMM_PAGES
            self.put_comm(b, page * PAGE, c)
        first = data + COMM_PAGES * len(self.comms)
        for i in range(n_ops):
            b[map_page * PAGE + first + i] = OP_CLASS
        for i, o in enumerate(self.ops):
            at = first * PAGE + SLOT * i
            self.put_op(b, at, o, data)
            if o["open_channels"]:
                comm = (data + COMM_PAGES * o["comm"]) * PAGE + AT["COMM_CELL"][0]
                for ch in o["open_channels"]:
                    cell = comm + CELL_STRIDE * (2 * ch + (1 if o["func"] == "Recv" else 0))
                    struct.pack_into("<Q", b, cell, at // SLOT << 28)
                    struct.pack_into("<Q", b, cell + 24, o["first"])
        self.put_header(b, data, pages, session_page, map_page)
        return b

    def put_comm(self, b, base, c):
        def put(field, value, size=8):
            struct.pack_into({8: "<Q", 4: "<I", 1: "<B"}[size], b, base + AT[field][0], value)

        put("COMM_STATE", c.get("phase", 1) << 32)
        put("COMM_HASH", c["hash"])
        put("COMM_RANK", c["rank"], 4)
        put("COMM_N_RANKS", c["n_ranks"], 4)
        put("COMM_N_NODES", c["nodes"], 4)
        put("COMM_HAS_NAME", not unnamed(), 1)
        name = b"" if unnamed() else c["name"].encode()
        b[base + 38 : base + 38 + len(name)] = name
        put("COMM_INIT_NS", c["init_ns"])
        put("COMM_INIT_TICKS", c["init"])
        put("COMM_GPU_INDEX", 0xFFFFFFFF, 4)
        put("COMM_GROUP_ORD", c["kinds"][0]["started"] + c["kinds"][1]["started"], 4)
        put("COMM_NEWEST_GROUP", c["newest_group"], 4)
        for i in range(2):
            struct.pack_into("<Q", b, base + AT["COMM_CALLS"][0] + 8 * i, c["calls"][i])
            k = base + AT["COMM_KIND"][0] + KIND_STRIDE * i
            for field in ("started", "written", "incomplete"):
                struct.pack_into("<Q", b, k + AT["KIND_" + field.upper()][0], c["kinds"][i][field])

    def put_op(self, b, at, o, data):
        p2p = o["func"] in ("Send", "Recv")
        SLOT_PACK.pack_into(
            b,
            at,
            o["gen"] | o["flags"] << 32 | o["want"] << 40,
            0,
            o["started"] << 16 | o["stopped"],
            o["first"] or 2**64 - 1,
            o["done"],
            o["first"],
            o["done"],
            o["group_ord"],
            data + COMM_PAGES * o["comm"],
            1 if p2p else 0,
            1 if o["func"] == "Recv" else 0,
            0,
            0,
            o["call"] & 0xFFFFFFFF,
            o["start"],
            o.get("stop", 0),
            o["sn"],
            o["bytes"] // 4,
            o["rec_sn"],
            o["root"],
            TEXTS.index(o["func"]),
            DTYPE,
            o.get("algo", RING),
            o.get("proto", SIMPLE),
            8,
            0,
            o["origin"],
        )

    def put_header(self, b, data, pages, session_page, map_page):
        size = OLD_HEADER if self.old else NEW_HEADER + 16 * rccl()
        clock = (1 << 40, self.ticks, self.ticks, self.unix)
        HEAD.pack_into(
            b,
            0,
            b"NIBLKBOX",
            0x01020304,
            2,
            size,
            len(FIELDS),
            PAGE,
            SLOT,
            COMM_PAGES,
            COMM_CLASS,
            1 << OP_CLASS,
            data,
            pages,
            KIND_STRIDE,
            CELL_STRIDE,
            b"nccl-inspector-c 0.1.0",
            b"",
            self.pid,
            self.space,
            self.start_ticks,
            os.getuid(),
            0,
            self.start_ns,
            self.boot.encode(),
            self.host.encode(),
            b"python3",
            self.rank,
            self.local,
            self.world,
            *self.nccl,
            PAGE,
            64,
            0,
            0,
            map_page * PAGE,
            PAGE,
            1,
            PAGE,
            2 * PAGE,
            PAGE,
            48,
            64,
            session_page * PAGE,
            (map_page - session_page) * PAGE,
            0,
            0,
            session_page * PAGE,
            (map_page - session_page) * PAGE,
            0,
            0,
            PAGE,
            PAGE + 4,
            self.state,
            pages,
            0,
            0,
            self.beat,
            self.unix - (self.ticks - self.beat),
            1000,
            0,
            *([0] * 16),
            *clock,
            *clock
        )
        for i, name in enumerate(FIELDS):
            struct.pack_into("<HH", b, HEAD.size + 4 * i, *AT.get(name, (0, 0)))
        tail = TAIL.pack(
            0,
            0,
            0,
            0,
            0,
            0,
            self.end,
            self.error,
            self.end_unix,
            self.unwritten,
            self.longest_operation,
            self.longest_gap,
        )
        tail += struct.pack("<4I", 1, 100000, 1, 0) * rccl()
        b[HEAD.size + 1024 : size] = tail[: size - HEAD.size - 1024]

    def write(self, folder, code, copied=None):
        """copied: (1 alive or 2 dead, Unix ns): a copy of a box, taken then. Returns the path."""
        name = "nccl-inspector-%s-pid%d-%016x" % (self.host, self.pid, code)
        b = self.image()
        if copied:
            name += ".%d" % copied[1]
            b += struct.pack("<8sIIQQ", b"NIBOXCPY", 1, copied[0], copied[1], len(b)).ljust(PAGE, b"\0")
        path = os.path.join(folder, name + ".box")
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(fd, "wb") as f:
            f.write(b)
        return path
