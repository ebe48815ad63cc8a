"""For test/cases/agent/agent_secrets.sh.

    agent_secrets.py serve         a server that takes all; its port on standard output, headers of requests on standard error
    agent_secrets.py find PID TEXT is it in the memory of that process? 0: yes
"""
import http.server
import sys


class Server(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        for name, value in self.headers.items():
            print("%s: %s" % (name, value), file=sys.stderr, flush=True)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def has(pid, text):
    with open("/proc/%s/maps" % pid, encoding="utf-8") as maps, open("/proc/%s/mem" % pid, "rb", 0) as memory:
        for line in maps:
            where, rights = line.split()[:2]
            begin, end = (int(x, 16) for x in where.split("-"))
            if "w" not in rights:
                continue
            try:
                memory.seek(begin)
                if text in memory.read(end - begin):
                    return True
            except (OSError, ValueError, OverflowError):
                continue
    return False


if sys.argv[1] == "serve":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    print(server.server_port, flush=True)
    server.serve_forever()
sys.exit(not has(sys.argv[2], sys.argv[3].encode()))
