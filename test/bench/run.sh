#!/usr/bin/env bash
# make bench: the budgets of docs/benchmarks.md, each the median of RUNS (default 5) runs, on a machine
# otherwise quiet.
#   RIVAL_SO=path   runs the callback rows on another plugin too; RIVAL_ENV="NAME=value ..." is set for it
#                   alone
#   BENCH=callbacks|dump|events|gpu|agent|all   RUNS=5
set -eu
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build}
RUNS=${RUNS:-5}
SO=$BUILD/libnccl-profiler-inspector.so
NOOP=$BUILD/test/noop.so
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# Settings of the caller would change what is measured.
while IFS= read -r v; do unset "$v"; done < <(env | sed -n 's/^\(NCCL_[A-Z0-9_]*\)=.*/\1/p')
read -ra rival_env <<<"${RIVAL_ENV:-}"

# Other programs on the machine are not what is measured: with the right to it, the programs here run before
# them (SCHED_FIFO, the plugin's threads too). That changed the collective's row from 0.24 to 0.15 us on a
# machine in use.
first=()
if chrt -f 50 true 2>/dev/null; then first=(chrt -f 50); fi

# A command with an empty dump directory.
fresh() { # command...
  rm -rf "$tmp/d"
  NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR=$tmp/d "${first[@]}" "$@" 2>/dev/null
}
middle() { sort -g | awk '{v[NR]=$1} END {print NR ? v[int((NR+1)/2)] : "nan"}'; }
# Runs a command RUNS times; prints the median of the named number of its output.
median() { # name command...
  local name=$1
  shift
  for _ in $(seq "$RUNS"); do fresh "$@"; done | awk -v n="$name" '$1 == n {print $2}' | middle
}
row() { printf '| %-60s | %13s | %-9s | %s |\n' "$1" "$2" "$3" "$4"; }
us() {
  NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=$1; export NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS
}

echo "machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores; $(uname -sr); $(gcc --version | head -n 1)"
echo "commit: $(git rev-parse --short HEAD 2>/dev/null || echo none); median of $RUNS runs${first[*]:+, real-time priority}; load $(cut -d' ' -f1-3 /proc/loadavg)"
[ -z "${RIVAL_SO:-}" ] || echo "rival: $RIVAL_SO ${RIVAL_ENV:-}"
echo
printf '| %-60s | %13s | %-9s | %s |\n|---|---|---|---|\n' measured value bound unit

wanted() { case ${BENCH:-all} in all | "$1") ;; *) return 1 ;; esac; }

# The plugins in turn on bench_burst, RUNS times; every figure of each run is a line of
# $tmp/PLUGIN.SHAPE.FIGURE. A net is the difference to the do-nothing plugin's run beside it, and the rows are
# medians of those and of their ratios.
shape() { # name: arguments of bench_burst
  case $1 in
    v*) echo "--interface ${1#v}" ;;
    channels*) echo "--channels ${1#channels}" ;;
    long) echo "--ops 100000" ;;
    comms*) echo "--comms ${1#comms}" ;;
  esac
}
burst() { # plugin .so shape [environment]
  local who=$1 so=$2 which=$3 name value args
  shift 3
  read -ra args <<<"$(shape "$which")"
  while read -r name value; do
    echo "$value" >>"$tmp/$who.$which.$name"
  done < <(fresh env "$@" "$BUILD/test/bench/bench_burst" "$so" "${args[@]}")
}
nets() { # plugin shape figure: us, a line for each run
  paste "$tmp/$1.$2.$3" "$tmp/noop.$2.$3" | awk '{print ($1 - $2) / 1000}'
}
net() { nets "$@" | middle | awk '{printf "%.3f", $1}'; }
ratio() { # plugin shape plugin shape figure
  paste <(nets "$1" "$2" "$5") <(nets "$3" "$4" "$5") | awk '{print $1 / $2}' | middle |
    awk '{printf "%.2f", $1}'
}
rival() { # shape figure: its row and its ratio to ours
  [ -e "$tmp/rival.$1.$2" ] || return 0
  row "  the same, the rival; its ratio to ours" "$(net rival "$1" "$2") / $(ratio rival "$1" mine "$1" "$2")" - us
}

