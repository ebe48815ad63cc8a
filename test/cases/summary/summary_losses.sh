#!/usr/bin/env bash
# What is not there, told by check and by summary: the same numbers, and for files that expired the same words
# and the setting.
. "$(dirname "$0")/../../lib/sim.sh"
need python3
US=NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS
run_logged $US=20000 NCCL_INSPECTOR_FILE_MAX_BYTES=10k NCCL_INSPECTOR_DIR_MAX_BYTES=40k 1x2 --procs \
  --iterations 250
cp -r "$TMP/logs" "$TMP/expired"
run_logged 1x2 --procs --iterations 20
cp -r "$TMP/logs" "$TMP/whole"
run_logged NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES=4g 1x2 --procs --iterations 20
cp -r "$TMP/logs" "$TMP/small"
python3 - "$BUILD/nccl-inspector" "$TMP" <<'PY'
import glob, gzip, json, os, re, shutil, subprocess, sys
sys.path.insert(0, "test/lib")
from exp_logs import Rank, T0
inspector, tmp = sys.argv[1:]
failures = 0

def fail(text):
    global failures
    failures += 1
    print("FAIL", text)

def run(*args):
    p = subprocess.run([inspector, *args], capture_output=True, text=True)
    return p.returncode, p.stdout + p.stderr

def changed(base, name, change):
    """A copy of a log in which each line is what change(line) makes of it; None: it goes."""
    to = f"{tmp}/{name}"
    shutil.copytree(f"{tmp}/{base}", to)
    for path in glob.glob(to + "/*.gz"):
        kept = [x for x in (change(path, l) for l in gzip.open(path, "rt")) if x]
        if kept:
            with gzip.open(path, "wt") as f:
                f.writelines(kept)
        else:
            os.unlink(path)
    return to

def both(name, logs, problems, **want):
    """check's problems by code, and what summary counts."""
    code, text = run("check", logs, "--json")
    c = json.loads(text)
    told = {p["code"]: p for p in c["problems"]}
    out = f"{tmp}/out"
    rc, text = run("summary", logs, "--output-dir", out, "--no-plots", "--no-html", "--no-parquet", "--quiet")
    s = json.load(open(out + "/summary/summary.json"))["input"]
    if rc != code: fail(f"{name}: check ends with {code}, summary with {rc}: {text}")
    for p in problems:
        if p not in told: fail(f"{name}: check says {sorted(told)}, not {p}")
    for key, value in want.items():
        if callable(value): value = value(told)
        if s[key] != value: fail(f"{name}: summary's {key} is {s[key]}, not {value}")
    return told, s, text

told, s, text = both("expired", tmp + "/expired", ["expired"], gaps=0,
                     stated_losses=lambda t: t["expired"]["count"])
if set(told) != {"expired"} or told["expired"]["count"] < 1000: fail(f"expired: check says {told}")
where = told["expired"]["where"][0]
if not re.fullmatch(r"\S+ pid \d+, removed by NCCL_INSPECTOR_DIR_MAX_BYTES", where):
    fail(f"expired: check names {where}")
sentence = f'{told["expired"]["count"]:,} {told["expired"]["text"]}'
if f"INCOMPLETE: {sentence}: {where}, ...\n" not in text:
    fail(f"expired: summary does not say {sentence}: {text}")
if f"INCOMPLETE: {sentence} ({where}, ...)\n" not in run("check", tmp + "/expired", "-q")[1]:
    fail("expired: check's verdict")
if s["losses_by_cause"] != {"expired": told["expired"]["count"]}:
    fail(f'expired: causes {s["losses_by_cause"]}')

rc, text = run("trace", tmp + "/expired", "-o", tmp + "/t.json")
if rc != 2 or f"{sentence}: not drawn" not in text: fail(f"expired: trace ends with {rc}: {text}")

# Somebody deleted a file.
logs = changed("expired", "deleted", lambda p, l: l.replace('{"expired":', '{"write_error":'))
told, s, text = both("deleted", logs, ["dropped"], gaps=0, stated_losses=lambda t: t["dropped"]["count"])
if "in files that somebody deleted" not in text: fail(f"deleted: {text}")

# A job that still runs has not said how many expired; that they may have is known.
logs = changed("expired", "running", lambda p, l: None if '"id":"0x0"' in l and '"dump_stats":' in l else l)
told, s, text = both("running", logs, ["missing"])
for t in (text, told["missing"]["where"][0]):
    if "may have expired by NCCL_INSPECTOR_DIR_MAX_BYTES" not in t: fail(f"running: {t}")

# No record at all, but the lines about the run: what the final lines state is missing.
n = sum('"coll_perf":' in l for p in glob.glob(tmp + "/whole/*.gz") for l in gzip.open(p, "rt"))
logs = changed("whole", "none", lambda p, l: None if '"coll_perf":' in l else l)
both("no record", logs, ["written"], gaps=n, records=0)

# Complete, and not a word of operations: the plugin was told to leave them out, and that is said.
told, s, text = both("small", tmp + "/small", [], records=0, gaps=0)
n = json.loads(run("check", tmp + "/small", "--json")[1])["filtered_by"]["min_size"]
if s.get("left_out_by_settings") != n or not n:
    fail(f"small: {n} operations are left out, summary counts {s}")
