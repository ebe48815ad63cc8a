#!/usr/bin/env bash
# Two runs beside each other: by what happened a second, whatever their lengths; what only one has; what has
# no number.
. "$(dirname "$0")/../../lib/counters.sh"
run() { # name seconds options of its second sweep
  sweep "$TMP/$1.before" --nics 0,1
  sweep "$TMP/$1.after" --nics 0,1 --seconds "$2" "${@:3}"
  "$INSPECTOR" counters summarize --json "$TMP/$1.before" "$TMP/$1.after" >"$TMP/$1.json" || [ $? = 2 ]
}
x=hni_sts_tx_ok_octets
run good 10 --set cxi0:$x=+1000000 --set cxi0:oxe_channel_idle=+9000000000 --set cxi0:pct_req_unordered=+500
run long 100 --set cxi0:$x=+10000000 --set cxi0:oxe_channel_idle=+90000000000 \
  --set cxi0:pct_req_unordered=+5000
said "ten times as long" 0 compare --json "$TMP/good.json" "$TMP/long.json"
is "ten times as long" 'j["schema_version"] == "nccl-inspector-counters-compare-1" and j["changed_metrics"] == [] and j["summed"] == [] and j["new_findings"] == []'
is "ten times as long" 'j["good"]["seconds"] == 10 and j["bad"]["seconds"] == 100 and j["delta_non_zero_per_iface"] == {"1": 0, "2": 0}'

run bad 20 --set cxi0:$x=+1000000 --set cxi1:$x=+500000 --set cxi0:oxe_channel_idle=+2000000000 \
  --set cxi0:pct_req_unordered=+1000 \
  --set cxi1:hni_pcs_uncorrected_cw=+40
for good in "$TMP/good.json" "$TMP/good.before,$TMP/good.after"; do
  said bad 0 compare --json "$good" "$TMP/bad.json"
  is bad '[(r["entity"], r["counter"], r["good_rate"], r["bad_rate"]) for r in j["changed_metrics"]] == [("cxi1", "hni_sts_tx_ok_octets", 0, 25000), ("cxi1", "hni_pcs_uncorrected_cw", 0, 2), ("cxi0", "hni_sts_tx_ok_octets", 100000, 50000), ("cxi0", "oxe_channel_idle", 900000000, 100000000)]'
  is sums '[(r["counter"], r["good_rate"], r["bad_rate"], r["delta_rate"]) for r in j["summed"]] == [("hni_pcs_uncorrected_cw", 0, 2, 2), ("hni_sts_tx_ok_octets", 100000, 75000, -25000), ("oxe_channel_idle", 900000000, 100000000, -800000000)]'
  is ids 'j["changed_metrics"][0]["metric_id"] == 593 and j["changed_metrics"][0]["interface"] == 2 and j["delta_non_zero_per_iface"] == {"1": 0, "2": 2}'
done
said terminal 0 compare "$TMP/good.json" "$TMP/bad.json"
has terminal '^One by one, the most unusual first: 4 differ'
has terminal '^cxi1 +hni_pcs_uncorrected_cw +0 +2 +\+2 only in BAD'
has terminal '^cxi0 +hni_sts_tx_ok_octets +100 k +50.0 k +-50.0 k x 0.5 '
has terminal ' 2 cxi1 +cxi +0 +2 +\+2'
said min 0 compare --json --min-diff 30000 "$TMP/good.json" "$TMP/bad.json"
is min '[r["counter"] for r in j["changed_metrics"]] == ["hni_sts_tx_ok_octets", "oxe_channel_idle"]'
said top 0 compare --top 1 "$TMP/good.json" "$TMP/bad.json"
has top '^not shown: 3$'

# A NIC that one run lacks, and a counter that was reset: named and counted, no number.
sweep "$TMP/part.before" --nics 0,2
sweep "$TMP/part.after" --nics 0,2 --seconds 10 --set cxi0:pct_req_unordered=3 \
  --set cxi0:hni_pkts_sent_by_tc_0=gone
said part 2 compare --json "$TMP/good.json" "$TMP/part.before,$TMP/part.after"
is part 'j["only_in_bad"] == ["cxi2"] and j["only_in_good"] == ["cxi1"] and j["without_number"] == 2 and not j["bad"]["complete"]'
is part 'not any(r["counter"] in ("pct_req_unordered", "hni_pkts_sent_by_tc_0") for r in j["changed_metrics"])'
said part 2 compare "$TMP/good.json" "$TMP/part.before,$TMP/part.after"
has part '^only in BAD: cxi2'
has part '^only in GOOD: cxi1'
has part '^left out: 2 counters'

said one 64 compare "$TMP/good.json"
said "not there" 1 compare "$TMP/good.json" "$TMP/none.json"
has "not there" 'none.json: No such file'
said sweep 1 compare "$TMP/good.json" "$TMP/bad.after"
has sweep 'bad.after: one sweep: what came after it'
finish
