#!/usr/bin/env python3
"""mutate.py LIST BUILD [name ...]   breaks one rule of the plugin at a time; some test must notice.

LIST holds blocks, separated by empty lines ("#" begins a comment line):
    name: what is broken
    file: plugin/x.c
    - a line as it stands (several: consecutive lines), however it is wrapped; must occur exactly once
    + what takes its place (none: it is left out)
    by: unit test_x [pattern] | sim [NAME=value ...] scenario [options] | case name | orders |
        host [NAME=value ...] verbs of test/host/host.c -- options of test/host/verify.py
All of "by" run until one fails; a mutation that none of them notices is a failure, and so is a detector that
fails on the tree as it is. NI_MUTATION_SHARE=N: only one in N runs, another one with each commit; the others
are looked at, whether their lines still stand. All that the detectors run is built once, unbroken, in a first
copy of the tree; mutations happen in copies of that. Only what a mutation touches is compiled again, and only
what the detector runs is linked; what was built with it is then overwritten by the unbroken files, so that
mending compiles nothing.
"""
import glob, os, re, shutil, signal, subprocess, sys, tempfile, threading, time

def read_list(path):
    blocks = []
    for text in re.split(r"\n\s*\n", open(path).read()):
        m = {"old": [], "new": [], "by": []}
        for line in text.splitlines():
            if line.startswith("#") or not line.strip():
                continue
            if line.startswith("- ") or line == "-":
                m["old"].append(line[2:])
            elif line.startswith("+ ") or line == "+":
                m["new"].append(line[2:])
            else:
                key, sep, value = line.partition(": ")
                if not sep or key not in ("name", "file", "by"):
                    sys.exit(f"{path}: `{line}`: accepted are name:, file:, by:, - and +")
                m["by"].append(value) if key == "by" else m.__setitem__(key, value)
        if m["old"] or "name" in m:
            if not (m.get("name") and m.get("file") and m["old"] and m["by"]):
                sys.exit(f"{path}: {m.get('name', text[:60])}: name, file, - lines and by are needed")
            blocks.append(m)
    return blocks

def places(lines, text):
    """Where the lines stand in a text, as pairs of begin and end, however they are wrapped: blanks do not
    count."""
    words = re.findall(r"\w+|[^\w\s]", "\n".join(lines))
    return [m.span() for m in re.finditer(r"(?<!\w)" * words[0][0].isalnum() +
                                          r"\s*".join(map(re.escape, words)), text)]

