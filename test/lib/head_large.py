"""A session of many GB, planted by the store's own writer: what a stop, a resume and `stat` of it take, and
how much memory.

    head_large.py FEED      test/host/session_feed; SESSION_GB (10)
"""
import json
import os
import subprocess
import sys
import time

import head

GB, FRAME = float(os.environ.get("SESSION_GB", "10")), 2.0e6  # a frame of 16,000 GPUs
FOLDER = head.WORK + "/large"


def peak(pid):
    """MB resident at most, ever."""
    return next(int(line.split()[1]) for line in open("/proc/%d/status" % pid)
                if line.startswith("VmHWM:")) / 1000


os.makedirs(FOLDER)
free = os.statvfs(FOLDER)
free = free.f_bavail * free.f_frsize / 1e9
if free < 2 * GB + 10:  # frames and the file, and some for others
    print("skip: %.0f GB are free, %.0f are wanted" % (free, 2 * GB + 10))
    sys.exit(77)
frames = int(GB * 1e9 / FRAME) // 2 * 2
began = time.monotonic()
fed = subprocess.run([sys.argv[1], "load", FOLDER, "2000", "8", str(frames // 2), "1", "fast"], check=True,
                     capture_output=True, text=True).stdout
path = FOLDER + "/s0.json"
size = os.path.getsize(path) / 1e9
print("%.1f GB in %.0f s: %s" % (size, time.monotonic() - began, " ".join(fed.split())), flush=True)
assert size > 0.95 * GB, size
with head.Head("goes_on", "--data-dir", FOLDER + "/.nccl-inspector-sessions", "--out-dir", FOLDER,
               freq=0.5) as h:
    h.out, worst = FOLDER, 0

    def timed(what):
        began = time.monotonic()
        got = what()
        return time.monotonic() - began, got

    def until_read():
        global worst
        end = time.monotonic() + 60 + 60 * GB
        while True:
            took, s = timed(lambda: h.session("s0"))
            worst = max(worst, took)
            if not s["resuming"]:
                return
            assert time.monotonic() < end, s
            time.sleep(0.1)
    resumed, got = timed(lambda: h.post("/profiling/resume", "s0"))
    assert got["success"], got
    read = timed(until_read)[0]
    stopped, got = timed(lambda: h.post("/profiling/stop", "s0"))
    assert got["success"], got
    s = h.session("s0")
    assert not s["finishing"] and s["frames"] >= frames and not s["frames_lost"], s
    again, got = timed(lambda: h.post("/profiling/resume", "s0"))  # its file may still be synced
    assert got["success"] or "ask again" in got["message"], got
    print("resume %.2f s, read in %.0f s (the slowest answer meanwhile %.2f s), stop %.2f s, a resume right behind it %.2f s (%s); %.0f MB at most" %
          (resumed, read, worst, stopped, again, "goes on" if got["success"] else "refused", peak(h.p.pid)),
          flush=True)
    assert stopped < 2 and resumed < 2 and worst < 2 and peak(h.p.pid) < 300, (stopped, resumed, worst)
    last = s["frames"]
with open(path, "rb") as f:  # all of it is there: the last frame and the sums behind it
    f.seek(-int(3 * FRAME), os.SEEK_END)
    tail = f.read().decode()
assert '{"frame_id":%d,' % last in tail and tail.rstrip().endswith("}"), last
assert json.loads("{" + tail[tail.rindex('"frames_lost"'):])["frames_lost"] == 0
took, out = timed(lambda: subprocess.run(["/usr/bin/env", "python3", "-c", """
import resource, subprocess, sys
p = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
u = resource.getrusage(resource.RUSAGE_CHILDREN)
print(p.returncode, u.ru_utime + u.ru_stime, u.ru_maxrss / 1024)""", head.INSPECTOR, "session", "stat", path],
capture_output=True, text=True, check=True).stdout.split())
print("stat: exit %s, %.0f s, %s s of CPU time, %s MiB" % (out[0], took, out[1], out[2]))
assert out[0] == "0" and float(out[2]) < 400, out
