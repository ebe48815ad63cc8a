"""Do check, summary and trace say the same of these logs? check and summary also state as many processes and
communicators.

    agree.py INSPECTOR DIR...    says each difference; exit status 1 when there is one
"""
import json
import os
import subprocess
import sys
import tempfile


def run(*args):
    return subprocess.run(args, capture_output=True, text=True)


def verdicts(inspector, logs):
    """Command -> (verdict, problems by code, exit code); a command that can say nothing of these logs is left
    out."""
    out = {}
    p = run(inspector, "check", logs, "--json")
    c = json.loads(p.stdout)
    out["check"] = (c["verdict"], {x["code"]: x["count"] for x in c["problems"]}, p.returncode)
    there = (c["processes"], sum(x["hash"] != "0x0" for x in c["communicators"]))
    with tempfile.TemporaryDirectory() as tmp:
        p = run(inspector, "summary", logs, "--output-dir", tmp + "/out", "--no-plots", "--no-html",
                "--no-parquet", "--no-csv",
                "--json")
        if p.returncode in (0, 2):
            s = json.loads(p.stdout)
            out["summary"] = ("COMPLETE" if s["complete"] else "INCOMPLETE", s["input"]["problems_by"],
                              p.returncode)
            found = (sum(h["ranks"] for h in s["hosts"]), len(s["communicators"]))
            if found != there:
                out["(processes, communicators): check, summary"] = (there, found)
        p = run(inspector, "trace", logs, "-o", tmp + "/t.json", "--json")
        if p.returncode in (0, 2):
            t = json.loads(p.stdout)
            undrawn = set(t["incomplete"]) & {"no_start_time", "no_possible_time", "unfinished_not_kept"}
            out["trace"] = (t["verdict"], t["problems_by"],
                            0 if undrawn and t["verdict"] == "COMPLETE" else p.returncode)
    return out


def differences(inspector, logs):
    v = verdicts(inspector, logs)
    return [f"{os.path.basename(logs)}: check says {v['check']}, {k} {x}" for k, x in v.items()
            if x != v["check"]]


if __name__ == "__main__":
    found = [d for logs in sys.argv[2:] for d in differences(sys.argv[1], logs)]
    print("\n".join(found) or f"{len(sys.argv) - 2} folders: check, summary and trace agree")
    sys.exit(bool(found))
