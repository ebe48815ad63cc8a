#!/usr/bin/env bash
# The Slurm kit on a real slurmctld and two real slurmds, with nccl-sim as the job. Jobs that end, that are
# cancelled, that reach their time limit and that hang leave a verdict and lose nothing; what the user has set
# stays; a user who wants to harm root gets nowhere; no node goes down.
. "$(dirname "$0")/../../lib/slurm.sh"
INSPECTOR=$BUILD/nccl-inspector
kit=$TMP/share/nccl-inspector/slurm # as installed
mkdir -p "$kit" "$TMP/user" "$TMP/bin" "$TMP/lib"
chown nobody "$TMP/user"
cp packaging/slurm/* "$kit/"
cp "$INSPECTOR" "$BUILD/nccl-sim" "$TMP/bin/"
cp "$BUILD/libnccl-profiler-inspector.so" "$TMP/lib/"
cp test/scenarios/hang_mismatch.scn "$TMP/bin/"
cat >"$TMP/bin/work.scn" <<'S'
# 5,000 operations a rank, one that does not end, and rest
set ranks=2 procs=1 time_scale=0.01
comm world label=world
coll world func=AllReduce bytes=1m repeat=5000
sync world
coll world func=AllGather bytes=1m hang=all
sleep ms=600000
S
cat >"$kit/nccl-inspector.conf" <<C
NI_COMMAND=$TMP/bin/watched
NI_DUMP_DIR=$TMP/user/%u/logs-%j
NI_LOG=$TMP/epilog.log
C
cat >"$TMP/bin/watched" <<C
#!/bin/bash
caps=\$(sed -n 's/^CapEff:\t//p; s/^NoNewPrivs:\t//p' /proc/self/status | xargs)
fds=
for f in 0 1 2 3 4 5 6 7 8 9; do [ ! -e /proc/\$\$/fd/\$f ] || fds=\$fds,\$f; done
echo "\$(id -u) \$(id -g) \$(id -G) \$caps \${fds#,}" >>$TMP/user/rights
exec $TMP/bin/nccl-inspector "\$@"
C
chmod 755 "$TMP/bin/watched"
slurm_begin 2 TaskProlog="$kit/task_prolog.sh" Epilog="$kit/epilog.sh"
sim="$TMP/bin/nccl-sim --procs --quiet"

# job [OPTION of sbatch...] -- LINE OF THE SCRIPT...
job() {
  local -a options=()
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  batch --nodes=1 "${options[@]}" <<<"$(printf '%s\n' '#!/bin/bash' "$@")"
}
asked=--export=ALL,NCCL_INSPECTOR_ENABLE=1
logs() { echo "$TMP/user/nobody/logs-$1"; }
verdict() { head -n 1 "$(logs "$1")/nccl-inspector-verdict.txt" 2>/dev/null; }
judged() { wait_for "${2:-60}" verdict "$1" || { fail "job $1 ($(state "$1")): no verdict; the epilog's log:"; cat "$TMP/epilog.log"; return 1; }; }
says() { verdict "$1" | grep -qE -- "$2" || fail "job $1: '$2' is not in its verdict: $(verdict "$1")"; }
records() {
  "$INSPECTOR" check "$(logs "$1")" --json 2>/dev/null |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["operations"])'
}
# ready JOB: of each of its two ranks 5,000 operations are finished, and the one that does not end is in
# flight.
ready() {
  local boxes
  boxes=$(on_node "$(node_of "$1")" "$INSPECTOR" boxes --json) || return 1
  JOB_ID=$1 python3 -c 'import json, os, sys
b = [b for b in json.load(sys.stdin)["boxes"] if b["job_id"] == os.environ["JOB_ID"]]
sys.exit(not (len(b) == 2 and all(x["finished"] == 5000 and x["in_flight"] == 1 for x in b)))' <<<"$boxes"
}
node_of() { timeout 30 scontrol show job "$1" | sed -n 's/^ *NodeList=//p'; }

# Only in the black boxes: nothing is written before the end.
kept=NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=-1
job --time=1 $asked,$kept -- "srun $sim --scenario $TMP/bin/work.scn"; limited=$JOB
job $asked,$kept -- "srun $sim --scenario $TMP/bin/work.scn"; cancelled=$JOB
job $asked,$kept -- "srun $sim --scenario $TMP/bin/hang_mismatch.scn"; hung=$JOB
job --nodes=2 --ntasks-per-node=1 $asked -- "srun $sim --job 1x2 --iterations 5"; two=$JOB
# Who does not ask is not recorded; whoever has another profiler, or a folder of his own, keeps it. The name
# harms nobody.
job --job-name="\$(touch $TMP/harm); touch $TMP/harm" -- "srun env" "srun $sim --job 1x2 --iterations 1"; \
  silent=$JOB
job $asked,NCCL_PROFILER_PLUGIN=/other/libnccl-profiler-x.so -- "srun env"; other=$JOB
own="$TMP/user/a 'b; \"c"
job $asked -- "export NCCL_INSPECTOR_EVENTS=light NCCL_INSPECTOR_DUMP_DIR=$(printf %q "$own/%j")" \
  "srun $sim --job 1x2 --iterations 3" \
  "srun env"; mine=$JOB
# Whoever writes the note himself, and puts links where the epilog writes: nothing of root's is read, made or
# changed.
mkdir -m 700 "$TMP/rootdir" && echo secret >"$TMP/rootdir/file" &&
  cp -p "$TMP/rootdir/file" "$TMP/rootfile" && chmod 600 "$TMP/rootfile"
before=$(find "$TMP/rootdir" "$TMP/rootfile" -printf '%p %s %T@ %U\n')
job $asked -- "mkdir -p $TMP/user/evil $TMP/user/evil2" \
  "ln -s $TMP/rootfile $TMP/user/evil/nccl-inspector-verdict.txt" \
  "ln -s $TMP/rootdir $TMP/user/evil2/.nccl-inspector-slurm" \
  "n=/dev/shm/nccl-inspector-slurm-\$SLURM_JOB_ID-\$UID" \
  "printf '%s\n' $TMP/user/evil $TMP/user/evil2 $TMP/rootdir '/\$(touch $TMP/harm)' '/; touch $TMP/harm' -e >>\$n" \
  "srun $sim --job 1x2 --iterations 1"; evil=$JOB

wait_for 60 ended "$two" && judged "$two" && says "$two" '^COMPLETE$'
[ "$(find "$(logs "$two")/.nccl-inspector-slurm" -name 'done.*' | wc -l)" = 2 ] ||
  fail "two nodes: $(find "$(logs "$two")")"
[ "$(find "$(logs "$two")" -name '*.jsonl.gz' | sed 's,.*/,,; s/-.*//' | sort -u | xargs)" = "n1 n2" ] ||
  fail "two nodes: $(ls "$(logs "$two")")"
