"""The expressions of the dashboards and rules in contrib/, and whether they are right.

  dashboards.py names               every metric in them is in docs/agent.md, every recorded one in the rules; what dashboards and
                                    alerts need otherwise is there
  dashboards.py ask URL [NAME=REGEX ...]
                                    asks the Prometheus at URL for each; an expression that it refuses is a
                                    failure; those that return nothing are told. NAME=REGEX: values of the
                                    dashboards' variables (default: all)
  dashboards.py serve               a fake agent: all metrics of docs/agent.md, growing, on a free port of 127.0.0.1, which it prints

Ends with 1 when something is wrong; `ask --all`: also when an expression of a dashboard returns nothing.
"""
import glob
import http.server
import json
import os
import re
import sys
import time
import urllib.parse
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LABELS = {"job_id": ("77", "78"), "attempt": ("0",), "rank": ("0", "1", "2"), "gpu": ("0", "1"),
          "comm": ("dp", "tp"), "function": ("AllReduce",), "size": ("1Mi-16Mi",),
          "cause": ("power", "thermal"), "verdict": ("likely",), "nic": ("cxi0", "cxi1", "cxi2"),
          "name": ("tx_held", "rx_held", "retries"), "source": ("cxi",), "mode": ("user", "system"),
          "user": ("1001",), "version": ("0.1.0",), "uuid": ("GPU-1",), "pci": ("0000:1b:00.0",),
          "result": ("sent", "dropped"), "node": ("n1",)}
LABEL_WORDS = set(LABELS)
PREFIX = "nccl_inspector_"
DOCS_URL = "file:///usr/share/doc/nccl-inspector/docs/" # as the packages have it


def families():
    """Name without the prefix -> (type, labels), from the table of docs/agent.md."""
    text = open(ROOT + "/docs/agent.md", encoding="utf-8").read()
    found, labels, kinds = {}, [], []
    for line in text.split("<!-- metrics -->")[1].split("<!-- end of metrics -->")[0].splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        names = re.findall(r"`([^`]+)`", cells[0])
        if len(cells) < 4 or not names:
            continue
        more = [w for w in re.findall(r"[a-z_]+", cells[2]) if w in LABEL_WORDS]
        labels = labels_before + more if cells[2].startswith("the same") else more
        if not cells[2].startswith("the same"):
            labels_before = more
        kinds = [k.strip() for k in cells[1].split(",")] if cells[1] else []
        for i, name in enumerate(names):
            if name.startswith("..."):  # the same with another end
                name = re.sub(r"_(receive|transmit)_.*", "", names[i - 1]) + name[3:]
            kind = kinds[min(i, len(kinds) - 1)] if kinds else "counter" if name.endswith("_total") else "gauge"
            found[name] = (kind, labels)
    return found


def expressions():
    """(where, expression) of all dashboards and rules; of dashboards with their variables."""
    for path in sorted(glob.glob(ROOT + "/contrib/grafana/*.json")):
        board, name = json.load(open(path, encoding="utf-8")), os.path.basename(path)
        for a in board["annotations"]["list"]:
            if "expr" in a:
                yield name + ": " + a["name"], a["expr"]
        for v in board["templating"]["list"]:
            m = re.fullmatch(r"label_values\((.*), *\w+\)", v.get("definition", ""))
            if m:
                yield name + ": $" + v["name"], m.group(1)
        for p in board["panels"]:
            for t in p.get("targets", []):
                yield "%s: %s" % (name, p["title"]), t["expr"]
    for path in sorted(glob.glob(ROOT + "/contrib/prometheus/*.yml")):
        for rule in rules(path):
            yield "%s: %s" % (os.path.basename(path), rule.get("record") or rule.get("alert")), rule["expr"]


def rules(path):
    """The rules of a file: its own form of YAML is read here, one key a line, texts that go on below further
    in."""
    rule, key = None, None
    for line in open(path, encoding="utf-8"):
        text, indent = line.strip(), len(line) - len(line.lstrip())
        m = re.match(r"(- )?(\w+): ?(.*)", text)
        if not text or text.startswith("#"):
            continue
        if m and m.group(1) and m.group(2) in ("record", "alert"):
            if rule:
                yield rule
            rule, key, depth = {}, m.group(2), 8
            rule[key] = m.group(3)
        elif (rule is not None and m and (
              indent == 8 or (indent == 10 and
                              key in ("annotations", "labels", "severity", "summary", "description",
                                      "runbook_url")))):
            key, depth = m.group(2), indent
            rule[key] = "" if m.group(3) == "|" else m.group(3)
        elif rule is not None and key:
            rule[key] = (rule[key] + " " + text).strip()
    if rule:
        yield rule


