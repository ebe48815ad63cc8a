#!/usr/bin/env bash
# "no hang" is said of a job only when the state of every rank was seen. Boxes of another user, no boxes (a
# login node), NVIDIA's logs, boxes that cannot be read, a second life without a box: it cannot be told, exit
# code 2, and what to do.
. "$(dirname "$0")/../../lib/hang.sh"

# tells NAME CODE PATTERN COMMAND...: its exit status, and what the sentence and the JSON field say.
tells() {
  local name=$1 code=$2 pattern=$3 rc=0
  shift 3
  "$@" >"$TMP/text" 2>&1 || rc=$?
  "$@" --json >"$TMP/verdict" 2>/dev/null || true
  if [ $rc = "$code" ] && grep -q -- "$pattern" "$TMP/text" &&
    python3 -c 'import json, sys; d = json.load(sys.stdin); c = sys.argv[1] == "2"
assert (d["verdict"] == "cannot_tell") == c and bool(d.get("cannot_tell")) == c and (not c or d["cannot_tell"] in d["sentence"]), d' \
      "$code" <"$TMP/verdict"; then
    echo "ok   $name: $(head -c 200 "$TMP/text" | head -n 1)"
    return
  fi
  fail "$name: exit status $rc, expected $code and '$pattern'"
  head -n 4 "$TMP/text"
  head -c 400 "$TMP/verdict"; echo
}
hang() { "$INSPECTOR" hang "$@"; }

# It hangs, and whoever can read its boxes is told so.
job hang_late --procs
hangs_now() {
  local rc=0
  hang "$TMP/logs" --box-dir "$BOXES" --stuck-after 1 || rc=$?
  [ $rc = 3 ]
}
wait_for 20 hangs_now || true # told below
tells "it hangs" 3 "^HANG" hang "$TMP/logs" --box-dir "$BOXES" --stuck-after 1
mkdir "$TMP/empty"
tells "a login node" 2 "^CANNOT TELL: no black box of the 4 processes is in $TMP/empty: run on the nodes" \
  hang "$TMP/logs" --box-dir "$TMP/empty"
tells "whose lives are not seen" 2 "; cannot see whether these processes live: rank 0 (sim-node0), " hang \
  "$TMP/logs" --box-dir "$TMP/empty"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  chmod 755 "$TMP" "$TMP/logs" "$BOXES"
  chmod 644 "$TMP/logs"/*
  mkdir -p "$TMP/bin" && cp "$INSPECTOR" "$TMP/bin/i"
  tells "another user's boxes" 2 "^CANNOT TELL: no black box of the 4 processes could be read (4 in $BOXES belong to uid 0): run as that user" \
    setpriv --reuid 64001 --regid 64001 --clear-groups "$TMP/bin/i" hang "$TMP/logs" --box-dir "$BOXES"
else
  echo "another user's boxes: left out, needs root and setpriv"
fi
# Boxes that are there and damaged; one of them alone.
mkdir "$TMP/copies"
cp "$BOXES"/*.box "$TMP/copies"
for f in "$TMP/copies"/*.box; do printf x | dd of="$f" bs=1 seek=9 conv=notrunc 2>/dev/null; done
tells "unreadable boxes" 2 "^CANNOT TELL: .*could be read; 4 files could not be read" hang "$TMP/logs" \
  "$TMP/copies" --stuck-after 1
# What hangs is said also where not all was seen.
rm -f "$TMP/copies"/*
cp "$BOXES"/*.box "$TMP/copies"
rm -f "$(find "$TMP/copies" -name '*.box' | sort | tail -n 1)"
tells "one box of four is not there" 3 "^HANG (likely)" hang "$TMP/logs" "$TMP/copies" --stuck-after 1
stop_job
tells "killed: recover is named" 3 "recover. puts it into the logs" hang "$TMP/logs" --box-dir "$BOXES" \
  --stuck-after 1

tells "NVIDIA's logs" 2 "^CANNOT TELL: NVIDIA's and imported logs" hang test/golden/check_nvidia_v40/input \
  --box-dir "$TMP/empty"

# Two lives of one process: the first has ended, of the second there is its first line.
mkdir "$TMP/lives"
python3 - "$TMP/lives" <<'PY'
import sys
sys.path.insert(0, "test/lib")
import exp_logs
x = exp_logs.job(ranks=1)[0]
first, rest = list(x.lines), x.lines[0]
x.write(sys.argv[1])
with open(sys.argv[1] + "/node-0-pid4000-1790000100.jsonl", "w") as f:
    f.write(rest.replace(str(exp_logs.T0),
                         str(exp_logs.T0 + 100 * 10**9)).replace("17900000000", "17900001000") + "\n")
PY
tells "a second life" 2 "^CANNOT TELL: no black box of the only process" hang "$TMP/lives" --box-dir \
  "$TMP/empty"
rm "$TMP/lives"/*100.jsonl
tells "one life, over" 0 "^ENDED" hang "$TMP/lives" --box-dir "$TMP/empty"
finish
