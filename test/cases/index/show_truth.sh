#!/usr/bin/env bash
# show: who came last and how long the others waited are those that were planted; nothing is said of it where
# a rank has no record or was not asked for; what is missing, what there is not and what was left out of the
# question is said.
. "$(dirname "$0")/../../lib/case.sh"
cd "$TMP"
python3 "$ROOT/test/lib/late_logs.py" logs 20
show() { # EXIT_CODE options...
  rc=0; "$BUILD/nccl-inspector" show "${@:2}" >text 2>err || rc=$?
  [ $rc = "$1" ] || { echo "show ${*:2}: $rc"; cat text err; exit 1; }
}
has() { grep -qE -- "$2" "$1" || { echo "no '$2' in:"; cat text err; exit 1; }; }
hasnt() { ! grep -qE -- "$2" "$1" || { echo "'$2' in:"; cat text err; exit 1; }; }
show 0 --comm world --sn 7 logs # each of 1 ms, of rank 2 0.2 ms
has text 'AllReduce number 7 on communicator 0x5d1c7e90aa4101 \(world\), 4 of 4 ranks'
has text 'rank 2 on node-1 came last: its kernel took 200 us, the longest one 1.00 ms, which waited 800 us of that for it'
has text '^ +2 node-1 .* 800 us +200 us kernel_gpu .* came last$'
hasnt text 'without a record'
show 0 --comm 0x5d1c7e90aa4101 --sn 3,7-8 --json logs
python3 - <<'P'
import json
o = json.load(open("text"))["operations"]
assert ([x["sn"] for x in o] == [3, 7, 8] and
        all(x["last_rank"] == 2 and x["waited_ns"] == 800000 and len(x["ranks"]) == 4 for x in o)), o
P

# The others of the ranks that are there are no measure: the one that is missing may have come later still.
mkdir part && cp logs/*700[013].jsonl part
show 0 --comm world --sn 7 part
has text 'without a record: rank 2, so who came last cannot be told'
hasnt text 'came last:'
show 0 --comm world --sn 7 --json part
hasnt text 'last_rank'
rm part/*7001.jsonl
show 0 --comm world --sn 7 part
has text 'without a record: ranks 1, 2, so'
show 0 --comm world --sn 7 --rank 0-2 part
has text 'without a record: ranks 1, 2, so'
show 0 --comm world --sn 7 --rank 0 logs
hasnt text 'without a record|came last'

show 1 --comm worlds --sn 7 logs
has err '--comm worlds: there is none in these logs; there are world \(0x5d1c7e90aa4101\)'
hasnt err '--sn 7'
has err 'no such operation in these logs; one that never finished is told by nccl-inspector hang'
show 1 --comm world --sn 20 logs
has err '--sn 20: there is none in what the other filters leave; the lowest is 0, the highest 19'
show 64 logs
has err 'give --comm NAME --sn N; nccl-inspector check says which communicators there are'
show 64 --comm world logs
has err 'give its number with --sn N'
show 64 --comm world --sn 9-3 logs
has err '--sn=9-3: want numbers and ranges'

# Partial results are files, and a file of groups is no log.
fails() { # TEXT command...
  "$BUILD/nccl-inspector" "${@:2}" >text 2>err || true
  has err "$1"
}
fails 'logs: a folder; which partial results' merge logs
fails '--groups none: No such file' summary logs --groups none --output-dir out
fails 'is not written: /proc/none: ' check logs --reindex --index-dir /proc/none
