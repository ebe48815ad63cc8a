#!/usr/bin/env python3
"""What a recording of test/plugins/recorder.so holds (test/nccl_sim/replay/recording_format.h), against the
contract of NCCL 2.31: for test/cases/sim/sim_kinds.sh. One line a sentence that is broken; exit code 1 then.

  sim_calls.py RECORDING            are the orders of NCCL 2.31 kept?
  sim_calls.py --tags RECORDING     kind function tag, one line each, sorted, with how often
  sim_calls.py --list RECORDING     every call, one line each
"""
import collections
import struct
import sys

INIT, START, STOP, STATE, FINALIZE = 1, 2, 3, 4, 5
KINDS = ["Group", "Coll", "P2p", "ProxyOp", "ProxyStep", "ProxyCtrl", "KernelCh", "NetPlugin", "GroupApi",
         "CollApi",
         "P2pApi", "KernelLaunch", "CeColl", "CeSync", "CeBatch", "KernelPhase"]
MEMBER = {"Coll": 112, "P2p": 56, "ProxyOp": 40, "ProxyStep": 4, "KernelCh": 16, "NetPlugin": 16,
          # of v7
          "GroupApi": 8, "CollApi": 56, "P2pApi": 48, "KernelLaunch": 8, "CeColl": 96, "CeSync": 8,
          "CeBatch": 24, "KernelPhase": 24}
# less the descriptor's head of 24
TAG_AT = {"Coll": 104, "P2p": 48, "CollApi": 48, "P2pApi": 40, "CeColl": 88}


class Call:
    def __init__(self, kind, thread, handle):
        self.kind, self.thread, self.handle = kind, thread, handle
        self.event = self.stamp = None


class Event:
    def __init__(self, kind, parent, member, texts):
        self.kind, self.parent, self.texts = kind, parent, texts
        self.tag = struct.unpack_from("<Q", member, TAG_AT[kind])[0] if kind in TAG_AT else 0
        self.group = self.channels = self.stamp = self.channel = None
        self.symmetric = self.captured = False
        if kind == "Coll":
            self.channels, self.group = member[56], struct.unpack_from("<Q", member, 80)[0]
            self.symmetric = member[96] == 1
        elif kind == "P2p":
            self.channels, self.group = member[36], struct.unpack_from("<Q", member, 40)[0]
        elif kind == "KernelCh":
            self.channel, self.stamp = member[0], struct.unpack_from("<Q", member, 8)[0]
        elif kind == "KernelPhase":
            self.channel, self.stamp = member[0], struct.unpack_from("<Q", member, 16)[0]
        elif kind == "CollApi":
            self.captured = member[40] == 1
        self.children = []
        self.stop_stamp = None


def read(path):
    data = open(path, "rb").read()
    assert data[:8] == b"NIREC01\n", "not a recording"
    calls, events, at = [], {}, 8
    while at + 24 <= len(data):
        size, kind, version, thread, _, handle = struct.unpack_from("<HBBIQQ", data, at)
        body = data[at + 24:at + size]
        call = Call(kind, thread, handle)
        if kind == START:
            assert version == 7, f"a call through v{version}"
            bits, _, parent, _, strings = struct.unpack_from("<QQQii", body)
            name = KINDS[bits.bit_length() - 1]
            n = MEMBER.get(name, 0)
            texts = body[32 + n:].split(b"\0")[:strings]
            call.event = events[handle] = Event(name, parent, body[32:32 + n], [t.decode() for t in texts])
            if parent in events:
                events[parent].children.append(call.event)
        elif kind in (STOP, STATE):
            call.event = events.get(handle)
            if kind == STATE:
                call.state, _, call.stamp = struct.unpack_from("<iiQ", body)
                if call.state in (22, 31):
                    call.event.stop_stamp = call.stamp
        calls.append(call)
        at += size
    return calls, events


def orders(calls, events):
    wrong = []
    by_thread = collections.defaultdict(list)
    for c in calls:
        by_thread[c.thread].append(c)
    for mine in by_thread.values():
        for i, c in enumerate(mine):
            if c.kind != START or c.event.kind != "KernelPhase":
                continue
            # A phase is a start, state 31 and a stop in a row; behind the last one stand state 22 and the
            # stop of its KernelCh.
            row = [(x.kind, x.event) for x in mine[i:i + 3]]
            if row != [(START, c.event), (STATE, c.event), (STOP, c.event)] or mine[i + 1].state != 31:
                wrong.append("a phase is not a start, state 31 and a stop")
            after = mine[i + 3]
            parent = events[c.event.parent]
            if parent.kind != "KernelCh" or parent.channel != c.event.channel:
                wrong.append(f"a phase hangs on a {parent.kind}")
            if not (after.event is parent and after.kind == STATE and after.state == 22) and not (
                    after.kind == START and after.event.kind == "KernelPhase" and
                    after.event.parent == c.event.parent):
                wrong.append("something stands between a phase and the next one or the end of its KernelCh")
    for e in events.values():
        if e.kind == "KernelCh" and e.children and e.stamp and e.children[0].stamp >= e.stamp:
            edges = [e.stamp] + [x.stop_stamp for x in e.children]
            if ([x.stamp for x in e.children] != edges[:-1] or edges[-1] != e.stop_stamp or
                sorted(edges) != edges):
                wrong.append("phases do not add up to their KernelCh")
            names = [x.texts[0] for x in e.children]
            if names != [n for n in ("initial_sync", "compute", "final_sync") if n in names]:
                wrong.append(f"phases are called {names}")
        if e.kind == "KernelPhase" and events[events[e.parent].parent].kind == "P2p":
            wrong.append("a P2P has a phase")
        if e.kind == "Coll" and e.symmetric:
            algo, proto, variant = e.texts[2], e.texts[3], e.texts[4]
            if not variant.endswith("_" + algo) or not variant.startswith(e.texts[0] + "_") or proto:
                wrong.append(f"a symmetric kernel is called {variant}, {algo}, {proto}")
            group = [x for x in events.values() if x.kind == "Coll" and x.group == e.group]
            if len(group) > 1 and (e.channels > 0) != (group[0] is e):
                wrong.append("not the first Coll of a fused kernel is its head")
            channels = sorted(x.channel for x in e.children if x.kind == "KernelCh")
            replayed = e.parent in events and events[e.parent].captured
            if replayed and (channels or (group[0] is e and e.channels == 0)):
                wrong.append(f"a replayed symmetric kernel announces {e.channels} channels and has {len(channels)}")
            if not replayed and channels != list(range(e.channels)):
                wrong.append(f"a symmetric kernel announces {e.channels} channels and has {channels}")
        if e.kind == "Coll" and not e.symmetric and e.texts[4]:
            wrong.append("a classic kernel has a variant")
    return wrong


def main():
    path = sys.argv[-1]
    calls, events = read(path)
    if sys.argv[1] == "--tags":
        tags = collections.Counter((e.kind, e.texts[0], e.tag) for e in events.values() if e.kind in TAG_AT)
        for (kind, func, tag), n in sorted(tags.items()):
            print(kind, func, tag, n)
        return 0
    if sys.argv[1] == "--list":
        for c in calls:
            e = c.event
            what = {INIT: "init", START: "start", STOP: "stop", STATE: "state", FINALIZE: "finalize"}[c.kind]
            print(c.thread, what, e.kind if e else "", c.handle, e.parent if e else "",
                  e.texts if e and c.kind == START else "")
        return 0
    wrong = orders(calls, events)
    for text, n in collections.Counter(wrong).items():
        print(f"{text} ({n} times)")
    return 1 if wrong else 0


sys.exit(main())
