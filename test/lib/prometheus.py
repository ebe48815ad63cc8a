"""A real Prometheus on a free port of loopback, that scrapes what it is told to each second."""
import json, os, shutil, socket, subprocess, urllib.parse, urllib.request

import agent


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Prometheus:
    def __init__(self, place, targets, rules=()):
        if not shutil.which("prometheus"):
            agent.skip("no prometheus (package prometheus)")
        folder = place.folder + "/prometheus"
        os.mkdir(folder)
        with open(folder + "/config.yml", "w") as f:
            f.write("global: {scrape_interval: 1s, evaluation_interval: 1s}\n")
            if rules:
                f.write("rule_files: %s\n" % json.dumps([os.path.abspath(r) for r in rules]))
            f.write("scrape_configs:\n- job_name: nccl-inspector\n  static_configs:\n  - targets: %s\n" %
                    json.dumps(targets))
        self.url = "http://127.0.0.1:%d" % free_port()
        self.log = folder + "/log"
        place.spawn(["prometheus", "--config.file=" + folder + "/config.yml",
                     "--storage.tsdb.path=" + folder + "/data", "--web.listen-address=" + self.url[7:],
                     "--query.lookback-delta=5m"], stdout=subprocess.DEVNULL,
                    stderr=open(self.log, "w"))
        agent.wait_for("Prometheus", self.ready)

    def ready(self):
        try:
            return urllib.request.urlopen(self.url + "/-/ready", timeout=5).status == 200
        except OSError:
            return False

    def get(self, path, **words):
        with urllib.request.urlopen(self.url + path + "?" + urllib.parse.urlencode(words),
                                    timeout=20) as answer:
            return json.load(answer)["data"]

    def query(self, expression):
        """[(labels, value)]"""
        data = self.get("/api/v1/query", query=expression)["result"]
        return [(r["metric"], float(r["value"][1])) for r in data]

    def one(self, expression):
        got = self.query(expression)
        return got[0][1] if len(got) == 1 else None
