#!/usr/bin/env bash
# counters list: what is here of each source, what cannot be read and why, which GPU is nearest; on fake trees
# and on this machine's own interface.
. "$(dirname "$0")/../../lib/case.sh"
bin=$(realpath "$BUILD/nccl-inspector")
export NI_TEST_DATA=${NI_TEST_DATA:-../shared/data}
[ -r "$NI_TEST_DATA/cassini/before.txt.gz" ] || skip "no $NI_TEST_DATA/cassini"
own_memory # 15,000 small files
wrong() { fail "$CASE: $*"; }
tree() { python3 test/lib/counters/counter_trees.py "$FAST/root" "$@"; }
list() { # NAME RC [options]: into $TMP/out and, as JSON, $TMP/json
  local want=$2 rc=0
  CASE=$1
  shift 2
  NI_ROOT=$FAST/root "$bin" counters list "$@" >"$TMP/out" 2>"$TMP/err" || rc=$?
  [ $rc = "$want" ] || { wrong "exit $rc, $want expected"; cat "$TMP/out" "$TMP/err"; }
  [ ! -s "$TMP/err" ] || { wrong "on standard error:"; cat "$TMP/err"; }
  NI_ROOT=$FAST/root "$bin" counters list --json "$@" >"$TMP/json" || true
}
says() { grep -qE -- "$1" "$TMP/out" || { wrong "does not say: $1"; cat "$TMP/out"; }; }
json() { # an expression of Python over d, the document, and e: (source, name) of an entity
  python3 - "$TMP/json" "$1" <<'PY' || wrong "not so: $1"
import json, sys
d = json.load(open(sys.argv[1]))
e = {(x["source"], x["name"]): x for x in d["entities"]}
sys.exit(not eval(sys.argv[2]))
PY
}

mkdir "$FAST/root"
list "nothing is here" 0
says '^not here:'
for s in cxi rh ib eth ethtool tcp; do says "^  $s +no "; done
says 'cxi_ss1'
json 'd["schema_version"] == "nccl-inspector-counters-list-1" and {x["source"] for x in d["not_here"]} >= {"cxi", "rh", "ib", "eth"}'

tree cxi before 8 -- rh cxi0 -- mlx5 mlx5_0 -- bnxt bnxt_re0 -- efa efa_0 -- eth ens1 -- host \
  -- gpu 0000:12:00.0 pci0000:10/0000:10:01.0 -- gpu 0000:35:00.0 pci0000:30/0000:30:02.0
list "a node" 0
json 'sum(x["counters"] for x in d["entities"] if x["source"] == "cxi") == 15120'
json 'e["cxi", "cxi3"]["link"] == "up, 200 Gb/s" and e["cxi", "cxi3"]["link_bytes_per_s"] == 25e9'
json 'e["cxi", "cxi1"]["nearest_gpu"] == "0000:12:00.0" and e["cxi", "cxi1"]["path_to_gpu"] == "PIX"'
json 'e["cxi", "cxi3"]["nearest_gpu"] == "0000:35:00.0" and e["cxi", "cxi3"]["path_to_gpu"] == "PHB"'
json 'e["cxi", "cxi0"]["path_to_gpu"] == "SYS" and e["cxi", "cxi0"]["nearest_gpu"] == "0000:12:00.0"'
json 'e["ib", "mlx5_0:1"]["counters"] == 47 and e["ib", "efa_0:1"]["counters"] == 22 and ("ib", "mlx5_0:2") not in e'
json 'not any(x["unreadable"] for x in d["entities"]) and e["tcp", "host"]["counters"] == 13'
says '^cxi1 +cxi +1,890 up, 200 Gb/s +0000:11:00.0 +0 0000:12:00.0 \(PIX\)$'

tree fault cxi0 hni_tx_paused_1 eio -- fault cxi1 hni_tx_paused_2 empty -- fault cxi1 hni_tx_paused_3 noat \
  -- fault cxi2 - binary \
  -- put sys/class/cxi/cxi4/device/current_link_width 8 -- put \
  sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_wait 'N/A (no PMA)'
list "faults" 2
json 'e["cxi", "cxi0"]["unreadable"] == ["hni_tx_paused_1"] and e["cxi", "cxi1"]["unreadable"] == ["hni_tx_paused_2", "hni_tx_paused_3"]'
json 'sum(x["counters"] for x in d["entities"] if x["source"] == "cxi") == 15120'
says '2 cannot be read: hni_tx_paused_2, hni_tx_paused_3'
says 'warning: PCIe link x8 of x16'
says '^left out:'
says 'cxi2/device/telemetry/ALL-in-binary: skipped'
says 'counters/port_xmit_wait: it says "N/A \(no PMA\)"'

CASE="no rights"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  tree cxi before 1
  chmod -R a+rX "$TMP" "$FAST"
  chmod 000 "$(realpath "$FAST/root/sys/class/cxi/cxi0/device/telemetry")"
  rc=0
  NI_ROOT=$FAST/root setpriv --reuid 64001 --regid 64001 --clear-groups "$bin" counters list >"$TMP/out" \
    2>&1 || rc=$?
  if [ $rc = 126 ] || grep -q 'setpriv: failed' "$TMP/out"; then
    echo "note: another user cannot run the program here"
  else
    [ $rc = 2 ] || wrong "exit $rc"
    says 'cxi0/device/telemetry: Permission denied. Run it as root'
  fi
  chmod 755 "$(realpath "$FAST/root/sys/class/cxi/cxi0/device/telemetry")"
fi

list "net_prof's path" 2 --cxi-dir "$FAST/root/sys"
says 'give a folder with entries cxi0'
# A name that no NIC can have is not cut to one that a NIC could have.
long=$FAST/root/long/cxi$(printf '7%.0s' {1..70})/device/telemetry
mkdir -p "$long"
echo '5@1.0' >"$long/hni_sts_rx_ok_octets"
list "a name of 73 characters" 2 --cxi-dir "$long"
says 'it has no NICs of Cassini'
json 'not [n for s, n in e if s == "cxi"]'
rm -rf "$FAST/root/long"
list "one NIC" 2 --cxi-dir "$FAST/root/sys/class/cxi/cxi1/device/telemetry"
json '[x["name"] for x in d["entities"] if x["source"] == "cxi"] == ["cxi1"]'

CASE="a pipe in /proc"
mkdir -p "$TMP/pipes/proc/net"
mkfifo "$TMP/pipes/proc/net/snmp" "$TMP/pipes/proc/stat"
NI_ROOT=$TMP/pipes timeout -s KILL 20 "$bin" counters list >"$TMP/out" 2>&1 || [ $? = 2 ] ||
  wrong "waits for who writes into it"

# Names are hostile: a terminal must not be steered by one.
tree put "sys/class/net/$(printf 'e\033[31m')/statistics/rx_bytes" 1 -- put \
  "sys/class/net/$(printf 'e\033[31m')/flags" 0x1
list "a name" 2
! grep -q "$(printf '\033')" "$TMP/out" || wrong "a name steers the terminal"

# This machine's own.
CASE="real"
up=$(for f in /sys/class/net/*/operstate; do [ "$(cat "$f")" != up ] || basename "$(dirname "$f")"; done |
  head -n 1)
"$bin" counters list >"$TMP/out" || { rc=$?; [ $rc = 2 ] || wrong "exit $rc"; }
[ -z "$up" ] || says "^$up +eth +[1-9]"
says '^host +tcp +[1-9]'
finish "all sources are listed, and what is wrong with them"
