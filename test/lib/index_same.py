#!/usr/bin/env python3
"""Is everything the same with an index, without, and while it is made? Used by test/cases/index/ and
test/long/index.sh.

  index_same.py BIN LOGGEN TMP same FILTERS [GOLDEN...]  commands and random filters over logs of all kinds
  index_same.py BIN LOGGEN TMP change                    logs that grow, are cut, replaced, overwritten, renamed, deleted, copied
  index_same.py BIN LOGGEN TMP damage FLIPS STEP         flipped bits; cut at every STEP-th length
  index_same.py BIN LOGGEN TMP size OPS                  at most 2 % of logs with a record, or ten and their accounts, in a member; of one
  index_same.py BIN LOGGEN TMP hang [kinds] FOLDER...    hang, of logs that grow, of all kinds and of the folders
  index_same.py BIN LOGGEN TMP hostile FOLDER            hang, with files of its index that are not as they were
  index_same.py BIN LOGGEN TMP crowd ROUNDS              eight builders and four readers at once, one killed
"""
import os, random, re, shutil, signal, subprocess, sys, time

BIN, LOGGEN, TMP, MODE, *REST = sys.argv[1:]
GROUPS = os.path.join(TMP, "groups")
FAILED = 0
os.environ.pop("XDG_CACHE_HOME", None)
os.environ["HOME"] = os.path.join(TMP, "home")


def fail(text):
    global FAILED
    FAILED += 1
    print("FAIL " + text, flush=True)


BEGAN = TOLD = time.monotonic()


def progress(what, i, n):
    """A line every ten seconds: how far it is."""
    global TOLD
    now = time.monotonic()
    if now - TOLD >= 10:
        TOLD = now
        print("%s: %5.0f s, %s, %d of %d, %d failed" % (MODE, now - BEGAN, what, i, n, FAILED), flush=True)


def run(args, cwd=TMP):
    # without the black boxes of whatever else runs on this machine: they come and go between two looks
    if args[0] == "hang":
        args = args + ["--box-dir", TMP + "/no-boxes"]
        os.makedirs(TMP + "/no-boxes", exist_ok=True)
    p = subprocess.run([BIN] + args, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=250)
    if p.returncode not in ((0, 1, 2, 3, 4) if args[0] == "hang" else (0, 1, 2, 64)):
        fail("%s: exit %d: %s" % (args, p.returncode, p.stderr.decode("utf-8", "replace")[-2000:]))
    return p


def tree(folder):
    """Every file below the folder, but for the log of the run, whose lines begin with times."""
    out = {}
    for at, _, names in os.walk(folder):
        for n in names:
            if n == "output.log":
                continue
            with open(os.path.join(at, n), "rb") as f:
                out[os.path.relpath(os.path.join(at, n), folder)] = f.read()
    return out


USES_INDEX = ("check", "summary", "show", "trace", "hang")


def result(command, options, logs, index):
    args = [command] + options + (index if command in USES_INDEX else []) + [logs]
    if command == "trace":
        out = os.path.join(TMP, "t.json.gz")
        if os.path.exists(out):
            os.remove(out)
        p = run(args + ["-o", out])
        return p.returncode, p.stdout, p.stderr, open(out, "rb").read() if os.path.exists(out) else b""
    if command != "summary":
        p = run(args)
        return p.returncode, p.stdout, p.stderr
    out = os.path.join(TMP, "o")
    shutil.rmtree(out, ignore_errors=True)
    p = run(args + ["--no-plots", "--no-html", "--output-dir", out])
    return p.returncode, p.stdout, p.stderr, tree(out)


def same(what, a, b, but_stderr=False):
    """but_stderr: a note may stand there."""
    for i, (x, y) in enumerate(zip(a, b)):
        if i == 2 and but_stderr:
            y = b"".join(l for l in y.splitlines(True) if b": the index of " not in l)
        if x != y:
            names = sorted(n for n in set(x) | set(y)
                           if x.get(n) != y.get(n)) if isinstance(x, dict) else (x, y)
            fail("%s: %s differs: %s" % (what, ("exit code", "stdout", "stderr", "files")[i],
                                         str(names)[:1500]))
            return


