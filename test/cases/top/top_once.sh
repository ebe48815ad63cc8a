#!/usr/bin/env bash
# `top --once` and `--json`: every value that two agents serve stands in its column; who is waited for over
# nodes; agents that do not answer; exit codes.
. "$(dirname "$0")/../../lib/top.sh"
python3 test/lib/top_nodes.py "$TMP/two" 2 4
python3 test/lib/top_nodes.py "$TMP/stuck" 2 4 stuck
mkdir "$TMP/web"
for n in 0 1; do cp "$TMP/two/n$n" "$TMP/web/n$n" && cp "$TMP/stuck/n$n" "$TMP/web/s$n"; done
serve "$TMP/web"

top 0 "n1 n0" --once
[ ! -s "$TMP/err" ] || fail "said: $(cat "$TMP/err")"
says out '^[0-9:]+  2 nodes, 1 job, 8 ranks, 8 in flight, 0 stuck$'
cat >"$TMP/want" <<'END'
JOB RANK HOST GPU COMM FUNCTION  STATE      AGE OPS/s BUSBW LATE UTIL CLOCK WAITS FOR
77     0 n0     0 dp0  AllReduce kernel 12.0 ms   812  182G 1.0%  90% 1980M
77     1 n0     1 dp0  AllReduce kernel 13.0 ms   813  183G 1.1%  91% 1981M
77     2 n0     2 dp0  AllReduce kernel 14.0 ms   814  184G 1.2%  92% 1982M
77     3 n0     3 dp0  AllReduce kernel 15.0 ms   815  185G 1.3%  93% 1983M
77     4 n1     0 dp0  AllReduce kernel 16.0 ms   816  186G 1.4%  90% 1980M
77     5 n1     1 dp0  AllReduce kernel 17.0 ms   817  187G 1.5%  91% 1981M
77     6 n1     2 dp0  AllReduce kernel 18.0 ms   818  188G 1.6%  92% 1982M
77     7 n1     3 dp0  AllReduce kernel 19.0 ms   819  189G 1.7%  93% 1983M

HOST NIC  RECEIVED SENT LINK USED HELD
n0   cxi0     1.0G 2.0G  25G 8.0% 0.0%
n0   cxi1     2.0G 3.0G  25G  12% 1.0%
n1   cxi0     1.0G 2.0G  25G 8.0% 0.0%
n1   cxi1     2.0G 3.0G  25G  12% 1.0%

HOST GPU UTIL CLOCK POWER TEMP SLOWED BY
n0     0  90% 1980M  640W  61C
n0     1  91% 1981M  641W  62C power,thermal
n0     2  92% 1982M  642W  63C
n0     3  93% 1983M  643W  64C
n1     0  90% 1980M  640W  61C
n1     1  91% 1981M  641W  62C power,thermal
n1     2  92% 1982M  642W  63C
n1     3  93% 1983M  643W  64C
END
tail -n +3 "$TMP/out" | diff "$TMP/want" - || fail "other tables"

# Orders and filters. Bandwidth: the lowest first; age and lateness: the most first.
ranks() { sed -n '/^JOB/,/^$/p' "$TMP/out" | awk 'NR > 1 && NF {printf "%s ", $2}'; }
top 0 "n0 n1" --once --sort age
[ "$(ranks)" = "7 6 5 4 3 2 1 0 " ] || fail "by age: $(ranks)"
top 0 "n0 n1" --once --sort bandwidth
[ "$(ranks)" = "0 1 2 3 4 5 6 7 " ] || fail "by bandwidth: $(ranks)"
top 0 "n0 n1" --once --sort late
[ "$(ranks)" = "7 6 5 4 3 2 1 0 " ] || fail "by lateness: $(ranks)"
top 0 "n0 n1" --once --filter N1
[ "$(ranks)" = "4 5 6 7 " ] || fail "of n1: $(ranks)"
says out '8 ranks, 8 in flight, 0 stuck; 4 of 8 with "N1"$'
top 0 "n0 n1" --once --filter nobody
[ -z "$(ranks)" ] || fail "of nobody: $(ranks)"

# Late: a share of the time, whatever an older agent counts twice. Many operations a second have a prefix.
sed -E 's/"late_share": 0.01}/"late_share": 35.38}/; s/"operations_s": 812/"operations_s": 1234567/; s/"operations_s": 813/"operations_s": 54321/' \
  "$TMP/web/n0" >"$TMP/web/later"
top 0 later --once
says out '^77 +0 n0 .* 1.2M  182G 100%  90%' '^77 +1 n0 .* 54.3k  183G 1.1% '

