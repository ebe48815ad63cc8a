#!/usr/bin/env bash
# Roles of communicators: jobs without names are told by structure, Megatron's by name, all as truth.json has
# it; --comm-map is before both, and refuses a bad line with its place; in JSON, CSV (last column), page and
# the heads of nccl-tests' tables. What cannot be told has none.
. "$(dirname "$0")/../../lib/case.sh"
while read -r layout seed; do
  "$BUILD/test/ni-jobs" --layout "$layout" --kind healthy --seed "$seed" --steps 12 --out \
    "$TMP/$layout-$seed" >/dev/null
done <<'END'
B 7
P 11
M 7
END
cd "$TMP"
summary() { "$BUILD/nccl-inspector" summary "$@" --no-plots --no-parquet --no-csv --quiet >text 2>&1; }
for job in B-7 P-11 M-7; do summary "$job" --output-dir "out-$job"; done
cat >map <<'END'
# a remark
0xnothing tp
*   dp   # all of them
default_pg world
END
summary M-7 --output-dir mapped --comm-map map
# `-` says that it is none; the first line that matches counts, the others are told as before.
first=$(python3 -c "import json; print([c['id'] for c in json.load(open('M-7/truth.json'))['communicators'] if c['role'] == 'e'][0])")
printf '%s -\n%s* tp\n' "$first" "${first%?}" >one
summary M-7 --output-dir one-out --comm-map one
python3 - "$first" <<'P'
import csv, json, os, sys
ROLE = {"t": "tp", "d": "dp", "p": "pp", "e": "ep", "w": "world"}
def roles(out):
    return {int(c["id"], 16): c["role"]
            for c in json.load(open(f"{out}/summary/summary.json"))["communicators"]}
for job in ("B-7", "P-11", "M-7"):
    truth = {int(c["id"], 16): ROLE[c["role"]] for c in json.load(open(f"{job}/truth.json"))["communicators"]}
    got = roles("out-" + job)
    assert (got and
            all(truth[k] == r for k, r in got.items())), (job,
                                                          [(hex(k), r, truth[k]) for k, r in got.items()
                                                           if truth[k] != r])
    rows = list(csv.reader(open(f"out-{job}/summary/summary_by_comm.csv")))
    assert rows[0][-1] == "role" and all(got[int(r[0], 16)] == r[-1] for r in rows[1:]), rows[:2]
    assert list(csv.reader(open(f"out-{job}/summary/summary_by_rank.csv")))[0][-1] != "role"
    page = f"out-{job}/report.html"
    if os.path.exists(page):
        d = json.loads(open(page).read().split('<script type="application/json" id="data">')[1].split("</script>")[0])
        at = d["comms"]["cols"].index("role"), d["comms"]["cols"].index("id")
        assert {int(r[at[1]], 16): r[at[0]] for r in d["comms"]["rows"]} == got
assert set(roles("mapped").values()) == {"dp"}
one = roles("one-out")
assert (one[int(sys.argv[1], 16)] is None and
        sorted(map(str, one.values())) == ["None", "ep", "ep", "ep", "world"]), one
P
# A part of the operations alone: names and sizes are told, nothing is guessed.
"$BUILD/nccl-inspector" summary B-7 --comm "$(python3 -c "import json; print(json.load(open('B-7/truth.json'))['communicators'][1]['id'])")" --no-plots \
  --no-parquet --no-csv --no-html --output-dir part --json >part.json 2>/dev/null || true
python3 -c "
import json
r = [c['role'] for c in json.load(open('part.json'))['communicators'] if c['records']]
assert r == [None], r"
"$BUILD/nccl-inspector" summary M-7 --format nccl-tests --no-plots --no-parquet --no-csv --no-html \
  --output-dir tests | grep -qE '^# AllReduce  communicator 0x\S+  nranks 32  nnodes 4  role world$' ||
  fatal "the heads of nccl-tests"
refused() { # TEXT WHY
  printf '%b' "$1" >bad
  ! summary M-7 --output-dir bad-out --comm-map bad || fatal "$1 is taken"
  grep -qF -- "$2" text || fatal "$2: $(cat text)"
  [ ! -e bad-out/summary ] || fatal "something was written"
}
refused '# fine\ntp0 tp\ntp1 tensor\n' 'bad:3: "tp1 tensor": want a name, hash or glob of a communicator and its role, one of tp, dp, pp, ep, world and -'
refused 'tp\n' 'bad:1: "tp": want'
refused 'a\001b tp x\n' 'bad:1: "a?b tp x": want'
refused 'x\0y tp\n' 'bad:1: "x": want'
! summary M-7 --output-dir bad-out --comm-map nowhere || fatal "no file"
grep -q "nowhere: No such file" text || fatal "no file: $(cat text)"
head -c 1100000 /dev/zero | tr '\0' '#' >bad
! summary M-7 --output-dir bad-out --comm-map bad || fatal "a large file"
grep -q "bad: more than 1048576 bytes" text || fatal "a large file: $(cat text)"
