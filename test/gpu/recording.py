"""Reads what test/plugins/recorder.c wrote (test/nccl_sim/replay/recording_format.h), for checks in a few
lines each.

read(path) -> Recording: .calls, each (kind, unix_ns, thread, number, state, args), in the order of the file;
.events by number, a dict each: type (a name), version, comm, parent, rank, thread, start_ns, stop_ns, states
{state: (unix_ns, args)}, and the members of its type by NCCL's names (a text's address as NAME_at, and None
where that is 0); .comms by number, a dict each: hash, ranks, rank, name. Numbers are the recorder's; 0 is
none.
"""
import struct
from collections import namedtuple

INIT, START, STOP, STATE, FINALIZE = range(1, 6)
KERNEL_CH_STOP, KERNEL_PHASE_STOP = 22, 31
Call = namedtuple("Call", "kind unix_ns thread number state args")

# By bit: the type's name, and its members as (name, struct code, offset in the member), texts as "s" in the
# file's order.
TYPES = {
    0: ("Group", []),
    1: ("Coll", [("seqNumber", "Q", 0), ("func", "s", 8), ("count", "Q", 32), ("root", "i", 40),
                 ("datatype", "s", 48),
                 ("nChannels", "B", 56), ("algo", "s", 64), ("proto", "s", 72), ("parentGroup", "Q", 80),
                 ("kernelVariant", "s", 88), ("isSymColl", "B", 96), ("userTag", "Q", 104)]),
    2: ("P2p", [("func", "s", 0), ("datatype", "s", 16), ("count", "Q", 24), ("peer", "i", 32),
                ("nChannels", "B", 36),
                ("parentGroup", "Q", 40), ("userTag", "Q", 48)]),
    3: ("ProxyOp", []),
    4: ("ProxyStep", []),
    5: ("ProxyCtrl", []),
    6: ("KernelCh", [("channelId", "B", 0), ("pTimer", "Q", 8)]),
    7: ("NetPlugin", []),
    8: ("GroupApi", [("graphCaptured", "B", 0), ("groupDepth", "i", 4)]),
    9: ("CollApi", [("func", "s", 0), ("count", "Q", 8), ("datatype", "s", 16), ("root", "i", 24),
                    ("graphCaptured", "B", 40),
                    ("userTag", "Q", 48)]),
    10: ("P2pApi", [("func", "s", 0), ("count", "Q", 8), ("datatype", "s", 16), ("graphCaptured", "B", 32),
                    ("userTag", "Q", 40)]),
    11: ("KernelLaunch", []),
    12: ("CeColl", [("func", "s", 8), ("count", "Q", 32), ("datatype", "s", 48), ("syncStrategy", "s", 56),
                    ("userTag", "Q", 88)]),
    13: ("CeSync", []),
    14: ("CeBatch", []),
    15: ("KernelPhase", [("channelId", "B", 0), ("phaseId", "B", 1), ("phaseName", "s", 8),
                         ("pTimer", "Q", 16)]),
}
V7_ONLY = ("kernelVariant", "isSymColl", "userTag")
MEMBER_BYTES = {1: (88, 112), 2: (48, 56), 3: (24, 24), 4: (4, 4), 6: (16, 16), 7: (16, 16), 8: (8, 8),
                # up to v6, and of v7
                9: (48, 56), 10: (40, 48), 11: (8, 8), 12: (88, 96), 13: (8, 8), 14: (24, 24), 15: (0, 24)}


class Recording:
    def __init__(self):
        self.calls, self.events, self.comms = [], {}, {}

    def of(self, kind):
        """The events of a type, by number."""
        return [(number, event) for number, event in self.events.items() if event["type"] == kind]

    def children(self, parent, kind):
        return [event for _, event in self.of(kind) if event["parent"] == parent]


def start(body, version, unix_ns, thread):
    kind, comm, parent, rank, _ = struct.unpack_from("<QQQii", body)
    bit = kind.bit_length() - 1
    name, members = TYPES[bit]
    event = dict(type=name, version=version, comm=comm, parent=parent, rank=rank, thread=thread,
                 start_ns=unix_ns, stop_ns=0, stops=0,
                 states={})
    member = body[32:]
    texts = member[MEMBER_BYTES.get(bit, (0, 0))[version >= 7]:].split(b"\0")
    for field, code, at in members:
        if version < 7 and field in V7_ONLY:
            event[field] = None
        elif code == "s":
            text = texts.pop(0).decode()
            event[field + "_at"] = struct.unpack_from("<Q", member, at)[0]
            event[field] = text if event[field + "_at"] else None
        else:
            event[field] = struct.unpack_from("<" + code, member, at)[0]
    return event


def read(path):
    recording = Recording()
    with open(path, "rb") as file:
        data = file.read()
    if data[:8] != b"NIREC01\n":
        raise SystemExit(f"{path}: not a recording of the recorder")
    at = 8
    while at + 24 <= len(data):
        size, kind, version, thread, unix_ns, number = struct.unpack_from("<HBBIQQ", data, at)
        body = data[at + 24:at + size]
        at += size
        if at > len(data):
            break  # cut by the end of the process
        state = args = None
        if kind == INIT:
            hash_, _, ranks, rank, _ = struct.unpack_from("<Qiiii", body)
            recording.comms[number] = dict(hash=hash_, ranks=ranks, rank=rank,
                                           name=body[24:].split(b"\0")[0].decode())
        elif kind == START:
            recording.events[number] = start(body, version, unix_ns, thread)
        elif kind == STATE:
            state, _, args = struct.unpack_from("<iiQ", body)
            recording.events[number]["states"].setdefault(state, (unix_ns, args))
        elif kind == STOP and number in recording.events:
            recording.events[number]["stop_ns"] = unix_ns
            recording.events[number]["stops"] += 1
        recording.calls.append(Call(kind, unix_ns, thread, number, state, args))
    return recording
