#!/usr/bin/env bash
# import accl: every collective of ACCL's logs is in ours; a file without an end leaves a log without one,
# what it lost is in the account, what its proxy measured accuses nobody. RCCL's inspector needs no import.
. "$(dirname "$0")/../../lib/case.sh"
import() { # rc name: files $TMP/NAME, logs $TMP/NAME.logs
  local want=$1 name=$2 rc=0
  "$INSPECTOR" import accl "$TMP/$name" --out "$TMP/$name.logs" >"$TMP/$name.txt" 2>&1 || rc=$?
  [ $rc = "$want" ] || { fail "$name: exit $rc, want $want"; cat "$TMP/$name.txt"; }
}
said() { grep -qE -- "$2" "$TMP/$1.txt" || { fail "$1 does not say: $2"; cat "$TMP/$1.txt"; }; }
checked() { # name rc sentences...
  local rc=0
  "$INSPECTOR" check "$TMP/$1.logs" >"$TMP/$1.check" 2>&1 || rc=$?
  [ $rc = "$2" ] || { fail "$1: check returns $rc"; cat "$TMP/$1.check"; }
  grep -qE '^lines .* 0 bad' "$TMP/$1.check" || { fail "$1: bad lines"; cat "$TMP/$1.check"; }
  for s in "${@:3}"; do
    grep -qE -- "$s" "$TMP/$1.check" || { fail "$1: check does not say: $s"; cat "$TMP/$1.check"; }
  done
}
python3 test/lib/accl_log.py make "$TMP"
for c in whole died cut lost slow; do
  import "$([ $c = died ] && echo 2 || echo 0)" $c
  python3 test/lib/accl_log.py check $c "$TMP/$c.logs" || { fail "$c"; cat "$TMP/$c.txt"; }
  python3 test/lib/accl_log.py read "$TMP/$c.logs" "$TMP/$c"/*.jsonl >"$TMP/read" ||
    fail "$c: $(cat "$TMP/read")"
done
said whole 'rank 1 \(by the communicator of all\) on mi300_node1, 53 operations'
said whole 'when operations began is not in the source'
checked whole 0 '^COMPLETE'
said died 'node1_pid4711_0x78.jsonl: left out: no log of ACCL.*the others of its process were read'
checked died 2 '1 final line missing, of a communicator' \
  '1 process without its own last line.*imported logs end where'
checked cut 2 '1 final line missing, of a communicator'
said cut '1 event could not be read'
checked lost 2 'problem     7 operations dropped' 'problem     2 operations .*in flight'
zcat "$TMP"/lost.logs/*node1*.gz >"$TMP/lines"
grep -q '5 operations and steps of the proxy were not timed' "$TMP/lines" ||
  fail "no note of what the proxy lost"
grep -q 'proxy_' <(grep coll_perf "$TMP/lines") && fail "the proxy's times are in the log"
summary() {
  "$INSPECTOR" summary "$1" --no-index --no-parquet --no-html --no-plots --output-dir "$2" >"$2.txt" || true
}
summary "$TMP/slow.logs" "$TMP/slow-out"
grep -q '1  rank 1 on mi300_node1 came late to' "$TMP/slow-out.txt" ||
  { fail "the late rank is not named"; cat "$TMP/slow-out.txt"; }
grep -q 'from logs of ACCL' "$TMP/slow-out.txt" || fail "summary does not say where the logs come from"
! grep -q 'share.* no communicator' "$TMP/slow-out.txt" ||
  fail "hosts of one communicator are said to share none"
summary "$TMP/whole.logs" "$TMP/whole-out"
grep -qE '^  1  ' "$TMP/whole-out.txt" &&
  { fail "ranks that took the same time are named"; cat "$TMP/whole-out.txt"; }

# No plugin of ours ran there: nothing is said of what it would have left, in whatever is told of these logs.
for c in check hang "show --pattern" "trace -o $TMP/trace.json"; do
  for logs in whole died; do
    # shellcheck disable=SC2086
    "$INSPECTOR" $c "$TMP/$logs.logs" >>"$TMP/advice" 2>&1 || true
  done
done
cat "$TMP/whole-out.txt" >>"$TMP/advice"
"$INSPECTOR" summary "$TMP/died.logs" --no-index --no-parquet --no-html --no-plots --output-dir \
  "$TMP/died-out" >>"$TMP/advice" || true
grep -q "^CANNOT TELL: NVIDIA's and imported logs say what has finished" "$TMP/advice" ||
  fail "hang does not say what imported logs are"
grep -q 'records have no start time: not drawn$' "$TMP/advice" ||
  fail "trace does not say what it does not draw"
! grep -iE 'black box|recover|snapshot|NCCL_INSPECTOR_' "$TMP/advice" ||
  fail "advice for jobs with our plugin, of imported logs"

# Files that are none, and nothing but such.
mkdir "$TMP/bad" "$TMP/none"
good=("$TMP"/whole/accl_profiler_rank0_*_0xbeefcafe12345678.jsonl)
cp "${good[0]}" "$TMP/bad/"
bad() { cat >"$TMP/bad/accl_profiler_rank$1_host_pid$1_0x$1.jsonl"; }
printf '' | bad 2
head -c 3000000 /dev/zero | bad 3
printf '{"coll_perf": 5}\n[1]\n{"header": {}}\n' | bad 4
printf '{"header":{"rank":9e99,"n_ranks":-1},"coll_perf":{"coll":"\\u001b]0;x\\u0007","coll_sn":18446744073709551615,"coll_exec_time_us":1e300}}\n' | bad 5
printf '{"header":{"rank":7,"n_ranks":2},"coll_perf":{"coll":"AllReduce","coll_sn":1,"coll_exec_time_us":2.5,"coll_algo":5,"event_trace_ts":[]}}\n{"summary":{"dropped_collectives":-3}}' | bad 6
printf '{"summary":{"dropped_collectives":18446744073709551615,"complete":true}}\n' | bad 7
echo '{}' >"$TMP/bad/accl_profiler_rankX_host.jsonl"
cp "${good[0]}" "$TMP/bad/accl_profiler_rank8_plain.jsonl"
import 2 bad
said bad 'rank2_host_pid2_0x2.jsonl: left out: no collective in it'
said bad 'rank7_host_pid7_0x7.jsonl: left out: no collective'
said bad 'rankX_host.jsonl: left out: no log of ACCL'
said bad 'on plain, 52 operations'
checked bad 2
echo '{}' >"$TMP/none/accl_profiler_rank0_h_pid1_0x1.jsonl"
import 1 none
[ ! -e "$TMP/none.logs" ] || fail "a folder without a log"

# RCCL's inspector writes NVIDIA's lines.
python3 test/lib/rccl_inspector.py "$TMP/rccl"
ln -s rccl "$TMP/rccl.logs"
checked rccl 2 '^lines .* 120 operations, 6 about the run' 'problem     12 operations dropped'
"$INSPECTOR" summary "$TMP/rccl" --no-index --no-parquet --no-html --no-plots --output-dir "$TMP/rccl-out" \
  >"$TMP/rccl.txt" || true
grep -q '1  rank 1 on mi300-1 .*came late to 100 %' <(tr '\n' ' ' <"$TMP/rccl.txt") ||
  { fail "RCCL's late rank"; cat "$TMP/rccl.txt"; }
grep -q 'v4.1, written by NVIDIA' "$TMP/rccl.txt" || { fail "RCCL's version"; cat "$TMP/rccl.txt"; }
finish
