#!/usr/bin/env bash
# Logs, black boxes, paths and arguments full of text that steers terminals and spreadsheets: nothing of it
# comes out of any command as it went in, in no stream, no text file, no cell, no file name.
. "$(dirname "$0")/../../lib/hang.sh"
INSPECTOR=$(realpath "$INSPECTOR") tool="python3 $PWD/test/lib/text_hostile.py"
out=$TMP/out n=0
evil=$($tool name; printf x) evil=${evil%x}
mkdir -p "$out" "$TMP/$evil" "$TMP/plain-hang"
say() { # EXPECTED-CODES NAME[.json] COMMAND ARGS...: its streams into $out
  local want=$1 name=$2 rc=0
  shift 2
  n=$((n + 1))
  (cd "$TMP/$evil" && timeout 60 "$INSPECTOR" "$@") >"$out/$n-$name" 2>"$out/$n-$name.err" || rc=$?
  [[ " $want " = *" $rc "* ]] ||
    { fail "$name: exit code $rc, $want expected"; tail -n 5 "$out/$n-$name.err" | cat -v; }
}

# ---- logs of a job of two nodes, of two that hang, and of one that was killed with its black boxes ----
export NCCL_INSPECTOR_ENABLE=1
NCCL_INSPECTOR_EVENTS=all NCCL_INSPECTOR_DUMP_DIR=$TMP/plain NCCL_INSPECTOR_BLACKBOX=0 SLURM_JOB_ID=$evil \
  timeout 50 "$SIM" \
  --quiet --plugin "$PLUGIN" --job 2x2 --procs --iterations 12 --set straggler=1 --set straggler_ms=3 \
  >/dev/null
python3 test/lib/hang_logs.py "$TMP/plain-hang" AllReduce AllGather
logs=$TMP/$evil/logs stuck=$TMP/$evil/stuck
$tool logs "$TMP/plain" "$logs"
$tool logs "$TMP/plain-hang" "$stuck"

for options in "" "--all" "--quiet"; do say 2 "check$options" check "$logs" $options; done
say 2 check.json check "$logs" --json
say 2 pools pools "$logs"
say 2 pools.json pools "$logs" --json
say 2 trace trace "$logs"
say 2 trace-out.json trace "$logs" -o -
say 2 trace-said.json trace "$logs" --json -o "$TMP/$evil/t.json"
say 3 hang hang "$stuck" --box-dir "$TMP/$evil"
say 3 hang-all hang "$stuck" --box-dir "$TMP/$evil" --all
say 3 hang.json hang "$stuck" --box-dir "$TMP/$evil" --json
say 2 summary summary "$logs" --output-dir "$TMP/$evil/summary" --keep-scripts --plot-format svg
say 2 summary-default summary "$logs" --no-plots --no-html --dataset
say 2 summary.json summary "$logs" --output-dir "$TMP/$evil/second" --no-plots --no-html --json
say 2 nccl-tests summary "$logs" --output-dir "$TMP/$evil/third" --no-plots --no-html --format nccl-tests
say "0 1 2" compat summary "$logs" --output-dir "$TMP/$evil/fourth" --compat --no-plots
for f in summary second third fourth logs-analysis; do
  [ -d "$TMP/$evil/$f" ] && mv "$TMP/$evil/$f" "$out/"
done
mv "$TMP/$evil"/*.json "$TMP/$evil"/*.json.gz "$out/" || fail "no timeline"
ls "$out"/summary/summary/*_A*AAA.svg "$out"/summary/summary/*/*/*.svg >"$TMP/pictures" 2>&1 ||
  fail "a function with a long name has no picture"

# ---- arguments and environments ----
for command in check pools trace summary hang recover snapshot doctor ctl; do
  say 64 "$command-option" "$command" "--no$evil"
done
for command in check pools trace summary recover "hang --box-dir $TMP"; do
  say 1 "${command%% *}-missing" $command "$evil/none"
done
say 64 command "$evil"
say 64 expect check "$logs" --expect "$evil"
say 64 rank trace "$logs" --rank "$evil"
say 64 since summary "$logs" --since "$evil"
say "1 64" ctl ctl "$TMP/$evil" "$evil"
say "1 64" ctl-none ctl "$TMP/$evil/none" off
(
  export NCCL_PROFILER_PLUGIN="$TMP/$evil/plugin.so" NCCL_INSPECTOR_DUMP_DIR="$TMP/$evil/d" \
    "NCCL_INSPECTOR_$evil=1"
  export NCCL_INSPECTOR_POOL_GROW="$evil" LD_LIBRARY_PATH="$TMP/$evil" SLURM_JOB_ID="$evil"
  say "0 2" doctor doctor --no-sim
  say "0 2" doctor.json doctor --no-sim --json --nccl "$TMP/$evil/libnccl.so.2"
  NCCL_PROFILER_PLUGIN=$(realpath "$PLUGIN") say "0 2" doctor-plugin doctor --no-sim
)
n=100

# ---- black boxes of a killed job ----
cat >"$TMP/kill.scn" <<'S'
set ranks=2 procs=1
comm world label=world
coll world func=AllReduce bytes=1m repeat=200
exit how=sigkill
S
mkdir "$BOXES/$evil"
NCCL_INSPECTOR_BLACKBOX="$BOXES/$evil" NCCL_INSPECTOR_DUMP_DIR="$TMP/$evil/killed" \
  timeout 50 "$SIM" --quiet --plugin "$PLUGIN" --scenario "$TMP/kill.scn" >/dev/null 2>&1 || true
boxes=$BOXES/$evil
printf 'no box' >"$boxes/nccl-inspector-$(tr -d / <<<"$evil")-pid4711-0123456789abcdef.box"
say "0 2 3 4" hang-boxes hang "$boxes" --box-dir "$TMP/$evil"
say "0 1 2" snapshot snapshot "$boxes" --output "$TMP/$evil/copies"
say "0 1 2" snapshot-box-dir snapshot --box-dir "$boxes" --output "$TMP/$evil/copies2"
say "0 2" recover recover "$boxes" "$TMP/$evil/killed" --output "$TMP/$evil/parts"
say "0 2" recover.json recover "$boxes" --output "$TMP/$evil/parts2" --json

$tool look "$out" >"$TMP/found" ||
  { fail "hostile text came through"; head -n 40 "$TMP/found" | cut -c1-300; }
tail -n 1 "$TMP/found"
finish
