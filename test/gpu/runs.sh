# How scripts/gpu_validate.sh makes a run and keeps what it says: the table, the machine, the layout of ranks
# that works here, one run of gpu_drive with its verdict. Sourced by it, before stages.sh. Variables used:
# build plugin GPU nccl cuda version release standin out WORK PYTHON seconds t0 mps keep fake; set here:
# layout layouts turns ranks stage run.
# shellcheck disable=SC2154
layout=hostid turns=1 # turns: ranks take turns on one GPU, so times contain waiting
layouts=()            # all that work
ranks=2
stage=probe

row() { # verdict stage what figures
  printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" >>"$out/table.tsv"
  printf '  %-4s  %-10s %-38s %s\n' "$1" "$2" "$3" "$4"
}
rest() { echo $((seconds - (SECONDS - t0))); }
left() { # at most $1 seconds, and not beyond the whole time
  local r
  r=$(rest)
  [ "$r" -lt 10 ] && r=10
  [ "$r" -lt "$1" ] && echo "$r" || echo "$1"
}
needs() { # seconds in which a stage says something even on a slow machine
  [ $fake = 1 ] && { echo 10; return; }
  case $1 in torch) echo 90 ;; shapes | ends | versions | cost | many) echo 60 ;; *) echo 40 ;; esac
}

machine() {
  local so
  echo "date:     $(date -u +%Y-%m-%dT%H:%M:%SZ)"
  echo "commit:   $("$build/nccl-inspector" --version)"
  echo "system:   $(. /etc/os-release 2>/dev/null; echo "${PRETTY_NAME:-unknown}"), kernel $(uname -r), $(uname -m), $(nproc) processors, $(getconf GNU_LIBC_VERSION)"
  echo "cpu:      $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
  echo "memory:   $(sed -n 's/^MemTotal: *//p' /proc/meminfo), /dev/shm $(df -h --output=size /dev/shm 2>/dev/null | tail -n 1 | tr -d ' '), locked memory $(ulimit -l) kB"
  if [ $fake = 1 ]; then
    echo "gpu:      none: the fake NCCL was used, nothing here says anything about a GPU"
  elif [ -n "$standin" ]; then
    echo "gpu:      none: $standin stands in for the driver, nothing here says anything about a GPU"
  else
    timeout 30 nvidia-smi --query-gpu=name,driver_version,memory.total,compute_mode,mig.mode.current \
      --format=csv,noheader 2>/dev/null | sed 's/^/gpu:      /'
  fi
  echo "nccl:     $version ($nccl)"
  [ $fake = 1 ] && return
  "$build/nccl-inspector" doctor --find-nccl 2>/dev/null | while read -r so; do
    [ "$so" = "$nccl" ] ||
      echo "          also there: $("$GPU/gpu_drive" --version-of "$so" 2>/dev/null) ($so)"
  done
  echo "python:   $(timeout 120 "$PYTHON" -c 'import torch, sys; print(sys.version.split()[0], "torch", torch.__version__, "CUDA", torch.version.cuda,
    "NCCL", ".".join(map(str, torch.cuda.nccl.version())))' 2>/dev/null || echo "${PYTHON:-none}, no PyTorch")"
  env | sed -n 's/^\(NCCL_[A-Z0-9_]*=\|CUDA_[A-Z_]*=\|TORCH_NCCL_[A-Z_]*=\)/env:      \1/p'
}