if wanted callbacks; then
  us 1000000
  for _ in $(seq "$RUNS"); do
    for s in v4 v5 v6 channels1 channels32 long comms2; do
      burst noop "$NOOP" $s
      burst mine "$SO" $s
      [ -z "${RIVAL_SO:-}" ] || burst rival "$RIVAL_SO" $s "${rival_env[@]}"
    done
  done
  releases=(- - - - "2.27" "2.28" "2.29 to 2.32")
  for v in 4 5 6; do
    what="v$v (NCCL ${releases[$v]})"
    row "a collective, 8 channels, one thread, $what" "$(net mine v$v one_thread)" "<= 0.17" us
    rival v$v one_thread
    row "starter and poller, $what" "$(net mine v$v two_threads)" - us
    row "  of it the starter / the poller" "$(net mine v$v starter) / $(net mine v$v poller)" - us
    rival v$v two_threads
    row "first burst, memory never touched, $what" "$(net mine v$v first_burst)" - us
    rival v$v first_burst
  done
  for f in one_thread two_threads first_burst; do
    row "v5 / v4, v6 / v4: $f" "$(ratio mine v5 mine v4 $f) / $(ratio mine v6 mine v4 $f)" - ""
  done
  for ch in 1 32; do
    row "a collective, channels: $ch, one thread" "$(net mine channels$ch one_thread)" - us
    rival channels$ch one_thread
    row "a collective, channels: $ch, starter and poller" "$(net mine channels$ch two_threads)" - us
    rival channels$ch two_threads
  done
  row "a collective, 8 channels, one thread, bursts of 100,000" "$(net mine long one_thread)" - us
  row "starter and poller, bursts of 100,000" "$(net mine long two_threads)" - us
  row "two threads on two communicators" "$(net mine comms2 one_thread)" - us
  echo
  echo "single callbacks, ns, empty timer pair subtracted (one run each):"
  for s in "--rate 5000 --threads 1" "--rate 5000 --threads 2" "--rate 0 --threads 1" "--rate 0 --threads 2" \
    "--rate 5000 --channels 1" "--rate 5000 --channels 32"; do
    read -ra args <<<"$s"
    echo "  $s"
    fresh "$BUILD/test/bench/bench_callbacks" "$SO" "${args[@]}" | sed 's/^/    /'
    [ -n "${RIVAL_SO:-}" ] || continue
    echo "  $s, the rival"
    fresh env "${rival_env[@]}" "$BUILD/test/bench/bench_callbacks" "$RIVAL_SO" "${args[@]}" | sed 's/^/    /'
  done
  echo
  row "completing callback, p99, paced 5,000/s" "$(for _ in $(seq "$RUNS"); do fresh "$BUILD/test/bench/bench_callbacks" "$SO"; done | awk '/completing/ {print $6}' | middle)" "<= 150" ns
fi

if wanted dump; then
  D=$BUILD/test/bench/bench_dump
  us 1000000
  row "dump thread CPU per record, burst of 1,000,000" \
    "$(median dump_us_per_record "$D" "$SO" records 1000000 0)" "<= 2.2" us
  row "dump thread CPU per record, paced 20,000/s" \
    "$(median dump_us_per_record "$D" "$SO" records 100000 20000)" "<= 2.2" us
  row "log bytes per record, all keys, 20,000 records a flush" \
    "$(median bytes_per_record "$D" "$SO" records 100000 20000)" "<= 64" B
  row "log bytes per record, 1,000 records a flush" \
    "$(median bytes_per_record "$D" "$SO" records 5000 1000)" "<= 64" B
  us 30000000
  row "memory per operation until written, 200,000 pending, v6" \
    "$(median bytes_per_operation "$D" "$SO" memory 200000 6)" "<= 200" B
  row "the same without API events, v4" "$(median bytes_per_operation "$D" "$SO" memory 200000 4)" "<= 200" B
  row "finalize with nothing pending, 30 s interval" "$(median finalize_ms "$D" "$SO" finalize)" "<= 20" ms
  for i in 1000000 500; do
    us $i
    row "RSS growth, 100 communicators x 2,000 at 50,000/s, $i us" \
      "$(median rss_growth_mb "$D" "$SO" comms 100 2000 50000)" "<= 16" MB
  done
  for i in 0 500 1000000 30000000 -1; do
    us $i
    row "idle CPU of the dump thread, interval $i us" "$(median idle_percent "$D" "$SO" idle 3)" "< 0.1" \
      "% of a core"
    row "finalize with nothing pending, interval $i us" "$(median finalize_ms "$D" "$SO" finalize)" "<= 20" ms
  done
