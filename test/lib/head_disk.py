"""The disk below a head is full, or cannot be written: it says so, and nothing is called done that is not.

    head_disk.py FULL      FULL: a small file system of its own, or "": none could be made
"""
import json
import os
import subprocess
import sys
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
    """Frames wait in memory, nothing is acknowledged, a session is not begun; when there is room again all is written."""
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
        r = h.post("/profiling/stop", "before")  # where it cannot be written it is no success, and it goes on or is told
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
        print("frames through a full disk:", a.complete(d, begin + head.PERIOD, end - head.PERIOD if not stopped else begin + 1))
        h.start("after")
        h.stop("after")
        a.close()


def read_only():
    """A folder that cannot be made."""
    for words in ("--data-dir", "/proc/x"), ("--data-dir", head.WORK + "/a_file"):
        p = subprocess.run([head.INSPECTOR, "head", "--port", str(head.free_port()), "--http-port", str(head.free_port()), *words],
                           capture_output=True, text=True, timeout=20, cwd=head.WORK)
        assert p.returncode == 1 and "directory" in p.stderr, (words, p.returncode, p.stderr)


def taken():
    """Another head has the folder."""
    with head.Head("first") as h:
        p = subprocess.run([head.INSPECTOR, "head", "--port", str(head.free_port()), "--http-port", str(head.free_port()), "--data-dir", h.data],
                           capture_output=True, text=True, timeout=20)
        assert p.returncode == 1 and h.data in p.stderr, p


open(head.WORK + "/a_file", "w").close()
head.run([taken] + ([full, read_only] if FULL else []))
if not FULL:
    print("no file system of its own: a full disk was not tried")