# Who has not come to call 900: rank 1, in which nothing is in flight, and rank 7 of the other node, which is
# in another one.
top 0 "s0 s1" --once
says out '^job 77: AllReduce 900 of dp0 waits for rank 1, which has not called it$' \
  '^77 +0 n0 .* 40.0 s .* r1, r7$' \
  '^77 +6 n1 .* r1, r7$' '^77 +1 n0 +1 dp0  - +- +- .* 1981M$' '^77 +7 n1 .* 1983M$' ', 7 in flight, 7 stuck$'
[ "$(grep -c '^job 77' "$TMP/out")" = 1 ] || fail "the hang of one job is told twice"
# Two jobs hang, of which both nodes tell: each is told of once.
for n in 0 1; do
  python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
d["jobs"] = [dict(d["jobs"][0], job_id=j) for j in ("77", "78")]
json.dump(d, open(sys.argv[2], "w"))' "$TMP/web/s$n" "$TMP/web/j$n"
done
top 0 "j0 j1" --once
[ "$(sed -n 's/^\(job 7[0-9]\):.*/\1/p' "$TMP/out" | tr '\n' ,)" = "job 77,job 78," ] ||
  fail "jobs that hang: $(cat "$TMP/out")"
# Two users have a job of one number: two jobs, whose ranks do not wait for each other.
python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
d["jobs"] = [dict(d["jobs"][0], uid=u) for u in (1001, 1002)]
d["ranks"] = [dict(r, uid=u, **(dict(collectives=1, call=0) if u == 1002 else {})) for u in (1001, 1002) for r in d["ranks"]]
json.dump(d, open(sys.argv[2], "w"))' "$TMP/web/s1" "$TMP/web/u1"
top 0 u1 --once
says out ' 1 node, 2 jobs, 8 ranks, ' '^job 77 \(uid 1001\): AllReduce 900' \
  '^job 77 \(uid 1002\): AllReduce 900' '^77 \(uid 1001\) +4 n1 .* r7$' \
  '^77 \(uid 1002\) +4 n1 .*M$'
# Of one node: nobody knows of the ranks that are not seen.
top 0 s1 --once
says out '^77 +4 n1 .* r7$'
# More than four: the first three and how many more.
python3 - "$TMP/web" <<'END'
import json, sys
d = json.load(open(sys.argv[1] + "/s0"))
row = d["ranks"][0]
d["ranks"] = [dict(row, rank=r, collectives=900 if r < 8 else 901, call=None if r < 8 else 900,
                   in_flight=int(r > 7)) for r in range(10)]
# of another communicator
d["ranks"].append(dict(row, rank=10, comm_id="0xother", collectives=1, call=0))
d["ranks"].append(dict(row, rank=11, job_id="78", collectives=1, call=0))                # of another job
d["ranks"].append(dict(row, rank=12, attempt="1", collectives=1, call=0))                # of another attempt
# its calls count otherwise
d["ranks"].append(dict(row, rank=13, function="Send", collectives=2000, call=1999))
d["ranks"].append(dict(row, rank=14, collectives=2000, call=1999, age_s=0.01))           # began just now
json.dump(d, open(sys.argv[1] + "/many", "w"))
END
top 0 many --once
says out '^77 +8 .* r0, r1, r2, \+5$' '^77 +9 .* r0, r1, r2, \+5$' '^77 +10 .*1980M$' '^78 +11 .*1980M$' \
  '^77#1 +12 .*1980M$' \
  '^77 +13 .*1980M$' '^77 +14 .*1980M$' ', 3 jobs, 15 ranks'
# No agent has judged yet: the longest wait is told in a sentence, with hosts; not where it is short.
for n in 0 1; do sed 's/"hang": "[^"]*"/"hang": null/' "$TMP/web/s$n" >"$TMP/web/u$n"; done
top 0 "u0 u1" --once
says out '^job 77: 6 ranks wait in AllReduce of dp0 for 46.0 s; not there: rank 1 \(n0\), rank 7 \(n1\)$'
# A rank that is missing because it waits for another one is not named: that one is.
python3 - "$TMP/web" <<'END'
import json, sys
d = json.load(open(sys.argv[1] + "/u0"))
row = d["ranks"][0]
world = [dict(row, rank=r, collectives=901 if r < 2 else 900, call=900 if r < 2 else None, age_s=50 if r < 2 else None)
         for r in range(4)]
