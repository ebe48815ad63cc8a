#!/usr/bin/env bash
# Uneven work: a rank with more tokens is late for what it has to do, and the sentence says so. Undecided:
# congestion of links that all touch the same hosts; once, behind all findings, and not without a cause.
. "$(dirname "$0")/../../lib/case.sh"
job() { # DIR LAYOUT KIND SIZE
  "$BUILD/test/ni-jobs" --layout "$2" --kind "$3" ${4:+--size "$4"} --seed 9 --steps 60 --out "$TMP/$1" \
    >/dev/null
}
job uneven M uneven 60
job late M late 30
job crowded A congestion 4
cd "$TMP"
for d in uneven late crowded; do
  "$BUILD/nccl-inspector" summary "$d" --no-plots --no-parquet --no-csv --no-html --json --output-dir out \
    >"$d.json" || [ $? = 2 ]
done
python3 - <<'P'
import json
said = {d: json.load(open(d + ".json")) for d in ("uneven", "late", "crowded")}
find = {d: s["findings"] for d, s in said.items()}
who = {d: json.load(open(d + "/truth.json"))["culprits"] for d in ("uneven", "late")}
u = find["uneven"][0]
assert (u["kind"], u["level"], u["rank"]) == ("uneven_work", "rank", who["uneven"][0]["rank"]), find["uneven"]
assert ("% more bytes to exchange than its like" in u["text"] and
        "uneven work, not a slow rank" in u["text"] and u["cost_s"] > 0), u
assert find["late"][0]["kind"] == "late_rank" and "bytes" not in find["late"][0]["text"], find["late"]
kinds = [f["kind"] for f in find["crowded"]]
assert kinds.count("undecided") == 1 and kinds[-1] == "undecided" and "congestion" in kinds, kinds
last = find["crowded"][-1]
assert (last["level"], last["ranks"], last["cost_s"], last["cost_low_s"]) == ("job", [], 0, None), last
assert last["text"].startswith(f"undecided: whether finding {kinds.index('congestion') + 1} is the network or one host"), last["text"]
hosts = len(said["crowded"]["hosts"])
assert (hosts > 1 and
        f"since all links across hosts touch each of {hosts} hosts; counters of their NICs" in last["text"]), last["text"]
P
