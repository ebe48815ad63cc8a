#!/usr/bin/env bash
# check, summary and trace give one verdict and the same counts: of every golden folder, of a sound job, and
# of one of which files were cut, lost, copied. (exp_check.sh asks the same of every single fault.)
. "$(dirname "$0")/../../lib/sim.sh"
need python3
run_logged 2x2 --procs --iterations 20
logs=$TMP/logs
first=$(find "$logs" -name '*.gz' | sort | head -n 1)
mkdir "$TMP/f"
for what in cut gone copied garbage; do cp -r "$logs" "$TMP/f/$what"; done
name=$(basename "$first")
truncate -s -100 "$TMP/f/cut/$name"
rm "$TMP/f/gone/$name"
mkdir "$TMP/f/copied/again" && cp "$first" "$TMP/f/copied/again/"
mkdir "$TMP/f/sizes" # one hash, two communicators: nothing but its size tells
zcat test/golden/check_nvidia_v42/input/*.gz |
  sed '2s/"n_ranks":[0-9]*/"n_ranks":1024/' >"$TMP/f/sizes/node-a-pid1.log"
{ zcat "$first"; echo '{"garbage'; } | gzip >"$TMP/f/garbage/$name"
python3 test/lib/agree.py "$BUILD/nccl-inspector" test/golden/*/input "$logs" "$TMP"/f/*
