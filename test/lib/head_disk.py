"""The disk below a head is full, or cannot be written: it says so, and nothing is called done that is not.

    head_disk.py FULL      FULL: a small file system of its own, or "": none could be made
"""
import json
import os
import re
import subprocess
import sys
import threading
import time

import head

FULL = sys.argv[1]


def health(h):
    code, _, text = h.ask("GET", "/health")
    return code, json.loads(text)


def fill(to, name):
    with open(os.path.join(to, name), "wb", buffering=0) as f:
        try:
            while True:
                f.write(b"0" * 4096)
        except OSError:
            pass


def full():
    """Frames wait in memory, nothing is acknowledged, a session is not begun; when there is room again all is
    written."""
    with head.Head("full", "--data-dir", FULL + "/data", "--out-dir", FULL + "/out", freq=0.2) as h:
        h.out = FULL + "/out"
        a = head.Agent(h, "n1")
        h.start("before")
        begin = time.time()
        head.until(lambda: a.acked > 3)
        assert health(h) == (200, {"status": "ok"})
        fill(FULL, "rest")
        got = head.until(lambda: health(h)[0] == 503 and health(h))[1]
        assert got["status"] == "degraded" and "No space" in got["why"], got
        assert "No space" in (h.get("/status")["degraded"] or ""), h.get("/status")
        stuck = a.acked
        r = h.post("/profiling/start", "during")
        assert not r["success"] and "No space" in r["message"] and r["output_file"] == "", r
        time.sleep(1)
        assert a.acked <= stuck + 3, "acknowledged on a full disk: %d, then %d" % (stuck, a.acked)
        # where it cannot be written it is no success, and it goes on or is told
        r = h.post("/profiling/stop", "before")
        stopped = r["success"]
        assert not stopped or h.session("before")["error"], r
        os.unlink(FULL + "/rest")
        head.until(lambda: health(h)[0] == 200, 30)
        end = time.time()
        head.until(lambda: a.time.get(a.acked, 0) > end, 30)
        if not stopped:
            h.stop("before")
        d = h.file("before")
        assert not h.session("before")["frames_lost"], h.session("before")
        for line in "degraded: .*No space left on device", "not degraded any more":
            assert re.search(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ %s$" % line, h.said(), re.M), (line, h.said())
        print("frames through a full disk:",
              a.complete(d, begin + head.PERIOD, end - head.PERIOD if not stopped else begin + 1))
        h.start("after")
        h.stop("after")
        a.close()


def begun_on_a_full_disk():
    """A head is killed while the disk is full, and begun again: it serves, says so, and its session goes on
    when there is room."""
    with head.Head("again", "--data-dir", FULL + "/again", "--out-dir", FULL + "/out", freq=0.2) as h:
        h.out = FULL + "/out"
        a = head.Agent(h, "n1")
        h.start("goes on")
        begin = time.time()
        head.until(lambda: a.acked > 3)
        h.kill()
        fill(FULL, "rest")
        h.begin()
        got = head.until(lambda: health(h)[0] == 503 and health(h))[1]
        assert got["status"] == "degraded" and re.search("goes on.*not saved|No space", got["why"]), got
        assert h.session("goes on")["active"] and h.get("/status")["is_profiling"], h.session("goes on")
        stuck = a.acked
        time.sleep(2)
        assert a.acked <= stuck + 3, "acknowledged on a full disk: %d, then %d" % (stuck, a.acked)
        os.unlink(FULL + "/rest")
        head.until(lambda: health(h)[0] == 200, 60)
        end = time.time()
        head.until(lambda: a.time.get(a.acked, 0) > end, 60)
        h.stop("goes on")
        d = h.file("goes on")
        assert (a.complete(d, begin + head.PERIOD, end - head.PERIOD) > 5 and
                not d["frames_lost"]), d["frames_lost"]
        assert not h.session("goes on")["error"], h.session("goes on")
        a.close()


def one_folder():
    """One session's folder takes nothing, another one's frames cannot be opened: the head begins again, says
    so, and the third goes on."""
    user = ("setpriv", "--reuid", "64001", "--regid", "64001", "--clear-groups") if os.geteuid() == 0 else ()
    if user:
        os.makedirs(head.WORK + "/folder/out")
        for f in head.WORK + "/folder", head.WORK + "/folder/out":
            os.chown(f, 64001, 64001)
        os.chmod(head.WORK, 0o755)
    with head.Head("folder", prefix=user) as h:
        ids = {name: h.start(name)["session_id"] for name in ("closed", "lost", "good")}
        head.until(lambda: h.session("good")["frames"] > 3)
        h.kill()
        os.chmod(os.path.join(h.data, ids["closed"]), 0o500)
        os.chmod(os.path.join(h.data, ids["lost"], "frames.jsonl"), 0)
        h.begin()
        code, said = health(h)
        assert (code == 503 and
                re.search("closed.*not saved|lost.*does not go on: Permission denied", said["why"])), said
        assert [h.session(name)["active"]
                for name in ids] == [True, False, True], h.get("/profiling/sessions")
        assert "Permission denied" in h.session("lost")["error"], h.session("lost")
        frames = h.session("good")["frames"]
        head.until(lambda: h.session("good")["frames"] > frames + 3)
        os.chmod(os.path.join(h.data, ids["closed"]), 0o700)
        os.chmod(os.path.join(h.data, ids["lost"], "frames.jsonl"), 0o600)
        assert h.post("/profiling/resume", "lost")["success"]
        head.until(lambda: health(h)[0] == 200, 30)
        assert h.stop()["message"].count(".json") == 3
        for name in ids:
            assert len(h.file(name)["frames"]) > 3, name


def one_of_two():
    """The late samples of one session cannot be written: its frames are, and all of the other; when they can
    be, they are."""
    with head.Head("one") as h:
        # Before there are agents: on a busy machine some of their samples are late by themselves, and nothing
        # is acknowledged any more.
        there = os.path.join(h.data, h.start("wrong")["session_id"], "late.jsonl")
        os.mkdir(there)
        h.start("right")
        agents = [head.Agent(h, "n%d" % i) for i in range(2)]
        head.until(lambda: h.session("right")["frames"] > 3 and all(a.seq > 3 for a in agents))
        begin = time.time()
        for a in agents:
            a.late()
        got = head.until(lambda: h.get("/status")["degraded"])
        assert "session wrong is not written: Is a directory" == got, got
        frames = h.session("wrong")["frames"], h.session("right")["frames"]
        head.until(lambda: h.session("right")["frames"] > frames[1] + 5)
        lines = [len(open(os.path.join(h.data, s["session_id"], "frames.jsonl")).readlines())
                 for s in h.get("/profiling/sessions")["sessions"]]
        assert lines[0] >= frames[1] + 3 and lines[1] >= frames[0] + 3, (lines, frames)
        assert h.session("wrong")["error"] and not h.session("right")["error"], h.get("/profiling/sessions")
        assert h.post("/profiling/stop", "right")["success"]
        assert not h.post("/profiling/stop", "wrong")["success"]  # not all of it is written
        os.rmdir(there)
        head.until(lambda: not h.get("/status")["degraded"])
        head.until(lambda: all(a.time.get(a.acked, 0) > begin + 2 for a in agents))
        for a in agents:
            a.close()
        late = [c["late"] for c in h.get("/clients")["clients"]]
        assert len(late) == 2 and min(late) >= 1, late
        assert (not h.session("wrong")["error"] and
                h.session("wrong")["late"] == sum(late)), (h.session("wrong"), late)
        h.stop("wrong")
        h.file("right")
        d = h.file("wrong")
        assert (d["late_samples"] == sum(late) and
                d["frames_lost"] == 0), (d["late_samples"], d["frames_lost"], late)


def slow():
    """A disk that takes its time: a stop waits for it, others do not; where that is too long, the session
    goes on, and nothing is missing."""
    lasts = head.WORK + "/lasts"

    def takes(seconds):
        with open(lasts + ".new", "w") as f:
            f.write(str(seconds))
        os.rename(lasts + ".new", lasts)
    with head.Head("slow", env={"LD_PRELOAD": os.path.dirname(head.INSPECTOR) + "/test/slow_disk.so",
                                "NI_SLOW_FILE": lasts,
                                "ASAN_OPTIONS": "verify_asan_link_order=0"}) as h:
        a = head.Agent(h, "n1")
        h.start("one")
        head.until(lambda: a.acked > 3)

        def asked(seconds, least, success, ask):
            takes(seconds)
            time.sleep(3 * head.PERIOD)  # the thread that writes waits for the disk, and more is queued
            told, worst, began = [], 0, time.monotonic()
            t = threading.Thread(target=lambda: told.append((ask(), time.monotonic() - began)))
            t.start()
            while t.is_alive():
                asked = time.monotonic()
                h.get("/status")
                worst = max(worst, time.monotonic() - asked)
                time.sleep(0.05)
            got, took = told[0]
            got = got if isinstance(got, dict) else {"success": got.success, "message": got.message}
            assert got["success"] == success and least < took < 4 and worst < 1, (seconds, got, took, worst)
            assert success or "has not taken all of it yet" in got["message"], got
            print("    a disk of %.1f s: a stop is answered after %.2f s, others after %.2f s at most" %
                  (seconds, took, worst))
        # A stop waits for the write that is on its way and for one more, which a busy machine makes longer,
        # and for 2 s at most. Each is a sync for each session, and one more for late samples: one session
        # runs where a stop must come in time.
        began = time.time()
        asked(0.4, 0.15, True, lambda: h.post("/profiling/stop", "one"))
        takes(0)
        h.start("other")
        begin = time.time()
        asked(6, 1.5, False, lambda: h.post("/profiling/stop", "other"))
        asked(6, 1.5, False, lambda: h.unary("StopProfiling", head.theirs.StartProfilingRequest(),
                                             head.ConnectResponse))
        time.sleep(1)
        takes(0)
        end = time.time()
        head.until(lambda: a.time.get(a.acked, 0) > end, 30)
        h.stop("other")
        d = h.file("other")
        assert a.complete(d, begin, end) >= 5 / head.PERIOD and not d["frames_lost"]
        times = [head.tick_of(f) for f in d["frames"]]
        assert all(abs(y - x - head.PERIOD) < 1e-3 for x, y in zip(times, times[1:])), "a frame is missing"
        assert a.complete(h.file("one"), began, began + 2 * head.PERIOD) >= 1
        a.close()


def made_whole():
    """A session is resumed while its file is made, or synced: that is given up, and the next one has all
    frames."""
    with head.Head("whole") as h:
        a = head.Agent(h, "n1")
        h.start("again")
        head.until(lambda: a.acked > 5)
        begin = a.time[1]
        for k in range(4):
            h.stop("again")
            a.late(once=True)  # its file is to be made anew
            if k % 2:
                head.until(lambda: h.session("again")["finishing"])
            got = h.post("/profiling/resume", "again")
            assert got["success"], got
            before = a.acked
            head.until(lambda: a.acked > before + 3)
        a.late()
        h.stop("again")
        d = h.file("again")
        assert (len(d["frames"]) > 15 and
                h.session("again")["late"] == d["late_samples"] > 0), (len(d["frames"]), h.session("again"))
        assert [f for f in os.listdir(h.out)] == ["again.json"], os.listdir(h.out)
        a.close()


def read_only():
    """A folder that cannot be made."""
    for words in ("--data-dir", "/proc/x"), ("--data-dir", head.WORK + "/a_file"):
        p = subprocess.run([head.INSPECTOR, "head", "--port", str(head.free_port()), "--http-port",
                            str(head.free_port()), *words],
                           capture_output=True, text=True, timeout=20, cwd=head.WORK)
        assert p.returncode == 1 and "directory" in p.stderr, (words, p.returncode, p.stderr)


def taken():
    """Another head has the folder."""
    with head.Head("first") as h:
        p = subprocess.run([head.INSPECTOR, "head", "--port", str(head.free_port()), "--http-port",
                            str(head.free_port()), "--data-dir", h.data],
                           capture_output=True, text=True, timeout=20)
        assert p.returncode == 1 and h.data in p.stderr, p


open(head.WORK + "/a_file", "w").close()
head.run([taken, one_of_two, one_folder, slow, made_whole] +
         ([full, begun_on_a_full_disk, read_only] if FULL else []))
if not FULL:
    print("no file system of its own: a full disk was not tried")
