#!/usr/bin/env python3
"""summary --approximate against summary: index_sums.py BIN LOGGEN TMP. Used by
test/cases/index/index_sums.sh."""
import csv, json, math, os, random, re, shutil, subprocess, sys, time, zlib

BIN, LOGGEN, TMP = sys.argv[1:]
os.environ.pop("XDG_CACHE_HOME", None)
os.environ["HOME"] = os.path.join(TMP, "home")
FAILED = 0


def fail(text):
    global FAILED
    FAILED += 1
    print("FAIL " + text)


def summary(logs, *options):
    out = os.path.join(TMP, "out")
    shutil.rmtree(out, ignore_errors=True)
    p = subprocess.run([BIN, "summary", "--json", "--no-plots", "--no-html", "--no-parquet", "--output-dir",
                        out, *options, logs],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=250)
    if p.returncode not in (0, 2):
        raise SystemExit("FAIL %s %s: exit %d: %s" % (logs, options, p.returncode, p.stderr.decode()[-2000:]))
    tables = {}
    for name in sorted(os.listdir(os.path.join(out, "summary"))):
        if name.endswith(".csv"):
            with open(os.path.join(out, "summary", name)) as f:
                tables[name] = list(csv.DictReader(f))
    return json.loads(p.stdout), tables


def loggen(name, *options):
    path = os.path.join(TMP, name)
    subprocess.run([LOGGEN, path, *options], check=True)
    return path


def near(a, b):
    return a == b or abs(a - b) <= 1e-9 * max(abs(a), abs(b))


def same_row(what, got, want):
    """Columns of a table: percentiles within 0.4 % of where the exact ones lie, those of operations empty,
    all else equal."""
    for key, v in want.items():
        g = got[key]
        if key == "operations" or key.startswith(("transfer_time_us", "job_time_us")):
            if g not in ("", "0", "false"):
                fail("%s: %s is %s: nobody has compared ranks" % (what, key, g))
        elif re.search(r"_p\d\d$", key) or key == "of_best":
            if ((g == "") != (v == "") or (
                g and abs(float(g) - float(v)) > (0.008 if key == "of_best" else 0.0041) * float(v))):
                fail("%s: %s is %s, not %s" % (what, key, g, v))
        elif key.endswith("_approx") or key == "role":
            pass
        elif g != v and not (re.fullmatch(r"[-0-9.e+]+", g or "x") and near(float(g), float(v))):
            fail("%s: %s is %s, not %s" % (what, key, g, v))


def against_exact(logs, *options):
    what = os.path.basename(logs)
    exact, exact_tables = summary(logs, "--no-index", *options)
    got, tables = summary(logs, "--approximate", "--no-index", *options)
    for name in ("summary.csv", "summary_by_comm.csv", "summary_by_rank.csv", "summary_by_host.csv"):
        a, b = tables[name], exact_tables[name]
        if len(a) != len(b) or not b:
            fail("%s: %s has %d rows, not %d" % (what, name, len(a), len(b)))
        for x, y in zip(a, b):
            same_row("%s: %s" % (what, name), x, y)
    for key in ("complete", "job", "first_us", "last_us", "time_from", "records"):
        if got[key] != exact[key]:
            fail("%s: %s is %s, not %s" % (what, key, got[key], exact[key]))
    for key, v in exact["input"].items():
        if got["input"][key] != (None if key == "duplicates" else v):
            fail("%s: input.%s is %s, not %s" % (what, key, got["input"][key], v))
    if (not got.get("approximate") or got["operations"] is not None or got["late_share_median"] is not None or
        got["findings"] or got["ranks"][0]["late"] is not None):
        fail("%s: it claims to have looked at operations" % what)
    for a, b in zip(got["ranks"] + got["communicators"], exact["ranks"] + exact["communicators"]):
        for key in ("records", "exec_time_us", "first_us", "last_us", "rank", "hostname", "id"):
            if a.get(key) != b.get(key):
                fail("%s: %s of a rank or communicator is %s, not %s" % (what, key, a.get(key), b.get(key)))
    return got, tables


