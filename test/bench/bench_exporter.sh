#!/usr/bin/env bash
# make bench-exporter: `nccl-inspector summary` in figures, as Markdown: whole runs over formats, files and
# cores; CPU by stage; beside NVIDIA's exporter where it is there.
#   SIZES="100000 1000000 10000000"   RUNS=5   RUNS_LARGE=3 (10,000,000 and above)   PARTS="runs stages
#                                              reference"
#   REFERENCE=path/to/perf_summary_exporter.py, with PYTHON=an interpreter that has its packages
# All commands of a table run in turn, one round after the other, so that a busy minute meets all of them;
# each figure is the median of its rounds, peak memory the largest. Logs are made once in $BUILD/bench-logs.
set -eu
cd "$(dirname "$0")/../.."
BUILD=$(realpath "${BUILD:-build}")
SIZES=${SIZES:-100000 1000000 10000000}
RUNS=${RUNS:-5} RUNS_LARGE=${RUNS_LARGE:-3}
PARTS=${PARTS:-runs stages reference}
inspector=$BUILD/nccl-inspector loggen=$BUILD/test/host/loggen logs=$BUILD/bench-logs
mkdir -p "$logs"
tmp=$(mktemp -d -p "$BUILD")
trap 'rm -rf "$tmp"' EXIT

# Logs of `records` lines: make_logs nvidia|ours files records [plain]. Prints the folder.
make_logs() {
  local dir=$logs/$1-$2-$3${4:+-$4} format=() gzip=(--gzip --member-lines 1000)
  [ "$1" = ours ] && format=(--format ours)
  [ -n "${4:-}" ] && gzip=()
  if [ ! -e "$dir/.done" ]; then
    rm -rf "$dir"
    # Every rank is in two communicators.
    "$loggen" "$dir" --ranks "$2" --node 8 --ops $(($3 / $2 / 2)) --comm-name \
      "${format[@]}" "${gzip[@]}" && touch "$dir/.done"
  fi
  echo "$dir"
}

# measure key command...: adds "wall cpu peak-kB" to the key's file.
measure() {
  local key=$1 rc=0
  shift
  rm -rf "$tmp/out"
  (cd "$tmp" && /usr/bin/time -q -f "%e %U %S %M" -o time "$@" >/dev/null 2>err) || rc=$?
  case $rc in
    0 | 2) tail -n 1 "$tmp/time" | awk '{ print $1, $2 + $3, $4 }' >>"$tmp/$key.runs" ;;
    *) cat "$tmp/err" >&2; exit 1 ;;
  esac
}
summary() { # key options... input
  local key=$1
  shift
  measure "$key" "$inspector" summary -q --output-dir "$tmp/out" "$@"
}
# Median of column 1 (wall) or 2 (CPU), largest of column 3.
median() {
  cut -d' ' -f"$2" "$tmp/$1.runs" | sort -g |
    awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}
peak() { cut -d' ' -f3 "$tmp/$1.runs" | sort -g | tail -n 1; }
rounds() { if [ "$1" -ge 10000000 ]; then echo "$RUNS_LARGE"; else echo "$RUNS"; fi; }

runs_table() {
  local n jobs files format dir key
  echo "Summary, Parquet and CSV (\`--no-plots --no-html\`), .gz, page cache warm; medians of $RUNS rounds, of 10 million records $RUNS_LARGE:"
  echo
  echo "| lines | files | records | cores | wall s | CPU s | records/s per core | peak MB |"
  echo "|---|---|---|---|---|---|---|---|"
  for n in $SIZES; do
    for format in nvidia ours; do for files in 32 1; do make_logs $format $files "$n" >/dev/null; done; done
    for _ in $(seq "$(rounds "$n")"); do
      for format in nvidia ours; do for files in 32 1; do for jobs in 1 2; do
        dir=$(make_logs $format $files "$n")
        summary "$format-$files-$n-$jobs" --no-plots --no-html --jobs $jobs "$dir"
      done; done; done
    done
    for format in nvidia ours; do for files in 32 1; do for jobs in 1 2; do
      key=$format-$files-$n-$jobs
      awk -v f=$format -v files=$files -v n="$n" -v j=$jobs -v w="$(median "$key" 1)" \
        -v c="$(median "$key" 2)" -v r="$(peak "$key")" \
        'BEGIN { printf "| %s | %d | %d | %d | %.2f | %.2f | %.0f | %.0f |\n", f == "ours" ? "ours" : "NVIDIA", files, n, j, w, c, n / (c + 1e-9), r / 1024 }'
    done; done; done
  done
}

