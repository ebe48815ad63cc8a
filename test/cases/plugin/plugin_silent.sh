#!/usr/bin/env bash
# Callbacks make no system call, take no lock and allocate nothing: recordings of real NCCL, all kinds of
# events, through all interfaces and under settings that change what a callback does. Twice: with the C
# library's functions counted (test/preload/count_calls.c), and with a filter of the kernel around the threads
# that call (test/gate/play.c). At interval 0 a callback may wake the dump thread.
. "$(dirname "$0")/../../lib/case.sh"
set +e +o pipefail # the case looks at each exit status itself
[ -z "${NI_VARIANT:-}" ] || skip "a sanitizer allocates by itself"
so=$BUILD/libnccl-profiler-inspector.so play=$BUILD/test/gate/play count=$BUILD/test/count_calls.so
need "$so" "$play" "$count"
unset "${!NCCL_@}"
mkdir "$TMP/boxes"
loud() { # what, and what was said
  fail "$*"
  head -n 20 "$TMP/said"
}
# A build for mutations yields at its test points.
more=()
if nm "$so" | grep ' ni_testpoint$' >/dev/null; then more=(--yields); fi

# plays WAY RELEASE INTERFACE [SETTING=value...] [-- option of play...]: its exit status; leaves $TMP/said.
plays() {
  local way=$1 release=$2 interface=$3 rc=0 preload=
  local -a settings=() options=("${more[@]}")
  shift 3
  while [ $# -gt 0 ] && [ "$1" != -- ]; do settings+=("$1"); shift; done
  [ $# = 0 ] || { shift; options+=("$@"); }
  if [ "$way" = sealed ]; then options+=(--sealed); else preload=$count; fi
  settings+=("NCCL_INSPECTOR_ENABLE=1" "NCCL_INSPECTOR_DUMP_DIR=$TMP/logs")
  env NCCL_INSPECTOR_BLACKBOX="$TMP/boxes" "${settings[@]}" LD_PRELOAD="$preload" timeout 60 \
    "$play" --plugin "$so" --nccl "$release" --interface "$interface" --loops 3 "${options[@]}" \
    "$TMP/$release"-*.rec >"$TMP/said" 2>&1 || rc=$?
  rm -rf "$TMP/logs"
  [ $rc != 77 ] || skip "$(cat "$TMP/said")"
  return $rc
}
silent() {
  local rc=0
  plays "$@" || rc=$?
  if [ $rc = 0 ]; then cat "$TMP/said" >>"$TMP/all"; else loud "$*: exit status $rc"; fi
}
total() { awk -v name="$1" -v column="$2" '$1 == name {n += $column} END {print n + 0}' "$TMP/all"; }

for f in test/data/real/*-{mix,groups}-rank0.rec.gz; do
  release=${f##*-nccl}
  plan=${f%-rank0.rec.gz}
  gzip -dc "$f" >"$TMP/${release%%-*}-${plan##*-}.rec"
done

# What must be noticed is.
plays counted 2.28.9 5 -- --plant malloc && loud "a callback that allocates is not noticed"
grep -q '^a callback called malloc, ' "$TMP/said" || loud "malloc is not named"
plays sealed 2.28.9 5 -- --plant getppid && loud "a callback that makes a system call is not noticed"
grep -q '^a callback made system call ' "$TMP/said" || loud "the system call is not named"

small="NCCL_INSPECTOR_POOL_GROW=0 NCCL_INSPECTOR_COLL_POOL_SIZE=4 NCCL_INSPECTOR_P2P_POOL_SIZE=4"
settings=("NCCL_INSPECTOR_EVENTS=light" "NCCL_INSPECTOR_EVENTS=deep" "NCCL_INSPECTOR_DUMP_VERBOSE=1"
  "NCCL_INSPECTOR_BLACKBOX=0" "NCCL_INSPECTOR_SAMPLE=1/3" "NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES=100000"
  "NCCL_INSPECTOR_DUMP_THREAD_ENABLE=0"
  "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=-1" "$small")
for way in counted sealed; do
  for pair in 2.27.7:4 2.28.9:5 2.28.9:4 2.29.7:6 2.30.7:6 2.32.3:7 2.32.3:6 2.32.3:5 2.32.3:3 2.32.3:2 \
    2.32.3:1; do
    for events in standard trace; do
      silent $way ${pair%:*} ${pair#*:} NCCL_INSPECTOR_EVENTS=$events
    done
  done
  for set in "${settings[@]}"; do
    # shellcheck disable=SC2086 # several settings
    silent $way 2.32.3 6 $set
  done
  silent $way 2.32.3 6 NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=0 -- --wakes
done
# Nothing was proven of a kind that did not come.
for kind in collective p2p api network copy_engine proxy_ctrl; do
  echo "$(total $kind 3) callbacks of $kind"
  [ "$(total $kind 3)" -gt 0 ] || loud "no callback of $kind"
done
[ "$(total wakes 2)" -gt 0 ] || loud "nobody was woken at interval 0"
finish
