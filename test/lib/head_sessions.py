"""Sessions over clients of both kinds: overlapping ones, names, hosts of one name, clocks that are wrong,
streams that end twice."""
import json
import os
import time

import grpc
import head
import rpc_pb2 as theirs

BEGAN = time.time()


def overlapping(h, a):
    """Frames of shared times are equal, but for their numbers; each session's begin at 1."""
    silent = head.Gsprof(h, "silent")
    h.start("one")
    time.sleep(1)
    h.start("two")
    h.start("three")
    begin = time.time()
    for _ in range(6):
        silent.send(0.5)
        time.sleep(head.PERIOD)
    got = h.post("/profiling/start", "two")
    assert (not got["success"] and got["output_file"] == "" and
            h.get("/profiling/sessions")["active_sessions"] == 3), got
    assert not h.post("/profiling/stop", "unknown")["success"]
    time.sleep(1.7 * head.PERIOD)  # frames wait for the one that is silent now
    stopped = h.stop("one")
    assert (stopped["message"] == "Profiling stopped. Data saved to one.json" and
            stopped["output_file"] is None), stopped
    end = time.time()
    assert {s["name"] for s in h.get("/status")["sessions"]} == {"two", "three"}
    # gsprof's: the name of one, then all that run.
    r = h.unary("StopProfiling", theirs.StartProfilingRequest(name="two"), head.ConnectResponse)
    assert r.success and r.message == "Profiling stopped. Data saved to two.json", r.message
    time.sleep(0.5)
    h.start("four")
    r = h.unary("StopProfiling", theirs.StartProfilingRequest(), head.ConnectResponse)
    # each of them is named
    assert (r.success, r.message) == (True, "Profiling stopped. Data saved to three.json, four.json"), r
    # Whoever is asked says the same from then on.
    told, sessions, grpcs = h.get("/status"), h.get("/profiling/sessions"), h.unary("GetStatus", head.Raw(b""), theirs.StatusResponse)
    assert (not told["is_profiling"] and not told["sessions"] and not grpcs.is_profiling and
            sessions["active_sessions"] == 0)
    newest = sessions["sessions"][0]
    assert told["output_filename"] == grpcs.output_filename == newest["output_file"] == "four.json"
    assert told["frame_id_counter"] == grpcs.frame_id_counter == newest["frames"] == len(json.load(open(h.out + "/four.json"))["frames"])
    r = h.unary("StopProfiling", theirs.StartProfilingRequest(), head.ConnectResponse)
    assert (r.success, r.message) == (False, "Profiling is not active."), r
    assert not h.get("/status")["is_profiling"]
    one, two, three = (h.file(name) for name in ("one", "two", "three"))
    keys = "session_id", "session_name", "frame_id"
    by_time = [{f["time"]: {k: v for k, v in f.items() if k not in keys} for f in d["frames"]}
               for d in (one, two, three)]
    shared = set(by_time[0]) & set(by_time[1]) & set(by_time[2])
    assert len(shared) >= 3, [len(b) for b in by_time]
    for t in shared:
        for b in by_time[1:]:
            for key, value in by_time[0][t].items():  # a session that began later lacks no client here
                assert b[t][key] == value, (t, key, value, b[t][key])
    # A session has all that was taken before its end, also what waits for a silent client.
    head.until(lambda: a.acked and a.time[a.acked] > end)
    for d in one, two, three:
        assert a.complete(d, begin + head.PERIOD, end - 1.2 * head.PERIOD) >= 2, a.acked
    # A file that is there stays.
    before = open(h.out + "/one.json").read()
    h.start("one")
    h.stop("one")
    head.until(lambda: os.path.exists(h.out + "/one-2.json"))
    assert open(h.out + "/one.json").read() == before
    silent.close()


def names(h):
    """A name is never a path."""
    for name in ("../x", "/etc/x", "a/b", "..", ".hidden", " x", "x\0y", "x\ny", "x" * 129, "x" * 60000,
                 "\u00e4", "a\\b", "~", "$(id)"):
        code, _, text = h.ask("POST", "/profiling/start", {"name": name})
        assert (code in (200, 422) and (
                code == 422 or not json.loads(text)["success"])), (name[:20], code, text)
        try:
            r = h.unary("StartProfiling", theirs.StartProfilingRequest(name=name),
                        theirs.StartProfilingResponse)
            assert not r.success, name
        except grpc.RpcError as e:
            assert e.code() == grpc.StatusCode.INVALID_ARGUMENT, e
    assert not h.get("/status")["is_profiling"]
    good = "A-z 0.9_x"
    h.start(good)
    h.stop(good)
    h.file(good)
    r = h.unary("StartProfiling", theirs.StartProfilingRequest(), theirs.StartProfilingResponse)
    assert r.success and r.output_file.endswith(".json"), r
    h.stop()
    there = {os.path.relpath(os.path.join(d, f), h.folder) for d, _, files in os.walk(h.folder)
             for f in files}
    assert all(f == "err" or f.startswith(("data/", "out/")) for f in there), there
    outside = [os.path.join(d, f) for d in (os.path.dirname(head.WORK), "/etc", head.WORK)
               for f in ("x", "x.json")]
    # One of these may be somebody else's, and older.
    assert not [f for f in outside if os.path.exists(f) and os.path.getmtime(f) >= BEGAN]


