#!/usr/bin/env python3
"""kill.py BUILD KILLS [SEED]   SIGKILL at random instants under load, then `nccl-inspector recover`.

Each round starts the scripted host (test/host) with a load, kills it at a random moment (or at, in the middle
of, or just after its n-th write()), recovers, and demands: every operation that had finished is in the log
exactly once with every value right, nothing else is, the accounts close, and a second recover gives nothing
new. What had finished is told by a mapping of the host's own, not by the plugin. The last line is "N kills, N
failed"; the exit status says the same.
"""
import json, os, random, shutil, signal, subprocess, sys, tempfile, time

build, kills = os.path.abspath(sys.argv[1]), int(sys.argv[2])
seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
rnd = random.Random(seed)
here = os.path.dirname(os.path.abspath(__file__))
HOST, PLUGIN, CLI = build + "/test/host/host", build + "/libnccl-profiler-inspector.so", build + "/nccl-inspector"
US, FOREVER = "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", "100000000"
work = tempfile.mkdtemp(prefix="ni-kill.")
boxes = tempfile.mkdtemp(prefix="ni-test.", dir="/dev/shm")

# name, environment, verbs, options of verify.py
LOADS = [
    ("collectives, two threads", {}, "init 0 duet 0 %s 10000", ""),
    ("100,000 a second", {}, "init 0 duet 0 %s 100000", ""),
    ("as fast as possible", {}, "init 0 duet 0 %s 0", "outran"),
    ("three communicators", {}, "init 0 init 1 init 2 bg paced 0 %s 10000 bg duet 1 %s 10000 duetp 2 %s 10000", ""),
    ("communicators come and go", {}, "init 9 bg cycle 1 100000 20 bg cycle 2 100000 5 duet 9 %s 5000",
     "outran"),
    ("P2P of unknown count", {}, "iface 4 init 0 duetp 0 %s 5000", ""),
    ("some never finish", {}, "init 0 init 1 half 1 20 open 1 20 paced 0 %s 10000", ""),
    ("fixed pools that overflow", {"NCCL_INSPECTOR_POOL_GROW": "0", "NCCL_INSPECTOR_COLL_POOL_SIZE": "64"},
     "init 0 duet 0 %s 10000", "--lost 0-100000000"),
    ("plain text", {"NCCL_INSPECTOR_DUMP_FORMAT": "jsonl"}, "init 0 duet 0 %s 10000", ""),
    ("small files", {"NCCL_INSPECTOR_FILE_MAX_BYTES": "20k"}, "init 0 duet 0 %s 10000", ""),
    ("a full disk", {"LD_PRELOAD": build + "/test/fault_io.so"},
     "init 0 ops 0 2000 sleep 20 fault write=ENOSPC duet 0 %s 20000", ""),
    ("small operations left out", {"NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES": "20000"}, "init 0 duet 0 %s 10000",
     "--min-size 20000"),
]
INTERVALS = ["1000000", "1000000", "500", "20000", "0", "-1"]


def run(*argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")


def one(i):
    name, env, verbs, options = rnd.choice(LOADS) if i >= len(LOADS) else LOADS[i]
    interval, wait = rnd.choice(INTERVALS), rnd.random() ** 3 * (0.2 if options == "outran" else 1.2)
    at_write = rnd.choice(["kill", "killhalf", "killafter"]) if rnd.random() < 0.4 and "LD_PRELOAD" not in env and options != "outran" else ""
    what = "round %d (seed %d): %s, interval %s, " % (i, seed, name, interval)
    d = "%s/%d" % (work, i)
    logs, truth, live = d + "/logs", d + "/truth", d + "/live"
    os.makedirs(d)
    e = {k: v for k, v in os.environ.items() if not k.startswith("NCCL_")}
    e.update(env, NCCL_INSPECTOR_ENABLE="1", NCCL_INSPECTOR_DUMP_DIR=logs, NCCL_INSPECTOR_BLACKBOX=boxes,
             **{US: interval})
    if at_write:
        n = 1 if interval == "1000000" else rnd.randint(1, 12)
        what += "%s at write %d" % (at_write, n)
        e.update(LD_PRELOAD=build + "/test/fault_io.so", NI_FAULT="write=%s@%d" % (at_write, n))
    else:
        what += "killed after %.3f s" % wait
    script = ("live " + live + " " + verbs.replace("%s", FOREVER)).split()
    p = subprocess.Popen([HOST, PLUGIN, truth] + script, env=e, stdout=subprocess.DEVNULL,
                         stderr=subprocess.PIPE)
    try:
        p.wait(1.2 if at_write else wait)
    except subprocess.TimeoutExpired:
        p.kill()
    p.wait()
    said = p.stderr.read().decode(errors="replace")
    p.stderr.close()
    if p.returncode != -signal.SIGKILL:
        return what + ": the host ended by itself with %d\n%s" % (p.returncode, said)
    if not os.path.exists(truth) or not os.path.getsize(truth):
        os.makedirs(logs, exist_ok=True)  # killed before the first init: nothing is to be recovered
    os.makedirs(logs, exist_ok=True)
    recover = [CLI, "recover", "--box-dir", boxes, logs]
    r = run(*recover)
    # What came faster than the box grew was outside of it, and recover says so: then only doubles and values
    # count.
    outran = (r.returncode == 2 and
              "it had no room for" in run("sh", "-c", "zcat %s/*.gz | grep '\"note\"'" % logs).stdout)
    if outran:
        options += " --unflushed --no-final"
        outran_rounds.append(i)
    if r.returncode != 0 and not outran:
        return what + ": recover returns %d\n%s" % (r.returncode, r.stdout)
    before = sorted((f, os.path.getsize(os.path.join(logs, f))) for f in os.listdir(logs))
    r2 = run(*recover)
    after = sorted((f, os.path.getsize(os.path.join(logs, f))) for f in os.listdir(logs))
    if r2.returncode not in (0, r.returncode) or before != after:
        return what + ": a second recover is not idle\n%s\n%s\n%s" % (before, after, r2.stdout)
    bad = ""
    if os.path.exists(truth) and os.path.getsize(truth):
        v = run("python3", here + "/../host/verify.py", logs, truth, "--live", live, "--cut",
                "--started-free", "--open",
                *options.replace("outran", "").split())
        if v.returncode != 0:
            bad += v.stdout
        c = run(CLI, "check", "--json", logs)
        try:
            doc = json.loads(c.stdout)
            for x in doc.get("problems", []):
                if x.get("id", x.get("problem")) in ("double", "missing", "sum", "accounting", "doubles"):
                    bad += "check: %s\n" % x
        except ValueError:
            bad += "check: " + c.stdout[-2000:]
    for f in os.listdir(boxes):
        os.unlink(os.path.join(boxes, f))
    if bad:
        return what + "\n" + r.stdout + bad
    shutil.rmtree(d)
    return ""


failed, outran_rounds = 0, []
began = time.time()
for i in range(kills):
    text = one(i)
    if text:
        failed += 1
        print("FAIL " + "\n".join(line[:300] for line in text.split("\n")[:12]))
        print("     files in %s/%d" % (work, i), flush=True)
        if failed >= 10:
            break
    if (i + 1) % 100 == 0:
        print("%d kills, %d failed" % (i + 1, failed), flush=True)
shutil.rmtree(boxes, ignore_errors=True)
if not failed:
    shutil.rmtree(work, ignore_errors=True)
print("%d kills in %.0f s, %d of them outran the box, %d failed" %
      (i + 1, time.time() - began, len(outran_rounds), failed))
sys.exit(failed != 0)