wait_for 60 ended "$silent" || fail "the job that does not ask has no end"
! grep -q 'NCCL_' "$TMP/user/${silent}_"*.out || fail "who does not ask has: $(grep NCCL_ "$TMP/user/${silent}_"*.out)"
[ ! -e "$(logs "$silent")" ] && [ ! -e "$TMP/harm" ] ||
  fail "who does not ask: logs, or the job's name was run"
wait_for 60 ended "$other" || fail "the job with another profiler has no end"
[ "$(grep ^NCCL_ "$TMP/user/${other}_"*.out | sort | xargs)" = "NCCL_INSPECTOR_ENABLE=1 NCCL_PROFILER_PLUGIN=/other/libnccl-profiler-x.so" ] ||
  fail "another profiler: $(grep NCCL_ "$TMP/user/${other}_"*.out)"
wait_for 60 ended "$mine" || fail "the job with a folder of its own has no end"
wait_for 60 test -s "$own/$mine/nccl-inspector-verdict.txt" &&
  [ "$(head -n 1 "$own/$mine/nccl-inspector-verdict.txt")" = COMPLETE ] ||
  fail "a folder of one's own: $(cat "$own/$mine/nccl-inspector-verdict.txt" "$TMP/epilog.log")"
grep -q "^NCCL_PROFILER_PLUGIN=$TMP/lib/libnccl-profiler-inspector.so$" \
  "$TMP/user/${mine}_"*.out || fail "the plugin that was installed with the kit is not found"
grep -q '^NCCL_INSPECTOR_EVENTS=light$' "$TMP/user/${mine}_"*.out || fail "settings of one's own are gone"

# The time limit, which slurmctld looks at every 30 s: brought forward, and looked at below.
wait_for 60 ready "$limited" || fail "the job with a time limit does not come so far"
timeout 30 scontrol update JobId="$limited" EndTime=now+1 || fail "the end of a job cannot be brought forward"

judged "$evil" && wait_for 40 test -f "$TMP/user/evil/nccl-inspector-verdict.txt" ||
  fail "links: $(cat "$TMP/epilog.log")"
[ ! -L "$TMP/user/evil/nccl-inspector-verdict.txt" ] && [ ! -e "$TMP/harm" ] &&
  [ "$before" = "$(find "$TMP/rootdir" "$TMP/rootfile" -printf '%p %s %T@ %U\n')" ] ||
  fail "links: a file of root's was touched"
! grep secret "$TMP/epilog.log" || fail "links: what root alone may read is in the log"
# The commands have run as the job's user: no capability, no group of root's, no file of root's open.
[ "$(sort -u "$TMP/user/rights")" = "65534 65534 65534 0000000000000000 1 0,1,2" ] ||
  fail "rights: $(sort -u "$TMP/user/rights")"

# Cancelled: what lay in the boxes alone is in the logs, and the boxes are gone.
wait_for 60 ready "$cancelled" || fail "the job to be cancelled does not come so far"
timeout 30 scancel "$cancelled"
judged "$cancelled" && says "$cancelled" '^DEAD .*; INCOMPLETE: 2 operations still in flight'
[ "$(records "$cancelled")" = 10000 ] || fail "cancelled: $(records "$cancelled") records of 10000"

# It hangs: 10 s are enough where calls disagree. A busy machine may have begun it late: `hang` itself says
# when they are over.
hangs() {
  local rc=0
  on_node "$(node_of "$1")" "$INSPECTOR" hang "$(logs "$1")" || rc=$?
  [ $rc = 3 ]
}
wait_for 60 hangs "$hung" || fail "hang on its node says of job $hung: $(hangs "$hung" 2>&1)"
timeout 30 scancel "$hung"
judged "$hung" && says "$hung" '^HANG \(likely\): .*rank 2 .*called AllGather'

wait_for 200 ended "$limited"
[ "$(state "$limited")" = TIMEOUT ] || fail "the time limit: $(state "$limited")"
judged "$limited" && says "$limited" '^DEAD .*; INCOMPLETE: 2 operations still in flight'
[ "$(records "$limited")" = 10000 ] || fail "time limit: $(records "$limited") records of 10000"
for n in n1 n2; do
  left=$(on_node $n find /dev/shm -name 'nccl-inspector-*')
  [ -z "$left" ] || fail "$n: left in /dev/shm: $left"
done
wait_for 20 idle 2 || fail "a node is not idle: $(sinfo -N)"
grep -vE 'Z n[12] job [0-9]+: ' "$TMP/epilog.log" && fail "the epilog's log has lines of others"
finish
