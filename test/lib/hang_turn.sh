# For test/cases/agent/hang_turn*.sh: readers of several nodes (test/agent/hang_turn.c) beside a simulated
# job; and what test/lib/hang.sh has. Sourced.
. "$(dirname "${BASH_SOURCE[0]}")/hang.sh"
DRIVER=$BUILD/test/agent/hang_turn
need "$DRIVER"
mkdir "$TMP/bin"
cp "$DRIVER" "$TMP/bin/reader" # a reader finds nccl-inspector beside itself
ln -s "$INSPECTOR" "$TMP/bin/nccl-inspector"
cat >"$TMP/bin/py-spy" <<'S'
#!/bin/sh
echo "stack of $*"
exec head -c 3000000 /dev/zero
S
chmod +x "$TMP/bin/py-spy"
READERS=()
readers_end() {
  [ ${#READERS[@]} = 0 ] || kill "${READERS[@]}" 2>/dev/null || true
  [ ${#READERS[@]} = 0 ] || wait "${READERS[@]}" 2>/dev/null || true
  READERS=()
}
at_exit readers_end

# nodes N: each node's boxes in a folder of its own, as if that were its memory.
nodes() {
  local n=$1 i box
  for ((i = 0; i < n; i++)); do
    mkdir -p "$BOXES/node$i"
    for box in "$BOXES"/*-sim-node"$i"-*.box; do ln -f "$box" "$BOXES/node$i/"; done
  done
}
# reader NODE [tool]: as the agent of that node would ask; its clock is ten times as fast.
reader() {
  PATH=$TMP/bin:$PATH "$TMP/bin/reader" "$BOXES/node$1" "sim-node$1" 1 10 ${2:+"$2"} >"$TMP/said.$1" \
    2>"$TMP/err.$1" &
  READERS+=($!)
}
until_said() { # seconds node pattern
  wait_for "$1" grep -Eq "$3" "$TMP/said.$2" || {
    fail "node $2 did not say '$3': $(cat "$TMP/said.$2" "$TMP/err.$2"); $(ls "$TMP/logs/nccl-inspector-hang")"
    return 0
  }
  echo "ok   node $2: $(tail -n 1 "$TMP/said.$2" | cut -c 1-220)"
}
boxes_are() { [ "$(find "$BOXES" -maxdepth 1 -name '*.box' | wc -l)" = "$1" ]; }
boxes() { # of how many processes
  wait_for 20 boxes_are "$1" || fail "no $1 boxes"
}

