#!/usr/bin/env bash
# What a person sees: on terminals of 40, 80 and 120 columns no line is wider than that, no row of a table is
# broken, and sentences say the same words as into a pipe.
. "$(dirname "$0")/../../lib/case.sh"
inspector=$BUILD/nccl-inspector tests=$PWD/test
NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR=$TMP/logs NCCL_INSPECTOR_BLACKBOX=0 timeout 60 \
  "$BUILD/nccl-sim" --quiet \
  --plugin "$BUILD/libnccl-profiler-inspector.so" --job 2x4 --procs --iterations 30 --set straggler=1 \
  --set straggler_ms=3 >"$TMP/said" 2>&1 ||
  { cat "$TMP/said"; exit 1; }
cp -r "$TMP/logs" "$TMP/cut"
truncate -s -40 "$(find "$TMP/cut" -name '*.gz' | sort | head -n 1)"
mkdir "$TMP/stuck"
python3 test/lib/hang_logs.py "$TMP/stuck" AllReduce AllGather
cd "$TMP"

# The first column of a table, of its heads and rows; how many lines begin so is the same however narrow it
# is.
shown() { # NAME ROWS COMMAND ARGS...
  local name=$1 rows=$2 columns
  shift 2
  "$inspector" "$@" >"$name.pipe" 2>/dev/null || true
  for columns in 40 80 120; do
    python3 "$tests/lib/terminal.py" "$columns" "$inspector" "$@" >"$name.$columns" 2>&1 || true
    # A word that no terminal of that width holds (a path, a number of a list) may stand out.
    awk -v most="$columns" 'length > most {
        n = split($0, w, " "); longest = 0
        for (i = 1; i <= n; i++) if (length(w[i]) > longest) longest = length(w[i])
        if (longest < most / 2 || n > 8) print FILENAME ": " length ": " $0}' "$name.$columns" >wide
    [ ! -s wide ] || { fail "$name: lines wider than $columns"; head -n 5 wide; }
    [ "$(grep -cE "$rows" "$name.$columns")" = "$(grep -cE "$rows" "$name.pipe")" ] &&
      grep -qE "$rows" "$name.pipe" ||
      { fail "$name: other rows at $columns than $rows"; cat "$name.$columns"; }
    # Rows end where the heads end: the last column is one of numbers.
    [ "$(grep -E "$rows" "$name.$columns" | awk '{print length}' | sort -u | wc -l)" = 1 ] ||
      [ "$rows" = . ] || [[ $name = *-words ]] ||
      { fail "$name: rows of several widths at $columns"; grep -E "$rows" "$name.$columns"; }
  done
}
shown check '^(communicator  |0x)' check logs
shown check-cut '^(communicator  |0x)' check cut
shown pools '^(kind|coll|p2p) ' pools logs
shown summary '^ *([0-9.]+%|time) ' summary logs --output-dir out --no-plots --no-html
shown tests-words '^(#        size| +[0-9]+ )' summary logs --output-dir out --no-plots --no-html \
  --format nccl-tests
shown hang-words '^communicator ' hang stuck --box-dir "$TMP"
shown trace-words '^host ' trace logs -o "$TMP/t.json"
shown help-words '^  (check|hang) ' help

# The same words, and what has been left out is said.
for f in hang-words trace-words; do
  for columns in 40 120; do
    [ "$(tr -s ' \n' '\n\n' <"$f.$columns" | grep -v '[0-9]')" = \
      "$(tr -s ' \n' '\n\n' <"$f.pipe" | grep -v '[0-9]')" ] ||
      { fail "$f: other words at $columns"; diff "$f.pipe" "$f.$columns" | head -n 20; }
  done
done
grep -q '^no room for: ' summary.40 ||
  { fail "summary: nothing said of columns left out at 40"; cat summary.40; }
grep -q '^no room for: ' summary.120 && fail "summary: columns left out at 120"
# A command to paste is not broken, however narrow the terminal is.
python3 "$tests/lib/terminal.py" 40 "$inspector" summary stuck --output-dir out2 --no-plots --no-html >stuck.40 || true
grep -qxF "     next: $inspector hang stuck" stuck.40 || { fail "a command is broken at 40"; cat stuck.40; }
python3 "$tests/lib/terminal.py" 40 env -u NCCL_PROFILER_PLUGIN "$inspector" doctor >doctor.40 || true
grep -qE '^ +-> export NCCL_PROFILER_PLUGIN=/.*libnccl-profiler-inspector.so$' doctor.40 ||
  { fail "doctor's export is broken at 40"; cat doctor.40; }
# $COLUMNS is the user's word; JSON is data, whatever the terminal.
python3 "$tests/lib/terminal.py" 80 env COLUMNS=50 "$inspector" check logs | awk 'length > 50' | grep . &&
  fail "COLUMNS=50 is not obeyed"
python3 "$tests/lib/terminal.py" 40 "$inspector" check logs --json |
  cmp - <("$inspector" check logs --json) || fail "JSON is broken"
finish