# Each stage is a difference of two runs that differ in it, on one core.
stages_table() {
  local n format gz text
  echo "CPU by stage, 32 files, one core, differences of medians:"
  echo
  echo "| lines | records | inflate | parse | join, figures, tables | CSV | Parquet | plots | page |"
  echo "|---|---|---|---|---|---|---|---|---|"
  for n in $SIZES; do for format in nvidia ours; do
    gz=$(make_logs $format 32 "$n") text=$(make_logs $format 32 "$n" plain)
    local bare="--no-plots --no-html --no-csv --no-parquet --jobs 1" k=$format-$n
    for _ in $(seq "$(rounds "$n")"); do
      # shellcheck disable=SC2086
      {
        summary "$k-gz-parse" $bare --coll no-such-function "$gz"
        summary "$k-parse" $bare --coll no-such-function "$text"
        summary "$k-bare" $bare "$gz"
        summary "$k-csv" --no-plots --no-html --no-parquet --jobs 1 "$gz"
        summary "$k-parquet" --no-plots --no-html --jobs 1 "$gz"
        summary "$k-page" --no-plots --jobs 1 "$gz"
        summary "$k-all" --jobs 1 "$gz"
      }
    done
    awk -v f=$format -v n="$n" -v gz="$(median "$k-gz-parse" 2)" -v parse="$(median "$k-parse" 2)" \
      -v bare="$(median "$k-bare" 2)" \
      -v csv="$(median "$k-csv" 2)" -v pq="$(median "$k-parquet" 2)" -v page="$(median "$k-page" 2)" \
      -v all="$(median "$k-all" 2)" '
      function each(s) { return sprintf("%.2f s, %.2f µs", s, s * 1e6 / n) }
      BEGIN { printf "| %s | %d | %s | %s | %s | %s | %s | %.2f s | %.2f s |\n", f == "ours" ? "ours" : "NVIDIA", n, each(gz - parse),
              each(parse), each(bare - gz), each(csv - bare), each(pq - csv), all - page, page - pq }'
  done; done
}

reference_table() {
  local n dir drawn python
  [ -e "${REFERENCE:-}" ] || { echo "NVIDIA's exporter was not measured in this run (REFERENCE is not set)."; return; }
  REFERENCE=$(realpath "$REFERENCE")
  python=$(command -v "${PYTHON:-python3}")
  # The same without its four kinds of picture.
  sed 's/^if __name__ == .__main__.:/for name in ("scatter_plot", "combined_scatter_plot", "histogram", "boxplot"):\n    globals()["generate_" + name] = lambda *a: None\n&/' \
    "$REFERENCE" >"$tmp/noplots.py"
  echo "Beside NVIDIA's exporter, same data, in turn, two cores; NVIDIA lines, 32 files .gz; medians of ${RUNS_REFERENCE:-3}:"
  echo
  echo "| what | records | wall s | CPU s | peak MB of one process | times ours, wall | times ours, CPU |"
  echo "|---|---|---|---|---|---|---|"
  for n in $SIZES; do
    [ "$n" -le "${REFERENCE_MAX:-1000000}" ] || continue
    dir=$(make_logs nvidia 32 "$n")
    for _ in $(seq "${RUNS_REFERENCE:-3}"); do
      summary "we-bare-$n" --no-plots --no-html --jobs 2 "$dir"
      measure "they-bare-$n" "$python" "$tmp/noplots.py" --input_dir "$dir" --output_dir out
      summary "we-all-$n" --jobs 2 "$dir"
      drawn=$(find "$tmp/out" -name '*.png' | wc -l)
      measure "they-all-$n" "$python" "$REFERENCE" --input_dir "$dir" --output_dir out
    done
    row() { # text key other's key
      awk -v t="$1" -v n="$n" -v w="$(median "$2" 1)" -v c="$(median "$2" 2)" -v r="$(peak "$2")" \
        -v w0="$(median "$3" 1)" -v c0="$(median "$3" 2)" \
        'BEGIN { printf "| %s | %d | %.2f | %.2f | %.0f | %.1f | %.1f |\n", t, n, w, c, r / 1024, w / w0, c / c0 }'
    }
    row "ours, summary + Parquet + CSV" "we-bare-$n" "we-bare-$n"
    row "NVIDIA's without its pictures" "they-bare-$n" "we-bare-$n"
    row "ours, all: $drawn pictures and the page" "we-all-$n" "we-all-$n"
    row "NVIDIA's, all: $(find "$tmp/out" -name '*.png' | wc -l) pictures" "they-all-$n" "we-all-$n"
  done
}

for part in $PARTS; do
  "${part}_table"
  echo
done