# drive NAME LIMIT [NAME=value ...] [options of gpu_drive]: a run with the plugin, unless the variables say
# another one.
# Leaves $run/truth and $run/logs.
drive() {
  local name=$1 limit=$2 rc why
  shift 2
  local -a vars=()
  while [[ ${1:-} == *=* ]]; do vars+=("$1"); shift; done
  if [ "$(rest)" -lt 10 ]; then
    row info "$stage" "$name" "not run: the time of --seconds $seconds was over"
    return 1
  fi
  limit=$(left "$limit")
  run=$WORK/$name
  rm -rf "$run"
  mkdir -p "$run"
  env NCCL_DEBUG="${NCCL_DEBUG:-INFO}" NCCL_PROFILER_PLUGIN="$plugin" NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR="$run/logs" \
    "${vars[@]}" timeout -k 5 $((limit + 25)) "$GPU/gpu_drive" --out "$run/truth" --nccl "$nccl" "${cuda[@]}" \
    --ranks $ranks --seconds "$limit" --stall "${NI_STALL:-45}" --layout "$layout" "$@" >"$run/out" 2>&1
  rc=$?
  [ $rc = 0 ] && return 0
  why=$(reason "$run/out")
  [ $rc -gt 128 ] && why="it was killed by signal $((rc - 128)): $why"
  row "$([ "${refusable:-0}" = 1 ] && echo info || echo FAIL)" "$stage" "$name: the run itself" "gpu_drive ended with $rc: $why"
  # A client that died may have taken MPS with it.
  if [ "${mps_runs:-0}" = 1 ]; then
    stop_mps
    start_mps || { turns=1; row info "$stage" "MPS" "does not start again; ranks take turns from here on"; }
  fi
  if [ "${refusable:-0}" = 0 ] && [ "$(rest)" -gt 20 ]; then # whose fault is it?
    limit=$(left "$limit")
    env NCCL_DEBUG=INFO "${vars[@]}" NCCL_PROFILER_PLUGIN=none timeout -k 5 $((limit + 25)) "$GPU/gpu_drive" --out "$run/without" --nccl "$nccl" \
      "${cuda[@]}" --ranks $ranks --seconds "$limit" --stall "${NI_STALL:-45}" --layout "$layout" "$@" >"$run/out-without" 2>&1
    row info "$stage" "$name: the same without a plugin" "gpu_drive ended with $?"
  fi
  save
  return $rc
}
reason() { # the last of what gpu_drive and NCCL complained of
  grep -a 'gpu_drive: rank\|gpu_drive: a rank\|gpu_drive: nothing\|gpu_drive: time\|NCCL WARN' "$1" |
    grep -av ' is at$' | tail -n 1 | cut -c1-200
}