def reads(logs, *options):
    """How many bytes of logs a query reads: by the files that it opens, of which strace says so."""
    trace = os.path.join(TMP, "trace")
    out = os.path.join(TMP, "out")
    shutil.rmtree(out, ignore_errors=True)
    subprocess.run(["strace", "-f", "-y", "-qq", "-e", "trace=read,pread64", "-o", trace, BIN, "summary",
                    "--approximate", "-q", "--output-dir",
                    out, *options, logs], stdout=subprocess.DEVNULL, timeout=250)
    with open(trace) as f:
        return sum(int(m.group(1)) for m in re.finditer(r"\([0-9]+<[^>]*\.log(?:\.gz)?>.*= (\d+)$", f.read(),
                                                        re.M))


# ---- the index, for forging --------------------------------------------------------------------------------


class Index:
    """The file as shelf.h has it, with each log's parts."""

    def __init__(self, data):
        self.head, self.at, self.b = data[:24], 24, data
        n = self.number()
        self.name, self.part = [], []
        for _ in range(n):
            k = self.number() - 1
            self.name.append(data[self.at:self.at + k])
            self.at += k
            self.part.append([(self.number(), self.number())[0] for _ in range(3)])
        at = self.at
        for p in self.part:
            for i in range(3):
                p[i], at = data[at:at + p[i]], at + p[i]
        self.stats = data[at:-4]

    def number(self):
        n = shift = 0
        while True:
            n |= (self.b[self.at] & 127) << shift
            shift += 7
            self.at += 1
            if not self.b[self.at - 1] & 128:
                return n

    @staticmethod
    def put(n):
        out = b""
        while n > 127:
            out += bytes([n & 127 | 128])
            n >>= 7
        return out + bytes([n])

    def bytes(self):
        put = self.put
        table = put(len(self.name))
        for name, part in zip(self.name, self.part):
            table += put(len(name) + 1) + name + b"".join(put(len(p)) + put(zlib.crc32(p)) for p in part)
        head = self.head[:12] + len(table).to_bytes(8, "little")
        head += zlib.crc32(head + table).to_bytes(4, "little")
        return head + table + b"".join(b"".join(p) for p in self.part) + self.stats + zlib.crc32(self.stats).to_bytes(4, "little")

    def sums(self, log):
        """(end, bytes)"""
        self.b, self.at = self.part[log][2], 0
        end, n = self.number(), self.number()
        out = zlib.decompress(self.b[self.at:])
        assert len(out) == n
        return end, out

    def forge(self, log, end, sums):
        self.part[log][2] = self.put(end) + self.put(len(sums)) + zlib.compress(sums)


