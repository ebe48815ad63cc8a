#!/usr/bin/env bash
# Communicator names and environment values that nobody would write on purpose: valid JSON, safe paths,
# defaults said.
. "$(dirname "$0")/../../host/lib.sh"

name_case() { # title, name in bash's $'' form
  run "name: $1" initname 0 "$2" ops 0 20 fin 0
  verify
}
name_case "control characters" $'a\001\002\t\n\r\x7f\x1b[31mb'
name_case "invalid UTF-8" $'\xff\xfe\xc0\xaf\xed\xa0\x80\xf8\x88 end'
name_case "cut UTF-8" $'caf\xc3'
name_case "quotes and backslashes" '"\"},{"coll_perf":{"coll":"x"}}\\'
name_case "10 kB" "$(head -c 10240 /dev/zero | tr '\0' x)"
name_case "10 kB of four-byte characters" "$(python3 -c 'print("\U0001F600" * 2560, end="")')"
name_case "%s%n%d" '%s%s%s%n%n%d%99999d'
name_case "empty" ""
run "name: NULL" init-null 0 ops 0 20 fin 0
verify
# A name that fits is in the log as it is.
run "name: UTF-8" initname 0 'données-Δ-训练' ops 0 20 fin 0
verify
zcat "$TMP"/logs/* | grep '"comm_name":"données-Δ-训练"' >/dev/null || fail "$CASE: not in the log"

bad=('' ' ' '-' '-1' '0x10' '1e9' '99999999999999999999999' 'yes' $'\x01\xff' "$(head -c 9000 /dev/zero | tr '\0' 9)" '1;rm -rf /' '%n%n%s' '+1' '1 ')
vars=(ENABLE DUMP_THREAD_ENABLE DUMP_THREAD_INTERVAL_MICROSECONDS DUMP_VERBOSE DUMP_FORMAT DUMP_CONTROL_LINES \
  DUMP_MIN_SIZE_BYTES ENABLE_P2P REQUIRE_KERNEL_TIMING COLL_POOL_SIZE P2P_POOL_SIZE COMM_POOL_SIZE POOL_GROW \
  POOL_KEEP PROXY_OUTPUT_MODE \
  POOL_MAX_BYTES FILE_MAX_BYTES DIR_MAX_BYTES KEEP_SECONDS DUMP_COLL_RING_SIZE DUMP_P2P_RING_SIZE PROM_DUMP \
  OTEL_EXPORT)
n=0
for v in "${bad[@]}"; do # every variable has the same bad value at once; ENABLE stays on
  settings=()
  for name in "${vars[@]}"; do [ "$name" = ENABLE ] || settings+=("NCCL_INSPECTOR_$name=$v"); done
  run "value $n everywhere" "${settings[@]}" NCCL_PROFILE_COLL_POOL_SIZE="$v" NCCL_PROFILE_PROXY_CTRL_POOL_SIZE="$v" \
    RANK="$v" WORLD_SIZE="$v" SLURM_JOB_ID="$v" SLURM_PROCID="$v" POD_NAME="$v" init 0 ops 0 200 p2p 0 20 \
    fin 0
  verify
  n=$((n + 1))
done
run "ENABLE=2" NCCL_INSPECTOR_ENABLE=2 init 0 ops 0 200 fin 0
said "NCCL_INSPECTOR_ENABLE"
[ ! -e "$TMP/logs" ] || fail "$CASE: on"
run "ENABLE=0" NCCL_INSPECTOR_ENABLE=0 init 0 ops 0 200 fin 0
[ ! -e "$TMP/logs" ] || fail "$CASE: on"
run "a misspelt variable" NCCL_INSPECTOR_DUMP_THREAD_INTERVAL=5 init 0 ops 0 10 fin 0
verify
said "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL"
run "hostile job id and tokens" NCCL_INSPECTOR_DUMP_DIR="$TMP/logs/%j/%h/%r/%p/%%/%q" \
  SLURM_JOB_ID='../../../../etc/passwd' RANK=3 \
  init 0 ops 0 10 fin 0
verify
[ -z "$(find "$TMP" -name passwd)" ] || fail "$CASE: a path out of the folder"
dir=$(head -c 1100 /dev/zero | tr '\0' d)
run "a folder name that is too long" NCCL_INSPECTOR_DUMP_DIR="$TMP/logs/$dir" chdir "$TMP" init 0 ops 0 10 \
  timed 2500 fin 0
said "NCCL_INSPECTOR_DUMP_DIR"
mv "$TMP/nccl-inspector-unknown-jobid" "$TMP/logs" && verify
run "a component that is too long" NCCL_INSPECTOR_DUMP_DIR="$TMP/logs/${dir:0:300}" init 0 ops 0 10 timed 2500 fin 0
said "File name too long"
run "relative folder, then chdir" NCCL_INSPECTOR_DUMP_DIR="here" chdir "$TMP" init 0 chdir / ops 0 10 fin 0
mkdir -p "$TMP/logs"
mv "$TMP/here" "$TMP/logs/" || fail "$CASE: the log is not where the process was at init"
verify
finish
