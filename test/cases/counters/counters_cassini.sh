#!/usr/bin/env bash
# Two sweeps of eight working NICs, in all forms of files: the same figures from each, and net_prof's own.
. "$(dirname "$0")/../../lib/counters.sh"
[ -e "$CASSINI/before.txt.gz" ] || skip "no $CASSINI"
cmp -s "$CASSINI/counter-names.txt" exporter/input/netprof/names.txt ||
  fail "names.txt is not net_prof's list"
for form in dict list text; do
  sweep "$TMP/before.$form" --form $form --cassini "$CASSINI/before.txt.gz"
  sweep "$TMP/after.$form.gz" --form $form --cassini "$CASSINI/after.txt.gz"
done
look() { # name before after
  said "$1" 0 summarize --json "$2" "$3"
  is "$1" 'j["total_non_zero"] == 1506'
  is "$1" '[j["non_zero_per_iface"][str(i)] for i in range(1, 9)] == [280, 143, 188, 187, 170, 146, 177, 215]'
  is "$1" 'sum(r["state"] == "level" for e in j["entities"] for r in e["counters"]) == 36'
  is "$1" 'sum(r["diff"] < 0 for e in j["entities"] for r in e["counters"]) == 22'
  is "$1" 'sum(e["resets"] for e in j["entities"]) == 0 and all(r["state"] in ("changed", "level") for e in j["entities"] for r in e["counters"])'
  is "$1" 'all(len(e["counters"]) + len(e["unchanged"]) == 1890 for e in j["entities"]) and len(j["entities"]) == 8 and j["complete"]'
  is "$1" 'all(44.1278 < r["seconds"] < 44.1502 for e in j["entities"] for r in e["counters"])'
  # Idle cycles and good codewords lead by size; they are last here.
  is "$1" 'not any("idle" in m["metric_name"] or "good_cw" in m["metric_name"] or "_ack" in m["metric_name"] for t in j["top20_per_iface"].values() for m in t)'
  is "$1" 'near(c("cxi0", "oxe_channel_idle")["share"], 0.99992) or 0.999 < c("cxi0", "oxe_channel_idle")["share"] <= 1'
}
look text "$CASSINI/before.txt.gz" "$CASSINI/after.txt.gz"
# Each counter's own two times, to the nanosecond.
k=$(grep -nx pct_pct_hni_stalls exporter/input/netprof/names.txt | cut -d: -f1)
seconds=$(for f in after before; do zcat "$CASSINI/$f.txt.gz" | sed -n "${k}p" | cut -d@ -f2; done | xargs | python3 -c 'from decimal import Decimal as D; a, b = input().split(); print(D(a) - D(b))')
is nanoseconds "abs(c('cxi0', 'pct_pct_hni_stalls')['seconds'] - $seconds) < 1e-12"
cp "$TMP/said" "$TMP/summary.json"
look "0.1.11" "$TMP/before.dict" "$TMP/after.dict.gz"
look "0.1.6" "$TMP/before.list" "$TMP/after.list.gz"
look mixed "$TMP/before.list" "$CASSINI/after.txt.gz"

# A summary says again what it was made of, to the byte; so does the terminal.
said again 0 summarize --json "$TMP/summary.json"
cmp -s "$TMP/said" "$TMP/summary.json" || fail "the summary of a summary is another one"
said terminal 0 summarize "$TMP/summary.json"
# The terminal begins with what each NIC carried, the busiest first, which is the order of all that follows;
# numbers are in groups of three or have a prefix, and it is no more than two screens.
cat >"$TMP/want" <<'END'
healthy: 1,506 of 15,120 counters changed in 44.1 s, and no finding

NIC          receives of link      sends of link  paused errors/s
cxi2         6.2 MB/s       -      1 B/s       -     0 %        0
cxi3         5.8 MB/s       -      1 B/s       -     0 %        0
cxi0        57.7 kB/s       -   640 kB/s       -     0 %        0
cxi7        15.2 kB/s       -   413 kB/s       -     0 %        0
cxi6        15.5 kB/s       -      1 B/s       -     0 %        0
cxi4         2.4 kB/s       -      1 B/s       -     0 %        0
cxi5         1.8 kB/s       -      1 B/s       -     0 %        0
cxi1         1.8 kB/s       -      1 B/s       -     0 %        0

END
head -n 12 "$TMP/said" | diff "$TMP/want" - || fail "terminal: it does not begin with rates"
[ "$(wc -l <"$TMP/said")" -le 120 ] || fail "terminal: $(wc -l <"$TMP/said") lines"
has terminal '^Total non-zero diffs: 1,506$'
has terminal '^Interface name +source non-zero counters'
has terminal '^ +1 cxi0 +cxi +280 +1,890 44.1'
order=$(sed -nE 's/^Top 5 diffs for Interface [0-9] \((.*)\), the most unusual first:$/\1/p' "$TMP/said" |
  xargs)
[ "$order" = "cxi2 cxi3 cxi0 cxi7 cxi6 cxi4 cxi5 cxi1" ] || fail "terminal: tables in the order $order"
has terminal '^Rank Metric ID Metric Name +Difference +a second +share median of others +what it counts$'
has terminal '1647 pct_pct_hni_stalls +537,961 +12.2 k +0 +cycles in which connection tracking waited'
has terminal '1599 parbs_tarb_pi_posted_blocked_cnt +3,789,560 +85.9 k < 0.1 % +0 +cycles in which writes to the host waited$'
has terminal '^Total non-zero diffs not shown: 275$'
has terminal '1598 parbs_tarb_pi_non_posted_pkts +70,161 +1 +23,790 +22,432'
hasnt terminal '[0-9]e[+-][0-9]|[0-9]{6}'
hasnt terminal 'CxiErrStats'
said groups 0 summarize --groups --top 0 "$TMP/summary.json"
has groups '^CxiPerfStats: [0-9]+ of 48 counters changed'
has groups '^CxiOpPackets: [0-9]+ of 32 counters changed'
hasnt groups '^Top '
said csv 0 summarize --csv "$TMP/all.csv" "$TMP/summary.json"
[ "$(wc -l <"$TMP/all.csv")" = 15121 ] || fail "CSV: not one row a counter"
[ "$(cut -d, -f7 "$TMP/all.csv" | sort | uniq -c | xargs)" = "1470 changed 36 level 13614 none 1 state" ] ||
  fail "CSV: $(cut -d, -f7 "$TMP/all.csv" | sort | uniq -c | xargs)"

netprof 0.1.11
for f in before after; do zcat "$CASSINI/$f.txt.gz" >"$TMP/$f.txt"; done
python3 test/lib/counters/netprof.py oracle "$NETPROF" "$TMP/summary.json" "$TMP/before.txt" \
  "$TMP/after.txt" || fail "not net_prof's figures"
finish
