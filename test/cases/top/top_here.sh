#!/usr/bin/env bash
# `top` of this node without an agent: black boxes and logs of a job of the simulator, through the agent's
# readers.
. "$(dirname "$0")/../../lib/top.sh"
need_boxes
boxes=$BOXES

# Nothing runs: that is said.
top 2 "" --once --box-dir "$boxes"
says err 'nothing to show: no job with the plugin runs here; --agent HOST:PORT shows other nodes$'
NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_BLACKBOX=$boxes NCCL_INSPECTOR_DUMP_DIR=$TMP/logs timeout 30 \
  "$BUILD/nccl-sim" --quiet \
  --plugin "$BUILD/libnccl-profiler-inspector.so" --job 1x4 --procs --iterations 2000000 >"$TMP/sim" 2>&1 &
job=$!
there() { "$INSPECTOR" top --once --box-dir "$boxes" </dev/null | grep -E ', 4 ranks, '; }
wait_for 30 there || fail "four ranks do not appear"
top 0 "" --once --box-dir "$boxes" --log-dir "$TMP/logs"
says out ' 1 node, 1 job, 4 ranks, ' '^JOB +RANK +HOST'
for rank in 0 1 2 3; do says out "^4242 +$rank [^ ]+ .* tp0 "; done
top 0 "" --json --box-dir "$boxes"
python3 - "$TMP/out" <<'END' || { fail "another document"; cat "$TMP/out"; }
import json, sys
d = json.load(open(sys.argv[1]))
assert d["schema"] == "nccl-inspector-now-1", d["schema"]
assert (sorted(r["rank"] for r in d["ranks"]) == [0, 1, 2, 3] and
        all(r["collectives"] > 0 and r["alive"] for r in d["ranks"]))
END
# Another node leads a hang's turn: whoever only looks has no part in it, and leaves older copies where they
# are.
mkdir "$TMP/logs/nccl-inspector-hang"
box=$(basename "$(find "$boxes" -name '*.box' | head -n 1)" .box)
touch "$TMP/logs/nccl-inspector-hang/"{lease.1,"$box.1600000000000000000.box"}
before=$(ls -la --time-style=full-iso "$TMP/logs/nccl-inspector-hang")
top 0 "" --once --box-dir "$boxes"
[ "$before" = "$(ls -la --time-style=full-iso "$TMP/logs/nccl-inspector-hang")" ] ||
  fail "top takes part in a hang: $before"
rm -r "$TMP/logs/nccl-inspector-hang"
# Nothing of it is left: no process, no file.
kill $job
wait $job 2>/dev/null || true
! pgrep -f "nccl-inspector-live top .*$boxes" || fail "a reader is left"
[ -z "$(find "$TMP/logs" -name '*hang*')" ] || fail "files were written"
finish