class Tree:
    """A copy of the tree with its build folder, in which things are broken and mended; of `sound`, or else of
    the tree as it is."""
    def __init__(self, build, where, sound=None):
        # the build's name stays, because the dependency files hold it
        self.dir, self.build, self.sound = where, build, sound
        self.boxes = tempfile.TemporaryDirectory(prefix="ni-mutation-",
                                                 dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        if sound:
            shutil.copytree(sound.dir, where, symlinks=True, dirs_exist_ok=True)
            return
        for d in ("Makefile", "scripts", "packaging", "include", "format", "plugin", "exporter", "test"):
            (shutil.copytree if os.path.isdir(d) else shutil.copy2)(d, os.path.join(where, d))
        keep = shutil.ignore_patterns("test-logs", "node_modules", "sysroot")
        shutil.copytree(build, os.path.join(where, build), ignore=keep, symlinks=True)
        for d in ("plugin", "format"):
            shutil.rmtree(os.path.join(where, build, "obj", d))
        for f in glob.glob("test/unit/*/*.c"): # those that make rare moments themselves, in the test build
            if "NI_STRESS" in open(f).read():
                os.unlink(os.path.join(where, build, "obj", f[:-2] + ".o"))
        # make would not miss the objects
        for f in ("libnccl-profiler-inspector.so", "libplugin_test.a", "libformat.a"):
            os.unlink(os.path.join(where, build, f))

    def prepare(self, detectors):
        return self.make("plugin", self.build + "/libplugin_test.a",
                         *dict.fromkeys(t for by in detectors for t in self.needs(by)))

    def mend(self, source):
        """As `sound` is: `source`, and all that was built since."""
        shutil.copy2(os.path.join(self.sound.dir, source), os.path.join(self.dir, source))
        for folder, _, names in os.walk(os.path.join(self.dir, self.build)):
            for name in names:
                path = os.path.join(folder, name)
                was = os.path.join(self.sound.dir, os.path.relpath(path, self.dir))
                if not os.path.lexists(was):
                    os.unlink(path)
                elif os.lstat(path).st_mtime_ns != os.lstat(was).st_mtime_ns and not os.path.islink(was):
                    os.unlink(path)
                    shutil.copy2(was, path)

    def run(self, args, limit, **env):
        """The exit status and what was said. Nothing that it began outlives it: what is broken may leave
        processes that never end."""
        p = subprocess.Popen(args, cwd=self.dir, env=dict(os.environ, BUILD=self.build, **env),
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             start_new_session=True)
        try:
            out, _ = p.communicate(timeout=limit)
            return p.returncode, out.decode(errors="replace")
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            out, _ = p.communicate()
            return 124, out.decode(errors="replace") + "\nno end after %d s" % limit
        finally:
            try:
                # p has been waited for: its group is there only while others are in it
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def make(self, *targets):
        # The plugin's test build: it yields between visible effects, so that short races become long ones.
        rc, out = self.run(["make", "-s", "-j2", "BUILD=" + self.build, "OPT=-O1 -DNI_STRESS -DNI_DEBUG"] +
                           list(targets), 300)
        return None if rc == 0 else out

    def needs(self, by):
        """What a detector runs, or what it compiles itself."""
        kind, _, rest = by.partition(" ")
        return {"unit": [f"{self.build}/test/unit/{rest.split(' ')[0]}"],
                "case": ["plugin", "exporter", "tools"]}.get(kind, ["plugin"])

    def make_for(self, by):
        """None, or why it cannot be built. Of a case's tools those alone that hold what is tested: who makes
        its logs stays sound."""
        held = [f[:-2].replace("test/", self.build + "/test/") for f in glob.glob("test/agent/*.c")]
        return self.make(*(t for need in self.needs(by) for t in (held if need == "tools" else [need])))

    def detect(self, by):
        """After make_for(). 0: passes, 77: cannot run here, anything else: noticed. And what was said."""
        kind, _, rest = by.partition(" ")
        if kind == "unit":
            words = rest.split()
            return self.run([f"{self.build}/test/unit/{words[0]}"] + words[1:], 60)
        if kind == "orders":
            return self.run(["test/aarch64/orders.sh"], 60)
        if kind == "case":
            return self.run(glob.glob(f"test/cases/*/{rest}.sh"), 90)
        words = rest.split()
        env = {"NCCL_INSPECTOR_BLACKBOX": self.boxes.name} # what is broken may leave boxes behind
        env.update(w.split("=", 1) for w in words if re.match(r"[A-Z_]+=", w))
        words = [w for w in words if not re.match(r"[A-Z_]+=", w)]
        if kind == "host":
            split = words.index("--")
            env = {k: v.replace("BUILD/", os.path.join(self.dir, self.build) + "/") for k, v in env.items()}
            with tempfile.TemporaryDirectory() as tmp:
                rc, out = self.run([f"{self.build}/test/host/host",
                                    f"{self.build}/libnccl-profiler-inspector.so", tmp + "/truth",
                                    *words[:split]], 30, NCCL_INSPECTOR_ENABLE="1",
                                    NCCL_INSPECTOR_DUMP_DIR=tmp + "/logs", **env)
                return (rc, out) if rc else self.run([sys.executable, "test/host/verify.py", tmp + "/logs",
                                                      tmp + "/truth",
                                                      *words[split + 1:]], 30)
        if kind == "sim":
            with tempfile.TemporaryDirectory() as tmp:
                sim = f"{self.build}/nccl-sim"
                rc, out = self.run([sim, "--quiet", "--plugin", f"{self.build}/libnccl-profiler-inspector.so",
                                    "--scenario", *words, "--truth", tmp + "/truth"], 50,
                                    NCCL_INSPECTOR_ENABLE="1",
                                   NCCL_INSPECTOR_DUMP_DIR=tmp + "/logs", **env)
                return (rc, out) if rc else self.run([sim, "--verify", tmp + "/truth", tmp + "/logs"], 30)
        return 1, f"`{by}`: accepted are unit, sim, host, case and orders"

def main():
    blocks, build = read_list(sys.argv[1]), sys.argv[2]
    if sys.argv[3:]:
        blocks = [b for b in blocks if any(w in b["name"] for w in sys.argv[3:])]
    lock, results = threading.Lock(), {"ok": 0, "FAIL": 0, "skip": 0}
    def say(outcome, text, more=""):
        with lock:
            results[outcome] += 1
            print(f"{outcome:5} {text}", flush=True)
            if more:
                print("\n".join("      " + l for l in more.splitlines()[-20:]), flush=True)

    def misplaced(m, text):
        n = len(places(m["old"], text))
        return "" if n == 1 else f"{m['name']}: its lines occur {n} times in {m['file']}, not once"

    share = int(os.environ.get("NI_MUTATION_SHARE", "1"))
    if share > 1:
        for m in blocks:
            wrong = misplaced(m, open(m["file"]).read())
            if wrong:
                say("FAIL", wrong, "\n".join(m["old"]))
        commits = subprocess.run(["git", "rev-list", "--count", "HEAD"],
                                 stdout=subprocess.PIPE).stdout.strip()
        turn = int(commits or 0) % share
        print(f"{len(blocks)} mutations stand; number {turn + 1} of every {share} runs", flush=True)
        blocks = blocks[turn::share]

    unusable = {}
    def baseline(tree, by):
        rc, out = tree.detect(by)
        if rc not in (0, 77):  # as test/runner.sh does: a busy machine gets a second try, and it is told
            print(f"      {by} fails on the tree as it is; a second try", flush=True)
            rc, out = tree.detect(by)
        if rc:
            unusable[by] = rc
        if rc == 77:
            print(f"      {by} cannot run here: {out.splitlines()[-1] if out else ''}", flush=True)
        elif rc:
            say("FAIL", f"`{by}` fails on the tree as it is", out)

    def mutation(tree, m):
        path = os.path.join(tree.dir, m["file"])
        text = open(path).read()
        wrong = misplaced(m, text)
        if wrong:
            return say("FAIL", wrong, "\n".join(m["old"]))
        able = [by for by in m["by"] if by not in unusable]
        if not able:
            return say("skip", f"{m['name']}: nothing that could notice it runs here")
        begin, end = places(m["old"], text)[0]
        open(path, "w").write(text[:begin] + "\n".join(m["new"]) + text[end:])
        try:
            for by in able:
                broken = tree.make_for(by)
                if broken:
                    return say("FAIL", f"{m['name']}: does not compile", broken)
                rc, out = tree.detect(by)
                if rc not in (0, 77):
                    return say("ok", f"{m['name']}: noticed by {by}")
            say("FAIL", f"{m['name']}: nobody notices it ({', '.join(able)})")
        finally:
            tree.mend(m["file"])

    def spread(fn, work):
        work, threads = list(work), []
        def worker(tree):
            while True:
                with lock:
                    if not work:
                        return
                    item = work.pop(0)
                try:
                    fn(tree, item)
                except Exception as e:
                    say("FAIL", f"{item['name'] if isinstance(item, dict) else item}: {e!r}")
        for t in trees:
            threads.append(threading.Thread(target=worker, args=(t,)))
            threads[-1].start()
        for t in threads:
            t.join()

    with tempfile.TemporaryDirectory(prefix="ni-mutation-") as tmp:
        def new_tree(name, sound=None):
            where = os.path.join(tmp, name)
            os.mkdir(where)
            return Tree(build, where, sound)
        started = time.monotonic()
        detectors = list(dict.fromkeys(by for m in blocks for by in m["by"]))
        sound = new_tree("sound")
        out = sound.prepare(detectors)
        if out:
            sys.exit(out)
        trees = [new_tree(str(i), sound) for i in range(min(2, os.cpu_count() or 1))]
        spread(baseline, detectors)
        spread(mutation, blocks)
    print(f"{time.monotonic() - started:.0f} s")
    print(f"{results['ok']} passed, {results['FAIL']} failed, {results['skip']} skipped")
    return 1 if results["FAIL"] else 0

if __name__ == "__main__":
    sys.exit(main())
