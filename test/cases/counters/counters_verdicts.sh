#!/usr/bin/env bash
# Planted faults, one after the other: the first finding names each, with NIC, counter, difference and rate;
# working NICs have none.
. "$(dirname "$0")/../../lib/counters.sh"
[ -e "$CASSINI/before.txt.gz" ] || skip "no $CASSINI"

# ---- among the traffic of eight working NICs ----
B=$TMP/before.json A=$TMP/after.json
sweep "$B" --cassini "$CASSINI/before.txt.gz"
said healthy 0 summarize --gate "$B" "$CASSINI/after.txt.gz"
has healthy '^healthy: '
hasnt healthy '^(warning|critical) '
slower=
planted() { # ID LEVEL NIC COUNTER PATTERN [NIC:COUNTER=+N...]: of one fault; the first of these is its proof
  local id=$1 level=$2 entity=$3 counter=$4 pattern=$5 set=()
  shift 5
  for s in "$@"; do set+=(--set "$s"); done
  # what rose by less had more before
  [ -z "$slower" ] || sweep "$B" --cassini "$CASSINI/before.txt.gz" --set "$slower"
  sweep "$A" --cassini "$CASSINI/after.txt.gz" "${set[@]}"
  said "$id" 3 summarize --gate --json "$B" "$A"
  is "$id" "[(f['id'], f['level'], f['entity'], f['counter']) for f in j['findings'] if f['level'] != 'info'] == [('$id', '$level', '$entity', '$counter')]"
  has "$id" "\"text\":\"$entity [^\"]*$counter $pattern"
}
# 30 % of 44 s, in three classes that count the same: one finding.
planted held-by-fabric warning cxi3 hni_tx_paused_1 \
  'rose by 13,4[0-9,]* cycles in 44.1 s \(30[0-9],[0-9,]* a second, 30.[0-9] % of the time' \
  cxi3:hni_tx_paused_1=+13400000000 cxi3:hni_tx_paused_3=+13300000000 cxi3:hni_tx_paused_5=+13300000000
planted slow-host warning cxi5 hni_rx_paused_std 'rose by 13,200,000,000 cycles in 44.1 s \(299,[0-9,]* a second, 29.9 % of the time' \
  cxi5:hni_rx_paused_std=+13200000000
planted timeouts critical cxi6 pct_spt_timeouts 'rose by 7 in 44.1 s \(0.159 a second' \
  cxi6:pct_spt_timeouts=+7
planted retries warning cxi0 pct_retry_srb_requests \
  'rose by 60 in 44.1 s \(1.36 a second, 1.8[0-9] % of pct_req_ordered' \
  cxi0:pct_retry_srb_requests=+60
planted hardware critical cxi4 lpe_mem_ucor_err_cntr 'rose by 1 in 44.1 s' cxi4:lpe_mem_ucor_err_cntr=+1
planted bad-cable warning cxi1 hni_llr_tx_replay_event 'rose by 400 in 44.1 s \(9.06 a second' \
  cxi1:hni_llr_tx_replay_event=+400
planted slow-host warning cxi2 parbs_tarb_pi_posted_blocked_cnt \
  'rose by 9,003,789,560 cycles .* 20.4 % of the time' \
  cxi2:parbs_tarb_pi_posted_blocked_cnt=+9000000000
slower=cxi2:hni_pcs_good_cw=+400000000
planted link-down critical cxi2 hni_pcs_good_cw 'rose by 1,324,346,794 codewords in 44.1 s \(30,0[0-9,]* a second, of 39,06[0-9,]* '
# Two at once: the link comes first, and the page has both.
sweep "$A" --cassini "$CASSINI/after.txt.gz" --set cxi3:hni_tx_paused_1=+40000000000
said both 0 summarize --html "$TMP/page.html" "$B" "$A"
[ "$(grep -cE '^(warning|critical) +' "$TMP/said")" = 2 ] &&
  grep -m 1 -E '^(warning|critical) +' "$TMP/said" | grep -q '^critical *cxi2 ' ||
  fail "a link that went down does not come first"
if [ -s "$BUILD/report/report_assets.tail" ]; then
  grep -q '<body id="counters">' "$TMP/page.html" &&
    grep -q 'cxi3 is held by the fabric' "$TMP/page.html" || fail "no page"
  said "no folder" 1 summarize --html /nowhere/page.html "$B" "$A"
  has "no folder" 'counters summarize: --html /nowhere/page.html: No such file or directory'
fi

# ---- InfiniBand, RoCE, a cloud's NICs: read of a fake machine ----
export NI_ROOT=$TMP/root
tree() { python3 test/lib/counters/counter_trees.py "$NI_ROOT" "$@"; }
machine() { # the arguments of tree once, then again after "--then": what the machine looked like afterwards
  local first=() second=()
  while [ "$1" != --then ]; do first+=("$1"); shift; done
  second=("${@:2}")
  rm -rf "$NI_ROOT"
  tree "${first[@]}" -- host
  said before 0 collect -q "$TMP/b.json"
  tree "${second[@]}"
  said after 0 collect -q "$TMP/a.json"
  said fabric 0 summarize --json "$TMP/b.json" "$TMP/a.json"
}
first() {
  is "$1" "[(f['id'], f['level'], f['entity'], f['counter'], f['delta']) for f in j['findings']][0] == $2"
}
machine mlx5 mlx5_0 -- mlx5 mlx5_1 -- mlx5 mlx5_2 --then mlx5 mlx5_0 rp_cnp_handled=70000 -- mlx5 mlx5_1 \
  np_ecn_marked_roce_packets=800000 -- mlx5 mlx5_2 rp_cnp_handled=90000
first incast "('incast', 'warning', 'mlx5_1:1', 'np_ecn_marked_roce_packets', 800000)"
machine mlx5 mlx5_0 -- mlx5 mlx5_1 --then mlx5 mlx5_0 packet_seq_err=800 out_of_sequence=90 -- mlx5 mlx5_1 \
  link_downed=1
first "a link outranks all" "('link-down', 'critical', 'mlx5_1:1', 'link_downed', 1)"
is "a loss is told, too" "j['findings'][1]['id'] == 'lossy' and j['findings'][1]['entity'] == 'mlx5_0:1'"
machine mlx5 mlx5_0 symbol_error=65535 --then mlx5 mlx5_0 symbol_error=65535
is stuck "[(f['id'], f['level']) for f in j['findings']] == [('stuck', 'info')]"
machine efa rdmap0s6 --then efa rdmap0s6 unresponsive_remote_events=3
first efa "('peer-gone', 'warning', 'rdmap0s6:1', 'unresponsive_remote_events', 3)"
machine bnxt bnxt_re0 --then bnxt bnxt_re0 to_retransmits=5
first bnxt "('ack-timeout', 'critical', 'bnxt_re0:1', 'to_retransmits', 5)"
finish