tp1 = [dict(row, rank=r, comm="tp1", comm_id="0xtp1", comm_rank=r - 2, collectives=21 if r == 2 else 20,
            call=20 if r == 2 else None, age_s=40 if r == 2 else None) for r in (2, 3)]
d["ranks"] = world + tp1
json.dump(d, open(sys.argv[1] + "/chain", "w"))
# Each waits for the other: then it is said who waits for the longest.
d["ranks"] = world[:2] + [dict(x, call=899, age_s=30) for x in world[2:]] + tp1[:1] + \
    [dict(row, rank=r, comm="tp2", comm_id="0xtp2", comm_rank=0, collectives=21 if r == 3 else 20,
          call=20 if r == 3 else None, age_s=20 if r == 3 else None) for r in (2, 3)] + tp1[1:]
json.dump(d, open(sys.argv[1] + "/ring", "w"))
END
top 0 chain --once
says out '^job 77: 2 ranks wait in AllReduce of dp0 for 50.0 s; not there: rank 3 \(n0\)$'
top 0 ring --once
says out '^job 77: 2 ranks wait in AllReduce of dp0 for 50.0 s; not there: rank 2 \(n0\), rank 3 \(n0\)$'
top 0 many --once --sort age
says out '^job 77: AllReduce' # a verdict goes before it
sed -E 's/"age_s": [0-9.]+/"age_s": 4.9/g' "$TMP/web/u0" >"$TMP/web/brief"
top 0 brief --once
says out '^77 +0 n0 .* 4.90 s .* r1$'
says_not out '^job 77:'
# Who is waited for comes first by age.
top 0 "u0 u1" --once --sort age
[ "$(ranks)" = "1 7 6 5 4 3 2 0 " ] || fail "by age, who is waited for: $(ranks)"
# Killed: told so, and waited for all the same; who is killed waits for nobody.
sed 's/"alive": true/"alive": false/g' "$TMP/web/s0" >"$TMP/web/dead"
top 0 dead --once
says out '^77 +0 n0 +0 dp0 +AllReduce killed ' '^77 +1 n0 +1 dp0 +- +killed '
says_not out '^77 +0 n0 .* r1$'

# JSON: one node as it came, of several a list.
top 0 n0 --json
diff <(python3 -m json.tool "$TMP/web/n0") <(python3 -m json.tool "$TMP/out") || fail "another document"
top 0 "n0 n1 s1" --json
python3 - "$TMP" <<'END' || fail "another list of documents"
import json, sys
d = json.load(open(sys.argv[1] + "/out"))
assert d["schema"] == "nccl-inspector-top-1" and list(d) == ["schema", "nodes"]
assert d["nodes"] == [json.load(open(f"{sys.argv[1]}/web/{n}")) for n in ("n0", "n1", "s1")]
END

# Agents that do not answer cost their rows and are named; the others are shown.
touch "$TMP/web/h0.hang" "$TMP/web/c0.close"
echo 503 >"$TMP/web/n9.status"
cp "$TMP/web/n0" "$TMP/web/n9"
printf 'secret\n' >"$TMP/web/t0.token"
cp "$TMP/web/n0" "$TMP/web/t0"
top 0 "n0 h0 c0 n9 nobody" --once
says out '^node http://127.0.0.1:[0-9]+/h0: no answer for [0-9] s \(.*[Tt]imed out' '^node .*/c0: no answer' \
  '^node .*/n9: .*HTTP status 503' \
  '^no answer from 1 more$' '^77 +3 n0 '
says err '/nobody: HTTP status 404'
top 1 "h0 t0" --once
says err '/h0: .*[Tt]imed out' '/t0: HTTP status 401: it wants a token \(--token-file\)'
[ ! -s "$TMP/out" ] || fail "nothing is known, and this is said: $(cat "$TMP/out")"
printf 'secret\nmore\n' >"$TMP/token"
top 0 t0 --once --token-file "$TMP/token"
says out '^77 +3 n0 '
top 1 t0 --once --token-file "$TMP/nothing"
says err '--token-file: want a file'

# Nothing to show.
echo '{"schema":"nccl-inspector-now-1","node":"e0","jobs":[],"ranks":[],"gpus":[],"nics":[]}' >"$TMP/web/e0"
top 2 e0 --once
says err 'nothing to show: no job runs where these agents are'
top 2 e0 --json
says out '^\{"schema":"nccl-inspector-now-1","node":"e0"'
echo '{"hello":1}' >"$TMP/web/x0"
top 1 x0 --once
says err 'it is no agent: want a document of schema nccl-inspector-now-1'
finish
