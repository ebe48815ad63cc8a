#!/usr/bin/env bash
# Logs alone of a job that worked for longer than the 10 s between dump_stats lines and then hangs: what a
# stuck line says is newer than those.
. "$(dirname "$0")/../../lib/hang.sh"

logs() { # FUNC FUNC [MS [WORLD]]
  rm -rf "$TMP/logs"
  mkdir "$TMP/logs"
  python3 test/lib/hang_logs.py "$TMP/logs" "$@"
  look
}
logs AllReduce AllReduce
checked "both inside" 3 expect world "AllReduce 20" inside=0,1
logs AllReduce -
checked "of one nothing is known since" 3 expect world "AllReduce 20" inside=0 no_data=1
names "what is not known" "no data from rank 1 (node-1); one rank is inside; nothing has moved for 300 s as of 2026-09-21T14:18:32Z ([0-9]* days ago)"
# One log was written to for longer than the other: what is known of both is as old as the older one.
logs AllReduce AllReduce
tail -n 1 "$TMP/logs/node-1-pid101.jsonl" |
  sed 's/\("dump_timestamp_us":1790000\)312/\1412/' >>"$TMP/logs/node-1-pid101.jsonl"
"$INSPECTOR" hang --no-index --box-dir "$BOXES" "$TMP/logs" >"$TMP/said" || true
names "as of when" "nothing has moved for 300 s as of 2026-09-21T14:18:32Z ([0-9]* days ago)"
names "a rank of old" "rank 0  .* for 300 s; process unknown, seen [0-9]* days ago (log)"
names "a newer one" "rank 1  .* for 400 s; process unknown, seen [0-9]* days ago (log)"
logs AllReduce Broadcast
checked "another call" 3 expect world "AllReduce 20" mismatch=function inside=0 other_call=1
python3 -c 'import json,sys; [r] = [r for r in json.load(open(sys.argv[1]))["waits"][0]["ranks"] if r["rank"] == 0]
assert r["seen_s_ago"] == 0, r' "$TMP/verdict" || fail "rank 0 was seen when its stuck line was written: $(cat "$TMP/verdict")"

# NVIDIA's logs have no number of ours: what a rank has finished lately, here with another size, is known by
# NCCL's.
logs AllReduce -
python3 - >"$TMP/logs/node-1-pid101.jsonl" <<'P'
import sys
sys.path.insert(0, "test/lib")
import logs
about, meta = logs.header("0x5d1c7e90aa0064", 1, 2, 2,
                          "world"), logs.metadata(1790000312 * 10**6, "node-1", 101, git_rev="x",
                                                  producer=None)
for sn in range(21):
    perf = logs.perf("coll", "AllReduce", sn=sn, msg_size_bytes=2097152, exec_time_us=59, algobw_gbs=17.7,
                     busbw_gbs=17.7)
    print(logs.text(logs.line(about, meta, "coll_perf", perf), spaced=True))
P
for how in --no-index --index-dir="$TMP/index" --index-dir="$TMP/index"; do
  look "$how"
  python3 -c 'import json, sys; [w] = json.load(open(sys.argv[1]))["waits"]
assert w["mismatch"] == ["size"] and w["count"] == {"finished": 1, "inside": 1}, w' "$TMP/verdict" || fail "a log of NVIDIA, $how"
done

# Killed while they hung, and begun again: at once, also with another number of ranks, and later. A rank has
# one process at a time.
for again in "1 2" "300 3" "1500 2"; do
  # shellcheck disable=SC2086
  logs AllReduce AllReduce $again
  checked "begun again after ${again% *} ms, ${again#* } ranks" 0 job ended "ENDED \(2 ranks, 1 communicator\): both processes have ended by themselves.*" earlier=2 left=2 ranks=2
done
finish