fi

if wanted events; then
  us 1000000
  echo
  echo "ns per callback net of a do-nothing plugin, by kind; bound of proxy steps: 15 (deep)"
  for args in "standard 6" "light 6" "deep 6" "trace 6" "deep 5" "deep 4" "deep 3" "deep 1"; do
    read -r preset version <<<"$args"
    echo "  $preset, interface v$version"
    fresh env NCCL_INSPECTOR_EVENTS="$preset" "$BUILD/test/bench/bench_events" "$SO" "$NOOP" --interface \
      "$version" | sed 's/^/    /'
  done
fi

# Sampling eight GPUs beside a job, on its processor and at idle priority, in turn: not at all, with a library
# that answers at once, with one whose every call takes 200 ms. Without real-time priority: the sampler could
# not run beside that at all.
if wanted gpu; then
  us 1000000
  cpu=$(($(nproc) - 1)) # of those that this process may use, where they are counted from 0
  job() {
    rm -rf "$tmp/d"; NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR=$tmp/d taskset -c $cpu \
      "$BUILD/test/bench/bench_burst" "$1" --bursts 8 2>/dev/null | awk '$1 == "one_thread" {print $2}'
  }
  # exec: what is killed is the sampler, and not a shell around it.
  sampler() {
    export LD_LIBRARY_PATH=$BUILD/test/nvml NI_FAKE_NVML=$tmp/nvml; exec taskset -c $cpu \
      "$BUILD/test/bench/sample_gpus" --seconds 600 --every 100
  }
  for _ in $(seq "$RUNS"); do
    for how in alone quick slow; do
      cp test/fake_nvml/healthy.txt "$tmp/nvml"
      beside=
      if [ $how != alone ]; then
        sampler >/dev/null &
        beside=$!
        sleep 0.5
        # From now on: opening asks each GPU for all once.
        [ $how = quick ] || { { cat test/fake_nvml/healthy.txt; echo "* delay 200"; } >"$tmp/nvml.new"; mv "$tmp/nvml.new" "$tmp/nvml"; }
      fi
      echo "$(job "$SO") $(job "$NOOP")" | awk '{print ($1 - $2) / 1000}' >>"$tmp/gpu.$how"
      [ -z "$beside" ] || { kill $beside; wait $beside || true; } 2>/dev/null
    done
  done
  for how in alone quick slow; do
    case $how in alone) what="a collective, nobody samples" ;; quick) \
      what="  beside 8 GPUs sampled at 10 Hz" ;; slow) what="  the same, each NVML call takes 200 ms" ;; esac
    row "$what" "$(middle <"$tmp/gpu.$how" | awk '{printf "%.3f", $1}')" "as alone" us
  done
  cp test/fake_nvml/healthy.txt "$tmp/nvml"
  row "reading 8 GPUs at 1 Hz: share of the time in NVML" "$(LD_LIBRARY_PATH=$BUILD/test/nvml NI_FAKE_NVML=$tmp/nvml "$BUILD/test/bench/sample_gpus" --seconds 5 --every 1000 | awk '$1 == "busy_percent" {print $2}')" "<= 1" "%"
fi
if wanted agent; then
  BUILD=$BUILD python3 test/bench/bench_agent.py
  [ ! -e test/bench/bench_top.py ] || BUILD=$BUILD python3 test/bench/bench_top.py
fi
