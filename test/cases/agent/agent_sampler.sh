#!/usr/bin/env bash
# The agent's sampler beside fake NICs and GPUs: totals arrive, also of what comes later; its ring is a series
# that every command reads; a folder that cannot be written costs the ring alone, and is written when it can
# be.
. "$(dirname "$0")/../../lib/case.sh"
driver=$BUILD/test/host/sampler
[ -x "$driver" ] || skip "$driver is not built: it needs libmicrohttpd, libcurl and ncurses"
need python3
python3 - "$driver" "$BUILD" <<'P'
import glob, os, shutil, signal, subprocess, sys, tempfile, time
driver, build = sys.argv[1:]
tmp = tempfile.mkdtemp()
trees = ["python3", "test/lib/counters/counter_trees.py", tmp + "/root"]
tree = lambda *a: subprocess.run(trees + list(a), check=True)
env = dict(os.environ, NI_ROOT=tmp + "/root", NI_FAKE_NVML=tmp + "/nvml",
           LD_LIBRARY_PATH=build + "/test/nvml")
open(tmp + "/nvml", "w").write(open("test/fake_nvml/healthy.txt").read() + "* gpus 0\n")
os.mkdir(tmp + "/root")


class Sampler:
    def __init__(self, ring):
        self.p = subprocess.Popen([driver, ring, str(64 << 20), "20", "30"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True, env=env)

    def next(self):
        while True:
            line = self.p.stdout.readline()
            assert line, "it ended"
            if line[0] not in "=":
                w = line.rstrip("\n").split(" ", 7)
                return dict(zip(("samples", "values", "known", "lost", "errors", "degraded", "bytes"),
                                map(int, w)), why=w[7])

    def until(self, what):
        end = time.monotonic() + 20
        while True:
            t = self.next()
            if what(t):
                return t
            assert time.monotonic() < end, t

    def values(self):
        self.p.stdin.write("?\n")
        self.p.stdin.flush()
        out, line = {}, ""
        while line != "=\n":
            line = self.p.stdout.readline()
            assert line, "it ended"
            if line.startswith("= "):
                _, entity, name, total, known = line.split()
                out[entity, name] = int(total), int(known)
        return out

    def end(self):
        self.p.communicate(timeout=20)
        assert self.p.returncode == 0, self.p.returncode


try:
    # Nothing but the clock to sample: it looks again every 60 samples.
    s = Sampler(tmp + "/state/ring")
    assert s.next()["values"] < 10
    open(tmp + "/nvml", "a").write("* gpus 2\n")
    tree("mlx5", "mlx5_0", "port_xmit_data=1000", "packet_seq_err=4294967290", "--", "host")
    s.until(lambda t: t["values"] > 30 and t["known"] == t["values"])
    v = s.values()
    assert v["mlx5_0:1", "port_xmit_data"] == (4000, 1) and ("gpu1", "power") in v, sorted(v)
    at = "sys/class/infiniband/mlx5_0/ports/1/"
    tree("put", at + "counters/port_xmit_data", "1500", "--", "put", at + "hw_counters/packet_seq_err", "4")
    end = time.monotonic() + 20
    while s.values()["mlx5_0:1", "packet_seq_err"][0] != 4294967290 + 10:  # a wrap is added back
        assert time.monotonic() < end, s.values()
    assert s.values()["mlx5_0:1", "port_xmit_data"] == (6000, 1)
    t = s.next()
    assert (t["lost"], t["errors"], t["degraded"], t["why"]) == (0, 0, 0, ""), t
    s.end()
    (file,) = glob.glob(tmp + "/state/ring/*-counters-*.jsonl.gz")
    said = subprocess.run([build + "/nccl-inspector", "check", tmp + "/state/ring"], stdout=subprocess.PIPE,
                          text=True).stdout
    n = int(said.split("counters    ")[1].split()[0])
    assert "\nCOMPLETE" in said and 0 < n <= t["samples"] + 20 and " from 1 host" in said, said
    # No folder: a file is in its way. What is sampled meanwhile is counted, and the totals come.
    open(tmp + "/file", "w").close()
    s = Sampler(tmp + "/file")
    t = s.until(lambda t: t["samples"] > 20)
    assert (t["degraded"] == 1 and t["errors"] >= 1 and t["lost"] == t["samples"] and t["known"] > 30 and
            "/file: " in t["why"]), t
    s.end()
finally:
    shutil.rmtree(tmp)
P