def check_names():
    known, recorded, bad = families(), set(), []
    alerts = [r for f in glob.glob(ROOT + "/contrib/prometheus/*.yml") for r in rules(f)]
    recorded = {r["record"] for r in alerts if "record" in r}
    for name, (kind, _) in list(known.items()):
        ends = ("_bucket", "_sum", "_count") if kind == "histogram" else ("_info",) if kind == "info" and not name.endswith("_info") else ("",)
        for end in ends:
            known[name + end] = known[name]
    used, n = set(), 0
    for where, expr in expressions():
        n += 1
        for word in re.findall(r"[a-z_]*:[a-z0-9_:]+", re.sub(r'"[^"]*"', "", expr)):
            if word not in recorded:
                bad.append("%s: %s is recorded nowhere" % (where, word))
        for word in re.findall(r"(?<![:\w])" + PREFIX + r"(\w+)(?!\w*:)", expr):
            used.add(word)
            if (word not in known or
                known[word][0] == "histogram" and not re.search("_(bucket|sum|count)$", word)):
                bad.append("%s: %s%s is not in docs/agent.md" % (where, PREFIX, word))
    for rule in alerts:
        if "alert" not in rule:
            continue
        runbook = rule.get("runbook_url", "")
        page, _, anchor = runbook.partition("#")
        if not page.startswith(DOCS_URL):
            bad.append("%s: its runbook_url does not begin with %s: %s" % (rule["alert"], DOCS_URL, runbook))
        page = page.replace(DOCS_URL, "docs/")
        if len(re.findall(r"\. ", rule.get("summary", ""))) < 1:
            bad.append("%s: its summary says what is, and not what to do next: %s" %
                       (rule["alert"], rule.get("summary")))
        if not os.path.exists(ROOT + "/" + page) or (anchor and anchor not in [
                re.sub(r"[^\w-]", "", h.strip().lower().replace(" ", "-"))
                for h in re.findall(r"^#+ (.*)", open(ROOT + "/" + page, encoding="utf-8").read(), re.M)]):
            bad.append("%s: there is no %s" % (rule["alert"], runbook))
    for path in glob.glob(ROOT + "/contrib/grafana/*.json"):
        board = json.load(open(path, encoding="utf-8"))
        ids = [p["id"] for p in board["panels"]]
        if (board["schemaVersion"] < 38 or len(set(ids)) != len(ids) or
            board["templating"]["list"][0]["type"] != "datasource"):
            bad.append("%s: schema, ids or the variable of the data source" % path)
        for p in board["panels"]:
            if any(t["datasource"]["uid"] != "${datasource}" for t in p.get("targets", [])):
                bad.append("%s: %s has a data source of its own" % (path, p["title"]))
    print(*bad, sep="\n")
    print("%d expressions, %d metrics of %d" % (n, len(used), len(families())))
    return 1 if bad else 0


def filled(expr, values):
    expr = expr.replace("$__rate_interval", values.get("__rate_interval", "1m"))
    return re.sub(r"\$(\w+)", lambda m: values.get(m.group(1), ".*"), expr)


def ask(url, values, need_all):
    bad, nothing, n = [], [], 0
    for where, expr in expressions():
        n += 1
        query = urllib.parse.urlencode({"query": filled(expr, values)})
        try:
            with urllib.request.urlopen(url.rstrip("/") + "/api/v1/query?" + query, timeout=20) as r:
                answer = json.load(r)
        except urllib.error.HTTPError as e:
            answer = json.load(e)
        if answer["status"] != "success":
            bad.append("FAIL %s: %s: %s" % (where, answer.get("error"), filled(expr, values)))
        elif not answer["data"]["result"]:
            nothing.append((where, filled(expr, values)))
    print(*bad, sep="\n")
    for where, expr in nothing:
        print("nothing: %s: %s" % (where, " ".join(expr.split())))
    print("%d expressions, %d refused, %d return nothing" % (n, len(bad), len(nothing)))
    return 1 if bad or (need_all and any(".json" in w for w, _ in nothing)) else 0


def exposition():
    """All families with a few series each; counters grow with time, each at a rate of its own."""
    now, out = time.time(), []
    for name, (kind, labels) in families().items():
        full = PREFIX + name
        series = [{"node": "n1"}]
        for label in labels:
            series = [dict(s, **{label: v}) for s in series for v in LABELS[label]]
        for i, s in enumerate(series):
            text = ",".join('%s="%s"' % p for p in s.items())
            if kind == "histogram":
                for j, edge in enumerate(("0.001", "1", "+Inf")):
                    out.append('%s_bucket{%s,le="%s"} %d' % (full, text, edge, now * (j + 1)))
                out += ["%s_sum{%s} %d" % (full, text, now), "%s_count{%s} %d" % (full, text, now * 3)]
            elif kind == "info":
                out.append("%s{%s} 1" % (full if name.endswith("_info") else full + "_info", text))
            elif kind == "counter" or name.endswith("_total"):
                out.append("%s{%s} %f" % (full, text, now * (1 + i) * (3e8 if "nic_" in name else 0.3)))
            else:
                gone = name == "process_up" and s["rank"] == "2"
                out.append("%s{%s} %d" % (full, text,
                                          0 if gone else 25000000000 if "link" in name else 70
                                          if "oldest" in name else 1))
    return "\n".join(out) + "\n"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = exposition().encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def serve():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


def main(args):
    if args[:1] == ["names"]:
        return check_names()
    if args[:1] == ["serve"]:
        return serve()
    need_all = "--all" in args
    args = [a for a in args if a != "--all"]
    if len(args) < 2 or args[0] != "ask":
        sys.exit(__doc__)
    return ask(args[1], dict(a.split("=", 1) for a in args[2:]), need_all)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
