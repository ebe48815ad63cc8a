#!/usr/bin/env bash
# run with a job: five lines for a healthy one and for one with a late rank, its page, earlier logs in the
# same folder, counters beside it, and `run` that a launcher has started on each rank.
. "$(dirname "$0")/../../lib/sim.sh"
need "$INSPECTOR" python3
cd "$TMP"
export NCCL_INSPECTOR_BLACKBOX=$BOXES SLURM_JOB_ID=4711
stop() { cat err 2>/dev/null || true; fatal "$@"; }
run() { # ARG...: what is said in err
  local rc=0
  "$INSPECTOR" run "$@" >screen 2>err </dev/null || rc=$?
  [ $rc = 0 ] || stop "run $*: exit code $rc"
}
line() { sed -n "${1}p" err; }
five() { # OUT HEAD FIRST: five lines and no more, and the page is there
  [ "$(wc -l <err)" = 5 ] || stop "$1: not five lines"
  [[ $(line 1) == "nccl-inspector run: "$2 ]] || stop "$1: not $2"
  [[ $(line 2) == "  first   "$3 ]] || stop "$1: not $3"
  [ "$(line 3)" = "  report  $1/report/report.html" ] && grep -q '<html' "$1/report/report.html" ||
    stop "$1: no page"
  [[ $(line 4) == "  logs    $1/logs ("* ]] || stop "$1: where the logs are"
  [[ $(line 5) == "  next    $INSPECTOR "*" $1/logs"* ]] || stop "$1: what to do next"
}
same() { # OUT: in the words of check and of summary
  "$INSPECTOR" check --quiet "$1/logs" >check || true
  case $(line 1) in
    *', COMPLETE') [ "$(cat check)" = COMPLETE ] || stop "check says: $(cat check)" ;;
    *) [ "INCOMPLETE: $(line 1 | sed 's/.*, INCOMPLETE: //')" = "$(cat check)" ] ||
      stop "check says: $(cat check)" ;;
  esac
  "$INSPECTOR" summary --json --no-html --no-plots --no-csv --no-parquet --output-dir "$1.again" "$1/logs" \
    2>&1 |
    python3 -c 'import json, sys
s = [f["text"] for f in json.load(sys.stdin)["findings"] if f.get("class") != "note"]
said = sys.argv[1]
assert said == (s[0] if s else "no rank, host or communicator stands out"), (said, s)' "$(line 2 | sed 's/^  first   //')" || stop "summary says otherwise"
  eval "$(line 5 | sed 's/^  next    //')" >next 2>&1 || # pasted as it is
    stop "what to do next: $(cat next)"
}

# ---- healthy, and with a rank that is late ----
run --out well -- "$SIM" --scenario demo --procs --quiet --set slow_gpu_percent=0
five well 'job 4711, nccl-sim: 2 hosts, 16 ranks, * s, COMPLETE' 'no rank, host or communicator stands out'
same well
run --out late/one -- "$SIM" --scenario demo --procs --quiet
five late/one 'job 4711, nccl-sim: 2 hosts, 16 ranks, * s, COMPLETE' \
  'rank 11 on sim-node1 takes *it costs * ms, * % of the run*'
same late/one

# ---- a folder of the user's, with the logs of an earlier job in it: these are not judged again ----
rm -rf mine
cp -r late/one/logs mine
NCCL_INSPECTOR_DUMP_DIR=mine run --out again -- "$SIM" --job 1x2 --iterations 5 --quiet
[[ $(line 1) == *'stays as you have set it: NCCL_INSPECTOR_DUMP_DIR=mine' ]] || stop "what stays is not said"
[[ $(line 2) == *'1 host, 2 ranks, '*COMPLETE ]] || stop "with earlier logs: $(line 2)"
grep -q "^  logs    mine (" err || stop "where they are"
[ ! -e again/logs ] || stop "a folder for logs that are elsewhere"
NCCL_INSPECTOR_DUMP_DIR=by/%h-%j/%p run --out other -- "$SIM" --job 1x2 --iterations 5 --quiet
grep -q "COMPLETE" err && grep -qF '  logs    by/*-4711/* (' err || stop "a folder with tokens"

# A log that was removed meanwhile leaves its inode to a new one, which is ours.
old=$(find mine -name '*.jsonl.gz' | head -n 1)
# shellcheck disable=SC2016
NCCL_INSPECTOR_DUMP_DIR=mine run --out reused -- sh \
  -c 'cat by/*/*/*.jsonl.gz >"$1" && mv "$1" mine/new-pid1-1790000000.jsonl.gz' _ "$old"
[[ $(line 2) == *'1 host, 2 ranks, '*COMPLETE ]] || stop "a new log with the inode of an old one: $(line 2)"

