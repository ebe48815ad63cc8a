#!/usr/bin/env bash
# counters list with GPUs by NVML (test/fake_nvml/): healthy ones, a narrow link, MIG, what needs root, no
# driver.
. "$(dirname "$0")/../../lib/case.sh"
NVML=$BUILD/test/nvml
[ -e "$NVML/libnvidia-ml.so.1" ] || skip "$NVML is not built: make tools"
mkdir "$TMP/root"
list() { # exit status, lines that are planted beside the healthy ones
  local want=$1 rc=0
  shift
  { cat test/fake_nvml/healthy.txt; printf '%s\n' "$@"; } >"$TMP/nvml"
  NI_ROOT=$TMP/root NI_FAKE_NVML=$TMP/nvml LD_LIBRARY_PATH=$NVML "$BUILD/nccl-inspector" counters list \
    >"$TMP/out" 2>"$TMP/err" || rc=$?
  [ $rc = "$want" ] && [ ! -s "$TMP/err" ] && return
  fail "$*: exit $rc, $want expected"
  cat "$TMP/out" "$TMP/err"
}
says() {
  grep -qE -- "$1" "$TMP/out" && return
  fail "does not say: $1"
  cat "$TMP/out"
}

list 0 '* gpus 8'
[ "$(grep -cE '^gpu[0-7] +gpu +27 PCIe generation 5, x16 +0000:c[0-7]:00.0' "$TMP/out")" = 8 ] ||
  says 'eight GPUs'
list 0 '* gpus 1' '0 width 8'
says 'warning: PCIe link x8 of x16: look at the slot'
list 0 '* gpus 1' '0 gen 1' '0 util 0'
says '^gpu0 .*PCIe generation 1, x16 \(idle; up to generation 5\)'
list 0 '* gpus 1' '0 mig 2' '0 ret.UtilizationRates 3'
says '^gpu0/mig1 +gpu +3 '
says '^gpu0/mig2 +gpu +3 '
list 2 '* gpus 1' '0 ret.PowerUsage 4'
says 'gpu0: needs root: power'
list 2 '* ret.Init 9'
says 'libnvidia-ml.so.1: the NVIDIA driver is not loaded: modprobe nvidia'
list 2 '* ret.Init 18'
says 'another version than the loaded driver'
finish
