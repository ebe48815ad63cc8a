#!/usr/bin/env bash
# doctor: which NCCL, and does it know an interface of the plugin? A fake one stands in for all releases.
. "$(dirname "$0")/../../lib/doctor.sh"
fake=$BUILD/test/gpu/fake
need "$fake/libnccl.so.2"
mkdir -p "$TMP/home/lib" "$TMP/second"
ln -s "$fake/libnccl.so.2" "$TMP/home/lib/libnccl.so.2"
cp "$fake/libnccl.so.2" "$TMP/second/"
doctor "NCCL_HOME" 0 NCCL_HOME="$TMP/home" FAKE_NCCL_VERSION=22907
says ok nccl "is release 2.29.7; it will use the plugin's interface v6"
says note nccl "the call of an ncclBroadcast only"
doctor "Broadcast switched on" 0 NCCL_HOME="$TMP/home" FAKE_NCCL_VERSION=22907 NCCL_ALLGATHERV_ENABLE=0
! grep -q 'ncclBroadcast' "$TMP/out" || { fail "a note about what was dealt with"; }
doctor "newer than the plugin" 0 NCCL_HOME="$TMP/home" FAKE_NCCL_VERSION=23203
says ok nccl "is release 2.32.3; it will use the plugin's interface v[67]"
says note nccl "from 2.31 on each ncclBroadcast"
grep -q -- '-> .*export NCCL_ALLGATHERV_ENABLE=0' "$TMP/out" || fail "not what to set"
! grep -q 'issue 2355' "$TMP/out" || fail "2.32 is told what KernelCh costs in 2.31"
doctor "2.31" 0 NCCL_HOME="$TMP/home" FAKE_NCCL_VERSION=23102 NCCL_ALLGATHERV_ENABLE=0
says note nccl "4 to 13 % at 128 KB to 4 MB on 8 A100 (NVIDIA/nccl issue 2355)"
! grep -q 'ncclBroadcast' "$TMP/out" || fail "a note about what was dealt with, 2.31"
doctor "2.31 light" 0 NCCL_HOME="$TMP/home" FAKE_NCCL_VERSION=23102 NCCL_INSPECTOR_EVENTS=light
! grep -q 'issue 2355' "$TMP/out" || fail "light is told what KernelCh costs"
doctor "2.30" 0 NCCL_HOME="$TMP/home" FAKE_NCCL_VERSION=23007
! grep -q 'issue 2355\|from 2.31 on' "$TMP/out" || fail "2.30 is told of 2.31"
! grep -q RCCL "$TMP/out" || fail "RCCL, which is not there"
mkdir -p "$TMP/rocm/lib"
echo >"$TMP/rocm/lib/librccl.so.1"
doctor "RCCL" 0 ROCM_PATH="$TMP/rocm"
says note nccl "rocm/lib/librccl.so.1 is RCCL"
! grep -q 'by a short name' "$TMP/out" || fail "the path is absolute"
cp "$PLUGIN" "$TMP/second/"
doctor "RCCL by name" 0 ROCM_PATH="$TMP/rocm" LD_LIBRARY_PATH="$TMP/second" NCCL_PROFILER_PLUGIN=inspector
says warning nccl "RCCL: by a short name"
doctor "native v4" 0 NCCL_HOME="$TMP/home" FAKE_NCCL_VERSION=22705
says ok nccl "interface v4"
doctor "too old" 2 NCCL_HOME="$TMP/home" FAKE_NCCL_VERSION=22203
says problem nccl "2.22.3, which loads no profiler"
echo text >"$TMP/home/lib/other.so"
doctor "no library" 0 --nccl "$TMP/home/lib/other.so"
says warning nccl "cannot be asked"
doctor "no such file" 2 --nccl /nowhere/libnccl.so.2
says problem nccl "there is no such file"
doctor "two of them" 0 NCCL_HOME="$TMP/home" LD_LIBRARY_PATH="$TMP/second" FAKE_NCCL_VERSION=22809
says ok nccl "2.28.9"
says note nccl "second/libnccl.so.2"
[ "$(NCCL_HOME=$TMP/home "$BIN" doctor --find-nccl | head -n 1)" = "$(realpath "$fake/libnccl.so.2")" ] ||
  { fail "--find-nccl"; }
finish
