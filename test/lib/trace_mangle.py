"""Timelines of mangled logs: whatever the numbers, the output follows the format's rules, or there is none
and a reason.

    trace_mangle.py NCCL_INSPECTOR LOGS WORK ROUNDS      LOGS: from trace_logs.py --full
"""
import glob
import os
import random
import re
import subprocess
import sys

inspector, logs, work, rounds = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
check = os.path.join(os.path.dirname(__file__), "trace_check.py")
VALUES = ["0", "1", "-1", "9223372036854775807", "18446744073709551615", "1790000000000000000", "4294967295",
          "null", "7", "1e300"]
lines = [x for f in sorted(glob.glob(logs + "/*")) for x in open(f)]
few = [x for x in lines if '"coll_perf"' not in x]
few += random.Random(1).sample([x for x in lines if '"coll_perf"' in x], 60)


def mangled(rng, line):
    for _ in range(rng.randrange(4)):
        numbers = list(re.finditer(r"(?<=:)-?\d+", line))
        if numbers and rng.random() < 0.7:
            x = rng.choice(numbers)
            line = line[:x.start()] + rng.choice(VALUES) + line[x.end():]
        else:
            i = rng.randrange(len(line))
            line = line[:i] + rng.choice(['"', "}", "\\", "\x00", "é", "{"]) + line[i + 1:]
    return line.rstrip("\n") + "\n"


for seed in range(rounds):
    rng = random.Random(seed)
    folder, out = work + "/mangled", work + "/mangled.json"
    os.makedirs(folder, exist_ok=True)
    for f in glob.glob(folder + "/*"):
        os.unlink(f)
    some = rng.sample(few, rng.randrange(5, len(few)))
    for part in range(rng.randrange(1, 4)):
        with open(f"{folder}/h-pid{part}-1.jsonl", "w") as f:
            f.write("".join(mangled(rng, x) for x in some[part::3]))
    options = rng.choice([[], ["--since", "+1s"], ["--rank", "0-1"], ["--no-flows"], ["--coll", "AllReduce"]])
    r = subprocess.run([inspector, "trace", folder, "-o", out, "--memory", "1M", *options],
                       capture_output=True, text=True, errors="replace")
    if r.returncode not in (0, 1, 2):
        sys.exit(f"seed {seed}: exit {r.returncode}\n{r.stderr[-3000:]}")
    if r.returncode != 1 and subprocess.run([sys.executable, check, out]).returncode:
        sys.exit(f"seed {seed}: not a timeline")
print(f"{rounds} mangled logs, fine")
