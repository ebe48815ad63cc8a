#!/usr/bin/env bash
# make bench-exporter: records/s per core and peak memory of `nccl-inspector summary`, as a Markdown table.
#   SIZES="100000 1000000 10000000"   RUNS=3   REFERENCE=path/to/perf_summary_exporter.py (with PYTHON=its interpreter)
# Each row is the median of RUNS runs on a machine otherwise quiet; logs are made once in $BUILD/bench-logs.
set -eu
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build}
SIZES=${SIZES:-100000 1000000 10000000}
RUNS=${RUNS:-3}
inspector=$BUILD/nccl-inspector loggen=$BUILD/test/host/loggen
logs=$BUILD/bench-logs
mkdir -p "$logs"
tmp=$(mktemp -d -p "$BUILD")
trap 'rm -rf "$tmp"' EXIT

make_logs() { # name records ranks options...
  local dir=$logs/$1 ops=$(($2 / $3 / 2))
  [ -e "$dir/.done" ] || { rm -rf "$dir"; "$loggen" "$dir" --ranks "$3" --node 8 --ops $ops "${@:4}" && touch "$dir/.done"; }
}
# wall, CPU and peak RSS: medians of RUNS runs.
measure() { # label records options... (input last)
  local label=$1 records=$2 i
  shift 2
  for i in $(seq "$RUNS"); do
    rm -rf "$tmp/out"
    /usr/bin/time -f "%e %U %S %M" -o "$tmp/time" "$inspector" summary --output-dir "$tmp/out" "$@" >/dev/null 2>"$tmp/err" || [ $? = 2 ] || { cat "$tmp/err" >&2; exit 1; }
    tail -n 1 "$tmp/time"
  done | sort -g | awk -v n="$records" -v l="$label" '
    { wall[NR] = $1; cpu[NR] = $2 + $3; if ($4 > rss) rss = $4 }
    END { m = int((NR + 1) / 2); for (i = 1; i <= NR; i++) for (k = i + 1; k <= NR; k++) if (cpu[k] < cpu[i]) { t = cpu[i]; cpu[i] = cpu[k]; cpu[k] = t }
      printf "| %-52s | %9d | %7.2f | %7.2f | %11.0f | %6.0f |\n", l, n, wall[m], cpu[m], n / (cpu[m] + 1e-9), rss / 1024 }'
}
echo "| what | records | wall s | CPU s | records/s per core | peak MB |"
echo "|---|---|---|---|---|---|"
plain="--no-plots --no-html"
for n in $SIZES; do
  make_logs "nvidia-32-$n" "$n" 32 --comm-name --gzip --member-lines 20000
  # shellcheck disable=SC2086
  for jobs in 1 2; do
    measure "NVIDIA lines, 32 files .gz, $jobs core(s)" "$n" $plain --jobs $jobs "$logs/nvidia-32-$n"
  done
done
n=${BENCH_STAGES:-1000000}
make_logs "nvidia-32-$n" "$n" 32 --comm-name --gzip --member-lines 20000
make_logs "nvidia-plain-$n" "$n" 32 --comm-name
make_logs "nvidia-1-$n" "$n" 1 --comm-name --gzip --member-lines 20000
make_logs "ours-32-$n" "$n" 32 --comm-name --format ours --gzip --member-lines 1000
# shellcheck disable=SC2086
{
  measure "one big file .gz, 1 core" "$n" $plain --jobs 1 "$logs/nvidia-1-$n"
  measure "one big file .gz, 2 cores" "$n" $plain --jobs 2 "$logs/nvidia-1-$n"
  measure "our lines, 32 files .gz, 1 core" "$n" $plain --jobs 1 "$logs/ours-32-$n"
  measure "stages: not compressed (difference: inflate)" "$n" $plain --jobs 1 "$logs/nvidia-plain-$n"
  measure "stages: no Parquet (difference: encode)" "$n" $plain --jobs 1 --no-parquet "$logs/nvidia-32-$n"
  measure "stages: no CSV (difference: CSV)" "$n" $plain --jobs 1 --no-csv "$logs/nvidia-32-$n"
  measure "stages: neither (inflate, parse, join, figures)" "$n" $plain --jobs 1 --no-csv --no-parquet "$logs/nvidia-32-$n"
  measure "stages: with plots" "$n" --no-html --jobs 1 "$logs/nvidia-32-$n"
  measure "stages: with plots and page" "$n" --jobs 1 "$logs/nvidia-32-$n"
}
if [ -n "${REFERENCE:-}" ]; then
  rm -rf "$tmp/ref"
  mkdir "$tmp/ref"
  # The reference reads .log.gz and writes into the current folder.
  in=$(realpath "$logs/nvidia-32-$n")
  (cd "$tmp/ref" && /usr/bin/time -f "%e %U %S %M" -o time "${PYTHON:-python3}" "$REFERENCE" --input_dir "$in" --output_dir out >/dev/null 2>&1) || echo "the reference failed"
  tail -n 1 "$tmp/ref/time" | awk -v n="$n" '{ printf "| %-52s | %9d | %7.2f | %7.2f | %11.0f | %6.0f |\n", "NVIDIA exporter with its plots, all cores", n, $1, $2 + $3, n / ($2 + $3), $4 / 1024 }'
else
  echo
  echo "The reference exporter was not measured in this run (REFERENCE is not set)."
fi