def forged(logs):
    path = os.path.join(logs, ".nccl-inspector-index", "index")
    with open(path, "rb") as f:
        good = f.read()
    if Index(good).bytes() != good:
        raise SystemExit("FAIL the index is not as shelf.h has it")
    want = summary(logs, "--approximate", "--no-index")
    r = random.Random(11)
    for i in range(80):
        x = Index(good)
        log = r.randrange(len(x.name))
        end, sums = x.sums(log)
        bad = bytearray(sums)
        what = i % 4
        if what == 0:
            bad[r.randrange(len(bad))] ^= 1 << r.randrange(8)
        elif what == 1:
            del bad[r.randrange(len(bad)):]
        elif what == 2:
            at = r.randrange(len(bad))
            bad[at:at + 1] = b"\xff" * r.randrange(1, 9) + bytes([r.randrange(128)])
        else:
            end = r.choice([0, 1, end - 1, end + 1, end // 2, 1 << 63])
        x.forge(log, end, bytes(bad))
        with open(path, "wb") as f:
            f.write(x.bytes())
        got = summary(logs, "--approximate")
        if got[0]["records"] > want[0]["records"]:
            fail("forged %d: more records than the logs have" % i)
    # More records than the log has, in a sound row: not believed.
    x = Index(good)
    end, sums = x.sums(0)
    x.b, x.at = sums, 0
    for _ in range(5): # the tally: three numbers and two truths of a byte each
        x.number()
    x.forge(0, end, sums + sums[x.at:])
    with open(path, "wb") as f:
        f.write(x.bytes())
    if summary(logs, "--approximate") != want:
        fail("a log has each of its rows twice")


ours = loggen("ours", "--ranks", "8", "--node", "4", "--ops", "3600", "--p2p", "300", "--format", "ours",
              "--comm-name", "--gzip", "--member-lines", "100")
nvidia = loggen("nvidia", "--ranks", "4", "--ops", "1500", "--format", "v4.3")
sets = [ours, nvidia] + [os.path.abspath(p) for p in ("test/golden/check_nvidia_v43/input",)]
for logs in sets:
    against_exact(logs)
groups = os.path.join(TMP, "groups")
with open(groups, "w") as f:
    f.write("first: *pid4000*\nothers: *\n")
if "first" not in {x["log_group"]
                   for x in against_exact(ours, "--groups", groups)[1]["summary_by_log_group.csv"]}:
    fail("no figures of parts of the logs")

# With the index, in however many threads, and however often.
want = summary(ours, "--approximate", "--no-index")
for options in (["--reindex"], [], ["--jobs", "1"], ["--jobs", "8"], []):
    if summary(ours, "--approximate", *options) != want:
        fail("another result with an index: %s" % options)
short = loggen("short", "--ranks", "16", "--ops", "600", "--format", "ours", "--comm-name", "--gzip",
               "--member-lines", "100")
if len({json.dumps(summary(short, "--approximate", *o), sort_keys=True)
        for o in (["--no-index"], ["--reindex"], [])}) != 1:
    fail("another result of short logs with an index")
for logs, kept in ((ours, True), (short, False)): # sums that would make it more than 2 % are not kept
    with open(os.path.join(logs, ".nccl-inspector-index", "index"), "rb") as f:
        index = f.read()
    if [len(p[2]) > 0 for p in Index(index).part] != [kept] * len(Index(index).part):
        fail("%s: sums are %s" % (logs, "not kept" if kept else "kept"))
    size = sum(os.path.getsize(os.path.join(logs, n)) for n in os.listdir(logs) if n.endswith(".gz"))
    if kept and len(index) > 0.02 * size:
        fail("%s: with sums the index is %.2f %% of the logs" % (logs, 100 * len(index) / size))
size = sum(os.path.getsize(os.path.join(ours, n)) for n in os.listdir(ours) if n.endswith(".gz"))
if shutil.which("strace"):
    time.sleep(2.1) # until their ctimes are trusted; else bytes are compared
    first, second = reads(ours, "--reindex"), reads(ours)
    if not first > size // 2 or second > 8 * 65536: # heads
        fail("reads %d bytes first and %d then, of %d" % (first, second, size))
    # check has read on meanwhile: nothing is read but what the log has grown by.
    name = sorted(n for n in os.listdir(ours) if n.endswith(".gz"))[0]
    path = os.path.join(ours, name)
    whole = open(path, "rb").read()
    at, ends = 0, []
    while at < len(whole):
        d = zlib.decompressobj(31)
        d.decompress(whole[at:])
        at = len(whole) - len(d.unused_data)
        ends.append(at)
    cut = ends[len(ends) // 2]
    for grow in (cut, ends[len(ends) * 3 // 4], len(whole)):
        with open(path, "wb") as f:
            f.write(whole[:grow])
        if grow == cut:
            summary(ours, "--approximate", "--reindex")
        else:
            subprocess.run([BIN, "index", "-q", ours], check=True)
    time.sleep(2.1)
    subprocess.run([BIN, "index", "-q", ours], check=True)
    grown = reads(ours)
    if grown > 8 * 65536 + 2 * (len(whole) - cut) + 40000: # what is new, for its CRC-32 and for its lines
        fail("of a log that grew by %d bytes, %d are read" % (len(whole) - cut, grown))
    if summary(ours, "--approximate") != want:
        fail("another result of a log that has grown")
forged(ours)

for bad in (["--since=-1s"], ["--rank", "1"], ["--skip-first", "1"], ["--dataset"], ["--compat"],
            ["--partial", "x"], ["--time-granularity", "1s"]):
    p = subprocess.run([BIN, "summary", "--approximate", *bad, ours], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE)
    if p.returncode != 64 or b"--approximate" not in p.stderr:
        fail("%s: exit %d: %s" % (bad, p.returncode, p.stderr))
print("%d failed" % FAILED)
sys.exit(FAILED > 0)