if f"; {n:,} operations were left out by the plugin's settings" not in text or "COMPLETE" not in text:
    fail(f"small: {text}")

# What had not finished is not called lost.
def open_end(path, line):
    if '"final":true' not in line or '"id":"0x0"' in line: return line
    x = json.loads(line)
    x["dump_stats"]["coll"]["started"] += 1
    x["dump_stats"]["coll"]["in_flight"] += 1
    return json.dumps(x, separators=(",", ":")) + "\n"

logs = changed("whole", "open end", open_end)
told, s, text = both("open end", logs, ["in_flight"], gaps=0, stated_losses=lambda t: t["in_flight"]["count"])
if f'{told["in_flight"]["count"]} operations still in flight at the end: ' not in text:
    fail(f"open end: {text}")
if "lost" in text: fail(f"open end: {text}")

# Communicators for which there was no memory are told on the process's line.
logs = changed("whole", "refused",
               lambda p, l: l.replace('"strays":', '"refused_communicators":3,"strays":') if '"id":"0x0"' in l
               else l)
told, s, text = both("refused", logs, ["refused"],
                     losses_by_cause=lambda t: {"refused_communicators": t["refused"]["count"]})
if told["refused"]["count"] != 6 or "6 communicators not recorded at all" not in text:
    fail(f"refused: {text}")

# Communicators that no line has closed; one of them without any line but its first and its records.
logs = changed("whole", "no stats", lambda p, l: None if '"dump_stats":' in l or '"comm_end":' in l else l)
told, s, text = both("no stats", logs, ["no_final"])
n = sum(json.loads(run("check", logs, "--json")[1])["communicators"][i]["ranks_without_final_line"]
        for i in (0,))
if told["no_final"]["count"] != n or f"{n} final lines missing, one for each communicator" not in text:
    fail(f"no stats: {n} {text}")

# A rank that samples was killed: numbers behind its last accounting were sampled out or lost, and nobody has
# said which. What is missing below is missing, and with final lines (of recover) everything is told.
def sampled(name, numbers, setting=True, final=False, ended=True):
    x = Rank(0, 1, "0x5d1c7e90aa41b2")
    x.process()
    if setting:
        x.lines[-1] = x.lines[-1].replace('"settings":{}', '"settings":{"NCCL_INSPECTOR_SAMPLE":"1/4"}')
    else:
        x.add("control", {"source": "file", "file": "f", "line": 1, "command": "sample 1/4", "result": "done",
                          "why": None,
                            "events": "coll,kernelch", "verbose": False, "sample": 4, "ns": T0}, True)
    x.comm()
    for i in (n for n in numbers if n < 20): x.coll(i, i)
    x.stats(Rank.kind(20, filtered={"sampled": 15}), Rank.kind(0), 5, 0, False)
    for i in (n for n in numbers if n >= 20): x.coll(i, i)
    if final: x.stats(Rank.kind(40, filtered={"sampled": 30}), Rank.kind(0), 5, 0)
    if ended: x.process_end()
    os.mkdir(f"{tmp}/{name}")
    x.write(f"{tmp}/{name}")
    return f"{tmp}/{name}"

kept = range(0, 40, 4)
place = "communicator 0x5d1c7e90aa41b2 rank 0 (node-0 pid 4000): collectives from rec_sn 20 on, of which NCCL_INSPECTOR_SAMPLE writes 1 in 4"
for name, setting in (("sampled", True), ("sampled since", False)):
    logs = sampled(name, kept, setting)
    told, s, text = both(name, logs, ["no_final"], gaps=0, untold=12)
    if set(told) != {"no_final"}: fail(f"{name}: check says {told}")
    note = {n["code"]: n for n in json.loads(run("check", logs, "--json")[1])["notes"]}["untold"]
    if note["count"] != 12 or note["where"] != [place]: fail(f"{name}: {note}")
    if f'12 {note["text"]}: {place}' not in text: fail(f"{name}: summary does not say {note}: {text}")
both("sampled, one lost", sampled("sampled, one lost", [n for n in kept if n != 8]), ["missing"], gaps=1,
     untold=12)
told, s, text = both("sampled, recovered", sampled("sampled, recovered", kept, final=True), [], gaps=0,
                     untold=0)
if told: fail(f"sampled, recovered: check says {told}")

# A copy that was cut: the file is, and no line of it is bad.
logs = changed("whole", "cut", lambda p, l: l)
for path in glob.glob(logs + "/*.gz"):
    with open(path[:-3], "wb") as f:
        f.write(gzip.open(path).read()[:-40])
    os.unlink(path)
both("cut", logs, ["cut"], files_cut=lambda t: t["cut"]["count"], bad_lines=0)
logs = changed("whole", "cut gz", lambda p, l: l)
for path in glob.glob(logs + "/*.gz"):
    os.truncate(path, os.path.getsize(path) - 40)
both("cut gz", logs, ["cut"], files_cut=lambda t: t["cut"]["count"], bad_lines=0)

both("whole", tmp + "/whole", [], gaps=0, stated_losses=0)
print("failed" if failures else "check and summary agree")
sys.exit(failures != 0)
PY
