"""Logs of an invented pipeline job whose hosts share Sends and Receives, with clocks that are wrong by known
amounts; and what a timeline makes of them.

    trace_pairs.py make DIR TRUTH.json KIND [--steps N] [--seconds S] [--drift PPM,..] [--seed N]
    trace_pairs.py check TRACE.json.gz TRUTH.json US [HOST,..]

Four hosts of two ranks in a line: rank r of a host sends activations to rank r of the next host, which sends
gradients back.
KIND, of letters joined by "-": pairs (nothing else), world (an AllReduce of all, for which some always come
late), groups (AllReduces of two neighbours), oneway (no gradients), slow (gradients take 300 us longer),
small (fits the buffers: a Send ends before its Recv began), lost (records of host 1 are missing from the
middle on), head (its first ones), sampled (one in two), gpu (GPU clocks drift by 20 ppm under clock lines
that lag), step (host 2's clock steps), resized (sizes vary), waits (nobody waits for what is sent: the Send
is always first).
check: every operation within the stated error, hosts named within US of the truth; others may be unaligned.
"""
import json
import os
import random
import sys

sys.path.insert(0, os.path.dirname(__file__))
import argparse

import trace_check
import trace_logs
from trace_logs import T0

HOSTS, PER = 4, 2


class Message:
    """One side's view is a record: func, peer, called, start, end."""
    def __init__(self, o, rng, kind, size, back):
        self.size = size
        self.takes = 8000 + size // 40 + rng.randrange(2000) + (300000 if back and "slow" in kind else 0)


def rec(x, c, func, peer, size, start, end, lose):
    sn = x.number(x.p2p_rec, c)
    if lose:
        return
    x.add("p2p_perf", {"p2p": func, "p2p_sn": sn, "p2p_peer": peer, "p2p_msg_size_bytes": size,
                       "p2p_exec_time_us": (end - start + 500) // 1000, "p2p_timing_source": "kernel_gpu",
                       "p2p_algobw_gbs": 1.0, "p2p_busbw_gbs": 1.0, "p2p_datatype": "ncclFloat32",
                       "p2p_nchannels": 2, "p2p_exec_time_ns": end - start,
                       "p2p_enqueue_ns": x.clock(start - 5000),
                       "p2p_gpu_start_delta_ns": x.delta(c, start - 5000, start),
                       "rec_sn": sn, "nccl_tests_size_bytes": size}, end, c)
    x.truth.append({"rank": x.rank, "comm": c["hash"], "sn": sn, "kind": "p2p", "start": start, "end": end})


