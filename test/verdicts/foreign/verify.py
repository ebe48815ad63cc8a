#!/usr/bin/env python3
"""Checks that logs of a job are physically possible: verify.py JOB_DIR...

- all members of a communicator have the same calls with the same sizes;
- operations on one communicator of a rank do not overlap by more than the weather explains;
- the members' operations share a moment (on the aligned clock), unless clocks are apart;
- who comes last, how often: printed for the largest communicators.
"""

import collections
import glob
import gzip
import json
import sys


def read(folder):
    """Operations by (communicator, function, number of the call): {rank: (start, end, bytes)}."""
    ops = collections.defaultdict(dict)
    by_rank = collections.defaultdict(list)
    names = {}
    messages = collections.defaultdict(list)
    for path in glob.glob(folder + "/*.jsonl.gz"):
        try:
            lines = gzip.open(path, "rt").read().splitlines()
        except EOFError:
            print("cut:", path)
            continue
        world_rank = None
        for line in lines:
            d = json.loads(line)
            if "process" in d:
                world_rank = d["process"]["rank"]
            perf = d.get("coll_perf")
            head = d["header"]
            if not perf and "p2p_perf" in d:
                perf = d["p2p_perf"]
                a, b = head["rank"], perf["p2p_peer"]
                pair = (head["id"], a, b) if perf["p2p"] == "Send" else (head["id"], b, a)
                messages[pair, perf["p2p"]].append((perf["p2p_sn"], perf["p2p_msg_size_bytes"]))
                start = perf["p2p_enqueue_ns"] + perf["p2p_gpu_start_delta_ns"]
                by_rank[world_rank, head["id"], "p2p"].append(
                    (start, start + perf["p2p_exec_time_ns"])
                )
            if "coll_perf" not in d:
                continue
            start = perf["coll_enqueue_ns"] + perf["coll_gpu_start_delta_ns"]
            end = start + perf["coll_exec_time_ns"]
            names[head["id"]] = (head.get("comm_name"), head["n_ranks"])
            key = (head["id"], perf["coll"], perf["coll_sn"])
            ops[key][world_rank] = (start, end, perf["coll_msg_size_bytes"])
            by_rank[world_rank, head["id"], "coll"].append((start, end))
    return ops, by_rank, names, messages


def check_members(ops, names):
    """Collectives that lack members, differ in size, share no moment; who came last, by communicator."""
    partial = sizes = apart = 0
    last = collections.defaultdict(collections.Counter)
    for key, members in ops.items():
        partial += len(members) != names[key[0]][1]
        sizes += len({m[2] for m in members.values()}) > 1
        if len(members) < 2 or key[1] == "Broadcast":
            continue
        apart += max(m[0] for m in members.values()) > min(m[1] for m in members.values())
        order = sorted(members, key=lambda r: members[r][0])
        if members[order[-1]][0] - members[order[-2]][0] > 50000:
            last[key[0]][order[-1]] += 1
    return partial, sizes, apart, last


def check_overlaps(by_rank):
    """How many collectives of one rank and communicator overlap, and by how many ns at most."""
    overlaps = worst = 0
    for kind, operations in by_rank.items():
        if kind[2] == "p2p":
            continue
        operations.sort()
        for a, b in zip(operations, operations[1:]):
            if b[0] < a[1]:
                overlaps += 1
                worst = max(worst, a[1] - b[0])
    return overlaps, worst


def check_messages(messages):
    """Pairs of ranks whose sides do not agree about what was sent."""
    odd = 0
    for pair in {key[0] for key in messages}:
        sent = [m[1] for m in sorted(messages[pair, "Send"])]
        got = [m[1] for m in sorted(messages[pair, "Recv"])]
        odd += sent != got
    return odd


def verify(folder):
    """Prints what was found; false: something cannot be."""
    truth = json.load(open(folder + "/truth.json"))
    ops, by_rank, names, messages = read(folder)
    print(folder, truth["shape"], "weather", truth["weather"], "missing", truth["missing_ranks"])
    for cause in truth["causes"]:
        what = (cause["kind"], cause["level"], "ranks", cause["ranks"][:8], "cost", cause["cost"])
        print("  cause", *what)
    partial, sizes, apart, last = check_members(ops, names)
    overlaps, worst = check_overlaps(by_rank)
    odd = check_messages(messages)
    print(
        f"  {len(ops)} collectives, {partial} lack members, {sizes} differ in size, "
        f"{apart} share no moment"
    )
    print(f"  {overlaps} overlaps on one communicator, worst {worst / 1e3:.1f} us")
    print(f"  {len(messages)} directions of messages, {odd} whose two sides differ")
    for comm, count in sorted(last.items(), key=lambda x: -sum(x[1].values()))[:4]:
        print("  last on", names[comm], count.most_common(4))
    clean = not truth["weather"]
    return bool(ops) and sizes == 0 and not (clean and (partial or odd))


def main():
    possible = [verify(folder) for folder in sys.argv[1:]]
    sys.exit(0 if all(possible) else 1)


if __name__ == "__main__":
    main()
