# The stages of scripts/gpu_validate.sh; sourced by it. Each is a function stage_<name> that appends rows to the table.
# A row: verdict (ok, FAIL, info), stage, what, figures. Variables used: build plugin GPU nccl cuda version release out WORK
# seconds t0 mps keep fake.
# shellcheck disable=SC2154
layout=hostid turns=1 # turns: ranks take turns on one GPU, so times contain waiting
net_layout=hostid     # the one with network transport and proxy events
ranks=2
stage=probe

row() { # verdict stage what figures
  printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" >>"$out/table.tsv"
  printf '  %-4s  %-10s %-38s %s\n' "$1" "$2" "$3" "$4"
}
left() { # at most $1 seconds, and not beyond the whole time
  local rest=$((seconds - (SECONDS - t0)))
  [ $rest -lt 10 ] && rest=10
  [ $rest -lt "$1" ] && echo $rest || echo "$1"
}

machine() {
  echo "date:     $(date -u +%Y-%m-%dT%H:%M:%SZ)"
  echo "commit:   $("$build/nccl-inspector" --version)"
  echo "system:   $(. /etc/os-release 2>/dev/null; echo "${PRETTY_NAME:-unknown}"), kernel $(uname -r), $(uname -m), $(nproc) processors"
  echo "cpu:      $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
  if [ $fake = 1 ]; then
    echo "gpu:      none: the fake NCCL was used, nothing here says anything about a GPU"
  else
    nvidia-smi --query-gpu=name,driver_version,memory.total,compute_mode --format=csv,noheader 2>/dev/null | sed 's/^/gpu:      /'
  fi
  echo "nccl:     $version ($nccl)"
  echo "python:   $(python3 -c 'import torch, sys; print(sys.version.split()[0], "torch", torch.__version__)' 2>/dev/null || echo 'no PyTorch')"
}

# drive NAME LIMIT [NAME=value ...] [options of gpu_drive]: a run with the plugin, unless the variables say another one.
# Leaves $run/truth and $run/logs.
drive() {
  local name=$1 limit=$2 rc
  shift 2
  local -a vars=()
  while [[ ${1:-} == *=* ]]; do vars+=("$1"); shift; done
  limit=$(left "$limit")
  run=$WORK/$name
  rm -rf "$run"
  mkdir -p "$run"
  env NCCL_DEBUG="${NCCL_DEBUG:-WARN}" NCCL_PROFILER_PLUGIN="$plugin" NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR="$run/logs" \
    "${vars[@]}" timeout -k 5 $((limit + 70)) "$GPU/gpu_drive" --out "$run/truth" --nccl "$nccl" "${cuda[@]}" \
    --ranks $ranks --seconds "$limit" --layout "$layout" "$@" >"$run/out" 2>&1
  rc=$?
  [ $rc = 0 ] && return 0
  row "$([ "${refusable:-0}" = 1 ] && echo info || echo FAIL)" "$stage" "$name: the run itself" "gpu_drive ended with $rc: $(grep -a 'gpu_drive:\|WARN' "$run/out" | tail -n 1 | cut -c1-200)"
  # A client that died may have taken MPS with it.
  if [ "${mps_runs:-0}" = 1 ]; then stop_mps; start_mps; fi
  if [ "${refusable:-0}" = 0 ]; then # whose fault is it?
    env NCCL_DEBUG=WARN "${vars[@]}" NCCL_PROFILER_PLUGIN=none timeout -k 5 $((limit + 70)) "$GPU/gpu_drive" --out "$run/without" --nccl "$nccl" \
      "${cuda[@]}" --ranks $ranks --seconds "$limit" --layout "$layout" "$@" >"$run/out-without" 2>&1
    row info "$stage" "$name: the same without a plugin" "gpu_drive ended with $?"
  fi
  return $rc
}

