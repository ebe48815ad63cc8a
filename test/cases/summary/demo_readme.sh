#!/usr/bin/env bash
# What README.md shows of the demo is what the demo says: the job of scripts/demo.sh, by the same command.
# Words, hosts, ranks and the verdict are equal; times and shares may differ a little, since clocks of GPUs
# are related to those of CPUs by measurement.
. "$(dirname "$0")/../../lib/case.sh"
[ -x "$SIM" ] && [ -e "$PLUGIN" ] || skip "no simulator in this build"
[ -z "$VARIANT" ] || skip "a sanitizer finds no more in it"
run=$(grep -A 1 '"${bin}"nccl-inspector run ' scripts/demo.sh | tr -d '\\\n')
[[ $run == *'nccl-inspector run --out "$out" -- '*nccl-sim*--truth* ]] ||
  fatal "scripts/demo.sh: no nccl-inspector run -- nccl-sim"
mkdir -p "$TMP/out/demo"
(cd "$TMP" && env -u SLURM_JOB_ID bin="$BUILD/" out=out/demo bash -c "${run}") >"$TMP/text" 2>&1 || fatal "the demo's job: $(tail -n 3 "$TMP/text")"
[ -s "$TMP/out/demo/report/report.html" ] || fail "no page"
python3 - README.md "$TMP/text" "$BUILD/" <<'P'
import re, sys
readme, said = (open(p).read() for p in sys.argv[1:3])
said = said.replace(sys.argv[3] + "nccl-inspector", "build/nccl-inspector") # as it was called
block = re.search(r"^    (nccl-inspector run: job demo.*\n(?:^    .*\n)*)", readme, re.M)
assert block, "README.md does not show what the demo says"
shown = " ".join(block.group(1).split())
said = " ".join(said.split())
number = re.compile(r"(\d+(?:\.\d+)?)( %| ms| s\b| kB)?")
# Of the share of own time, the cost and its interval, the bytes of logs; whole numbers without a unit are
# names and counts.
NEAR = {" %": lambda x, y: abs(x - y) <= 3, " ms": lambda x, y: abs(x - y) <= 0.05 * x,
        " s": lambda x, y: abs(x - y) <= 0.05 * x,
        " kB": lambda x, y: abs(x - y) <= 0.2 * x}
skeleton = lambda text: number.sub(lambda m: "#" + (m.group(2) or "=" + m.group(1)), text)
assert skeleton(said) == skeleton(shown), f"README.md:\n{shown}\nthe demo:\n{said}"
for x, y in zip(number.finditer(shown), number.finditer(said)):
    if x.group(2):
        assert NEAR[x.group(2)](float(x.group(1)),
                                float(y.group(1))), f"{x.group()} in README.md, {y.group()} in the demo"
for page in re.findall(r"`(out/demo/\S+\.html)`", readme):
    assert page in said, f"README.md: {page} is not where the demo's page is"
P
finish