# rows NAME [--all] [options of gpu_check]: what the checkers say of the last run. Without --all, what is well
# becomes one row, and only what is not has its own. The logs of a run that is well go.
rows() {
  local name=$1 bad=0 all=0 verdict what figures n=0 line=''
  shift
  [ "${1:-}" = --all ] && all=1 && shift
  [ $turns = 1 ] && set -- --shared-gpu "$@"
  # A stand-in's device is a clock and its proxy a thread that a busy machine keeps waiting: times prove
  # nothing there.
  [ $fake = 0 ] && [ -z "$standin" ] || set -- --any-timing "$@"
  local -a partial=()
  grep -q 'how=\(abort\|lost\)' "$run"/truth/*.txt && partial=(--partial)
  while IFS=$'\t' read -r verdict what figures; do
    [ "$verdict" = FAIL ] && bad=1
    [ "$verdict" = ok ] && n=$((n + 1))
    [ "$what" = "each operation once" ] && line=$figures
    if [ $all = 1 ] || [ "$verdict" != ok ]; then row "$verdict" "$stage" "$name: $what" "$figures"; fi
  done < <("$GPU/gpu_check" "$@" "$run/truth" "$run/logs" 2>"$run/check.err")
  [ -s "$run/check.err" ] && sed 's/^/        /' "$run/check.err" | head -n 12
  # An operation that was aborted is rightly called incomplete; everything else must be complete for the
  # user's tool, too.
  if ! "$build/nccl-inspector" check -q "${partial[@]}" "$run/logs" >"$run/inspector" 2>&1 && [ ${#partial[@]} = 0 ]; then
    bad=1
    row FAIL "$stage" "$name: nccl-inspector check" "$(tail -n 1 "$run/inspector" | cut -c1-200)"
  fi
  [ $bad = 1 ] || [ $all = 1 ] || row ok "$stage" "$name" "$line; $n checks"
  [ $bad = 1 ] || [ $keep = 1 ] || rm -rf "$run/logs"
  return $bad
}

# ---- what works here? --------------------------------------------------------------------------------------
start_mps() {
  export CUDA_MPS_PIPE_DIRECTORY=$WORK/mps CUDA_MPS_LOG_DIRECTORY=$WORK/mps
  mkdir -p "$WORK/mps"
  timeout 20 nvidia-cuda-mps-control -d >"$WORK/mps.out" 2>&1 && mps_runs=1 && return 0
  unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
  return 1
}
stop_mps() {
  [ "${mps_runs:-0}" = 1 ] && echo quit | timeout 20 nvidia-cuda-mps-control >/dev/null 2>&1
  mps_runs=0
  unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}

# layout [NAME=value ...]: does one AllReduce work? The first one of a machine reads NCCL from its disk.
try() {
  layout=$1
  shift
  tries=$((${tries:-0} + 1))
  run=$WORK/probe-$tries-$layout
  mkdir -p "$run"
  env NCCL_DEBUG=INFO "$@" NCCL_PROFILER_PLUGIN="$plugin" NCCL_INSPECTOR_ENABLE=1 \
    NCCL_INSPECTOR_DUMP_DIR="$run/logs" timeout -k 5 100 \
    "$GPU/gpu_drive" --out "$run/truth" --nccl "$nccl" \
    "${cuda[@]}" --ranks $ranks --seconds 60 --stall 60 --layout "$layout" --plans probe \
    >"$run/out" 2>&1
}
# What containers are known to lack, one at a time: memory by cuMem, a large /dev/shm, multicast.
remedies=("" "NCCL_CUMEM_ENABLE=0 NCCL_CUMEM_HOST_ENABLE=0" "NCCL_SHM_DISABLE=1" "NCCL_NVLS_ENABLE=0 NCCL_RAS_ENABLE=0")
try_remedies() { # layout: as try; what helps stays set
  local r rc first=''
  local -a vars
  for r in "${remedies[@]}"; do
    read -ra vars <<<"$r"
    try "$1" "${vars[@]}"
    rc=$?
    [ -z "$first" ] && first=$run
    [ $rc = 77 ] && return 77
    if [ $rc = 0 ]; then
      [ -n "$r" ] &&
        export "${vars[@]}" && row info probe "set from here on" "$r: without it, $(reason "$first/out")"
      return 0
    fi
  done
  run=$first
  return 1
}

stage_probe() {
  local gpus=1 rc
  stage=probe mps_runs=0
  [ $fake = 1 ] || gpus=$(timeout 30 nvidia-smi -L 2>/dev/null | grep -c '^GPU')
  if [ -n "$forced" ]; then
    try "$forced" ||
      { row FAIL probe "layout $forced" "$(reason "$run/out")"; tail -n 20 "$run/out"; exit 1; }
    layouts=("$forced") layout=$forced
    [ "$forced" != gpus ] || turns=0
    row ok probe "used below" "layout $forced, $ranks ranks, NCCL $version"
    return
  fi
  try_remedies hostid
  rc=$?
  if [ $rc = 77 ]; then
    echo "gpu_validate: the CUDA driver finds no GPU here. Nothing was run."
    exit 77
  fi
  if [ $rc = 0 ]; then
    layouts+=(hostid)
    row ok probe "2 ranks on one GPU, NCCL_HOSTID each" "works; they take turns on the GPU"
  else
    row info probe "2 ranks on one GPU, NCCL_HOSTID each" "fails: $(reason "$run/out")"
  fi
  if [ $mps = 1 ] && [ $rc = 0 ] && command -v nvidia-cuda-mps-control >/dev/null; then
    if start_mps && try hostid; then
      turns=0
      row ok probe "the same under MPS" "works; they run at the same time"
    else
      stop_mps
      row info probe "the same under MPS" "does not work here; times of ranks that take turns contain waiting"
    fi
  fi
  if [ "$release" -lt 23000 ]; then
    row info probe "2 ranks on one GPU, NCCL's own way" "not in this release: 2.30 is the first that has it"
  elif try multirank; then
    layouts+=(multirank)
    row ok probe "2 ranks on one GPU, NCCL's own way" "NCCL_MULTI_RANK_GPU_ENABLE=1 works"
  else
    row info probe "2 ranks on one GPU, NCCL's own way" "fails: $(reason "$run/out")"
  fi
  if [ "$gpus" -ge 2 ]; then
    [ "$gpus" -gt 8 ] && gpus=8
    ranks=$gpus
    if try gpus; then
      layouts=(gpus "${layouts[@]}") turns=0
      row ok probe "one rank a GPU" "$ranks ranks"
    else
      ranks=2
      row FAIL probe "one rank a GPU" "$(reason "$run/out")"
    fi
  fi
  if [ ${#layouts[@]} = 0 ]; then
    row FAIL probe "a run at all" "$(reason "$run/out")"
    sed 's/^/        /' "$run/out" | tail -n 20
    exit 1
  fi
  layout=${layouts[0]}
  row info probe "used below" "layout $layout, $ranks ranks, NCCL $version"
  if [ $fake = 0 ]; then
    NCCL_PROFILER_PLUGIN=$plugin NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR=$WORK/doctor timeout 60 \
      "$build/nccl-inspector" doctor --nccl "$nccl" >"$WORK/doctor.txt" 2>&1
    row info probe "nccl-inspector doctor" "ended with $?; $(grep -m 1 'is release' "$WORK/doctor.txt" | cut -c1-160)"
  fi
}

# ---- the end -----------------------------------------------------------------------------------------------
save() { # what there is so far, without what is large
  tar -C "$WORK" --exclude=./mps --exclude='callbacks-*' --exclude=./recordings -czf "$out/details.tar.gz" . \
    2>/dev/null
  # What comes back from such a machine is often limited.
  [ "$(stat -c %s "$out/details.tar.gz")" -lt 15000000 ] ||
    tar -C "$WORK" --exclude=./mps --exclude='callbacks-*' --exclude=./recordings --exclude='*/logs' -czf \
    "$out/details.tar.gz" . 2>/dev/null
  table >"$out/table.txt"
  { cat test/gpu/validation_head.md; echo; sed 's/^/    /' "$out/machine.txt"; echo; echo '| verdict | stage | what | figures |'; echo '|---|---|---|---|'
    sed 's/|/\\|/g;s/\t/ | /g;s/^/| /;s/$/ |/' "$out/table.tsv"; } >"$out/validation.md"
}
table() {
  awk -F'\t' '{printf "%-4s  %-10s %-52s %s\n", $1, $2, $3, $4}' "$out/table.tsv"
  echo
  awk -F'\t' '{n[$1]++} END {
    printf "%d rows ok, %d failed, %d for information\n", n["ok"], n["FAIL"], n["info"]
    print n["FAIL"] ? "VERDICT: FAILED" : n["ok"] ? "VERDICT: PASSED" : "VERDICT: NOTHING WAS CHECKED"
  }' "$out/table.tsv"
}
finish() {
  local rc=$?
  trap - EXIT
  stop_mps
  [ $rc = 77 ] && { rm -rf "$WORK"; exit 77; }
  save
  echo
  echo "== result (NCCL $version, $((SECONDS - t0)) s; all of it in $out)"
  table
  rm -rf "$WORK"
  grep -q '^FAIL' "$out/table.tsv" && exit 1
  exit $rc
}
