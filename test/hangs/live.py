#!/usr/bin/env python3
"""One live job a kind: the simulator with the real plugin, looked at by `hang` while it hangs, runs, or after
it has ended.

  live.py [--build build] [--only PART] [--nccl RELEASE]

Only what nccl-sim can play is here; the made-up cases of score.py have the other kinds. Each job is looked
at until the answer is the right one, for some seconds at most, and a wrong HANG or DEAD in between is a
failure. Prints a line a kind; exits 1 if one failed.
"""

import argparse
import concurrent.futures
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import answer

HEAD = (
    "set ranks=4 nodes=2 procs=1 rate=200\ncomm world label=world\ncomm tp0 ranks=0-1 label=tp0\n"
    "comm tp1 ranks=2-3 label=tp1\n"
)
STEPS = (
    "loop times=40\n  coll tp0 func=AllGather bytes=1m\n  coll tp1 func=AllGather bytes=1m\n"
    "  coll world func=AllReduce bytes=64k\nend\n"
)
HOLD = "sleep ms=600000\n"
ON = "loop times=100000\n  coll world func=AllReduce bytes=64k\nend\n"

# kind: (scenario, right answer, (communicator, ranks) or None, how long it may take in s)
JOBS = {
    "a rank stops before a call of its tensor group": (
        HEAD + STEPS + "coll tp0 func=AllGather bytes=1m\ncoll tp1 func=AllGather bytes=1m skip=1\n"
        "sync tp1\nsleep ms=600000 rank=3\n"
        "coll world func=AllReduce bytes=64k\n" + HOLD,
        "hang",
        ("tp1", {3}),
        25,
    ),
    "a rank stops before a call of the whole job": (
        HEAD + STEPS + "coll world func=AllReduce bytes=64k skip=2\n" + HOLD,
        "hang",
        ("world", {2}),
        25,
    ),
    "a rank stops before a Recv": (
        HEAD + STEPS + "p2p world from=0 to=2 bytes=1m skip=2\n" + HOLD,
        "hang",
        ("world", {2}),
        25,
    ),
    "a rank stops before a Send": (
        HEAD + STEPS + "p2p world from=0 to=2 bytes=1m skip=0\n" + HOLD,
        "hang",
        ("world", {0}),
        25,
    ),
    "a rank is killed (SIGKILL)": (HEAD + STEPS + "exit how=sigkill rank=1\n" + ON, "hang", (None, {1}), 15),
    "a rank ends by _exit": (HEAD + STEPS + "exit how=_exit rank=1\n" + ON, "hang", (None, {1}), 15),
    "a rank ends by exit, communicators open": (
        HEAD + STEPS + "exit how=exit rank=1\n" + ON,
        "hang",
        (None, {1}),
        15,
    ),
    "all ranks are killed while they run": (HEAD + STEPS + "exit how=sigkill\n", "dead", None, 15),
    "all end in order": (HEAD + STEPS, "ended", None, 15),
    "a call of another function": (
        HEAD
        + STEPS
        + "coll world func=AllReduce bytes=4m skip=2\ncoll world func=AllGather bytes=4m only=2\n"
        + HOLD,
        "hang",
        ("world", {2}),
        25,
    ),
    "a call of another size": (
        HEAD
        + STEPS
        + "coll world func=AllReduce bytes=4m skip=2\ncoll world func=AllReduce bytes=2m only=2\n"
        + HOLD,
        "hang",
        ("world", {2}),
        25,
    ),
    "all are inside, nobody is missing": (
        HEAD + STEPS + "coll world func=AllReduce bytes=16m lost=2\n" + HOLD,
        "hang",
        ("world", None),
        25,
    ),
    "a hang, then abort and an orderly end": (
        HEAD + STEPS + "coll world func=AllReduce bytes=64k skip=2\nsleep ms=8000\nabort world\n",
        "ended",
        ("world", {2}),
        30,
    ),
    "shrink: the survivors go on in a new communicator": (
        "set ranks=4 nodes=2 procs=1 rate=200\ncomm world label=world\ncomm shrunk ranks=0-2 label=shrunk\n"
        "loop times=40\n  coll world func=AllReduce bytes=64k\nend\nsync world\n"
        "exit how=sigkill rank=3\nsleep ms=1000\n"
        "loop times=100000\n  coll shrunk func=AllReduce bytes=64k\nend\n",
        "no_hang",
        None,
        15,
    ),
    "it runs": (HEAD + "loop times=100000\n  coll world func=AllReduce bytes=64k\nend\n", "no_hang", None, 8),
    "an evaluation without a call, all outside": (HEAD + STEPS + "sync world\n" + HOLD, "no_hang", None, 15),
    "a rank is late, and comes": (HEAD + STEPS + "sleep ms=3000 rank=1\n" + ON, "no_hang", None, 20),
    "a stop that never came, of an operation that was passed": (
        HEAD + STEPS + "coll world func=AllReduce bytes=1m missing=0\n" + ON,
        "no_hang",
        None,
        15,
    ),
    "killed, begun anew with the same job id, runs": (ON, "no_hang", None, 15),
}
FALSE = {"no_hang": {"hang", "dead"}, "ended": {"dead"}, "dead": set(), "hang": {"dead", "ended"}}


