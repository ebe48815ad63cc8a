#!/usr/bin/env bash
# Tags of the application: --tag in all commands that have filters, names of tags, figures by tag, columns;
# and what is said of symmetric kernels: parts, fused calls (whose time counts once), replays of captured
# ones. The job is test/lib/tag_logs.py.
. "$(dirname "$0")/../../lib/case.sh"
python3 test/lib/tag_logs.py "$TMP/logs"
quick=(--no-plots --no-html)
sum() { # name rc options...
  local name=$1 want=$2 rc=0
  "$INSPECTOR" summary "${quick[@]}" --output-dir "$TMP/$name" "$TMP/logs" "${@:3}" >"$TMP/$name.txt" 2>&1 || rc=$?
  [ $rc = "$want" ] || { fail "$name: exit $rc, want $want"; cat "$TMP/$name.txt"; }
}

# ---- the filter: each choice with the number of records that the job has of it ----
chosen() { # records --tag
  sum "f$1" 0 --tag "$2"
  grep -q "^$1 records, " "$TMP/f$1.txt" || { fail "--tag $2: want $1 records"; sed -n 3p "$TMP/f$1.txt"; }
}
chosen 22 7
chosen 22 layer.3
chosen 38 7,9
chosen 18 8-12
chosen 2 "expert 1"
chosen 24 none
chosen 26 none,12
chosen 64 none,1-9223372036854775807
refused() { # rc sentence --tag
  sum refused "$1" --tag "$3"
  grep -qF -e "$2" "$TMP/refused.txt" || { fail "--tag $3 does not say: $2"; cat "$TMP/refused.txt"; }
}
refused 1 '--tag 5: there is none in what the other filters leave; the lowest is 7, the highest 12' 5
refused 1 '--tag early: there is none in these logs; there are layer.3, expert 1' early
range='want tags from 1 to 9223372036854775807, ranges of them, their names, or none for untagged'
for bad in 0 9223372036854775808 9-7 ',' ''; do refused 64 "--tag=$bad: $range" "$bad"; done

# The same with an index, made and used; from shards put together; whatever the threads.
sum one 0 --tag 7,9 --jobs 1
"$INSPECTOR" index "$TMP/logs" >/dev/null || fail "index"
sum indexed 0 --tag 7,9 --jobs 4
sum named 0 --tag layer.3,9 --jobs 4
for i in 1 2; do
  "$INSPECTOR" summary --shard $i/2 --partial "$TMP/p$i" --tag layer.3,9 "$TMP/logs" >/dev/null ||
    fail "shard $i"
done
"$INSPECTOR" merge "${quick[@]}" --output-dir "$TMP/merged" "$TMP/p1" "$TMP/p2" >"$TMP/merged.txt" 2>&1 || { fail "merge"; cat "$TMP/merged.txt"; }
for x in indexed named merged; do
  cmp "$TMP/one/summary/summary.json" "$TMP/$x/summary/summary.json" || fail "$x is another result"
done

# ---- figures by tag; a fused kernel's time counts once, with the first of its three calls ----
sum all 0
"$INSPECTOR" summary --json "${quick[@]}" --no-parquet --no-csv --output-dir "$TMP/json" "$TMP/logs" >"$TMP/all.json" || fail "--json"
python3 - "$TMP" <<'P' || fail "figures by tag"
import csv, json, sys
tmp = sys.argv[1]
d = json.load(open(tmp + "/all.json"))
# 10 x 100 us and one symmetric kernel of 80 and 60 us; 5 x 100 us and a fused kernel of 200 us; Send and Recv
# of 20 us.
want = [(7, "layer.3", 11, 22, 22 << 20, 2 * 1000 + 80 + 60), (9, None, 8, 16, 16 << 20, 2 * (500 + 200)),
        (12, "expert 1", 2, 2, 131072, 40)]
got = [(t["tag"], t["name"], t["operations"], t["records"], t["sum_bytes"], t["exec_time_us"])
       for t in d["tags"]]
assert got == want, got
all_us = sum(t[5] for t in want) + 2 * (500 + 7 * 3)  # untagged: five of 100 us, seven replays of 3 us
assert all(abs(t["time_share"] - t["exec_time_us"] / all_us) < 1e-9 for t in d["tags"]), d["tags"]
assert abs(sum(g["time_share"] for g in d["groups"]) - 1) < 1e-9
assert ([t["no_bandwidth"] for t in d["tags"]] == [0, 6, 0] and
        d["tags"][1]["busbw_gbs_mean"] == 10.48576), d["tags"]
