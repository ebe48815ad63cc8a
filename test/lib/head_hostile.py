"""A head's folders with what another user, or a kill, may have left in them: links, pipes, half of a file.
See test/cases/head/head_hostile.sh."""
import glob
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time

import head


def session_of(h, name):
    return os.path.join(h.data, h.session(name)["session_id"])


def links():
    """A link in place of a session's folder, and one in place of a file: neither is followed, and what they
    lead to stays as it is."""
    with head.Head("links") as h:
        for name in "folder", "file", "good":
            h.start(name)
        head.until(lambda: h.session("good")["frames"] > 3)
        folder, file = session_of(h, "folder"), session_of(h, "file")
        h.kill()
        os.rename(folder, h.folder + "/elsewhere")
        os.symlink(h.folder + "/elsewhere", folder)
        with open(h.folder + "/elsewhere/frames.jsonl", "w") as f:
            f.write("what somebody wants to keep\n")
        os.rename(file + "/frames.jsonl", h.folder + "/precious")
        os.symlink(h.folder + "/precious", file + "/frames.jsonl")
        size = os.path.getsize(h.folder + "/precious")
        h.begin()
        assert (not h.session("folder") and not h.session("file")["active"] and
                h.session("good")["active"]), h.get("/profiling/sessions")
        assert open(h.folder + "/elsewhere/frames.jsonl").read() == "what somebody wants to keep\n"
        assert os.path.getsize(h.folder + "/precious") == size > 0
        h.stop("good")
        h.file("good")


def pipes():
    """A pipe in place of each file: the head begins, serves, and ends when it is asked to."""
    with head.Head("pipes") as h:
        h.start("state")
        h.start("frames")
        h.start("good")
        head.until(lambda: h.session("good")["frames"] > 3)
        time.sleep(1.5)  # clients.jsonl is written once a second
        paths = [session_of(h, "state") + "/state.json", session_of(h, "frames") + "/frames.jsonl",
                 session_of(h, "good") + "/late.jsonl",
                 h.data + "/clients.jsonl", h.data + "/head.log"]
        h.kill()
        for path in paths:
            if os.path.exists(path):
                os.unlink(path)
            os.mkfifo(path)
        h.begin()
        assert not h.session("state") and not h.session("frames")["active"] and h.session("good")["active"]
        a = head.Agent(h, "n1")
        head.until(lambda: a.acked > 2)
        assert h.kill(signal.SIGTERM) == 0
        a.close()
        # In the background its messages go to a file, which is a pipe here.
        words = [w for w in h.words if w not in head.DIE_WITH_US] + ["--background"]
        p = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=h.folder)
        assert p.returncode == 0, p
        pid = int(re.search(r"pid (\d+)", p.stderr)[1])
        os.kill(pid, signal.SIGTERM)
        head.until(lambda: not os.path.exists("/proc/%d" % pid))


def rights():
    """Nobody but the head's user reads who is there or writes to its folder; a folder that everybody may
    write to is refused."""
    was = os.umask(0)
    try:
        with head.Head("rights") as h:
            a = head.Agent(h, "n1", epoch=1)
            h.start("a")
            head.until(lambda: a.acked > 3)
            a.late()
            head.until(lambda: os.path.exists(h.data + "/clients.jsonl"))
            h.stop("a")
            h.file("a")
            for path in [h.data] + glob.glob(h.data + "/**", recursive=True):
                mode = stat.S_IMODE(os.stat(path).st_mode)
                assert mode in (0o600, 0o700), (path, oct(mode))
            a.close()
    finally:
        os.umask(was)
    os.mkdir(head.WORK + "/open")
    os.chmod(head.WORK + "/open", 0o777)
    p = subprocess.run([head.INSPECTOR, "head", "--port", str(head.free_port()), "--http-port", "0",
                        "--data-dir", head.WORK + "/open"],
                       capture_output=True, text=True, timeout=60, cwd=head.WORK)
    assert p.returncode == 1 and "everybody may write into it" in p.stderr and "chmod o-w" in p.stderr, p
    assert os.listdir(head.WORK + "/open") == []


def hidden(h):
    return [p for p in glob.glob(h.folder + "/**/.*", recursive=True)
            if os.path.basename(p).startswith(".tmp-")]


def killed_at_the_end():
    """Sessions are stopped and the head is killed at once, whatever it is at: files keep their names, and
    nothing hidden stays."""
    with head.Head("ends", freq=0.1) as h:
        a = head.Agent(h, "n1", period=0.1)
        for k in range(8):
            names = ["x%d" % k, "y%d" % k]
            for name in names:
                h.start(name)
            head.until(lambda: all(h.session(name)["frames"] > 2 for name in names))
            if k % 2:
                a.late(once=True)  # its file is made anew
            for name in names:
                h.stop(name)
            time.sleep(0.004 * k)
            h.kill()
            h.begin()
            for name in names:
                h.file(name, 60)
        head.until(lambda: not hidden(h) and
                   not any(s["finishing"] for s in h.get("/profiling/sessions")["sessions"]))
        want = sorted("%s%d.json" % (c, k) for c in "xy" for k in range(8))
        assert sorted(os.listdir(h.out)) == want, sorted(set(os.listdir(h.out)) ^ set(want))
        # What a kill at any other moment leaves: hidden files of a session that runs, of one that is being
        # finished, and others' files.
        h.start("z")
        head.until(lambda: h.session("z")["frames"] > 2)
        mine, folder = h.session("z")["session_id"], session_of(h, "z")
        h.kill()
        begins = '{"schema":"nccl-inspector-session-1","session_id":"%s","session_name":"z"'
        hidden_name = "%s/.tmp-%s-" % (h.out, mine[:18])
        for path, text in ((hidden_name + "1", begins % mine), (hidden_name + "2", ""),
                           (folder + "/.tmp-2", "{"), (h.data + "/.tmp-3", "")):
            with open(path, "w") as f:
                f.write(text)
        other = h.out + "/.tmp-4"
        with open(other, "w") as f:
            f.write(begins % "00000000-0000-4000-8000-000000000000")
        h.begin()
        h.stop("z")
        h.file("z")
        left = hidden(h)
        assert left == [other], left
        a.close()


head.run([links, pipes, rights, killed_at_the_end])