class Live:
    def __init__(self, build, name, release):
        self.build, self.name, self.release = build, name, release
        self.scenario, self.right, self.cause, self.most = JOBS[name]
        self.folder = tempfile.mkdtemp(prefix="hangs-live-")
        self.boxes = tempfile.mkdtemp(prefix="hangs-live-", dir="/dev/shm")
        self.logs = os.path.join(self.folder, "logs")
        self.processes = []

    def begin(self, scenario):
        path = os.path.join(self.folder, "job%d.scn" % len(self.processes))
        with open(path, "w", encoding="ascii") as f:
            f.write("# a live job\n" + scenario)
        env = dict(
            os.environ,
            NCCL_INSPECTOR_ENABLE="1",
            NCCL_INSPECTOR_DUMP_DIR=self.logs,
            NCCL_INSPECTOR_BLACKBOX=self.boxes,
            NCCL_INSPECTOR_STUCK_SECONDS="2",
        )
        p = subprocess.Popen(
            [
                self.build + "/nccl-sim",
                "--plugin",
                self.build + "/libnccl-profiler-inspector.so",
                "--scenario",
                path,
                "--quiet",
                "--nccl",
                self.release,
            ],
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.processes.append(p)
        return p

    def end(self):
        for p in self.processes:
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            p.wait()
        shutil.rmtree(self.folder)
        shutil.rmtree(self.boxes)

    def look(self):
        return answer.ask(
            self.build + "/nccl-inspector", [self.logs], self.boxes, None, self.folder, ["--stuck-after", "5"]
        )

    def play(self):
        """None, or why it failed."""
        if "begun anew" in self.name:
            first = self.begin(HEAD + ON)
            time.sleep(3)
            os.killpg(first.pid, signal.SIGKILL)
            first.wait()
            time.sleep(1.5)
            self.begin(HEAD + ON)
        else:
            self.begin(self.scenario)
        begun, said, since_right = time.monotonic(), None, None
        hold = 4 if self.right == "no_hang" else 0  # what goes on has to be said again and again
        while time.monotonic() - begun < self.most + hold:
            time.sleep(0.5)
            if not os.path.isdir(self.logs) or time.monotonic() - begun < 2:
                continue
            said = self.look()
            if not said.agrees() and said.answer != "no_data":
                return "sentence, document and exit code differ: " + said.sentence
            if said.answer in FALSE[self.right]:
                return "said: " + said.sentence
            if said.answer == self.right and self.named(said):
                since_right = since_right or time.monotonic()
                if time.monotonic() - since_right >= hold:
                    return None
        return "after %d s it says: %s" % (self.most, said.sentence if said else "nothing")

    def named(self, said):
        if self.cause is None:
            return True
        comm, ranks = self.cause
        return (comm is None or said.comm == comm) and (ranks is None or said.ranks == ranks)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument(
        "--build", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build")
    )
    p.add_argument("--only", default="")
    p.add_argument("--nccl", default="2.30", help="of nccl-sim, also rccl-2.28 and rccl-2.31")
    p.add_argument("-j", type=int, default=3)
    o = p.parse_args()
    build = os.path.abspath(o.build)

    def one(name):
        live = Live(build, name, o.nccl)
        try:
            return live.play()
        finally:
            live.end()

    names = [n for n in JOBS if o.only in n]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(o.j) as pool:
        for name, why in zip(names, pool.map(one, names)):
            print(
                "%-5s %s%s" % ("ok" if why is None else "FAIL", name, "" if why is None else ": " + why),
                flush=True,
            )
            failed += why is not None
    print("%d passed, %d failed" % (len(names) - failed, failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
