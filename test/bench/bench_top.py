"""The cost of `top` of 250 agents with 8 ranks each, at 1 Hz, on terminals of two sizes (docs/benchmarks.md).

    bench_top.py [SECONDS=20]         rows: what, value, bound, unit
"""
import fcntl, os, pty, struct, subprocess, sys, tempfile, termios, threading, time

SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 20
NODES, RANKS = 250, 8
HERE = os.path.dirname(os.path.abspath(__file__))
LIVE = os.path.join(os.environ.get("BUILD", "build"), "nccl-inspector-live")


def row(what, value, bound, unit):
    print("| %-60s | %13s | %-9s | %s |" % (what, value, bound, unit), flush=True)


def cpu(pid):
    return sum(int(open("/proc/%d/task/%s/schedstat" % (pid, t)).read().split()[0])
               for t in os.listdir("/proc/%d/task" % pid)) / 1e9


def look(port, lines, columns, more):
    """Share of a core in %, memory in MB, requests that were answered in a second."""
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        os.environ.update(TERM="xterm-256color")
        os.execv(LIVE, [LIVE, "top"] +
                 [w for n in range(NODES) for w in ("-a", "http://127.0.0.1:%s/n%d" % (port, n))] + more)
    drawn = [0]

    def drain():
        try:
            while True:
                drawn[0] += len(os.read(fd, 65536))
        except OSError:  # it has ended
            pass

    threading.Thread(target=drain, daemon=True).start()
    time.sleep(3)
    asked, began, at = os.path.getsize(root + "/asked"), cpu(pid), time.monotonic()
    time.sleep(SECONDS)
    seconds, used = time.monotonic() - at, cpu(pid) - began
    memory = [int(l.split()[1]) / 1024 for l in open("/proc/%d/smaps_rollup" % pid)
              if l.startswith("Pss:")][0]
    asked = open(root + "/asked").read()[asked:].count("\n") / seconds
    os.write(fd, b"q")
    os.waitpid(pid, 0)
    if not drawn[0] or asked < 0.8 * NODES:
        sys.exit("it has not looked: %d bytes drawn, %.0f requests a second" % (drawn[0], asked))
    return 100 * used / seconds, memory


with tempfile.TemporaryDirectory() as root:
    lib = os.path.join(HERE, "../lib")
    subprocess.run([sys.executable, lib + "/top_nodes.py", root, str(NODES), str(RANKS)], check=True)
    server = subprocess.Popen([sys.executable, lib + "/fake_agents.py", root])
    while not os.path.exists(root + "/port"):
        time.sleep(0.05)
    port = open(root + "/port").read()
    for what, lines, columns, more in (("80x24", 24, 80, []), ("200x50, by age", 50, 200, ["--sort", "age"])):
        share, memory = look(port, lines, columns, more)
        row("top of %d ranks of %d agents, 1 Hz, %s: share of a core" % (NODES * RANKS, NODES, what),
            "%.2f" % share, "<= 3", "%")
    row("  its memory (PSS)", "%.1f" % memory, "<= 40", "MB")
    server.kill()
    server.wait()
