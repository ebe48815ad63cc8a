"""Compares what `nccl-inspector hang --json` says of the job's processes (stdin) with what happened to them.

  hang_job.py STATE SENTENCE [KEY=value ...]     SENTENCE: a regular expression that the whole sentence must match

KEY: verdict, ranks, processes, or one of "job" (dead, left, alive, earlier). No rank may be without data.
"""
import json
import re
import sys

doc = json.load(sys.stdin)
state, sentence = sys.argv[1:3]
print(doc["sentence"])
assert doc["job"]["state"] == state, doc["job"]
assert re.fullmatch(sentence, doc["sentence"]), doc["sentence"]
for key, value in (a.split("=", 1) for a in sys.argv[3:]):
    got = doc[key] if key in doc else doc["job"][key]
    assert str(got) == value, (key, got)
without = [(w["comm_name"], r["rank"]) for w in doc["waits"] for r in w["ranks"] if r["where"] == "no_data"]
assert not without, without
assert not any(w["hangs"] and w["earlier_run"] for w in doc["waits"])