def one_host_twice(h):
    """Two machines of one name are two; one that connects again is itself, before and after its old stream
    ended."""
    h.start("twice")
    a, b = head.Gsprof(h, "same"), head.Gsprof(h, "same")

    def both():
        for _ in range(6):
            a.send(0.25)
            b.send(0.75)
            time.sleep(head.PERIOD)
    both()
    ids = [c["client_id"] for c in h.get("/clients")["clients"] if c["hostname"] == "same"]
    assert len(set(ids)) == 2, ids
    a.close()
    for _ in range(8):  # the other one goes on
        b.send(0.75)
        time.sleep(head.PERIOD)
    c = head.Gsprof(h, "same")
    for _ in range(4):
        b.send(0.75)
        c.send(0.5)
        time.sleep(head.PERIOD)
    assert len([c for c in h.get("/clients")["clients"] if c["hostname"] == "same"]) == 2, h.get("/clients")
    h.stop("twice")
    d = h.file("twice")
    last = d["frames"][-1]
    i = [k for k, host in enumerate(last["client_id"]) if host in ids]
    assert len(i) == 2, last
    columns = [[f["gpu_util"][k] for f in d["frames"] if k < len(f["gpu_util"])]
               for k, g in enumerate(last["gpu_id"]) if g.startswith("same:")]
    assert (len(columns) == 2 and {"25.00", "50.00", "nan"} == set(columns[0]) | {"nan"} and
            set(columns[1]) - {"nan"} == {"75.00"}), columns
    # it was away for a while, and that is no number
    assert columns[0].index("nan", 2) < len(columns[0]), columns
    b.close()
    c.close()


def streams(h):
    """Two streams of one client on one connection: when one ends, the client stays; no session runs, and it
    is silent for long."""
    a = head.Gsprof(h, "double")
    a.send(0.5)
    second = head.Stream(a.channel, head.GSPROF + "StreamMetrics")
    second.put(head.metrics("double", [0.5]))
    head.until(lambda: h.taken("double") == 2)
    second.put(None)
    second.call.result(timeout=20)
    time.sleep(8 * head.PERIOD)  # stale, and forgotten if it were gone
    assert h.client("double")["connected"], h.client("double")
    a.send(0.75)
    head.until(lambda: h.taken("double") == 3)
    a.close()
    # gsprof's standard client calls Connect again on the connection that it has.
    b = head.Gsprof(h, "again")
    for _ in range(3):
        assert h.unary("Connect", head.Raw(head.ours_initial("again", 1)), head.ConnectResponse,
                       channel=b.channel).success
    b.send(0.5)
    head.until(lambda: h.taken("again") == 1)
    assert b.close() == b"", "a stream is answered with an empty message"


def clocks(h):
    """Clients whose clocks are wrong by 5 s, and one whose clock steps back: no row is lost, times grow, skew
    is told."""
    h.start("clocks")
    ahead, behind, steps = head.Gsprof(h, "ahead"), head.Gsprof(h, "behind"), head.Gsprof(h, "steps")
    ours = [head.Agent(h, "ours+", skew_s=5), head.Agent(h, "ours-", skew_s=-5)]
    begin = time.time()
    for i in range(20):
        now = time.time()
        ahead.send(i / 100, timestamp=now + 5)
        behind.send(i / 100, timestamp=now - 5)
        steps.send(i / 100, timestamp=now - (30 if i >= 10 else 0))
        time.sleep(head.PERIOD)
    end = time.time()
    time.sleep(2 * head.PERIOD)
    skews = {c["hostname"]: c["skew_s"] for c in h.get("/clients")["clients"]}
    for host, want in (("ahead", 5), ("behind", -5), ("ours+", 5), ("ours-", -5)):
        assert abs(skews[host] - want) < 0.5, (host, skews)
    lost = {c["hostname"]: c["lost"] for c in h.get("/clients")["clients"]}
    assert not any(lost.values()), lost
    h.stop("clocks")
    d = h.file("clocks")
    for a in ours:
        head.until(lambda: a.time.get(a.acked, 0) > end)
        assert a.complete(d, begin + 1, end - head.PERIOD) > 5
        a.close()
    for host in "ahead", "behind", "steps":
        column = d["frames"][-1]["gpu_id"].index("%s:0:%s" % (host, head.GPU))
        seen = [f["gpu_util"][column] for f in d["frames"] if len(f["gpu_util"]) > column and
                f["gpu_util"][column] != "nan"]
        numbers = [float(v) for v in seen]
        assert numbers == sorted(numbers), (host, numbers)  # in the order in which they were taken
        if host != "steps":
            assert len(set(numbers)) >= 17, (host, numbers)  # two may be nearest to one tick
    for c in ahead, behind, steps:
        c.close()


