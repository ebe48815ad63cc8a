#!/usr/bin/env bash
# What README.md shows of the demo is what the demo says: the job of scripts/demo.sh, by the same command. Words, hosts, ranks and
# the verdict are equal; times and shares may differ a little, since clocks of GPUs are related to those of CPUs by measurement.
. "$(dirname "$0")/../../lib/case.sh"
[ -x "$SIM" ] && [ -e "$PLUGIN" ] || skip "no simulator in this build"
[ -z "$VARIANT" ] || skip "a sanitizer finds no more in it"
command=$(sed -n 's/^  "${bin}"nccl-sim \(.*\) --truth .*/\1/p' scripts/demo.sh)
[ -n "$command" ] || fatal "scripts/demo.sh: no nccl-sim"
# shellcheck disable=SC2086
NCCL_PROFILER_PLUGIN=$PLUGIN NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR=$TMP/logs SLURM_JOB_ID=demo "$SIM" $command --quiet
"$INSPECTOR" summary "$TMP/logs" --output-dir "$TMP/out" --no-plots --no-html --no-parquet --no-csv >"$TMP/text"
python3 - README.md "$TMP/text" <<'P'
import re, sys
readme, said = (open(p).read() for p in sys.argv[1:])
block = re.search(r"((?:^    .*\n|^\n)*^    job demo.*\n(?:^    .*\n|^\n)*)", readme, re.M)
assert block, "README.md does not show what the demo says"
shown = " ".join(block.group(1).split())
said = " ".join(said.split())
number = re.compile(r"(\d+(?:\.\d+)?)( %| ms| s\b)?")
# Of the share of own time, the cost and its interval; whole numbers without a unit are names and counts.
NEAR = {" %": lambda x, y: abs(x - y) <= 3, " ms": lambda x, y: abs(x - y) <= 0.15 * x, " s": lambda x, y: abs(x - y) <= 0.05 * x}
said = said[:len(shown) + 200]
a, b = list(number.finditer(shown)), list(number.finditer(said))[:len(list(number.finditer(shown)))]
skeleton = lambda text, upto: number.sub(lambda m: "#" + (m.group(2) or "=" + m.group(1)), text[:upto])
words = skeleton(shown, None)
assert skeleton(said, None).startswith(words), f"README.md:\n{shown}\nthe demo:\n{said}"
for x, y in zip(a, b):
    if x.group(2):
        assert NEAR[x.group(2)](float(x.group(1)), float(y.group(1))), f"{x.group()} in README.md, {y.group()} in the demo"
P
finish
