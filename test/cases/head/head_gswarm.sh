#!/usr/bin/env bash
# The real gswarm 0.4.3 of PyPI, without a GPU: its resilient client, its commands, and its readers of our
# files (test/lib/head_gswarm.py).
. "$(dirname "$0")/../../lib/head.sh"
nvml=$BUILD/test/nvml
[ -e "$nvml/libnvidia-ml.so.1" ] || skip "no fake NVML is built"
venv=$BUILD/venv-gswarm
exec 9>"$venv.lock"
flock 9
# What it names as needed, but for torch and its like.
[ -e "$venv/.whole" ] || { test/lib/venv.sh "$venv" && PYTHONPATH='' "$venv/bin/pip" install -q --disable-pip-version-check --no-deps gswarm==0.4.3 &&
  PYTHONPATH='' "$venv/bin/pip" install -q --disable-pip-version-check grpcio 'protobuf<6' loguru nvitop \
  typer rich psutil pyyaml requests fastapi uvicorn \
    aiofiles matplotlib 'numpy<2' aiohttp pydantic httpx && touch "$venv/.whole"; } >"$TMP/pip" 2>&1 ||
  skip "no gswarm from pip ($(tail -n 1 "$TMP/pip"))"
flock -u 9
if [ -n "${REAL_S:-}" ]; then # the long form: our agent against its head
  python3 test/lib/head_real.py "$venv/bin/python" "$nvml" "$REAL_S"
  exit
fi
python3 test/lib/head_gswarm.py "$venv/bin/python" "$nvml"