def loggen(name, *options):
    path = os.path.join(TMP, name)
    shutil.rmtree(path, ignore_errors=True)
    subprocess.run([LOGGEN, path] + list(options), check=True)
    return path


OURS = ["--format", "ours", "--comm-name", "--gzip", "--member-lines", "40"]


def index_file(logs):
    return os.path.join(logs, ".nccl-inspector-index", "index")


def index_bytes(path):
    """Without what the file system says of the logs: 32 bytes each at the end, and 4. How many there are
    stands in the table."""
    with open(path, "rb") as f:
        b = f.read()
    at, n, shift = 24, 0, 0
    while True:
        n |= (b[at] & 127) << shift
        shift += 7
        at += 1
        if not b[at - 1] & 128:
            break
    return b[:-(32 * n + 4)]


def filters(r, big):
    """Options of a random query; times and sizes are those of loggen."""
    o = []
    if r.random() < 0.6:
        a = r.choice(["+%.2fs" % (r.random() * big), "-%.2fs" % (r.random() * big),
                      "%d" % (1790000000 + r.random() * big)])
        o.append("--since=" + a)
    if r.random() < 0.4:
        o.append("--until=+%.2fs" % (r.random() * big * 1.5))
    if r.random() < 0.3:
        o += ["--rank", r.choice(["0", "1", "3", "0-1", "2,7", "99"])]
    if r.random() < 0.3:
        o += ["--comm", r.choice(["world", "node", "0x5d1c7e90aa4101", "world,nope", "dp0"])]
    if r.random() < 0.2:
        o += ["--host", r.choice(["node-0", "node-1", "elsewhere,node-1"])]
    if r.random() < 0.4:
        o += ["--coll", r.choice(["AllReduce", "allgather,Broadcast", "Send", "Nothing,Reduce"])]
    if r.random() < 0.3:
        o += ["--size", r.choice(["8K", "1M-64M", "0-4K,32M", "1T"])]
    if r.random() < 0.2:
        o += ["--sn", r.choice(["0", "5-40", "1,100-200", "100000"])]
    return o


def query(r, big, logs):
    """A command that takes logs, with random filters; also those that know no index, for which there is
    none."""
    o = filters(r, big)
    kind = r.random()
    if kind < 0.55:
        if r.random() < 0.3:
            o += ["--time-granularity", r.choice(["100ms", "1s", "7s"])]
        if r.random() < 0.2:
            o += ["--groups", GROUPS]
        return "summary", o
    if kind < 0.7:
        return "trace", [x for k in range(len(o)) for x in [o[k]]
                         if not (o[k] in ("--size", "--sn") or o[k - 1] in ("--size", "--sn"))]
    if kind < 0.75:
        return "show", ["--comm", "world", "--sn", r.choice(["1", "7-9", "300"])]
    return r.choice([("check", []), ("check", ["--json"]), ("pools", []), ("hang", ["--json"])])


