#!/usr/bin/env bash
# --job-rank means the rank in the job wherever ranks can be chosen: the records of rank 11 are as many for
# summary, show, convert and trace, by shards and by the index as well. --rank keeps its meaning, and where
# that is another one a line says so. A part of a job is called a part before anything is said of it.
. "$(dirname "$0")/../../lib/sim.sh"
need "$INSPECTOR" jq
cd "$TMP"
run_logged "$ROOT/test/scenarios/demo.scn" --procs >job.out 2>&1 || fatal "the job: $(cat job.out)"
fast=(--only tables --output-dir out)
asked() { "$INSPECTOR" "$@" 2>err || [ $? = 2 ] || fail "$*: $(cat err)"; }
records() { asked summary logs "${fast[@]}" --json "$@" | jq '.input.records - .input.filtered_out'; }
numbering='^nccl-inspector [a-z]*: --rank is the rank in each communicator; for ranks of the job give --job-rank '

want=$(zcat logs/*.gz | jq -n '[inputs] | (map(select(.process and .process.rank == 11))[0].metadata.pid) as $p |
  map(select(.metadata.pid == $p and (.coll_perf or .p2p_perf))) | length' 2>/dev/null)
[ "${want:-0}" -gt 100 ] || want=$(( $(zcat logs/*.gz | grep -c '"coll_perf"') / 16 ))
[ "$want" -gt 100 ] || fatal "the job has $want records a rank"
is() { [ "$2" = "$want" ] || fail "$1: $2 records of rank 11, $want wanted: $(cat err)"; }
is summary "$(records --job-rank 11)"
[ ! -s err ] || fail "--job-rank is as clear as can be: $(cat err)"
is 'with an index' "$(asked index logs >/dev/null 2>&1 || true; records --job-rank 11)"
is convert "$(asked convert --bulk some.ndjson --job-rank 11 logs | grep -oE '[0-9,]+ of' | tr -dc 0-9)"
is trace "$(asked trace --json --job-rank 11 -o t.json.gz logs | jq .operations)"
is 'trace --rank' "$(asked trace --json --rank 11 -o t.json.gz logs | jq .operations)"
grep -q "$numbering" err && fail "trace has one numbering: $(cat err)"
[ "$(asked trace --json --comm dp3 -o t.json.gz logs | jq .ranks)" = 2 ] || fail "trace: dp3 has two ranks"
for i in 1 2; do asked summary logs --job-rank 11 --only tables --shard $i/2 --partial part$i >/dev/null; done
is merge "$(asked merge part1 part2 --output-dir merged --only tables --json |
  jq '.input.records - .input.filtered_out')"
asked show --comm world --coll AllReduce --sn 5 --job-rank 11 --json logs |
  jq -e '[.operations[].ranks[].rank] == [11]' >/dev/null || fail "show: not rank 11 alone"
asked show --comm dp3 --coll AllGather --sn 5 --job-rank 11 --json logs |
  jq -e '[.operations[].ranks[].rank] == [1]' >/dev/null || fail "show: rank 11 is rank 1 of dp3"
asked show --pattern --job-rank 11 logs | grep -qE '1 of 1 rank has it: 11$' || fail "show --pattern"

# show says who that is in the job.
asked show --comm dp3 --coll ReduceScatter --sn 5 logs >text
grep -q '^rank 1 (rank 11 of the job) on sim-node1 came last: ' text || fail "who came last: $(cat text)"
grep -qE '^ +1 +11 sim-node1 ' text && grep -qE '^ +of the job ' text || fail "no number in the job: $(cat text)"
asked show --comm dp3 --coll ReduceScatter --sn 5 --json logs |
  jq -e '[.operations[].ranks[].global_rank] == [3, 11]' >/dev/null || fail "show --json: not their ranks in the job"
asked show --comm world --coll AllReduce --sn 5 logs | grep -q 'of the job' && fail "the same twice"

# ---- --rank: what it means there, and how to get the other ----
[ "$(records --rank 11)" -lt "$want" ] || fail "--rank has another meaning than it had"
grep -q "${numbering}11$" err || fail "summary does not say which numbering: $(cat err)"
asked convert --bulk some.ndjson --rank 8-11 logs >/dev/null
grep -q "${numbering}8-11$" err || fail "convert does not say which numbering: $(cat err)"
asked show --comm dp3 --sn 5 --rank 1 logs >/dev/null
grep -q "${numbering}1$" err || fail "show does not say which numbering: $(cat err)"
records --rank 0 --comm world >/dev/null
grep -q "$numbering" err && fail "in world the two are the same: $(cat err)"
records --job-rank 11,99 >/dev/null
grep -q -- '--job-rank 99: there is none in these logs; the lowest is 0, the highest 15$' err ||
  fail "a rank that is not there: $(cat err)"

# ---- a part is called so, and the commands that the demo proposes are true ----
asked summary logs "${fast[@]}" --coll AllReduce --job-rank 0-11 >text
sed -n 2p text | grep -q '^A PART of the job, by --coll and --job-rank: ' || fail "a part: $(head -n 3 text)"
asked summary logs "${fast[@]}" >text
grep -q '^A PART' text && fail "all of it is no part"
# Each rate has its unit, since they are far apart.
awk '/ busbw/ {at = index($0, " busbw") + 6; next} at && /kernel_gpu  *[0-9]/ {n++; if ($0 !~ /[0-9] [kMGT]?B\/s /) bad = 1}
  END {exit bad || n < 4}' text || fail "rates without a unit: $(cat text)"
line=$(grep -oE 'nccl-inspector summary --.* --output-dir' "$ROOT/scripts/demo.sh" | head -n 1)
read -ra words <<<"${line#nccl-inspector summary }"
asked summary logs "${words[@]:0:${#words[@]}-1}" --output-dir out --only tables --json |
  jq -e '[.findings[] | select(.class == "fault") | .ranks] == [[11]]' >/dev/null ||
  fail "the demo's example accuses somebody else: $line"
finish
