#!/usr/bin/env bash
# What every command says to wrong input: the path or the value by name, what is accepted, and the promised
# exit code.
. "$(dirname "$0")/../../lib/case.sh"
inspector=$BUILD/nccl-inspector
cd "$TMP"
mkdir empty boxes
"$BUILD/test/host/loggen" logs --ranks 2 --node 2 --ops 20 --format ours

says() { # exit code, text that stderr or stdout has, command...
  local want=$1 text=$2 rc=0
  shift 2
  "$inspector" "$@" >out 2>&1 </dev/null || rc=$?
  [ "$rc" = "$want" ] || { echo "exit $rc, wanted $want: $*"; cat out; exit 1; }
  grep -qF -e "$text" out || { echo "does not say \"$text\": $*"; cat out; exit 1; }
}

says 64 "there is no command 'chek'" chek logs
says 64 "Did you mean check?" chek logs
for group in counters session; do
  says 64 "nccl-inspector $group COMMAND [OPTION...]" $group
  for help in "$group --help" "$group -h" "help $group"; do
    # shellcheck disable=SC2086
    says 0 "nccl-inspector $group COMMAND [OPTION...]" $help
  done
done
says 0 "  counters record " counters --help
says 64 "unrecognized option '--nonsense'" counters --nonsense
says 64 "there is no command 'counters lst'" counters lst
says 64 "--most=abc: want a size, such as 64M or 2G" snapshot --output copies --most abc
# A folder of logs in place of a command is summary, and it is said; other paths are not.
says 0 "nccl-inspector: logs is no command but a folder of logs: this is nccl-inspector summary logs" logs \
  --output-dir by-folder --no-html --no-plots
"$inspector" summary logs --output-dir by-name --no-html --no-plots >/dev/null
diff -r -x output.log by-folder by-name ||
  { echo "nccl-inspector LOGS is not nccl-inspector summary LOGS"; exit 1; }
mkdir -p above/job
cp logs/* above/job/
says 0 "above is no command but a folder of logs" above --output-dir by-above --no-html --no-plots
says 64 "there is no command 'empty'; no log lies in the folder of that name (*.log, " empty
one=$(find logs -name '*.log' | head -n 1)
says 64 "for the file of that name: $INSPECTOR summary $one;" "$one"
says 64 "there is no command 'nowhere'; commands are: run doctor hang" nowhere
# No logs: each input by name.
for c in check summary pools trace; do
  says 1 'nowhere: No such file or directory' $c nowhere
  says 1 'empty: no log files in it (*.log, ' $c empty
  says 64 'which logs?' $c
done
says 0 "nccl-inspector recover: empty: holds neither logs (" recover empty --box-dir boxes
says 1 "--coll AllReduce: there is none in what the other filters leave" summary logs --rank 7 --coll AllReduce \
  --output-dir none --no-html --no-plots
for c in recover hang 'snapshot --output copies'; do
  # shellcheck disable=SC2086
  says 1 'nowhere: No such file or directory' $c nowhere --box-dir boxes
done
# An index that is not to be looked at, and one that is to be made or lies elsewhere.
for c in check summary show\ --comm=x\ --sn=1 trace hang; do
  for o in --reindex --index-dir=boxes; do
    # shellcheck disable=SC2086
    says 64 "${o%=*} does not go with --no-index: leave out one of them" $c logs $o --no-index
  done
done
# Files that are no logs, and logs without a line: no page of nothing is made of them.
mkdir nothing
: >nothing/a.jsonl.gz
printf 'root:x:0:0\nbin:x:1:1\n' >passwd
says 1 'nothing to read: 1 file, and not a line in it (nothing/a.jsonl.gz)' summary nothing
says 1 'no line of an inspector is in this file, but 2 other lines (passwd:1: bad_json): give the logs of a job' summary passwd
[ ! -e nothing-analysis ] || { echo "summary of nothing has written something"; exit 1; }
# What is no plain file, and bytes that a terminal would obey.
mkdir odd
cp logs/*0.log odd/
mkfifo odd/pipe.log
echo hello >"$(printf 'odd/red\033[31m.log')"
says 2 'odd/pipe.log: not a plain file' check odd
says 1 'odd/pipe.log: not a plain file' pools odd
says 2 'odd/red?[31m.log:1: bad_json' check odd
says 2 'odd/red?[31m.log:1: bad_json' trace odd -o odd.json
! grep -q "$(printf '\033')" out
# One file of a job: the ranks of the job are missing, not those of a communicator of hash 0.
NCCL_PROFILER_PLUGIN=$BUILD/libnccl-profiler-inspector.so NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_BLACKBOX=0 \
  NCCL_INSPECTOR_DUMP_DIR=job "$BUILD/nccl-sim" --job 1x2 --procs --iterations 2 --quiet
one=$(find job -name '*.gz' | head -n 1)
says 2 'the job: 1 of 2 ranks' check "$one"
! grep -q 'communicator 0x0:' out
says 2 'in what could be read' pools "$one" odd
# trace
says 1 'nothing to draw' trace logs --coll allreduces
[ ! -e logs-trace.json.gz ]
says 1 '.: Is a directory' trace logs -o .
for o in 9-3 -1 abc 0- ''; do says 64 "--rank=$o: want ranks and ranges" trace logs "--rank=$o"; done
says 64 '--coll=,: want names' trace logs --coll=,
# ctl: what a rank would refuse.
for t in 'events nix' 'events ,' 'events coll,-nix' 'sample 2' 'sample 1/0' 'sample 1/1000001' 'sample 1/5x' \
  'mark  ' 'flush later' \
  'verbose maybe' 'preset heavy' 'do it'; do
  says 64 "\"$t\": " ctl logs "$t"
done
[ ! -e logs/nccl-inspector.control ]
for t in 'events coll,p2p' 'events deep,-steps' 'events all' 'events none' 'sample 1/1000000' 'mark x' flush \
  'flush now'; do
  says 2 "nccl-inspector.control: $t" ctl logs "$t" # a job that has ended
done
says 0 'no log lies in empty itself' ctl empty flush
echo "every wrong input is named"
