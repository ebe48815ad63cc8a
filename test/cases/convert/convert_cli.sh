#!/usr/bin/env bash
# convert: every record of the logs is in the .pfw.gz files and in the bulk lines, with the values of the log;
# members end at line ends; the same bytes whatever --jobs; ours, NVIDIA's, rotated logs, hostile names;
# nothing is left where it fails.
. "$(dirname "$0")/../../lib/case.sh"
cd "$TMP"
inspector=$BUILD/nccl-inspector
"$BUILD/test/host/loggen" ours --ranks 6 --node 3 --ops 400 --format ours --comm-name --p2p 10 --gzip \
  --member-lines 100
"$BUILD/test/host/loggen" nvidia --ranks 4 --node 2 --ops 100 --format v4.3
python3 "$ROOT/test/lib/late_logs.py" late 50
# A process with two files, a second process of the same name in another folder, names that would break
# something.
mkdir -p odd/a odd/b
f=late/node-0-pid7000.jsonl
head -n 20 $f >odd/a/x.jsonl && { head -n 1 $f; tail -n +21 $f; } >odd/a/x.1.jsonl
sed 's/"hostname":"node-1"/"hostname":"q\\"\\u0001\\u00e4"/; s/"comm_name":"world"/"comm_name":"\/dev\/w\\\\"/' late/node-1-pid7002.jsonl >odd/b/x.jsonl

convert() {
  rc=0; "$inspector" convert "$@" >out.txt 2>err.txt || rc=$?; [ $rc = 0 ] || [ $rc = 2 ] ||
    { cat err.txt; exit 1; }
}
for logs in ours nvidia late odd; do
  for jobs in 1 3; do
    convert --pfw $logs-pfw$jobs --jobs $jobs $logs
    convert --bulk $logs$jobs.ndjson --jobs $jobs $logs
  done
  diff -r $logs-pfw1 $logs-pfw3
  cmp "${logs}1.ndjson" "${logs}3.ndjson"
done
convert --bulk ours.ndjson.gz ours
zcat ours.ndjson.gz | cmp - ours1.ndjson
python3 "$ROOT/test/lib/verify_convert.py" ours nvidia late odd

convert --bulk some.ndjson --coll AllReduce --rank 0-1 ours
[ "$(grep -c '"coll":"AllReduce"' some.ndjson)" = "$(($(wc -l <some.ndjson) / 2))" ]
! grep -q '"rank":[2-5],' some.ndjson
grep -q 'left out by the options' out.txt

fails() { # text command...: exit code 1, the text on standard error, nothing left behind
  rc=0
  "$inspector" convert "${@:2}" >/dev/null 2>err.txt || rc=$?
  [ $rc = 1 ] && grep -q "$1" err.txt || { echo "want 1 and '$1': $rc"; cat err.txt; exit 1; }
}
fails 'not empty' --pfw ours-pfw1 ours
fails 'nothing to write' --pfw none --coll Nobody ours
[ -z "$(ls -A none)" ]
fails 'nothing to write' --bulk none.ndjson --coll Nobody ours
[ ! -e none.ndjson ] && [ -z "$(find . -maxdepth 1 -name '.tmp*')" ]
rc=0; "$inspector" convert ours 2>err.txt || rc=$?
[ $rc = 64 ] && grep -q 'give one of' err.txt
