# The stages of scripts/gpu_validate.sh; sourced by it. Each is a function stage_<name> that appends rows to
# the table.
# A row: verdict (ok, FAIL, info), stage, what, figures. What they call is in runs.sh.
# shellcheck disable=SC2154
# ---- correctness -------------------------------------------------------------------------------------------
stage_shapes() {
  local l p best=$layout plans=dtypes,p2p,alltoall,groups,graph,split,nonblocking,comms
  for l in "${layouts[@]}"; do
    layout=$l
    if drive "shapes-$l" 100 --plans $plans --iterations 5 --max-bytes 16777216; then
      rows "shapes-$l"
      continue
    fi
    for p in ${plans//,/ }; do # which of them is it?
      drive "$p-$l" 40 --plans "$p" --iterations 5 --max-bytes 16777216 && rows "$p-$l"
    done
  done
  layout=$best
  if [ "$release" -ge 22900 ]; then
    drive broadcast 40 NCCL_ALLGATHERV_ENABLE=0 --plans dtypes --max-bytes 1048576 && rows broadcast
  fi
}

# A ring and trees of eight, on one GPU: each rank is a host of its own.
stage_many() {
  local ranks=8 best=$layout
  [[ " ${layouts[*]} " = *" hostid "* ]] && layout=hostid
  drive many 60 --plans probe,mix,groups,p2p --iterations 2 --max-bytes 1048576 && rows many
  layout=$best
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
  [ "$release" -ge 23100 ] && newest=7
  for v in 1 2 3 4 5 6 7; do
    if [ $v -gt $newest ]; then
      row info versions "v$v" "NCCL $version does not know it"
    elif ! grep -qa "ncclProfiler_v$v" "$plugin"; then
      row info versions "v$v" "the plugin does not have it"
    else
      local -a how=(--plans 'mix,p2p') check=()
      # Before v4 the plugin is told no communicator's name, and device stamps do not exist; v1 calls
      # ncclUint8 a Float64.
      [ $v -ge 4 ] || how=(--plans mix) check=(--unnamed --any-timing)
      # Without kernel events and without a network nothing calls back at a graph's replay; `mix` has one.
      [ $v -ge 3 ] || how=(--plans groups)
      # The fake speaks what nccl-sim speaks.
      refusable=$((fake && v < 4)) drive "v$v" 40 NI_FORCE_PLUGIN="$plugin" \
        NCCL_PROFILER_PLUGIN="$build/test/force_v$v.so" "${how[@]}" \
        --iterations 3 --max-bytes 4194304 || continue
      local seen
      seen=$(cat "$run"/logs/*.gz 2>/dev/null | gzip -dcq 2>/dev/null | grep -ao '"interface":"v[0-9]"' |
        sort -u | tr -d '"\n')
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
      if refusable=1 drive "$algo-$proto" 30 NCCL_ALGO=$algo NCCL_PROTO=$proto --plans probe,probe \
        --max-bytes 1048576; then
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

# ---- recordings --------------------------------------------------------------------------------------------
stage_record() {
  local gpu n=0 f name sim=$version
  [ "$release" -ge 23100 ] && sim=2.30 # the newest that nccl-sim plays
  gpu=$(gpu_name)
  # With the setting every Broadcast has its kernel events; that 2.29 hides them otherwise is looked at in
  # `shapes`.
  drive record 60 NCCL_ALLGATHERV_ENABLE=0 NCCL_PROFILER_PLUGIN="$build/test/recorder.so" \
    NI_RECORDER_FILE="$WORK/callbacks-%p.rec" --plans mix,groups --iterations 2 \
    --max-bytes 4194304 || return
  mkdir -p "$WORK/recordings"
  for f in "$WORK"/callbacks-*.rec; do
    name=$gpu-nccl$version-$layout-mix-rank$n
    mv "$f" "$WORK/recordings/$name.rec"
    n=$((n + 1))
    rm -rf "$WORK/replay"
    if NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR=$WORK/replay timeout 60 "$build/nccl-sim" --quiet \
      --plugin "$plugin" --nccl "$sim" \
      --replay "$WORK/recordings/$name.rec" --truth "$WORK/replay.truth" >"$WORK/replay.out" 2>&1 &&
      "$build/nccl-sim" --verify "$WORK/replay.truth" "$WORK/replay" >"$WORK/replay.out" 2>&1; then
      row ok record "rank $((n - 1)): replayed" "$(tail -n 1 "$WORK/replay.out")"
    else
      row FAIL record "rank $((n - 1)): replayed" "$(tail -n 1 "$WORK/replay.out" | cut -c1-200)"
    fi
  done
  [ $n -gt 0 ] || { row FAIL record "recordings" "the recorder wrote none"; return; }
  "$GPU/gpu_contract" "$WORK"/recordings/*.rec >"$WORK/contract.rows" 2>&1
  while IFS=$'\t' read -r verdict what figures; do
    [ "$verdict" = FAIL ] && row FAIL record "contract: $what" "$figures"
  done <"$WORK/contract.rows"
  row "$(grep -q '^ok' "$WORK/contract.rows" && echo ok || echo FAIL)" record "contract" \
    "$(grep -c '^ok' "$WORK/contract.rows") statements about NCCL hold"
  pack_recordings
}
gpu_name() {
  sed -n 's/.*device=\([^ ]*\).*/\1/p' "$WORK"/probe-*/truth/truth-0.txt 2>/dev/null | head -n 1 |
    tr 'A-Z' 'a-z' | sed 's/nvidia_//;s/[^a-z0-9]/-/g'
}
pack_recordings() {
  gzip -9 -n -f "$WORK"/recordings/*.rec
  { echo "Recorded by test/plugins/recorder.c during scripts/gpu_validate.sh:"; cat "$out/machine.txt"; } \
    >"$WORK/recordings/$(gpu_name)-nccl$version-$layout.txt"
  tar -C "$WORK" -czf "$out/recordings.tar.gz" recordings
}

# ---- what NCCL 2.31 brought: symmetric kernels, their phases, tags -----------------------------------------
# Windows of symmetric memory want ranks that reach each other's memory; elsewhere the tags are still seen.
stage_symmetric() {
  local best=$layout l n=0 f
  local -a vars=()
  [ "$release" -ge 23100 ] || { row info symmetric "symmetric kernels, tags" "not in this release: 2.31 is the first that tells of them"; return; }
  for l in multirank gpus; do [[ " ${layouts[*]} " != *" $l "* ]] || layout=$l; done
  [[ $standin != *no_device* ]] ||
    vars=(NCCL_P2P_DISABLE=0 NCCL_CUMEM_ENABLE=1 NCCL_TOPO_FILE="$PWD/test/gpu/no_device/nvlink.xml")
  drive symmetric 60 "${vars[@]}" --plans probe,symmetric,tags --iterations 3 && rows symmetric --any-timing # captured ones have the host's time
  if recorded symmetric-recorded "${vars[@]}" --plans probe,symmetric,tags --iterations 3; then
    inferences '' "$WORK"/callbacks-*.rec
    mkdir -p "$WORK/recordings"
    for f in "$WORK"/callbacks-*.rec; do
      mv "$f" "$WORK/recordings/$(gpu_name)-nccl$version-$layout-symmetric-rank$n.rec"
      n=$((n + 1))
    done
    pack_recordings
  fi
  # The same through v6, which has neither tag nor name of the kernel: what can be told of symmetric kernels
  # there.
  recorded symmetric-v6 "${vars[@]}" NI_FORCE_PLUGIN="$build/test/recorder.so" NCCL_PROFILER_PLUGIN="$build/test/force_v6.so" \
    --plans symmetric --iterations 2 && inferences 'v6: ' "$WORK"/callbacks-*.rec
  # KernelCh out of the mask and back in: device and host count apart from there on.
  recorded pause NI_RECORDER_PAUSE=2,5 --plans mix && inferences 'mask: ' "$WORK"/callbacks-*.rec
  recorded pause-symmetric "${vars[@]}" NI_RECORDER_PAUSE=4,9 --plans symmetric --iterations 2 && inferences 'mask, symmetric: ' "$WORK"/callbacks-*.rec
  rm -f "$WORK"/callbacks-*.rec
  layout=$best
}
# name [NAME=value ...] [options of gpu_drive]: as drive, with the recorder: $WORK/callbacks-PID.rec
recorded() {
  rm -f "$WORK"/callbacks-*.rec
  drive "$1" 40 NCCL_PROFILER_PLUGIN="$build/test/recorder.so" NI_RECORDER_FILE="$WORK/callbacks-%p.rec" \
    "${@:2}" --max-bytes 4194304
}
inferences() { # seen_as recordings...: a row for each check; with `seen_as` only those that are new by it
  local seen_as=$1 verdict what figures
  [ -n "$PYTHON" ] || { row info symmetric "inferences" "no Python here"; return; }
  while IFS=$'\t' read -r verdict what figures; do
    case "$seen_as$what" in
      "v6: symmetric-"* | "mask: shift:"* | "mask, symmetric: shift-symmetric:"*) ;;
      *) [ -z "$seen_as" ] || continue ;;
    esac
    case $verdict in PASS) verdict=ok ;; FAIL) ;; *) verdict=info figures='not seen here' ;; esac
    row "$verdict" symmetric "$seen_as$what" "${figures:0:200}"
  done < <("$PYTHON" test/gpu/inferences.py "$release" "${@:2}" 2>"$run/inferences.err" || [ ! -s "$run/inferences.err" ] || printf 'FAIL\tinferences.py\t%s\n' "$(tail -n 1 "$run/inferences.err")")
}

# ---- what does it cost? ------------------------------------------------------------------------------------
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
      [ "$(rest)" -ge 15 ] || break 2
      drive "cost-$name-$round" 8 NCCL_DEBUG=WARN "${vars[@]}" --plans cost --max-bytes 65536 || continue
      "$GPU/gpu_check" --costs "$run/truth" | sed "s/^/$name\t/" >>"$WORK/costs"
      rm -rf "$run/logs"
    done
    [ $((SECONDS - began)) -gt 100 ] || [ $((SECONDS - t0)) -ge "$seconds" ] && break
  done
  # Median over rounds and ranks, less that of the other preset.
  sort -t$'\t' -k1,2 -k3n "$WORK/costs" 2>/dev/null |
    awk -F'\t' -v judged=$((fake == 0 && ${#standin} == 0)) '
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
  while IFS=$'\t' read -r verdict what figures; do
    row "$verdict" cost "$what" "$figures"
  done <"$WORK/cost.rows"
  [ -s "$WORK/cost.rows" ] || row FAIL cost "presets" "no figures"
}

# ---- PyTorch and nccl-tests --------------------------------------------------------------------------------
stage_torch() {
  local mode rank pids port=$((20000 + RANDOM % 20000)) bad how
  [ $fake = 0 ] && timeout 120 "$PYTHON" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null ||
    { row info torch "PyTorch" "not here"; return; }
  local -a common=(GLOO_SOCKET_IFNAME=lo NCCL_DEBUG=INFO NCCL_PROFILER_PLUGIN="$plugin" NCCL_INSPECTOR_ENABLE=1 PYTHONUNBUFFERED=1 PYTHONFAULTHANDLER=1)
  [ "$layout" = gpus ] || common+=(NI_ONE_GPU=1 NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 NCCL_NET=Socket NCCL_NET_PLUGIN=none NCCL_MNNVL_ENABLE=0)
  for how in ddp fsdp torchrun; do
    [ "$(rest)" -ge 45 ] ||
      { row info torch "$seen_as" "not run: the time of --seconds $seconds was over"; continue; }
    run=$WORK/torch-$seen_as pids=() bad=0 port=$((port + 1)) mode=$seen_as
    mkdir -p "$run"
    if [ $seen_as = torchrun ]; then # as users start it; its agent sets the ranks' variables
      mode=ddp
      env "${common[@]}" NCCL_INSPECTOR_DUMP_DIR="$run/logs" timeout -k 5 "$(left 100)" "$PYTHON" -m torch.distributed.run --nnodes 1 \
        --nproc-per-node $ranks --master-addr 127.0.0.1 --master-port $port test/gpu/torch_loop.py \
        --mode $mode --out "$run/truth-%r.json" >"$run/out-all" 2>&1 || bad=$?
    else
      for ((rank = 0; rank < ranks; rank++)); do
        env RANK=$rank WORLD_SIZE=$ranks LOCAL_RANK=$rank MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
          "${common[@]}" NCCL_INSPECTOR_DUMP_DIR="$run/logs" \
          timeout -k 5 "$(left 100)" "$PYTHON" test/gpu/torch_loop.py --mode $mode --out \
          "$run/truth-%r.json" >"$run/out-$rank" 2>&1 &
        pids+=($!)
      done
      for p in "${pids[@]}"; do wait "$p" || bad=$?; done
    fi
    if [ $bad != 0 ]; then
      row FAIL torch "$seen_as: the loop itself" "ended with $bad: $(grep -ah 'Error\|WARN' "$run"/out-* | tail -n 1 | cut -c1-200)"
      save
      continue
    fi
    while IFS=$'\t' read -r verdict what figures; do row "$verdict" torch "$seen_as: $what" "$figures"; done \
      < <("$PYTHON" test/gpu/torch_check.py "$run" 2>"$run/check.err" || printf 'FAIL\tchecker\t%s\n' "$(tail -n 1 "$run/check.err")")
    "$build/nccl-inspector" check -q "$run/logs" >"$run/inspector" 2>&1 &&
      row ok torch "$seen_as: nccl-inspector check" "$(tail -n 1 "$run/inspector")" ||
      row FAIL torch "$seen_as: nccl-inspector check" "$(tail -n 1 "$run/inspector" | cut -c1-200)"
    save
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
  NCCL_PROFILER_PLUGIN="$plugin" NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR="$run/logs" \
    LD_LIBRARY_PATH="$(dirname "$nccl"):${LD_LIBRARY_PATH:-}" \
    timeout -k 5 "$(left 90)" "$perf" -b 32M -e 256M -f 2 -g "$n" -n 20 -w 5 >"$run/out" 2>&1 ||
    { row FAIL nccltests "all_reduce_perf" "$(tail -n 1 "$run/out")"; return; }
  # Its out-of-place bus bandwidth is column 8. Ours: the median over ranks and operations of that size.
  awk '$1 ~ /^[0-9]+$/ && NF >= 12 {print $1, $8}' "$run/out" | while read -r bytes theirs; do
    ours=$(gzip -dcq "$run"/logs/*.gz | grep -aE "\"coll\":\"AllReduce\".*\"nccl_tests_size_bytes\":${bytes}[,}]" | sed -n 's/.*"coll_busbw_gbs":\([0-9.]*\).*/\1/p' | sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}')
    awk -v a="$ours" -v b="$theirs" 'BEGIN {d = b > 0 ? 100 * (a / b - 1) : 100; exit !(d >= -2 && d <= 2)}' && v=ok || v=FAIL
    row $v nccltests "AllReduce of $bytes B" "log ${ours:-none} GB/s, nccl-tests $theirs"
  done
}