def begun_anew():
    """An agent's spool is lost, and it counts from 1 again, further than before: nothing is taken for a
    double. So after a kill of the head."""
    with head.Head("anew") as h:
        a = head.Agent(h, "n1", epoch=7)
        h.start("anew")
        for epoch, kill in (8, False), (9, True):
            head.until(lambda: a.acked >= 12)
            time.sleep(1.5)  # its epoch is noted once a second
            if kill:
                h.kill()
            a.anew(epoch, 30)
            begin, end = a.time[1], a.time[30]
            if kill:
                h.begin()
            head.until(lambda: a.acked > 35)
            assert h.client("n1")["lost"] == 0 and a.errors == [] or kill, (h.client("n1"), a.errors)
        h.stop("anew")
        d = h.file("anew")
        assert a.complete(d, begin, end) == 30
        a.close()


def remembered():
    """Nodes that were gone before the head was killed are known after it: in lists, in frames, with their
    GPUs; who comes back is the same."""
    with head.Head("remembered") as h:
        a, g, stays = head.Agent(h, "ours", epoch=1), head.Gsprof(h, "theirs"), head.Agent(h, "stays")
        h.start("gone")
        for _ in range(30):  # more often than there are frames
            g.send(0.5)
            time.sleep(head.PERIOD / 5)
        head.until(lambda: a.acked > 5 and h.taken("theirs") == 30 and stays.acked > 5)
        assert h.client("theirs")["superseded"] > 5, h.client("theirs")  # several of one tick
        a.close()
        g.close()
        head.until(lambda: {h.client(c)["state"] for c in ("ours", "theirs")} == {"gone"})
        ids = {c: h.client(c)["client_id"] for c in ("ours", "theirs")}
        time.sleep(1.5)
        h.kill()
        h.begin()
        there = h.get("/status")
        assert set(there["gone_clients"]) - {stays.id()} == set(ids.values()), there
        for c in ids:
            got = h.client(c)
            assert (got["state"] == "gone" and not got["connected"] and got["client_id"] == ids[c] and
                    got["age_s"] is None), got
            assert (got["gpu_count"] == 1 and got["gpus"][0]["name"] == head.GPU and
                    got["agent"] == (c == "ours")), got
        back = head.Gsprof(h, "theirs")
        back.send(0.75)
        head.until(lambda: h.taken("theirs") == 1)
        assert (h.client("theirs")["client_id"] == ids["theirs"] and
                h.get("/status")["gone_clients"] == [a.id()])
        frames = h.session("gone")["frames"]
        head.until(lambda: h.session("gone")["frames"] > frames + 50, 40)
        back.close()
        h.stop("gone")
        last = h.file("gone")["frames"][-1]
        assert len(last["client_id"]) == len(last["gpu_id"]) == 3, last
        k = last["client_id"].index(a.id())
        # What the head took just before the stream ended was not acknowledged any more.
        assert ((last["client_state"][k], last["client_age_s"][k]) == ("gone", None) and
                a.acked <= last["client_seq"][k] <= a.seq), (a.acked, last)
        stays.close()


def many_names(h):
    """One connection under many names: others find room."""
    channel = grpc.insecure_channel(h.at)
    replies = [h.unary("Connect", head.Raw(head.ours_initial("name%d" % i, 1)), head.ConnectResponse,
                       channel=channel) for i in range(70)]
    assert [r.success for r in replies] == [True] * 64 + [False] * 6, [r.success for r in replies]
    assert "too many clients" in replies[-1].message, replies[-1].message
    channel.close()
    g = head.Gsprof(h, "other")
    g.close()


def stepped():
    """The machine's clock is set an hour ahead: frames go on in the time that they had, and the head does not
    spin."""
    step = head.WORK + "/step"
    with head.Head("stepped", env={"LD_PRELOAD": os.path.dirname(head.INSPECTOR) + "/test/step_clock.so",
                                   "NI_STEP_FILE": step,
                                     "ASAN_OPTIONS": "verify_asan_link_order=0"}) as h:
        def used():
            return sum(int(x) for x in open("/proc/%d/stat" % h.p.pid).read().rsplit(")", 1)[1].split()[11:13]) / os.sysconf("SC_CLK_TCK")
        h.start("step")
        time.sleep(3 * head.PERIOD)
        open(step, "w").close()
        before = used()
        time.sleep(6 * head.PERIOD)
        assert used() - before < 0.4, used() - before
        os.unlink(step)
        h.stop("step")
        d = h.file("step")
        assert (len(d["frames"]) >= 4 and
                head.tick_of(d["frames"][-1]) - head.tick_of(d["frames"][0]) < 60), d["frames"][-1]


with head.Head("sessions") as h:
    a = head.Agent(h, "n1")
    head.until(lambda: a.acked > 2)
    for test in lambda: overlapping(h, a), lambda: names(h), lambda: one_host_twice(h), lambda: streams(h), lambda: clocks(h), \
            lambda: many_names(h), lambda: begun_anew(), lambda: remembered(), lambda: stepped():
        began = time.monotonic()
        test()
        print("ok %s %.1f s" % (test.__code__.co_names[0], time.monotonic() - began), flush=True)
    a.close()
