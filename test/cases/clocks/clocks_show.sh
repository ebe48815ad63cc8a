#!/usr/bin/env bash
# show puts starts of several hosts on one clock, from the lines it reads and from the index; check says whose
# clock is off, diff too;
# hosts without a communicator in common are said not to be comparable.
. "$(dirname "$0")/../../lib/case.sh"
"$BUILD/test/ni-jobs" --layout A --kind healthy --seed 6 --steps 24 --stored --out "$TMP/right" >/dev/null
cd "$TMP"
python3 "$ROOT/test/lib/shift_clock.py" right off node-3 3
comm=$(python3 -c 'import json; print(json.load(open("right/truth.json"))["communicators"][0]["id"])')
show() { "$INSPECTOR" show "$1" --comm "$comm" --sn 7 "${@:2}"; }
show right --no-index --json >right.json
show off --no-index --json >off.json
show off --no-index >off.txt
"$INSPECTOR" index -q off
show off --json >indexed.json
cmp off.json indexed.json || fail "with the index it says something else"
python3 - <<'P' || failures=$((failures + 1))
import json, sys
starts = [{r["rank"]: r["start_ns"] for r in json.load(open(f))["operations"][0]["ranks"]}
          for f in ("right.json", "off.json")]
bad = [(k, starts[1][k] - starts[0][k]) for k in starts[0]
       if abs(starts[1][k] - starts[0][k] - (starts[1][0] - starts[0][0])) > 1500000]
if bad or len(starts[0]) != 32: print("FAIL starts moved by ns: %s" % bad)
sys.exit(bool(bad))
P
grep -qE '^CLOCKS: the clock of node-3 is (3|3\.00[0-9]*|2\.99[0-9]*) s ahead of node-[012].s; times here are corrected' off.txt || fail "show: $(head -2 off.txt)"
"$INSPECTOR" check off --no-index >check.txt
grep -qE '^CLOCKS +the clock of node-3 is .* ahead of node-[012].s; times here are as they were written$' \
  check.txt || fail "check: $(grep CLOCKS check.txt)"
"$INSPECTOR" check off --json | python3 -c '
import json, sys
h = {x["hostname"]: x for x in json.load(sys.stdin)["clocks"]["hosts"]}
sys.exit(not (abs(h["node-3"]["ahead_ns"] / 1e9 - 3) < 0.01 and len(h) == 4 and all(x["compared"] for x in h.values())))' || fail "check --json"
"$INSPECTOR" diff right off >diff.txt || true
grep -q '^CLOCKS of B: the clock of node-3 is ' diff.txt && ! grep -q '^CLOCKS of A' diff.txt ||
  fail "diff: $(grep CLOCKS diff.txt)"

# Each host's own communicators alone.
mkdir apart
for f in right/*-pid*; do zcat "$f" | grep -vE '"nnodes":[2-9]' >"apart/$(basename "$f" .gz)"; done
"$INSPECTOR" check apart --no-index --partial >apart.txt || true
grep -qE '^CLOCKS +node-[0-3], node-[0-3], node-[0-3] have no timed collective in common with the other hosts: their clocks cannot be compared' apart.txt || fail "apart: $(cat apart.txt)"
finish