def one_member(folder):
    """Its logs as NVIDIA's come: one gzip member each."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        with open(path, "rb") as f:
            text = f.read()
        with open(path + ".gz", "wb") as f:
            f.write(subprocess.run(["gzip", "-cn"], input=text, stdout=subprocess.PIPE, check=True).stdout)
        os.remove(path)


def few(folder):
    """Records in the order of their markers: of each a few, now of one communicator and now of the other, on
    hosts of their own."""
    for k, name in enumerate(sorted(os.listdir(folder))):
        path = os.path.join(folder, name)
        with open(path) as f:
            lines = f.read().splitlines()
        marks = [l for l in lines if l.startswith('{"header"')]
        bare = [l for l in lines if not l.startswith('{"header"')]
        out, at = [], 0
        for i in range(0, len(bare) - 1, 2):
            m = re.sub(r'"hostname":"[^"]*"', '"hostname":"host-%d"' % (i // 2 % 5),
                       marks[i // 2 % len(marks)])
            m = re.sub(r'"coll_records":\d+', '"coll_records":2', m)
            out += [m] + bare[i:i + 2]
        with open(path, "w") as f:
            f.write("\n".join(out) + "\n")
    return folder


def kinds():
    """Logs of all kinds: ours and NVIDIA's; many members, one, plain; mixed; with damage."""
    ours = loggen("ours", "--ranks", "4", "--node", "2", "--ops", "600", "--p2p", "50", *OURS)
    big = loggen("big", "--ranks", "1", "--ops", "9000", "--format", "ours", "--comm-name")
    one_member(big)
    all_ = [ours, big, few(loggen("few", "--ranks", "2", "--ops", "40", "--format", "v4.3")),
            loggen("v43", "--ranks", "2", "--ops", "300", "--format", "v4.3", "--gzip", "--member-lines",
                   "70"),
            loggen("plain", "--ranks", "2", "--ops", "700", "--format", "ours", "--comm-name")]
    mixed = os.path.join(TMP, "mixed")
    shutil.rmtree(mixed, ignore_errors=True)
    os.makedirs(os.path.join(mixed, "deeper"))
    logs = sorted(f for f in os.listdir(ours) if "log" in f)
    shutil.copy(os.path.join(ours, logs[0]), mixed)
    with open(os.path.join(mixed, "one-member.log.gz"), "wb") as f:
        text = subprocess.run(["zcat", os.path.join(ours, logs[1])], stdout=subprocess.PIPE,
                              check=True).stdout
        f.write(subprocess.run(["gzip", "-cn"], input=text, stdout=subprocess.PIPE, check=True).stdout)
    with open(os.path.join(ours, logs[2]), "rb") as f:
        whole = f.read()
    with open(os.path.join(mixed, "deeper", "cut.log.gz"), "wb") as f:
        f.write(whole[: len(whole) * 2 // 3 + 5])
    with open(os.path.join(mixed, "deeper", "hole.log.gz"), "wb") as f:
        f.write(whole[: len(whole) // 2] + bytes(64) + whole[len(whole) // 2 + 64:])
    with open(os.path.join(mixed, "deeper", "two.log"), "wb") as f: # the lines of two processes
        f.write(text[: len(text) // 3].rpartition(b"\n")[0] + b"\n{\"broken\"\n\n" + text)
    open(os.path.join(mixed, "empty.log"), "w").close()
    return all_ + [mixed]


def test_same(count, golden):
    r = random.Random(7)
    with open(GROUPS, "w") as f:
        f.write("first: *pid4000*\nothers: *\n")
    # Of the queries so many in a hundred go to each.
    sets = [(d, 12, share) for d, share in zip(kinds(), (30, 10, 10, 10, 10, 30))] + [(os.path.abspath(g), 3, 0) for g in golden]
    commands = [("check", []), ("check", ["--json"]), ("summary", []), ("summary", ["--host", "elsewhere"]),
                ("summary", ["--approximate"]), ("show", ["--comm", "world", "--sn", "3-5"])]
    for k, (logs, big, share) in enumerate(sets):
        queries = list(commands) + [query(r, big, logs) for _ in range(max(2, count * share // 100))]
        place = ["--index-dir", os.path.join(TMP, "ix%d" % k)]
        for i, (command, options) in enumerate(queries):
            what = "%s: %s %s" % (os.path.basename(logs), command, " ".join(options))
            progress("logs %d of %d" % (k + 1, len(sets)), i, len(queries))
            want = result(command, options, logs, ["--no-index"])
            if i % 3 == 0:
                same(what + ", building", want, result(command, options, logs, place + ["--reindex"]))
            elif i % 3 == 1:
                run(["index", "--quiet", "--reindex"] + place + [logs])
            jobs = ["--jobs", r.choice(["1", "2", "8"])] if command == "summary" else []
            same(what + ", with it", want, result(command, options + jobs, logs, place))
        if not os.listdir(os.path.join(TMP, "ix%d" % k)):
            fail("%s: there is no index" % logs)
    # The same logs give the same bytes, whoever makes them, from whichever logs were there before.
    ours = os.path.join(TMP, "ours")
    seen = set()
    for jobs in ("1", "2", "8"):
        result("summary", ["--jobs", jobs, "--rank", "1"], ours, ["--reindex"])
        seen.add(index_bytes(index_file(ours)))
    copy = os.path.join(TMP, "copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(ours, copy)
    run(["index", "--reindex", copy])
    seen.add(index_bytes(index_file(copy)))
    for f in sorted(f for f in os.listdir(copy) if "log" in f): # folded in one by one
        run(["index", "--quiet", os.path.join(copy, f)])
    seen.add(index_bytes(index_file(copy)))
    if len(seen) != 1:
        fail("%d different indexes of the same logs" % len(seen))


QUERIES = [("check", []), ("summary", ["--since=+3s", "--until=+6s"]),
           ("summary", ["--rank", "1", "--coll", "AllReduce"]),
           ("show", ["--comm", "world", "--sn", "2,400"]),
           ("trace", ["--since=+3s", "--until=+6s"]), ("summary", ["--approximate"])]


def all_same(what, logs, fresh=False):
    for command, options in QUERIES:
        same("%s: %s" % (what, command), result(command, options, logs, ["--no-index"]),
             result(command, options, logs, []), True)
    if fresh: # what was indexed step by step is what is indexed at once
        run(["index", "--quiet", logs])
        step = index_bytes(index_file(logs))
        run(["index", "--quiet", "--reindex", logs])
        if step != index_bytes(index_file(logs)):
            fail("%s: another index than that of a fresh start" % what)
        # The same with sums, in a place where those of the step before are.
        place = [os.path.join(TMP, d + os.path.basename(logs)) for d in ("steps-", "anew-")]
        for at, again in zip(place, ([], ["--reindex"])):
            result("summary", ["--approximate"], logs, ["--index-dir", at] + again)
        if len({index_bytes(os.path.join(at, os.listdir(at)[0])) for at in place}) != 1:
            fail("%s: other sums than those of a fresh start" % what)


def members(data):
    import zlib
    at, out = 0, []
    while at < len(data):
        d = zlib.decompressobj(31)
        d.decompress(data[at:])
        end = len(data) - len(d.unused_data)
        out.append(data[at:end])
        at = end
    return out


def said(logs):
    p = run(["index", logs])
    m = re.search(rb"(\d+) indexed as before, (\d+) longer than before, (\d+) read", p.stdout)
    return tuple(map(int, m.groups()))


def settle(logs):
    """Until the logs' ctimes are old enough to be trusted."""
    time.sleep(2.1)
    run(["index", "--quiet", logs])


def test_change():
    logs = loggen("grow", "--ranks", "2", "--node", "2", "--ops", "1500", *OURS)
    name = sorted(os.listdir(logs))
    path = [os.path.join(logs, n) for n in name]
    with open(path[0], "rb") as f:
        whole = f.read()
    part = members(whole)
    for cut in (len(part) // 3, len(part) // 3 + 1, len(part) // 2, len(part) - 1, len(part)):
        with open(path[0], "r+b" if cut > len(part) // 3 else "wb") as f:
            f.write(b"".join(part[:cut]))
        got = said(logs)
        if cut > len(part) // 3 and got[1:] != (1, 0):
            fail("a log that grew is not read as such: %s" % (got,))
        all_same("grown to %d members" % cut, logs, True)
    # Plain text that grows, line by line.
    text = subprocess.run(["zcat", path[1]], stdout=subprocess.PIPE, check=True).stdout.splitlines(True)
    os.remove(path[1])
    plain = path[1][:-3]
    for cut in (len(text) // 2, len(text) - 3, len(text)):
        with open(plain, "wb") as f:
            f.write(b"".join(text[:cut]))
        all_same("plain text of %d lines" % cut, logs, True)
    with open(plain, "ab") as f: # a line that is yet to be finished, and then is
        f.write(text[5][:100])
    all_same("half a line", logs)
    with open(plain, "ab") as f:
        f.write(text[5][100:])
    all_same("the other half", logs)
    settle(logs)
    if said(logs) != (2, 0, 0):
        fail("fresh logs are read: %s" % (said(logs),))
    st = os.stat(path[0])

    def write(data):
        with open(path[0], "wb") as f:
            f.write(data)
        os.utime(path[0], ns=(st.st_atime_ns, st.st_mtime_ns))

    def put(data, what):
        """In place of the log that the index knows, with its mtime; nothing but ctime can tell where the size
        is the same."""
        write(whole)
        settle(logs)
        if said(logs) != (2, 0, 0):
            fail("%s: the log before is not known" % what)
        write(data)
        all_same(what, logs)

    put(whole[: len(whole) // 2 + 7], "cut in a member")
    put(b"".join(part[: len(part) // 2]), "cut behind a member")
    put(b"".join(part[len(part) // 2:]), "overwritten by another")
    other = bytearray(whole) # same size, same mtime
    at = len(b"".join(part[:5]))
    other[at + len(part[5]) // 2] ^= 1
    put(bytes(other), "one byte replaced, same size and mtime")
    # Two members of one size change places: sound, other lines, same size and mtime.
    by_size = {}
    for i, m in enumerate(part[1:], 1):
        by_size.setdefault(len(m), []).append(i)
    twin = next((v for v in by_size.values() if len(v) > 1 and part[v[0]] != part[v[1]]), None)
    if twin:
        swapped = list(part)
        swapped[twin[0]], swapped[twin[1]] = part[twin[1]], part[twin[0]]
        put(b"".join(swapped), "two members have changed places")
    write(whole)
    run(["index", "--quiet", logs])
    os.rename(path[0], path[0].replace("pid", "pid9"))
    all_same("renamed", logs, True)
    os.rename(path[0].replace("pid", "pid9"), path[0])
    os.remove(plain)
    all_same("deleted", logs, True)
    copy = os.path.join(TMP, "copied")
    shutil.rmtree(copy, ignore_errors=True)
    run(["index", "--quiet", logs])
    shutil.copytree(logs, copy)
    got = said(copy)
    if got != (1, 0, 0):
        fail("a copy is read again: %s" % (got,))
    all_same("copied", copy, True)


def look(what, logs, place, *options):
    """hang with an index as without one. Ages are in seconds, which may end between the two: then once
    more."""
    for _ in range(5):
        want, got = [result("hang", ["--json"], logs, i)
                     for i in (["--no-index"], ["--index-dir", place, *options])]
        if want == got:
            return
    same("%s: hang" % what, want, got)


def borders(path, data):
    """Where the log may end for a while: behind each member or line."""
    parts = members(data) if data[:2] == b"\x1f\x8b" else data.splitlines(True)
    at = [0]
    for p in parts:
        at.append(at[-1] + len(p))
    return at


def test_hang(folders):
    if folders and folders[0] == "kinds":
        folders = kinds() + folders[1:]
    r = random.Random(5)
    for logs in folders:
        what, grown, place = os.path.basename(logs), os.path.join(TMP, "grown"), os.path.join(TMP, "hx")
        shutil.rmtree(place, ignore_errors=True)
        for again in ("made", "used"):
            look("%s, the index is %s" % (what, again), logs, place)
        shutil.rmtree(grown, ignore_errors=True)
        shutil.copytree(logs, grown, ignore=shutil.ignore_patterns(".nccl*"))
        whole = {os.path.relpath(os.path.join(at, n), grown): None for at, _, names in os.walk(grown)
                 for n in names}
        for n in whole:
            with open(os.path.join(grown, n), "rb") as f:
                data = f.read()
            try:
                whole[n] = data, borders(n, data)
            except Exception:
                whole[n] = data, [len(data)] # damaged: as it is
            os.remove(os.path.join(grown, n))
        before = {n: 0 for n in whole}
        # some logs stand still, some come later, some go on within a line or a member
        for step in (1, 3, 6, 7, 8):
            for n, (data, at) in whole.items():
                end = at[min(len(at) - 1, len(at) * (step if r.random() < 0.8
                                                     else 0) // 8)] if step < 8 else len(data)
                end = min(len(data), max(end + (9 if step < 7 and r.random() < 0.1 else 0), before[n]))
                if end > before[n]:
                    with open(os.path.join(grown, n), "ab") as f:
                        f.write(data[before[n]:end])
                    before[n] = end
            look("%s, grown to %d of 8" % (what, step), grown, place)
        seen = [index_bytes(os.path.join(place, f)) for f in sorted(os.listdir(place))]
        look("%s, anew" % what, grown, place, "--reindex")
        if seen != [index_bytes(os.path.join(place, f)) for f in sorted(os.listdir(place))]:
            fail("%s: what was indexed step by step is another index" % what)


def test_hang_hostile(logs):
    """Beside the logs: a log replaced by one of its size and mtime; the file damaged, cut, of another log;
    summary, which uses it, too."""
    path = sorted(os.path.join(logs, n) for n in os.listdir(logs) if n.endswith("l"))[0]
    file = os.path.join(logs, ".nccl-inspector-index", "hang")
    hang = lambda *options: result("hang", ["--json"], logs, list(options))
    time.sleep(2.1)
    hang("--reindex")
    st = os.stat(path)
    with open(path, "rb") as f:
        was = f.read()
    with open(file, "rb") as f:
        good = f.read()
    with open(path, "r+b") as f: # the newest operation was another one
        f.write(was.replace(b'"AllReduce"', b'"Broadcast"'))
    os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))
    want = hang("--no-index")
    if want == hang("--no-index", "--stuck-after", "1000000"):
        fail("nothing hangs in %s" % logs)
    same("replaced by as many bytes", want, hang())
    with open(path, "r+b") as f:
        f.write(was)
    want = hang("--no-index")
    r = random.Random(4)
    for i in range(40): # its checksums do not fit
        bad = bytearray(good[:r.randrange(len(good))] if i % 4 == 0 else good)
        if i % 4:
            bad[r.randrange(len(bad))] ^= 1 << r.randrange(8)
        with open(file, "wb") as f:
            f.write(bytes(bad))
        same("hang's file, damaged %d" % i, want, hang(), True)
    os.remove(file)
    os.symlink("/dev/zero", file)
    same("a link in its place", want, hang(), True)
    os.remove(file)
    run(["index", "--quiet", logs])
    shutil.copy(os.path.join(os.path.dirname(file), "index"), file)
    same("the other file in its place", want, hang(), True)
    os.remove(file)
    first = result("summary", [], logs, ["--no-index"])
    if os.path.exists(file):
        fail("summary --no-index leaves an index")
    same("summary, made", first, result("summary", [], logs, ["--reindex"]))
    if not os.path.exists(file):
        fail("summary keeps nothing for hang")
    same("summary, used", first, result("summary", [], logs, []))


def test_damage(flips, step):
    logs = loggen("hurt", "--ranks", "2", "--node", "2", "--ops", "300", *OURS)
    run(["index", logs])
    path = index_file(logs)
    with open(path, "rb") as f:
        good = f.read()
    want = [result(c, o, logs, ["--no-index"]) for c, o in QUERIES]
    r = random.Random(3)

    def look(data, what, i):
        with open(path, "wb") as f:
            f.write(data)
        k = i % len(QUERIES)
        same(what, want[k], result(*QUERIES[k], logs, []), True)

    for i in range(flips):
        bad = bytearray(good)
        at = r.randrange(len(bad))
        bad[at] ^= 1 << r.randrange(8)
        progress("flipped bits", i, flips)
        look(bytes(bad), "bit flipped in byte %d" % at, i)
    for i, n in enumerate(range(0, len(good), step)):
        progress("lengths", i, len(range(0, len(good), step)))
        look(good[:n], "cut to %d bytes" % n, i)
    look(good + b"more", "longer", 0)
    look(bytes(b if i != 8 else b ^ 255 for i, b in enumerate(good)), "of another version", 0)
    look(good[:12] + good[12:20][::-1] + good[20:], "of another endianness", 0)
    p = run(["check", "--quiet", logs])
    if p.stderr.count(b": the index of ") != 1:
        fail("an index that is not used is not told once: %r" % p.stderr)


def test_crowd(rounds):
    logs = loggen("crowd", "--ranks", "4", "--node", "2", "--ops", "400", *OURS)
    want = run(["check", "--no-index", logs]).stdout
    folder = os.path.dirname(index_file(logs))
    r = random.Random(1)
    for i in range(rounds):
        progress("rounds", i, rounds)
        build = [subprocess.Popen([BIN, "check", "--reindex", logs], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE) for _ in range(8)]
        read = [subprocess.Popen([BIN, "check", logs], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                for _ in range(4)]
        time.sleep(r.random() * 0.03)
        build[0].send_signal(signal.SIGKILL)
        for k, p in enumerate(build + read):
            out, err = p.communicate(timeout=100)
            if k and (p.returncode or out != want or err):
                fail("in a crowd: exit %d, %s" % (p.returncode, err.decode("utf-8", "replace")))
    # A killed writer's file: nobody holds it.
    open(os.path.join(folder, ".tmp-1234"), "w").close()
    run(["index", "--reindex", logs])
    if os.listdir(folder) != ["index"]:
        fail("left over: %s" % os.listdir(folder))
    seen = index_bytes(index_file(logs))
    run(["index", "--reindex", logs])
    if seen != index_bytes(index_file(logs)):
        fail("another index")


def test_size(ops):
    import gzip
    for what, records, accounts in (("a record in each member", 1, False), ("ten, with accounting", 10, True),
                                    ("one member", 10 ** 9, False)):
        logs = loggen("size", "--ranks", "1", "--ops", str(ops if records < 100 else 4 * ops), "--format",
                      "ours", "--comm-name")
        path = os.path.join(logs, os.listdir(logs)[0])
        with open(path, "rb") as f:
            lines = f.read().splitlines(True)
        told = [l for l in lines if b'"dump_stats"' in l] if accounts else []
        if accounts and not told:
            fail("no accounting lines in %s" % path)
        with open(path + ".gz", "wb") as f:
            for i in range(0, len(lines), records):
                f.write(gzip.compress(b"".join(lines[i:i + records] + told), 6, mtime=0))
        os.remove(path)
        run(["index", "--quiet", logs])
        part = os.path.getsize(index_file(logs)) / os.path.getsize(path + ".gz")
        print("%s: the index is %.2f %% of %.1f MB" % (what, 100 * part, os.path.getsize(path + ".gz") / 1e6))
        if part > 0.02:
            fail("%s: the index is %.2f %% of the log" % (what, 100 * part))


{"same": lambda: test_same(int(REST[0]), REST[1:]), "change": test_change,
 "hang": lambda: test_hang(REST), "hostile": lambda: test_hang_hostile(REST[0]),
 "damage": lambda: test_damage(int(REST[0]), int(REST[1])), "size": lambda: test_size(int(REST[0])),
 "crowd": lambda: test_crowd(int(REST[0]))}[MODE]()
print("%s: %.0f s, %d failed" % (MODE, time.monotonic() - BEGAN, FAILED))
sys.exit(FAILED > 0)