# rows NAME [--all] [options of gpu_check]: what the checkers say of the last run. Without --all, what is well becomes one
# row, and only what is not has its own. The logs of a run that is well go.
rows() {
  local name=$1 bad=0 all=0 verdict what figures n=0 line=''
  shift
  [ "${1:-}" = --all ] && all=1 && shift
  [ $turns = 1 ] && set -- --shared-gpu "$@"
  # The fake's device is a clock and its proxy a thread that a busy machine keeps waiting: times prove nothing there.
  [ $fake = 1 ] && set -- --any-timing "$@"
  local -a partial=()
  grep -q 'how=\(abort\|lost\)' "$run"/truth/*.txt && partial=(--partial)
  while IFS=$'\t' read -r verdict what figures; do
    [ "$verdict" = FAIL ] && bad=1
    [ "$verdict" = ok ] && n=$((n + 1))
    [ "$what" = "each operation once" ] && line=$figures
    if [ $all = 1 ] || [ "$verdict" != ok ]; then row "$verdict" "$stage" "$name: $what" "$figures"; fi
  done < <("$GPU/gpu_check" "$@" "$run/truth" "$run/logs" 2>"$run/check.err")
  [ -s "$run/check.err" ] && sed 's/^/        /' "$run/check.err" | head -n 12
  # An operation that was aborted is rightly called incomplete; everything else must be complete for the user's tool, too.
  if ! "$build/nccl-inspector" check -q "${partial[@]}" "$run/logs" >"$run/inspector" 2>&1 && [ ${#partial[@]} = 0 ]; then
    bad=1
    row FAIL "$stage" "$name: nccl-inspector check" "$(tail -n 1 "$run/inspector" | cut -c1-200)"
  fi
  [ $bad = 1 ] || [ $all = 1 ] || row ok "$stage" "$name" "$line; $n checks"
  [ $bad = 1 ] || [ $keep = 1 ] || rm -rf "$run/logs"
  return $bad
}

# ---- what works here? ---------------------------------------------------------------------------------------------
start_mps() {
  export CUDA_MPS_PIPE_DIRECTORY=$WORK/mps CUDA_MPS_LOG_DIRECTORY=$WORK/mps
  mkdir -p "$WORK/mps"
  timeout 20 nvidia-cuda-mps-control -d >"$WORK/mps.out" 2>&1 && mps_runs=1
}
stop_mps() {
  [ "${mps_runs:-0}" = 1 ] && echo quit | timeout 20 nvidia-cuda-mps-control >/dev/null 2>&1
  mps_runs=0
  unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}

try() { # layout: does one AllReduce work?
  layout=$1
  run=$WORK/probe-$1${mps_runs:+-mps$mps_runs}
  mkdir -p "$run"
  NCCL_DEBUG=INFO NCCL_PROFILER_PLUGIN="$plugin" NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR="$run/logs" timeout -k 5 60 \
    "$GPU/gpu_drive" --out "$run/truth" --nccl "$nccl" "${cuda[@]}" --ranks $ranks --seconds 20 --layout "$1" --plans probe \
    >"$run/out" 2>&1
}

stage_probe() {
  local gpus=1 best='' rc
  stage=probe mps_runs=0
  [ $fake = 1 ] || gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
  try hostid
  rc=$?
  if [ $rc = 77 ]; then
    echo "gpu_validate: the CUDA driver finds no GPU here. Nothing was run."
    exit 77
  fi
  if [ $rc = 0 ]; then
    best=hostid
    row ok probe "2 ranks on one GPU, NCCL_HOSTID each" "works; they take turns on the GPU"
  else
    row info probe "2 ranks on one GPU, NCCL_HOSTID each" "fails: $(grep -a 'WARN\|gpu_drive:' "$run/out" | tail -n 1 | cut -c1-160)"
  fi
  if [ $mps = 1 ] && [ -n "$best" ] && command -v nvidia-cuda-mps-control >/dev/null; then
    if start_mps && try hostid; then
      turns=0
      row ok probe "the same under MPS" "works; they run at the same time"
    else
      stop_mps
      row info probe "the same under MPS" "does not work here; times of ranks that take turns contain waiting"
    fi
  fi
  if try multirank; then
    best=multirank
    row ok probe "2 ranks on one GPU, NCCL's own way" "NCCL_MULTI_RANK_GPU_ENABLE=1 works"
  else
    row info probe "2 ranks on one GPU, NCCL's own way" "not in this release (2.30 has it), or fails"
  fi
  if [ "$gpus" -ge 2 ]; then
    [ "$gpus" -gt 8 ] && gpus=8
    ranks=$gpus
    if try gpus; then
      best=gpus turns=0
      row ok probe "one rank a GPU" "$ranks ranks"
    else
      ranks=2
      row FAIL probe "one rank a GPU" "$(grep -a 'WARN\|gpu_drive:' "$run/out" | tail -n 1 | cut -c1-160)"
    fi
  fi
  if [ -z "$best" ]; then
    row FAIL probe "a run at all" "$(grep -a 'WARN\|gpu_drive:' "$run/out" | tail -n 1 | cut -c1-200)"
    sed 's/^/        /' "$run/out" | tail -n 20
    exit 1
  fi
  layout=$best
  row info probe "used below" "layout $layout, $ranks ranks, NCCL $version"
}

# ---- correctness --------------------------------------------------------------------------------------------------
stage_shapes() {
  local l best=$layout
  for l in $net_layout $([ "$layout" = "$net_layout" ] || echo "$layout"); do
    layout=$l
    drive "shapes-$l" 100 --plans dtypes,p2p,alltoall,groups,graph,split,nonblocking,comms --iterations 5 --max-bytes 16777216 &&
      rows "shapes-$l"
  done
  layout=$best
  if [ "$release" -ge 22900 ]; then
    drive broadcast 40 NCCL_ALLGATHERV_ENABLE=0 --plans dtypes --max-bytes 1048576 && rows broadcast
  fi
}

stage_ends() {
  local end
  for end in destroy finalize exit quick_exit abort; do
    drive "$end" 40 --plans mix,groups --end $end --max-bytes 4194304 && rows "$end"
  done
}

stage_versions() {
  local v newest=4
  [ "$release" -ge 22800 ] && newest=5
  [ "$release" -ge 22900 ] && newest=6
  for v in 1 2 3 4 5 6; do
    if [ $v -gt $newest ]; then
      row info versions "v$v" "NCCL $version does not know it"
    elif ! grep -qa "ncclProfiler_v$v" "$plugin"; then
      row info versions "v$v" "the plugin does not have it"
    else
      local -a how=(--plans 'mix,p2p') check=()
      # Before v4 the plugin is told no communicator's name, and device stamps do not exist; v1 calls ncclUint8 a Float64.
      [ $v -ge 4 ] || how=(--plans mix) check=(--unnamed --any-timing)
      # The fake speaks what nccl-sim speaks.
      refusable=$((fake && v < 4)) drive "v$v" 40 NI_FORCE_PLUGIN="$plugin" NCCL_PROFILER_PLUGIN="$build/test/force_v$v.so" "${how[@]}" \
        --iterations 3 --max-bytes 4194304 || continue
      local seen
      seen=$(cat "$run"/logs/*.gz 2>/dev/null | gzip -dcq 2>/dev/null | grep -ao '"interface":"v[0-9]"' | sort -u | tr -d '"\n')
      [ "$seen" = "interface:v$v" ] || row FAIL versions "v$v" "the log says ${seen:-nothing}"
      rows "v$v" "${check[@]}"
    fi
  done
}

stage_algos() {
  local algo proto
  for algo in Ring Tree; do
    for proto in Simple LL LL128; do
      # NCCL refuses what this machine's links do not carry; that is no finding.
      if refusable=1 drive "$algo-$proto" 30 NCCL_ALGO=$algo NCCL_PROTO=$proto --plans probe,probe --max-bytes 1048576; then
        rows "$algo-$proto"
      fi
    done
  done
}

stage_sweep() {
  local max=268435456
  [ $fake = 1 ] && max=33554432
  drive sweep 120 NCCL_ALLGATHERV_ENABLE=0 --plans sweep --iterations 5 --max-bytes $max && rows sweep --all
}

# ---- recordings ---------------------------------------------------------------------------------------------------
stage_record() {
  local gpu n=0 f name sim=$version
  [ "$release" -ge 23100 ] && sim=2.30 # the newest that nccl-sim plays
  gpu=$(sed -n 's/.*device=\([^ ]*\).*/\1/p' "$WORK"/probe-*/truth/truth-0.txt 2>/dev/null | head -n 1 | tr 'A-Z' 'a-z' | sed 's/nvidia_//;s/[^a-z0-9]/-/g')
  # With the setting every Broadcast has its kernel events; that 2.29 hides them otherwise is looked at in `shapes`.
  drive record 60 NCCL_ALLGATHERV_ENABLE=0 NCCL_PROFILER_PLUGIN="$build/test/recorder.so" NI_RECORDER_FILE="$WORK/callbacks-%p.rec" --plans mix,groups --iterations 2 \
    --max-bytes 4194304 || return
  mkdir -p "$WORK/recordings"
  for f in "$WORK"/callbacks-*.rec; do
    name=$gpu-nccl$version-$layout-mix-rank$n
    mv "$f" "$WORK/recordings/$name.rec"
    n=$((n + 1))
    rm -rf "$WORK/replay"
    if NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR=$WORK/replay timeout 60 "$build/nccl-sim" --quiet --plugin "$plugin" --nccl "$sim" \
      --replay "$WORK/recordings/$name.rec" --truth "$WORK/replay.truth" >"$WORK/replay.out" 2>&1 &&
      "$build/nccl-sim" --verify "$WORK/replay.truth" "$WORK/replay" >"$WORK/replay.out" 2>&1; then
      row ok record "rank $((n - 1)): replayed" "$(tail -n 1 "$WORK/replay.out")"
    else
      row FAIL record "rank $((n - 1)): replayed" "$(tail -n 1 "$WORK/replay.out" | cut -c1-200)"
    fi
  done
  [ $n -gt 0 ] || { row FAIL record "recordings" "the recorder wrote none"; return; }
  "$GPU/gpu_contract" "$WORK"/recordings/*.rec >"$WORK/contract.rows" 2>&1
  while IFS=$'\t' read -r verdict what figures; do [ "$verdict" = FAIL ] && row FAIL record "contract: $what" "$figures"; done <"$WORK/contract.rows"
  row "$(grep -q '^ok' "$WORK/contract.rows" && echo ok || echo FAIL)" record "contract" "$(grep -c '^ok' "$WORK/contract.rows") statements about NCCL hold"
  gzip -9 -n -f "$WORK"/recordings/*.rec
  { echo "Recorded by test/plugins/recorder.c during scripts/gpu_validate.sh:"; cat "$out/machine.txt"; } >"$WORK/recordings/$gpu-nccl$version-$layout.txt"
  tar -C "$WORK" -czf "$out/recordings.tar.gz" recordings
}

# ---- what does it cost? -------------------------------------------------------------------------------------------
presets=(
  "none NCCL_PROFILER_PLUGIN=none"
  "empty-mask-0 NCCL_PROFILER_PLUGIN=NOOP NI_NOOP_MASK=0"
  "empty NCCL_PROFILER_PLUGIN=NOOP"
  "off NCCL_INSPECTOR_ENABLE=0"
  "default NCCL_INSPECTOR_ENABLE=1"
  "every-500us NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=500"
  "at-once NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=0"
  "verbose NCCL_INSPECTOR_DUMP_VERBOSE=1"
)
stage_cost() {
  local round p name what rounds=3
  local -a vars
  [ $fake = 1 ] && rounds=1
  local began=$SECONDS
  rm -f "$WORK/costs"
  for ((round = 1; round <= rounds; round++)); do # in turn, so that what the machine does meanwhile meets all
    for p in "${presets[@]}"; do
      read -r name what <<<"$p"
      read -ra vars <<<"${what//NOOP/$build/test/noop.so}"
      drive "cost-$name-$round" 8 "${vars[@]}" --plans cost --max-bytes 65536 || continue
      "$GPU/gpu_check" --costs "$run/truth" | sed "s/^/$name\t/" >>"$WORK/costs"
      rm -rf "$run/logs"
    done
    [ $((SECONDS - began)) -gt 100 ] || [ $((SECONDS - t0)) -ge "$seconds" ] && break
  done
  # Median over rounds and ranks, less that of the other preset.
  sort -t$'\t' -k1,2 -k3n "$WORK/costs" 2>/dev/null | awk -F'\t' -v judged=$((1 - fake)) '
    function flush() { if (n) m[key] = v[int((n + 1) / 2)]; n = 0 }
    { k = $1 SUBSEP $2; if (k != key) { flush(); key = k; split($2, w, "_"); whats[$2] = 1; names[$1] = 1 } v[++n] = $3 }
    function us(name, what) { return m[name SUBSEP what] / 1e3 }
    END {
      flush()
      split("8 65536", sizes, " ")
      for (name in names) for (i = 1; i <= 2; i++) {
        size = sizes[i]; figures = ""; verdict = "info"
        for (f = split("enqueue elapsed cpu", kinds, " "); f >= 1; f--) {
          what = kinds[f] "_" size
          if (!((name SUBSEP what) in m)) continue
          x = us(name, what); none = us("none", what); empty = us("empty", what)
          # Ours against the empty plugin with the same events: the calls may cost 1 us and 5 % more.
          if (judged && f == 1 && (name == "default" || name == "every-500us")) verdict = x - empty <= 1 + empty / 20 ? "ok" : "FAIL"
          figures = sprintf("%s %.2f us (%+.2f, %+.2f)%s", kinds[f], x, x - none, x - empty, figures == "" ? "" : ", " figures)
        }
        printf "%s\t%s, %d B\t%s\n", verdict, name, size, figures
      }
    }' | sort -t$'\t' -k2 >"$WORK/cost.rows"
  row info cost "an operation's host time" "in brackets: to no plugin, to the empty one; medians over at most $rounds rounds and the ranks"
  while IFS=$'\t' read -r verdict what figures; do row "$verdict" cost "$what" "$figures"; done <"$WORK/cost.rows"
  [ -s "$WORK/cost.rows" ] || row FAIL cost "presets" "no figures"
}

# ---- PyTorch and nccl-tests ---------------------------------------------------------------------------------------
stage_torch() {
  local mode rank pids port=$((20000 + RANDOM % 20000)) bad
  [ $fake = 0 ] && python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null || { row info torch "PyTorch" "not here"; return; }
  for mode in ddp fsdp; do
    run=$WORK/torch-$mode pids=() bad=0 port=$((port + 1))
    rm -rf "$run"
    mkdir -p "$run"
    for ((rank = 0; rank < ranks; rank++)); do
      local -a own=(NI_DEVICE=$rank)
      [ "$layout" = gpus ] || own=(NI_DEVICE=0 NCCL_HOSTID=ni-host-$rank NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 NCCL_NET=Socket)
      env RANK=$rank WORLD_SIZE=$ranks LOCAL_RANK=$rank MASTER_ADDR=127.0.0.1 MASTER_PORT=$port GLOO_SOCKET_IFNAME=lo "${own[@]}" \
        NCCL_PROFILER_PLUGIN="$plugin" NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR="$run/logs" \
        timeout -k 5 "$(left 100)" python3 test/gpu/torch_loop.py --mode $mode --out "$run/truth-$rank.json" >"$run/out-$rank" 2>&1 &
      pids+=($!)
    done
    for p in "${pids[@]}"; do wait "$p" || bad=$?; done
    if [ $bad != 0 ]; then
      row FAIL torch "$mode: the loop itself" "ended with $bad: $(grep -ah . "$run"/out-* | tail -n 1 | cut -c1-200)"
      continue
    fi
    while IFS=$'\t' read -r verdict what figures; do row "$verdict" torch "$mode: $what" "$figures"; done \
      < <(python3 test/gpu/torch_check.py "$run" 2>"$run/check.err" || printf 'FAIL\tchecker\t%s\n' "$(tail -n 1 "$run/check.err")")
    "$build/nccl-inspector" check -q "$run/logs" >"$run/inspector" 2>&1 && row ok torch "$mode: nccl-inspector check" "$(tail -n 1 "$run/inspector")" ||
      row FAIL torch "$mode: nccl-inspector check" "$(tail -n 1 "$run/inspector" | cut -c1-200)"
  done
}

stage_nccltests() {
  local perf n
  n=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
  perf=$(command -v all_reduce_perf || ls "${NCCL_TESTS_HOME:-/nonexistent}"/build/all_reduce_perf /opt/nccl-tests/build/all_reduce_perf 2>/dev/null | head -n 1)
  [ -n "$perf" ] || { row info nccltests "nccl-tests" "not installed (NCCL_TESTS_HOME)"; return; }
  [ "$n" -ge 2 ] || { row info nccltests "nccl-tests" "needs two GPUs in one process; here is one"; return; }
  run=$WORK/nccltests
  mkdir -p "$run"
  NCCL_PROFILER_PLUGIN="$plugin" NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR="$run/logs" LD_LIBRARY_PATH="$(dirname "$nccl"):${LD_LIBRARY_PATH:-}" \
    timeout -k 5 "$(left 90)" "$perf" -b 32M -e 256M -f 2 -g "$n" -n 20 -w 5 >"$run/out" 2>&1 || { row FAIL nccltests "all_reduce_perf" "$(tail -n 1 "$run/out")"; return; }
  # Its out-of-place bus bandwidth is column 8. Ours: the median over ranks and operations of that size.
  awk '$1 ~ /^[0-9]+$/ && NF >= 12 {print $1, $8}' "$run/out" | while read -r bytes theirs; do
    ours=$(gzip -dcq "$run"/logs/*.gz | grep -aE "\"coll\":\"AllReduce\".*\"nccl_tests_size_bytes\":${bytes}[,}]" | sed -n 's/.*"coll_busbw_gbs":\([0-9.]*\).*/\1/p' | sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}')
    awk -v a="$ours" -v b="$theirs" 'BEGIN {d = b > 0 ? 100 * (a / b - 1) : 100; exit !(d >= -2 && d <= 2)}' && v=ok || v=FAIL
    row $v nccltests "AllReduce of $bytes B" "log ${ours:-none} GB/s, nccl-tests $theirs"
  done
}

# ---- the end ------------------------------------------------------------------------------------------------------
save() { # what there is so far, without what is large
  tar -C "$WORK" --exclude=mps --exclude='callbacks-*' -czf "$out/details.tar.gz" . 2>/dev/null
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
