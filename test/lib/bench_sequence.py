"""Does the bench raise a collective as NCCL does? Recordings of test/plugins/recorder.c, the bench's beside
real ones.

    bench_sequence.py BENCH.rec REAL.rec.gz...    the real ones of one release; exit status 1 when something differs

Of each eager AllReduce that is alone in its group: the calls about it and its parents on the starter's
thread, in order, with states, parents and what its API call says; and those about its KernelChs on the
poller's thread. Only kinds that the mask of Coll, P2p and KernelCh brings: recordings hold more.
"""
import collections
import gzip
import struct
import sys

KINDS = {1: "Group", 2: "Coll", 4: "P2p", 64: "KernelCh", 256: "GroupApi", 512: "CollApi", 1024: "P2pApi"}
NOT_ASKED = {8, 16, 32, 128, 2048, 4096, 8192, 16384}
START, STOP, STATE = 2, 3, 4  # enum ni_rec_kind
Event = collections.namedtuple("Event", "kind parent group member texts")
Call = collections.namedtuple("Call", "what thread handle")


def read(path):
    """The calls in order, and the events by handle."""
    data = (gzip.open if path.endswith(".gz") else open)(path, "rb").read()
    calls, events, at = [], {}, 8
    while at + 24 <= len(data):
        size, what, _, thread, _, handle = struct.unpack_from("<HBBIQQ", data, at)
        body, at = data[at + 24:at + size], at + size
        if what == START:
            kind, _, parent, _, texts = struct.unpack_from("<QQQii", body)
            if kind in NOT_ASKED:
                continue
            rest = body[32:]
            texts = rest.split(b"\0")[-1 - texts:-1]
            group = struct.unpack_from("<Q", rest, 80)[0] if kind == 2 else 0  # ni_prof_descr_v6, less 24
            events[handle] = Event(KINDS.get(kind, kind), parent, group, rest, texts)
            calls.append(Call("start", thread, handle))
        elif what in (STOP, STATE) and handle in events:
            calls.append(Call("stop" if what == STOP else "state %d" % struct.unpack_from("<i", body), thread,
                              handle))
    return calls, events


def launches(path):
    """(starter's calls, poller's calls) of each eager AllReduce that is alone in its group, as texts."""
    calls, events = read(path)
    children = collections.Counter()
    for e in events.values():
        children.update((e.kind, p) for p in {e.parent, e.group} if p)
    for handle, e in events.items():
        if e.kind != "Coll" or e.texts[0] != b"AllReduce":
            continue
        api = events.get(e.parent) if e.parent != e.group else None
        family = {handle: "Coll", e.group: "Group"}
        if api:
            if struct.unpack_from("<B", api.member, 40)[0]:
                continue  # captured
            family.update({e.parent: "CollApi", api.parent: "GroupApi"})
        alone = all(children[k, p] <= 1 for p in family for k in ("Coll", "P2p", "CollApi", "P2pApi"))
        chs = [h for h, k in events.items() if k.kind == "KernelCh" and k.parent == handle]
        threads = {c.thread for c in calls if c.handle in family}
        pollers = {c.thread for c in calls if c.handle in chs}
        if not alone or not chs:
            continue
        at = [i for i, c in enumerate(calls) if c.handle in family]
        starter = ["on %d threads" % len(threads)]
        for c in calls[at[0]:at[-1] + 1]:
            if c.thread not in threads:
                continue
            k = events[c.handle]
            text = "%s %s" % (family.get(c.handle, "another's " + k.kind), c.what)
            if c.what == "start":
                text += ", parent %s, group %s" % (family.get(k.parent, k.parent),
                                                   family.get(k.group, k.group))
            if c.what == "start" and k.kind == "GroupApi":
                text += ", depth %d, graph %d" % (struct.unpack_from("<i", k.member, 4)[0], k.member[0])
            if c.what == "start" and k.kind == "CollApi":
                same = (k.texts == e.texts[:2] and
                        struct.unpack_from("<Q", k.member, 8) == struct.unpack_from("<Q", e.member, 32))
                text += ", says %s" % ("what the Coll does" if same else "other things")
            starter.append(text)
        poller = ["on %d threads, %s" % (len(pollers),
                                         "the starter's too" if pollers & threads else "not the starter's")]
        poller += ["KernelCh %d %s" % (chs.index(c.handle), c.what) for c in calls if c.handle in chs]
        yield tuple(starter), tuple(poller)


def main(bench, *real):
    ours, theirs = list(launches(bench)), [x for path in real for x in launches(path)]
    failed = len(read(bench)[0]) != sum(len(s) + len(p) - 2 for s, p in ours)
    if failed:
        print("FAIL the bench calls what belongs to no operation")
    for i, who in enumerate(("starter", "poller")):
        one, other = {x[i] for x in ours}, {x[i] for x in theirs}
        # Of the channels' order several are right: a channel may begin after another has ended.
        ok = len(one) == 1 and (one == other if who == "starter" else one <= other)
        failed |= not ok
        print("%s the %s: %d operations of the bench, %d of NCCL" %
              ("ok  " if ok else "FAIL", who, len(ours), len(theirs)))
        for name, sequences in () if ok else (("the bench", one), ("NCCL", other)):
            for calls in sorted(sequences):
                print("  %s:\n    %s" % (name, "\n    ".join(calls)))
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