assert d["fused_calls_counted_once"] == 4, d["fused_calls_counted_once"]
assert [r["exec_time_us"] for r in d["ranks"]] == [1000 + 80 + 500 + 200 + 20 + 500 + 21,
                                                   1000 + 60 + 500 + 200 + 20 + 500 + 21], d["ranks"]
assert d["communicators"][0]["transfer_us"] == 20 * 100 + 60 + 200, d["communicators"]  # by communicator, too
rows = list(csv.DictReader(open(tmp + "/all/summary/summary_by_tag.csv")))
assert [(r["tag"], r["name"], r["exec_time_us"])
        for r in rows] == [("7", "layer.3", "2140.0"), ("9", "", "1400.0"), ("12", "expert 1", "40.0")], rows
P
grep -qE '^46\.3% +7 layer\.3 +kernel_gpu +11 +23\.07 MB +2\.14 ms +10\.49$' "$TMP/all.txt" &&
  grep -q '^  untagged: 22.5% of the time$' "$TMP/all.txt" ||
  { fail "the terminal's table"; cat "$TMP/all.txt"; }
grep -q 'one kernel can do several symmetric calls' "$TMP/all.txt" ||
  fail "nothing says whose the times of fused calls are"
"$INSPECTOR" summary "${quick[@]}" --output-dir "$TMP/untagged" --tag none "$TMP/logs" >"$TMP/untagged.txt" || fail "untagged"
! grep -q 'by tag' "$TMP/untagged.txt" && [ ! -e "$TMP/untagged/summary/summary_by_tag.csv" ] ||
  fail "figures by tag where there is none"

# ---- columns, in what others read; nothing where the log says nothing ----
"$INSPECTOR" convert --bulk "$TMP/all.ndjson" "$TMP/logs" >/dev/null || fail "convert"
"$INSPECTOR" convert --bulk "$TMP/some.ndjson" --tag layer.3 "$TMP/logs" >/dev/null || fail "convert --tag"
python3 - "$TMP" <<'P' || fail "columns"
import json, sys
tmp = sys.argv[1]
NEW = ("user_tag", "nccl_tag", "symmetric", "coll_kernel", "shared_span", "initial_sync_ns", "compute_ns",
       "final_sync_ns", "prev_replay_ns")
rows = [json.loads(x) for x in open(tmp + "/all.ndjson")][1::2]
mine = [tuple(r.get(k) for k in NEW) for r in rows if r["rank"] == 0 and r["kind"] == "coll"]
K = "AllReduce_RSxLD_AGxST"
none = (None,) * 5
want = [(7, None, *none, None, None)] * 10 + [(9, None, *none, None,
                                               None)] * 5 + [(None, 5, *none, None, None)] + [(None,) * 9] * 4
want += [(7, None, True, K, None, 30000, 45000, 5000,
          None)] + [(9, None, True, K, True, None, None, None, None)] * 3
want += [(None, None, True, K, None, None, None, None, x)
         for x in (None, 2000000, 2000000, 2000000, None, 2000000, 3000000)]
assert mine == want, [x for x in zip(mine, want) if x[0] != x[1]]
assert len(open(tmp + "/some.ndjson").readlines()) == 44
types = {k for k in json.load(open(tmp + "/all.ndjson-template.json"))["template"]["mappings"]["properties"]}
assert set(NEW) <= types, types
P
"$INSPECTOR" show --comm world --sn 8-24 --tag 9 "$TMP/logs" >"$TMP/show.txt" || fail "show"
[ "$(grep -c '^AllReduce number' "$TMP/show.txt")" = 8 ] || { fail "show --tag"; cat "$TMP/show.txt"; }

# ---- ctl: a name of the same number takes the place of the older one; others and marks stay ----
mkdir "$TMP/ctl"
ctl() { "$INSPECTOR" ctl "$TMP/ctl" "$@" >"$TMP/ctl.txt" 2>&1; }
ctl tag 7 layer.3 && ctl tag 8 other && ctl mark m && ctl tag 7 layer 3 again ||
  { fail "ctl"; cat "$TMP/ctl.txt"; }
diff <(sed 's/^@[0-9]* //' "$TMP/ctl/nccl-inspector.control") \
  <(printf '%s\n' 'tag 8 other' 'mark m' 'tag 7 layer 3 again') || fail "the control file"
for bad in 'tag 0 x' 'tag x y' 'tag 9223372036854775808 y' 'tag 5' "tag 5 $(printf 'a%.0s' {1..65})" \
  "tag 5 a$(printf '\a')b"; do
  rc=0
  ctl "$bad" || rc=$?
  [ $rc = 64 ] && grep -q 'a number from 1 to 9223372036854775807 and 1 to 64 bytes' "$TMP/ctl.txt" ||
    { fail "ctl $bad: exit $rc"; cat "$TMP/ctl.txt"; }
done
finish