# ---- no room for a page: it is not named ----
trap '' XFSZ # else the file's limit would end us
(ulimit -f 100 && run --out small -- "$SIM" --job 1x2 --iterations 5 --quiet)
trap - XFSZ
[ ! -e small/report/report.html ] && [ -e small/report/summary/summary.json ] ||
  stop "there is room for a page, or for nothing"
[ "$(line 3)" = '  report  small/report/summary/summary.json, and no page: small/report/output.log says why' ] || stop "without a page: $(line 3)"
grep -q 'report.html: File too large' small/report/output.log || stop "output.log does not say why"
[ "$(tail -n 1 err)" = 'nccl-inspector run: small/report/report.html: File too large' ] ||
  stop "nor the last line: $(tail -n 1 err)"
[ "$(grep -c '^  logs ' err)" = 1 ] || stop "the folder is said twice"

# ---- without a name: a folder of its own, each time ----
run -- "$SIM" --job 1x2 --iterations 5 --quiet
run -- "$SIM" --job 1x2 --iterations 5 --quiet
[ "$(find . -path './nccl-inspector-2*/report/report.html' | wc -l)" = 2 ] ||
  stop "folders of their own: $(ls)"

# ---- a report that cannot be written takes nothing else away ----
mkdir -p noreport
touch noreport/report
run --out noreport -- "$SIM" --job 1x2 --iterations 5 --quiet
grep -q 'noreport/report: ' err && grep -q '^  logs    noreport/logs (' err ||
  stop "why there is no report, and where the logs are"

# ---- counters ----
python3 "$ROOT/test/lib/counters/counter_trees.py" "$TMP/tree" mlx5 mlx5_0 -- host
NI_ROOT=$TMP/tree run --out counted --counters -- "$SIM" --job 1x2 --iterations 20 --quiet
five counted '*COMPLETE' '*'
ls counted/logs/*-counters-*.jsonl.gz >screen || stop "no file of counters"
python3 - counted/report/summary/summary.json <<'P' || stop "counters are not in the summary"
import json, sys
s = json.load(open(sys.argv[1]))
assert s.get("counters"), sorted(s)
P
NI_ROOT=$TMP/tree run --out nothing --counters -- true
grep -q 'no rank of true has loaded' err || stop "a file of counters is no log of a rank"

# ---- started on each rank ----
rank() { # NUMBER COMMAND...: rank NUMBER of two, by torchrun's variables
  local n=$1
  shift
  RANK=$n LOCAL_RANK=$n WORLD_SIZE=2 MASTER_ADDR=n0 MASTER_PORT=29500 TORCHELASTIC_RUN_ID=none "$@"
}
rank 1 "$INSPECTOR" run -- sh -c 'echo $NCCL_INSPECTOR_DUMP_DIR; exit 3' >screen 2>err &&
  stop "rank 1: its code is 0"
[ ! -s err ] && [ "$(cat screen)" = "$TMP/nccl-inspector-n0.29500/logs" ] &&
  [ ! -e nccl-inspector-n0.29500 ] || stop "rank 1 is not silent: $(cat screen)"
for v in SLURM_PROCID OMPI_COMM_WORLD_RANK RANK PMIX_RANK; do
  env "$v=1" "$INSPECTOR" run --out "$TMP/x" -- true 2>err && [ ! -s err ] && [ ! -e x ] ||
    stop "$v=1 is not silent"
done
# Rank 0 waits for the others: here for a process that writes its log behind it.
rank 0 "$INSPECTOR" run --wait 45 -- sh -c 'echo started' >screen 2>err & pid=$!
wait_for 30 grep -q started screen || stop "rank 0 does not begin"
sleep 1
[ ! -s err ] || stop "rank 0 does not wait"
rank 1 "$INSPECTOR" run -- env -u RANK "$SIM" --job 1x2 --iterations 5 --quiet >screen 2>&1
[ ! -s screen ] || stop "rank 1 speaks: $(cat screen)"
wait $pid || stop "rank 0: $?"
five nccl-inspector-n0.29500 '*1 host, 2 ranks, *COMPLETE' '*'
# It waits no longer than it is told, and says what is missing.
rank 0 "$INSPECTOR" run --out short --wait 1 -- true 2>err || stop "rank 0 alone"
grep -q 'no rank of true has loaded' err || stop "rank 0 alone does not say so"
# No name in common, no --out: refused by the one who speaks.
PMI_RANK=0 PMI_SIZE=2 "$INSPECTOR" run -- touch ran 2>err && stop "no folder in common"
grep -q -- '--out is missing: the ranks have no name in common' err && [ ! -e ran ] ||
  stop "why there is no folder"
# A batch script has SLURM_PROCID=0, and is no rank.
SLURM_PROCID=0 SLURM_NTASKS=2 run -- "$SIM" --job 1x2 --iterations 5 --quiet
grep -q '  report  nccl-inspector-2' err || stop "a batch script is taken for a rank"
finish
