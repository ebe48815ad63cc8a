#!/usr/bin/env bash
# The package by mypy --strict, with a program as users write it; Arrow tables with the real pyarrow; the
# syntax of Python 3.9.
. "$(dirname "$0")/../../lib/python.sh"
VENV=$(test/foreign/setup.sh mypy jsonschema) || skip "no mypy and pyarrow from pip"
site=$(dirname "$("$PY" -c 'import nccl_inspector; print(nccl_inspector.__file__)')")
cat >"$TMP/use.py" <<'PY'
import os
from typing import Dict, List
import nccl_inspector
from nccl_inspector import net_prof
from nccl_inspector.types import Finding

variables: Dict[str, str] = nccl_inspector.env("logs/%j", "deep", stuck_seconds=60)
os.environ.update(variables)
marked: bool = nccl_inspector.mark("step 1")
c = nccl_inspector.check("logs", expect={"AllReduce": 1})
codes: List[str] = [p["code"] for p in c["problems"]] if c["verdict"] == "INCOMPLETE" else []
s = nccl_inspector.summary(["logs"], rank=range(8), coll=["AllReduce"])
found: List[Finding] = s["findings"]
median = s["groups"][0]["exec_time_us"]["p50"]
if median is not None: print(median + 1.5, s.get("run", {}))
for name, table in nccl_inspector.tables(s).items(): print(name, table.num_rows)
net_prof.dump(net_prof.summarize("a.json", "b.json"))
PY
cat >"$TMP/misuse.py" <<'PY'
import nccl_inspector
nccl_inspector.check("logs")["verdikt"]
nccl_inspector.env(stuck_seconds=[1])
nccl_inspector.mark(1)
nccl_inspector.summary("logs", ranks="1")
PY
mypy() { (cd "$TMP" && MYPYPATH=$(dirname "$site") "$(dirname "$VENV")/mypy" --strict --cache-dir "$TMP/cache" --config-file "$OLDPWD/python/pyproject.toml" "$@"); }
mypy -p nccl_inspector
mypy use.py
mypy misuse.py >"$TMP/said" && fatal "mypy sees no misuse"
[ "$(grep -c '^misuse.py:[2-5]: error' "$TMP/said")" = 4 ] || { cat "$TMP/said"; exit 1; }
"$PY" -c 'import ast, glob, sys
for f in glob.glob(sys.argv[1] + "/*.py"): ast.parse(open(f).read(), f, feature_version=(3, 9))' "$site"
cp -r "$site" "$TMP/nccl_inspector"
PYTHONPATH=$TMP "$VENV" -W error::DeprecationWarning test/lib/python/arrow.py "$BUILD" "$TMP"
