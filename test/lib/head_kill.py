"""The head is killed again and again, with sessions that run and clients of both kinds: what was acknowledged
is there.

    KILLS: how often (10); AGENTS (4), GSPROF (3): how many clients
"""
import json
import os
import random
import subprocess
import time

import grpc
import head

KILLS = int(os.environ.get("KILLS", "10"))
AGENTS, GSPROF = int(os.environ.get("AGENTS", "4")), int(os.environ.get("GSPROF", "3"))
# the first frames after a kill wait so long for clients that come back (grid.h), and are made within a hold
# after that
BACK = 8 + 2.5
random.seed(int(os.environ.get("SEED", "1")))


class Again:
    """gsprof's standard client: connects again and again, keeps nothing. When each message went out."""

    def __init__(self, h, host):
        self.h, self.host, self.c, self.sent, self.since = h, host, None, [], 0

    def turn(self):
        try:
            if self.c and self.c.stream.call.done():
                self.c.cut()
                self.c = None
            if not self.c:
                self.c, self.since = head.Gsprof(self.h, self.host), time.time()
            self.c.send(0.5)
            self.sent.append(time.time())
        except grpc.RpcError:
            if self.c:
                self.c.cut()
            self.c = None


def cli(h, *words, code=0):
    p = subprocess.run([head.INSPECTOR, "session", *words], capture_output=True, text=True, cwd=h.out,
                       timeout=60)
    assert p.returncode == code, (words, p.returncode, p.stdout, p.stderr)
    return p.stdout


def live(clients, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for c in clients:
            c.turn()
        time.sleep(0.1)


with head.Head("kill") as h:
    agents = [head.Agent(h, "n%d" % i, skew_s=i - 2) for i in range(AGENTS)]
    theirs = [Again(h, "g%d" % i) for i in range(GSPROF)]
    live(theirs, 1)
    h.start("all")
    begin, spans, acked = time.time(), [], [0] * AGENTS
    h.start("other")
    live(theirs, 2)
    for k in range(KILLS):
        # Every tenth lives long enough that frames are made again; the others die before that.
        live(theirs, BACK + random.random() if k % 10 == 4 else 0.2 + random.random())
        spans.append(time.time())
        h.kill()
        if k == 0:  # without a head
            listed = cli(h, "recover", "--list", "--data-dir", h.data)
            assert "all" in listed and "other" in listed, listed
            cli(h, "recover", "--name", "all", "--export", h.out + "/rescued.json", "--data-dir", h.data)
            rescued = head.sound(json.load(open(h.out + "/rescued.json")), "rescued")
            for a in agents:
                a.complete(rescued, begin + head.PERIOD, spans[0], a.acked)
        h.begin()
        for a, before in zip(agents, acked):
            assert a.acked >= before, (a.host, a.acked, before)
        acked = [a.acked for a in agents]
    live(theirs, BACK)
    end = time.time()
    head.until(lambda: live(theirs, 0.1) or all(a.time.get(a.acked, 0) > end for a in agents), 60)
    stopped = time.time()
    assert h.get("/profiling/sessions")["active_sessions"] == 2
    h.stop("all")
    d = h.file("all", 60)
    n = [a.complete(d, begin + head.PERIOD, end) for a in agents]
    times = [head.tick_of(f) for f in d["frames"]]
    assert all(abs(b - a - head.PERIOD) < 1e-3 for a, b in zip(times, times[1:])), "a frame is missing"
    lost = {c["hostname"]: c["lost"] for c in h.get("/clients")["clients"]}
    assert not any(lost.values()), lost
    # gsprof's: of a head that lived long enough to make frames, a second at most before it died.
    worst = 0
    for g in theirs:
        columns = [k for k, i in enumerate(d["frames"][-1]["client_id"]) if i.startswith(g.host + "_")]
        ok = {round(t / head.PERIOD) for t, f in zip(times, d["frames"]) for k in columns
              if k < len(f["client_state"]) and f["client_state"][k] == "ok"}
        last = [max((s for s in g.sent if s < spans[0]), default=0)]
        worst = max(worst, last[0] - max((k * head.PERIOD for k in ok if k * head.PERIOD <= last[0] +
                                          head.PERIOD), default=0))
    assert worst < 1.0, "%.1f s of gsprof's are lost" % worst
    # Resumed by name, and ended again: numbers go on.
    before = len(d["frames"])
    got = h.post("/profiling/resume", "all")
    assert got["success"], got
    live(theirs, 1.5)
    h.stop("all")
    cli(h, "recover", "--name", "all", "--export", h.out + "/again.json", "--data-dir", h.data)
    again = head.sound(json.load(open(h.out + "/again.json")), "again")
    assert len(again["frames"]) > before, (len(again["frames"]), before)
    h.stop("other")
    other = h.file("other", 60)
    for a in agents:
        a.complete(other, begin + 1, end)
        a.close()
    print("%d kills, %d frames, samples that were acknowledged and are there: %s; gsprof's lost %.2f s at most" %
          (KILLS, len(d["frames"]), n, worst))
