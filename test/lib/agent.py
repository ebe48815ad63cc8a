"""For cases of the agent: a simulated job, the real daemon, its answers, and what the job's logs say.

    with tempfile.TemporaryDirectory() as d:
        place = agent.Place(d)                 # logs, boxes, state
        a = agent.Agent(place); a.wait()
        job = place.job(scenario_text); job.wait()
        samples = agent.parse(a.get("/metrics"))
"""
import collections, glob, gzip, json, os, shutil, signal, subprocess, sys, tempfile, time, urllib.error, urllib.request

BUILD = os.environ.get("BUILD", "build")
BIN = os.environ.get("NI_BIN", BUILD + "/nccl-inspector")
P = "nccl_inspector_"


def skip(why):
    print("skip:", why)
    sys.exit(77)


if not os.path.exists(BUILD + "/nccl-inspector-live"):
    skip("nccl-inspector-live is not built")


def wait_for(what, test, seconds=20.0):
    """What test() gives when it is true; a failure that names it after so many seconds, ten times as many
    under a sanitizer.
    `what` may be a function: what there is instead is then said as of the end of the wait."""
    end = time.monotonic() + seconds * (10 if os.environ.get("NI_VARIANT") else 3)
    while True:
        got = test()
        if got:
            return got
        if time.monotonic() > end:
            sys.exit("FAIL: waited in vain for %s" % (what() if callable(what) else what))
        time.sleep(0.05)


class Place:
    """Folders of one test: logs, boxes (memory, as the plugin wants it), the agents' states."""

    def __init__(self, folder):
        self.folder = folder
        self.logs = folder + "/logs"
        self.boxes = tempfile.mkdtemp(prefix="ni-test.", dir="/dev/shm")
        os.mkdir(self.logs)
        self.running = []

    def close(self):
        for p in self.running:
            if p.poll() is None:
                p.kill()
                p.wait()
        shutil.rmtree(self.boxes, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def spawn(self, words, **kw):
        p = subprocess.Popen(words, **kw)
        self.running.append(p)
        return p

    def job(self, scenario, settings=None, logs=None, before=()):
        """Begins a job in a scenario's words; its environment gets the settings, its command the words before
        it."""
        path = "%s/job%d.scn" % (self.folder, len(self.running))
        with open(path, "w") as f:
            f.write("# a job for the agent\n" + scenario)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "SLURM_"))}
        env.update(NCCL_INSPECTOR_ENABLE="1", NCCL_INSPECTOR_DUMP_DIR=logs or self.logs,
                   NCCL_INSPECTOR_BLACKBOX=self.boxes,
                   NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS="200000")
        env.update(settings or {})
        return self.spawn([*before, BUILD + "/nccl-sim", "--quiet", "--plugin",
                           BUILD + "/libnccl-profiler-inspector.so", "--scenario", path],
                          env=env, stdout=subprocess.DEVNULL, stderr=open(self.folder + "/job.err", "a"))


class Agent:
    """The daemon; kill() and start() again keep its state."""

    def __init__(self, place, *options, name="agent", env=None):
        self.place, self.name, self.env = place, name, dict(os.environ, **(env or {}))
        self.options = list(options)
        self.state = "%s/state-%s" % (place.folder, name)
        self.err = "%s/%s.err" % (place.folder, name)
        self.start()

    def start(self):
        open(self.err, "w").close()
        self.process = self.place.spawn(
            [BIN, "agent", "--foreground", "--listen", "127.0.0.1:0", "--state-dir", self.state, "--box-dir",
             self.place.boxes]
            + self.options, env=self.env, stderr=open(self.err, "a"))
        self.url = None

    def text(self):
        return open(self.err).read()

    def wait(self):
        """Until it serves and has read what was there."""
        def serving():
            if self.process.poll() is not None:
                sys.exit("FAIL: the agent ended with %s\n%s" % (self.process.returncode, self.text()))
            if not self.url and "http" in self.text():
                self.url = "http" + self.text().split("http", 1)[1].split()[0].rstrip(",;.")
            try:
                return self.url and self.get("/metrics")
            except (urllib.error.URLError, ConnectionError, OSError):
                return None
        wait_for("the agent to serve", serving)
        return self

    def get(self, path, accept=None):
        request = urllib.request.Request(self.url + path, headers={"Accept": accept} if accept else {})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.read().decode()

    def metrics(self):
        return parse(self.get("/metrics"))

    def now(self):
        return json.loads(self.get("/v1/now"))

    def kill(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        return self.process.wait()


def labels_of(text):
    """The labels between { and }, unescaped, as a dict; where the text ends."""
    labels, i = {}, 1
    while text[i] != "}":
        name, i = text[i:text.index("=", i)], text.index("=", i) + 2
        value = ""
        while text[i] != '"':
            if text[i] == "\\":
                i += 1
                value += {"n": "\n", "\\": "\\", '"': '"'}[text[i]]
            else:
                value += text[i]
            i += 1
        labels[name] = value
        i += 2 if text[i + 1] == "," else 1
    return labels, i + 1


def parse(text):
    """{name: [(labels, value as text)]}; a series twice is a failure."""
    samples, seen = collections.defaultdict(list), set()
    for line in text.split("\n"):
        if not line or line[0] == "#":
            continue
        name = line.split("{", 1)[0].split(" ", 1)[0]
        labels, end = labels_of(line[len(name):]) if line[len(name)] == "{" else ({}, 0)
        key = (name, tuple(sorted(labels.items())))
        if key in seen:
            sys.exit("FAIL: a series is there twice: " + line)
        seen.add(key)
        samples[name].append((labels, line[len(name) + end:].split()[0]))
    return samples


def total(samples, name, by, **only):
    """{values of the labels `by`: sum}, of whole numbers exactly."""
    sums = collections.Counter()
    for labels, value in samples.get(P + name, []):
        if all(labels.get(k) == v for k, v in only.items()):
            sums[tuple(labels.get(k, "") for k in by)] += int(value) if value.isdigit() else float(value)
    return +sums


def lines(folder):
    """All lines of the logs in a folder, whole members."""
    for path in sorted(glob.glob(folder + "/*.jsonl.gz")):
        if "-counters-" in path:
            continue
        with gzip.open(path, "rt") as f:
            try:
                for line in f:
                    yield json.loads(line)
            except EOFError:
                pass


def truth(folder):
    """What the logs say, by (rank, function): operations, bytes, time in flight in ns, of those with a kernel
    time; bus bytes and time."""
    sums = collections.defaultdict(lambda: collections.Counter())
    for l in lines(folder):
        kind = "coll" if "coll_perf" in l else "p2p" if "p2p_perf" in l else None
        if not kind:
            continue
        r = l[kind + "_perf"]
        s = sums[str(l["header"]["rank"]), r[kind]]
        s["n"] += 1
        s["bytes"] += r[kind + "_msg_size_bytes"]
        if r[kind + "_timing_source"] != "collective_cpu":
            s["timed"] += 1
            s["ns"] += r[kind + "_exec_time_ns"]
        if r[kind + "_busbw_gbs"] is not None:
            s["bus_ns"] += r[kind + "_exec_time_ns"]
            s["bus_bytes"] += r[kind + "_busbw_gbs"] * r[kind + "_exec_time_ns"]
    return sums
