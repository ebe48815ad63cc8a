#!/usr/bin/env bash
# What NCCL_INSPECTOR_SAMPLE leaves out is exactly what its rule says, counted, and in the roll-ups with its
# times.
. "$(dirname "$0")/../../host/lib.sh"
S=NCCL_INSPECTOR
US=${S}_DUMP_THREAD_INTERVAL_MICROSECONDS
all=(init 0 ops 0 3000 p2p 0 700 self 0 60 init 1 ops 1 20)

for n in 2 1000000; do
  run "SAMPLE 1/$n" ${S}_SAMPLE=1/$n "${all[@]}" fin 0 fin 1
  [ $n = 1000000 ] || verify --sample $n
  checked 0 --partial
done
# Values, not counts: with nothing but kernel times the roll-ups' sums must be those of the truth.
run "SAMPLE 1/7, kernel times" ${S}_SAMPLE=1/7 $US=500 init 0 duet 0 5000 20000 duetp 0 1000 20000 exit 0
verify --sample 7
checked 0 --partial
# A roll-up line that is gone is noticed.
python3 - "$TMP/logs" <<'PY'
import glob, gzip, sys
path = glob.glob(sys.argv[1] + "/*")[0]
lines = gzip.open(path, "rt").readlines()
gone = next(i for i, l in enumerate(lines) if '"rollup"' in l)
gzip.open(path, "wt").writelines(lines[:gone] + lines[gone + 1:])
PY
checked 2 --partial
grep -q 'in the roll-ups than' "$TMP/check" || fail "$CASE: check does not see a missing roll-up"
# Every second: several lines for each size, which add up all the same.
run "ROLLUP_SECONDS 1" ${S}_SAMPLE=1/3 ${S}_ROLLUP_SECONDS=1 $US=10000 init 0 paced 0 1500 500 fin 0
verify --sample 3
grep -q '"from_ns"' <(zcat "$TMP"/logs/*.gz) || fail "$CASE: no roll-ups"
python3 - "$TMP/logs" <<'PY' || fail "$CASE: not several periods of whole seconds"
import glob, gzip, json, sys
ends = {json.loads(l)["rollup"]["to_ns"] // 10**9 for p in glob.glob(sys.argv[1] + "/*")
        for l in gzip.open(p, "rt") if '"rollup"' in l}
sys.exit(len(ends) < 3)
PY
run "ROLLUP_SECONDS 0" ${S}_ROLLUP_SECONDS=0 ${S}_SAMPLE=1/10 "${all[@]}" fin 0 fin 1
verify --sample 10 --no-rollup
run "CONTROL_LINES=0" ${S}_DUMP_CONTROL_LINES=0 ${S}_SAMPLE=1/10 "${all[@]}" fin 0 fin 1
verify --sample 10 --no-control
# Records expire, their roll-ups stay, in a file of their own.
run "DIR_MAX_BYTES=30k" ${S}_DIR_MAX_BYTES=30k $US=500 init 0 duet 0 9000 3000 fin 0
verify --lost 1-9000
checked 2
[ "$(find "$TMP/logs" -name '*.rollup.jsonl.gz' | wc -l)" = 1 ] || fail "$CASE: $(ls "$TMP/logs")"
for f in "$TMP"/logs/*; do
  case $f in *.rollup.*) continue ;; esac
  ! zgrep -q '"rollup"' "$f" || fail "$CASE: roll-ups in $f, which may expire"
done
# A process that leaves without finalize says them, too.
run "roll-ups apart, exit" ${S}_DIR_MAX_BYTES=10m ${S}_SAMPLE=1/3 "${all[@]}" exit 0
verify --sample 3
checked 0 --partial
finish
