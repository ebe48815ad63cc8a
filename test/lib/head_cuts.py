"""Between clients and the head the network is cut: it is noticed, old numbers are not shown as new ones, all
is sent after it, in order.

    HOLE_S: how long nothing passes (10)
"""
import json
import os
import time

import head

HOLE = float(os.environ.get("HOLE_S", "10"))


def state(h, host):
    return (h.client(host) or {}).get("state")


def watched(h, a, g, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        g.send(0.5)
        time.sleep(head.PERIOD / 2)


def back(h, a, since):
    """All that was kept is acknowledged, and it came in the order of its numbers."""
    head.until(lambda: a.stream and a.acked and a.time[a.acked] > since, 90)
    assert a.order == sorted(set(a.order)), a.order
    c = h.client(a.host)
    assert c["lost"] == 0, c


def reset(h, p, a, g):
    before = a.welcomes
    p.reset()
    since = time.time()
    head.until(lambda: a.welcomes > before, 15)
    back(h, a, since)


def hole(h, p, a, g):
    """Nothing passes, and nobody says so."""
    p.hole, began, stale, gone = True, time.monotonic(), None, None
    while time.monotonic() < began + HOLE:
        g.send(0.5)
        s = state(h, a.host)
        stale = stale or (s != "ok" and time.monotonic() - began)
        gone = gone or (s == "gone" and time.monotonic() - began)
        time.sleep(head.PERIOD / 2)
    assert stale and stale < 8, "stale after %s" % stale
    if HOLE > 40:
        assert gone and gone < 35, "gone after %s" % gone
    noticed = a.cut_at and a.cut_at > began and a.cut_at - began
    p.hole, since = False, time.time()
    back(h, a, since)
    return stale, gone, noticed


def stopped(h):
    """A client that stands still with its connection open: what it said last is not said again."""
    f = head.Gsprof(h, "frozen")
    for _ in range(5):
        f.send(0.33)
        time.sleep(head.PERIOD)
    head.until(lambda: state(h, "frozen") == "stale", 10)
    latest = next(v for k, v in h.get("/metrics/latest")["client_data"].items() if k.startswith("frozen_"))
    assert latest["state"] == "stale" and latest["age_s"] > 2 * head.PERIOD, latest
    f.cut()
    head.until(lambda: state(h, "frozen") == "gone", 10)
    # it is told, without its old numbers
    latest = next(v for k, v in h.get("/metrics/latest")["client_data"].items() if k.startswith("frozen_"))
    assert (latest["state"] == "gone" and latest["age_s"] > 0 and
            [(g["name"], g["gpu_util"]) for g in latest["gpus_metrics"]] == [(head.GPU, None)]), latest


with head.Head("cuts") as h:
    p = head.Proxy(h.port)
    a, other, g = head.Agent(h, "cut", at=p.at), head.Agent(h, "other"), head.Gsprof(h, "steady")
    watched(h, a, g, 1)
    h.start("cuts")
    begin = time.time()
    watched(h, a, g, 1)
    stopped(h)
    reset(h, p, a, g)
    watched(h, a, g, 0.5)
    hole_at = time.time()
    told = hole(h, p, a, g)
    watched(h, a, g, 1)
    end = time.time()
    head.until(lambda: all(x.time.get(x.acked, 0) > end for x in (a, other)), 30)
    h.stop("cuts")
    d = h.file("cuts", 60)
    n = a.complete(d, begin + head.PERIOD, end), other.complete(d, begin + head.PERIOD, end)
    assert h.session("cuts")["late"] > 0, "nothing came late, so that nothing was tried"
    # As it was at the time, before what came late: a frame says stale, and no old number.
    lines = open([os.path.join(r, f) for r, _, fs in os.walk(h.data) for f in fs
                  if f == "frames.jsonl"][0]).read().splitlines()
    silent = 0
    for line in lines:
        f = json.loads(line)
        for host, ident in (("cut", a.id()), ("frozen", None)):
            at = [k for k, i in enumerate(f["client_id"]) if i == ident or
                  (not ident and i.startswith("frozen_"))]
            if not at or f["client_state"][at[0]] == "ok":
                continue
            silent += 1
            assert f["gpu_util"][f["gpu_id"].index("%s:0:%s" % (host, head.GPU))] == "nan", f
            assert f["client_age_s"][at[0]] is None or f["client_age_s"][at[0]] > 2 * head.PERIOD, f
    assert silent > 5, silent
    a.close()
    other.close()
    print("stale after %.1f s, gone after %s, noticed by the agent after %s; %s samples are there" % (*told, n))