def make(a):
    kind = a.kind.split("-")
    rng = random.Random(a.seed)
    a.per_host, a.hosts, a.ranks = PER, HOSTS, HOSTS * PER
    a.offset, a.drift = ["0", "1.5", "-0.04", "0.3"], a.drift.split(",")
    a.gpu_drift = 20.0 if "gpu" in kind else 0.0
    a.step = (2, 3000000) if "step" in kind else None
    a.step_at = T0 + a.seconds * 5e8
    ranks = [trace_logs.Rank(a, r) for r in range(a.ranks)]
    pp = [{"hash": hex(0x5500 + r), "name": f"pp{r}", "ranks": [h * PER + r for h in range(HOSTS)]}
          for r in range(PER)]
    world = {"hash": "0x1111", "name": "world", "ranks": list(range(a.ranks))}
    two = [{"hash": hex(0x6600 + h), "name": "dp", "ranks": [h * PER, h * PER + PER]}
           for h in range(HOSTS - 1)]
    mine = {x.rank: [pp[x.rank % PER]] + ([world] if "world" in kind else []) +
            ([c for c in two if x.rank in c["ranks"]] if "groups" in kind else []) for x in ranks}
    for x in ranks:
        x.truth, x.p2p, x.sn = [], 0, {}
        x.process()
        for c in mine[x.rank]:
            x.comm(c, T0)
            x.state_gpu(c, T0 + 1000000, 0)
    period = int(a.seconds * 1e9 / a.steps)

    def lose(x):
        x.p2p += 1
        n = a.steps
        return x.rank // PER == 1 and (("lost" in kind and n <= x.p2p < n + 5) or
                                       ("head" in kind and x.p2p < 4)) or \
            ("sampled" in kind and rng.random() < 0.5)

    def message(c, a_, b_, at, back):
        """At `at` the data is there to be sent; the receiver waits for it, or comes up to 200 us late."""
        size = rng.choice((65536, 1 << 20,
                           8 << 20)) if "resized" in kind else 65536 if "small" in kind else 4 << 20
        m = Message(a, rng, kind, size, back)
        late = "waits" in kind or rng.random() < 0.3
        asks = at + rng.randrange(1000, 200000) if late else at - rng.randrange(1000, 300000)
        end = max(at, asks) + m.takes
        sent = at + m.takes // 2 if size <= 65536 else end - rng.randrange(1500)
        rec(ranks[a_], c, "Send", c["ranks"].index(b_), size, at, sent, lose(ranks[a_]))
        rec(ranks[b_], c, "Recv", c["ranks"].index(a_), size, asks, end, lose(ranks[b_]))
        return end

    def together(c, at, skew):
        begin = {r: at + rng.randrange(1000, 100000) + (skew * c["ranks"].index(r) // len(c["ranks"]))
                 for r in c["ranks"]}
        done = max(begin.values()) + 20000
        for r in c["ranks"]:
            x, end = ranks[r], done + rng.randrange(2000)
            sn = x.number(x.sn, c)
            x.coll(c, sn, begin[r] - 5000, begin[r], end)
            x.truth.append({"rank": r, "comm": c["hash"], "sn": sn, "kind": "coll", "start": begin[r],
                            "end": end})

    for k in range(a.steps):
        t = T0 + 2000000 + k * period
        for x in ranks:
            if k % (2 if "gpu" in kind else 20) == 0:
                for c in mine[x.rank]:
                    x.state_gpu(c, t, rng.randrange(period // 2))
        for r, c in enumerate(pp):
            at = t
            for h in range(HOSTS - 1):
                at = message(c, h * PER + r, (h + 1) * PER + r, at + 100000, False) + 300000
            for h in range(HOSTS - 1, 0, -1):
                if "oneway" not in kind:
                    at = message(c, h * PER + r, (h - 1) * PER + r, at + 100000, True) + 300000
        # Each pair of ranks in common once: stages end one after the other, so the first waits for
        # milliseconds, always.
        if "world" in kind:
            together(world, t + 30000000, 4000000)
        for c in two if "groups" in kind else ():
            together(c, t + 40000000, 0)
    last = T0 + 2000000 + a.steps * period
    for x in ranks:
        x.end(last + 10**9, mine[x.rank])
    os.makedirs(a.out, exist_ok=True)
    for x in ranks:
        with open(f"{a.out}/node-{x.host}-pid{x.rank + 1}-{T0 // 10**9}.jsonl", "w") as f:
            f.write("".join(l.replace('"pid":1,', f'"pid":{x.rank + 1},') + "\n" for l in x.lines))
    with open(a.truth, "w") as f:
        json.dump({"ops": [o for x in ranks for o in x.truth]}, f)


def check(trace, truth, us, hosts):
    x = trace_check.load(trace)
    truth = json.load(open(truth))
    told = {c["host"]: c for c in x.other["clocks"]}
    drawn = {(int(s["process"].split(",")[0].split()[1]), s["args"]["comm"], s["args"]["sn"], s["cat"]): s
             for s in x.slices if s["cat"] in ("coll", "p2p")}
    assert len(drawn) == len(truth["ops"]), (len(drawn), len(truth["ops"]))
    worst = {}
    for o in truth["ops"]:
        s = drawn[(o["rank"], o["comm"], o["sn"], o["kind"])]
        host = s["process"].split(", ")[1]
        worst[host] = max(worst.get(host, 0), abs(x.start + s["t"] - o["start"]))
    for host, c in sorted(told.items()):
        print(f"{host}: off {worst[host] / 1e3:.1f} us, stated {c['error_us']} us, {c['text']}")
    for host, w in worst.items():
        c = told[host]
        if not c["aligned"]:
            assert host not in hosts, f"{host} is not aligned"
            continue
        assert (host == x.other["clock_reference"] or
                w <= float(c["error_us"]) * 1000 + 1000), f"{host}: {w} ns off, {c['error_us']} us stated"
        assert host not in hosts or w <= us * 1000, f"{host}: {w} ns off"
    assert (len(hosts) == HOSTS - 1 or any(not c["aligned"] for c in told.values()) or
            not hosts), "more hosts are aligned than said"


def main():
    a = argparse.ArgumentParser()
    a.add_argument("verb", choices=["make", "check"])
    a.add_argument("out")
    a.add_argument("truth")
    a.add_argument("kind", help="or US")
    a.add_argument("aligned", nargs="?", default="")
    a.add_argument("--steps", type=int, default=100)
    a.add_argument("--seconds", type=float, default=20)
    a.add_argument("--drift", default="0,20,-5,8")
    a.add_argument("--seed", type=int, default=1)
    a = a.parse_args()
    if a.verb == "make":
        make(a)
    else:
        check(a.out, a.truth, float(a.kind), [h for h in a.aligned.split(",") if h])


if __name__ == "__main__":
    main()
