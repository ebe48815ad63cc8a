#!/usr/bin/env bash
# What is no plain difference: wraps, resets, NICs and counters that come and go, what could not be read,
# other sizes of machines; and files that are no sweeps.
. "$(dirname "$0")/../../lib/counters.sh"
B=$TMP/before.json A=$TMP/after.json
octets=hni_sts_tx_ok_octets
pair() { # options of both sweeps, then -- and those of the second
  local -a first=()
  while [ $# -gt 0 ] && [ "$1" != -- ]; do first+=("$1"); shift; done
  sweep "$B" "${first[@]}" "${B_ONLY[@]}"
  sweep "$A" --seconds 10 "${first[@]}" "${@:2}"
}
B_ONLY=()

# 2^56 - 1000 to 5e9 - 1000 in 10 s: 0.5 GB/s. What no NIC can do is no wrap and no number. A gauge falls
# without either.
B_ONLY=(--set "cxi0:$octets=$((2 ** 56 - 1000))" --set "cxi1:hni_tx_paused_1=$((2 ** 56 - 1000))" --set "cxi2:pct_prf_srb_status_srb_in_use=9")
pair --nics 0,1,2 -- --set cxi0:$octets=4999999000 --set cxi1:hni_tx_paused_1=$((2 ** 50)) \
  --set cxi2:pct_prf_srb_status_srb_in_use=4
said wrap 0 summarize --json "$B" "$A"
is wrap 'c("cxi0", "hni_sts_tx_ok_octets")["diff"] == 5000000000 and c("cxi0", "hni_sts_tx_ok_octets")["wrapped"] and near(c("cxi0", "hni_sts_tx_ok_octets")["rate"], 5e8)'
is reset 'c("cxi1", "hni_tx_paused_1")["state"] == "reset" and not {"diff", "rate", "share"} & set(c("cxi1", "hni_tx_paused_1"))'
is gauge 'c("cxi2", "pct_prf_srb_status_srb_in_use")["state"] == "level" and c("cxi2", "pct_prf_srb_status_srb_in_use")["diff"] == -5 and "rate" not in c("cxi2", "pct_prf_srb_status_srb_in_use")'
is count 'j["total_non_zero"] == 2 and [e["resets"] for e in j["entities"]] == [0, 1, 0]'
said wrap 0 summarize "$B" "$A"
has wrap '^wrapped +cxi0 hni_sts_tx_ok_octets: '
has reset '^reset +cxi1 hni_tx_paused_1: '
has rate 'hni_sts_tx_ok_octets +5,000,000,000 +500 MB .*wrapped'
hasnt reset '-720575940|1125899906'
said wrap 0 summarize --csv - "$B" "$A"
has csv '^cxi,cxi1,2,614,hni_tx_paused_1,cycles,reset,0,72057594037926936,1125899906842624,,'
B_ONLY=()

# Paused cycles as a share of time. All of a NIC's counters at 0 again: its driver was loaded anew.
pair --nics 0 -- --set cxi0:hni_tx_paused_1=3000001000
said share 0 summarize --json "$B" "$A"
is share 'near(c("cxi0", "hni_tx_paused_1")["share"], 0.3) and j["important_metrics"]["614"]["diffs"] == {"1": 3000000000}'
sweep "$B" --nics 0,1
python3 - "$B" "$A" <<'PY'
import json, sys
j = json.load(open(sys.argv[1]))
for c in j["counters"]: c["timestamp"] += 10; c["value"] = 0 if c["interface"] == 1 else 1000
json.dump(j, open(sys.argv[2], "w"))
PY
said reloaded 0 summarize --json "$B" "$A"
is reloaded '[e["reloaded"] for e in j["entities"]] == [True, False] and j["entities"][0]["resets"] > 1400 and j["entities"][1]["non_zero"] == 0'

# A NIC gone, a NIC new, a counter gone and one new: named, never a number, and the rest is complete.
sweep "$B" --nics 0,1,2 --set cxi0:a_later_counter=5 --set cxi0:$octets=7
sweep "$A" --seconds 10 --nics 0,2,10 --set cxi0:$octets=1007 --set cxi0:pct_spt_timeouts=gone \
  --set cxi2:of_cassini_2=9
said "gone and new" 2 summarize --json "$B" "$A"
is "gone and new" 'j["total_non_zero"] == 1 and c("cxi0", "hni_sts_tx_ok_octets")["diff"] == 1000 and not j["complete"]'
is "gone and new" '[(e["name"], e["in_before"], e["in_after"]) for e in j["entities"]] == [("cxi0", True, True), ("cxi1", True, False), ("cxi2", True, True), ("cxi10", False, True)]'
is "gone and new" 'c("cxi0", "pct_spt_timeouts")["state"] == "gone" and c("cxi0", "a_later_counter")["state"] == "gone" and c("cxi2", "of_cassini_2")["state"] == "new"'
is "gone and new" 'all(r["state"] == "gone" and "diff" not in r for r in j["entities"][1]["counters"]) and j["non_zero_per_iface"] == {"1": 1, "2": 0, "3": 0, "11": 0}'
said "gone and new" 2 summarize "$B" "$A"
has "gone and new" '^gone +cxi1 \(cxi\): not in .*after.json'
has "gone and new" '^new +cxi10 \(cxi\): not in .*before.json'
has "gone and new" '^gone +cxi0 .*pct_spt_timeouts'
has "gone and new" '^Top 1 diffs for Interface 1'

# Text, whose lines are all of a NIC: one that could not be read. cxi10 and a single NIC in JSON.
sweep "$TMP/b.txt" --form text --nics 0,1
sweep "$TMP/a.txt" --form text --nics 0,1 --seconds 10 --set cxi1:pct_sct_timeouts=eio \
  --set cxi1:pct_spt_timeouts=1007
said unreadable 2 summarize --json "$TMP/b.txt" "$TMP/a.txt"
is unreadable 'c("cxi1", "pct_sct_timeouts")["state"] == "unreadable" and c("cxi1", "pct_sct_timeouts")["after"] == "unreadable" and c("cxi1", "pct_spt_timeouts")["diff"] == 7 and j["total_non_zero"] == 1'
is unreadable 'j["top20_per_iface"]["2"][0] == {"iface": 2, "metric_id": 1722, "metric_name": "pct_spt_timeouts", "diff": 7} or j["top20_per_iface"]["2"][0]["metric_name"] == "pct_spt_timeouts"'
cp "$TMP/said" "$TMP/s.json"
said unreadable 2 summarize --json "$TMP/s.json"
cmp -s "$TMP/said" "$TMP/s.json" || fail "the summary of an incomplete summary is another one"
said unreadable 2 summarize "$TMP/b.txt" "$TMP/a.txt"
has unreadable '^unreadable cxi1 pct_sct_timeouts: '
pair --nics 10 --form list -- --set cxi10:$octets=+4
said cxi10 0 summarize --json "$B" "$A"
is cxi10 'j["non_zero_per_iface"] == {"11": 1} and j["important_metrics"]["17"]["diffs"] == {"11": 0}'
said same 2 summarize --json "$B" "$B"
is stale 'all(r["state"] == "stale" for r in j["entities"][0]["counters"]) and len(j["entities"][0]["counters"]) == 1890'

# No sweeps: refused with file, place and reason.
refused() { # name pattern, the file is $TMP/bad
  said "$1" 1 summarize "$TMP/bad" "$A"
  has "$1" "$TMP/bad: .*$2"
}
bad() { printf '%s' "$1" >"$TMP/bad"; refused "${2}" "$2"; }
bad '' 'neither JSON nor'
bad 'hello' 'neither JSON nor'
bad '{"counters":[' 'no JSON'
bad '{"counters":[{"interface":1,"counter_name":"a","value":1.5,"timestamp":1.0}]}' \
  'counters\[0\]: want a whole number'
bad '{"counters":[{"interface":1,"counter_name":"a","value":99999999999999999999,"timestamp":1.0}]}' \
  'want a whole number'
bad '{"counters":[{"interface":1,"counter_name":"a","value":1,"timestamp":1.0},{"interface":0,"counter_name":"a","value":1}]}' 'counters\[1\]: interface: want 1 to 65536'
bad '{"counters":[{"interface":1,"counter_name":"a","value":1},{"interface":1,"counter_name":"a","value":2}]}' 'cxi0 has a twice'
bad '{"counters":[{"interface":1,"value":1}]}' 'without counter_name or value'
bad '{"counters":[{"interface":1,"counter_name":["a"],"value":1}]}' 'want a text'
bad '{"counters":7}' 'counters: want a list'
bad '[7]' 'want an object'
bad '{"counters":[]}' 'no counters in it'
bad '{"counters":[]} {}' 'something stands behind'
bad '{"schema_version":"nccl-inspector-check-1"}' 'another schema'
bad '{"nccl_inspector":{"entities":[{"source":"ib","counters":[]}]}}' \
  'entities\[0\]: want a name, and a source that is known'
bad '{"nccl_inspector":{"entities":[{"source":"abacus","name":"x","counters":[]}]}}' 'a source that is known'
bad '1@2.0
3@4.0
' '2 lines: want 1890 a NIC'
python3 -c 'print("{\"counters\":[{\"interface\":1,\"counter_name\":\"" + "a" * 300 + "\",\"value\":1}]}")' \
  >"$TMP/bad"
refused "long name" 'longer than 255 bytes'
python3 -c 'print("[" * 100000)' >"$TMP/bad"
refused deep '.'
printf '[\0]' >"$TMP/bad"
refused "a byte 0" 'a byte 0 at 1'
gzip -c "$B" | head -c 5000 >"$TMP/bad"
refused cut 'the gzip file is cut'
rm "$TMP/bad" && mkdir "$TMP/bad"
refused folder 'Is a directory'
rmdir "$TMP/bad"
refused "not there" 'No such file'
said "one sweep" 1 summarize "$A"
has "one sweep" 'one sweep: what came after it'
said "a summary and more" 1 summarize "$TMP/s.json" "$A"
has "a summary and more" 'two sweeps already'
python3 - "$TMP/bad" <<'PY'
import json, sys
json.dump([{"interface": i + 1, "counter_name": "a", "value": 1} for i in range(5000)],
          open(sys.argv[1], "w"))
PY
refused "5000 NICs" 'more than 4096'
# A name that would steer the terminal, and one that a spreadsheet would run.
python3 - "$TMP" <<'PY'
import json, sys
for f, v in (("x", 1), ("y", 2)):
    json.dump([{"interface": 1, "counter_name": n, "value": v, "timestamp": float(v)}
               for n in ("\x1b[31mred", "=cmd()")], open(sys.argv[1] + "/" + f, "w"))
PY
said hostile 0 summarize "$TMP/x" "$TMP/y"
has hostile '\?\[31mred'
hasnt hostile $'\x1b'
said hostile 0 summarize --csv - "$TMP/x" "$TMP/y"
has hostile ",'=cmd\\(\\),"

# A share of the time is no verdict where the time is that of a short command. Times at the end of 64 bits are
# none.
host() { # FILE VALUE SECONDS AHEAD
  echo '{"nccl_inspector":{"entities":[{"source":"host","name":"host","monotonic_ahead_s":'"$4"',"counters":[{"name":"pressure_cpu_some",
    "value":'"$2"',"timestamp":'"$3"'}]}]}}' >"$TMP/$1"
}
host x 0 1767225600.0 0; host y 9900 1767225600.01 0; host z 990000 1767225601.0 0
said "10 ms" 0 summarize "$TMP/x" "$TMP/y"
hasnt "10 ms" 'wait for a CPU'
said "a second" 0 summarize "$TMP/x" "$TMP/z"
has "a second" 'wait for a CPU: pressure_cpu_some rose by 990,000'
host x 0 9000000000.0 8900000000.0; host z 990000 9000000001.0 8900000000.0
said "the end of time" 0 summarize "$TMP/x" "$TMP/z"
has "the end of time" '990,000 us in 1.00 s'

# What is written as root replaces no file that a link names, and goes into no folder of somebody else.
echo precious >"$TMP/precious"
for option in csv html; do
  ln -s precious "$TMP/link"
  said "--$option" 0 summarize --$option "$TMP/link" "$TMP/x" "$TMP/z"
  [ "$(cat "$TMP/precious")" = precious ] && [ ! -L "$TMP/link" ] && [ -s "$TMP/link" ] ||
    fail "--$option writes through a link"
  rm -f "$TMP/link"
  [ "$(id -u)" = 0 ] || continue
  mkdir -p "$TMP/theirs" && chown 64001 "$TMP/theirs"
  said "--$option into another's folder" 1 summarize --$option "$TMP/theirs/x" "$TMP/x" "$TMP/z"
  has "--$option into another's folder" 'Give a folder of your own'
  [ -z "$(ls -A "$TMP/theirs")" ] || fail "--$option writes into a folder of another user"
done
finish
