#!/usr/bin/env bash
# Machines as public reports show them: DGX H100, Azure ND v5, AWS P5, Cray with Slingshot. A healthy one has
# no finding, though its ports are not all alike; of one with faults each is named, and nothing else.
. "$(dirname "$0")/../../lib/counters.sh"
own_memory # 8,000 small files
export NI_ROOT=$FAST/root

machine=
step() { # STEP [FAULT...]: the machine, read into $TMP/STEP.json
  local name="$machine $*"
  rm -rf "$NI_ROOT"
  python3 test/lib/counters/counter_machines.py "$NI_ROOT" "$machine" "$@" || fail "$name: no tree"
  said "$name" 0 collect "$TMP/$1.json"
  hasnt "$name" 'not read'
}
healthy() { # MACHINE
  machine=$1
  step 1
  step 2
  said "$machine" 0 summarize --gate --json "$TMP/1.json" "$TMP/2.json"
  is "$machine" "j['verdict'].startswith('healthy: ') and not [f for f in j['findings'] if f['level'] != 'info']"
}
# The same machine with faults; on standard input the findings there must be, in any order: ID ENTITY PATTERN
# OF ITS TEXT
named() { # FAULT...
  local id entity pattern want=()
  step 2 "$@"
  said "$machine" 3 summarize --gate --json "$TMP/1.json" "$TMP/2.json"
  while read -r id entity pattern; do
    want+=("('$id', '$entity')")
    grep -qE "\"text\":\"$entity [^\"]*$pattern" "$TMP/said" || fail "$machine: not named: $id of $entity"
  done
  is "$machine" "sorted((f['id'], f['entity']) for f in j['findings'] if f['level'] != 'info') == sorted([$(IFS=,; echo "${want[*]}")])"
}

healthy dgx
is "dgx's ports" "{e['kind'] for e in j['entities'] if e['name'] in ('mlx5_0:1', 'mlx5_11:1')} == {'InfiniBand, 15b3:1021, port 1 of 1, beside a GPU'}"
is "dgx's storage" "[e['kind'] for e in j['entities'] if e['name'] == 'mlx5_8:1'] == ['Ethernet, 15b3:1021, port 2 of 2']"
named down=mlx5_6:1 'slow=mlx5_10:1:200 Gb/sec (4X HDR)' mlx5_9:1.symbol_error+=50 pcie=mlx5_4:1:8 \
  mlx5_7:1.symbol_error+=9 gone=mlx5_5 <<'END'
port-down mlx5_6:1 has no link, while its siblings have one: DOWN
slow-link mlx5_10:1 has a slower link than its siblings: ACTIVE, 200 Gb/sec
bad-cable mlx5_9:1 has a dirty link: symbol_error rose by 50
bad-cable mlx5_7:1 has a dirty link: symbol_error rose by 9
hardware-at-rest mlx5_4:1 PCIe link x8 of x16
gone mlx5_5:1 was there before and is gone
END

healthy dgx-ib
named 'slow=mlx5_0:1:200 Gb/sec (4X HDR)' <<<'slow-link mlx5_0:1 ACTIVE, 200 Gb/sec'

healthy azure
is "azure's front" "[e['kind'] for e in j['entities'] if e['name'] == 'mlx5_an0:1'] == [\"Ethernet, 15b3:101a, the default route's, port 1 of 1\"]"
named init=mlx5_ib3:1 'slow=mlx5_ib5:1:100 Gb/sec (1X NDR)' mlx5_ib7:1.link_error_recovery+=2 <<'END'
port-down mlx5_ib3:1 has no link, while its siblings have one: INIT
slow-link mlx5_ib5:1 ACTIVE, 100 Gb/sec
link-retrained mlx5_ib7:1 link_error_recovery rose by 2
END

healthy aws
is "aws's devices" "len([e for e in j['entities'] if e['source'] == 'ib']) == len([e for e in j['entities'] if e['source'] == 'ibdev']) == 32"
named rdmap131s0:1.unresponsive_remote_events+=3 rdmap201s0:1.retrans_pkts+=4000 \
  rdmap96s0.no_completion_cmds+=1 down=rdmap79s0:1 <<'END'
peer-gone rdmap131s0:1 unresponsive_remote_events rose by 3
lossy rdmap201s0:1 retrans_pkts rose by 4,020
driver-errors rdmap96s0 no_completion_cmds rose by 1
port-down rdmap79s0:1 has no link
END

if [ -e "$CASSINI/before.txt.gz" ]; then
  healthy cray
  named down=cxi2 cxi3.pct_spt_timeouts+=7 pcie=cxi0:8 slow=cxi1:BS_100G <<'END'
port-down cxi2 has no link, while its siblings have one: down
slow-link cxi1 has a slower link than its siblings: up, 100 Gb/s
timeouts cxi3 pct_spt_timeouts rose by 7
hardware-at-rest cxi0 PCIe link x8 of x16
END
else
  echo "note: without $CASSINI there is no Cray"
fi
finish "healthy machines are silent, and each fault is named"
