#!/usr/bin/env bash
# make bench-index: what the index gains and costs, as Markdown. Commands run in turn, with and without it,
# RUNS rounds; CPU seconds (user and system) are medians, so that a busy machine meets both alike.
#   RECORDS=1000000   RUNS=5; of the last table, what making the index costs `check`, RUNS=9 says more
#   LONG=8000000 records of NVIDIA's in long logs, in all; they take minutes to be made. 0: left out
set -eu
cd "$(dirname "$0")/../.."
BUILD=$(realpath "${BUILD:-build}")
RECORDS=${RECORDS:-1000000} RUNS=${RUNS:-5} LONG=${LONG:-8000000}
inspector=$BUILD/nccl-inspector logs=$BUILD/bench-logs/index-$RECORDS
tmp=$(mktemp -d -p "$BUILD")
trap 'rm -rf "$tmp"' EXIT
ops=$((RECORDS / 64)) # 32 ranks, each in two communicators; one operation of each every 5 ms
if [ ! -e "$logs/.done" ]; then
  rm -rf "$logs" && mkdir -p "$(dirname "$logs")"
  "$BUILD/test/host/loggen" "$logs" --ranks 32 --node 8 --ops "$ops" --comm-name --format ours --gzip \
    --member-lines 340
  touch "$logs/.done"
fi
cpu() { # file command...
  local to=$1 rc=0
  shift
  rm -rf "$tmp/out"
  /usr/bin/time -q -f "%U %S" -o "$tmp/time" "$inspector" "$@" >/dev/null 2>&1 || rc=$?
  [ "$rc" = 0 ] || [ "$rc" = 2 ] || { echo "$*: exit $rc" >&2; exit 1; }
  tail -n 1 "$tmp/time" | awk '{ print $1 + $2 }' >>"$tmp/$to"
}
median() {
  sort -g "$tmp/$1" |
    awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}
row() { # what, options of the one, of the other, command...
  local what=$1 one=$2 other=$3
  shift 3
  rm -f "$tmp/one" "$tmp/other"
  for ((i = 0; i < RUNS; i++)); do
    cpu one "$@" "$one" "$logs"
    cpu other "$@" "$other" "$logs"
  done
  awk -v what="$what" -v a="$(median one)" -v b="$(median other)" \
    'BEGIN { printf "| %s | %.2f | %.2f | %s |\n", what, a, b, (b > 0.005) ? sprintf("%.2f", a / b) : "above " int(a / 0.01) }'
}
summary=(summary -q --no-plots --no-html --output-dir "$tmp/out")
indexed() { # records, files: makes the index of $logs, and says how large it is
  local all size
  "$inspector" index --quiet --reindex "$logs"
  sleep 2.1
  "$inspector" index --quiet "$logs"
  size=$(stat -c %s "$logs/.nccl-inspector-index/index")
  all=$(du -cb "$logs"/*.gz | tail -n 1 | cut -f1)
  awk -v n="$1" -v f="$2" -v a="$all" -v b="$size" 'BEGIN { printf "%d records in %d files of %.0f MB together; the index has %.2f %% of that.\n", n, f, a / 1e6, 100 * b / a }'
}
thousandth() { # operations of a rank in one communicator: sets slice
  local seconds=$(($1 / 200))
  slice=(--since "+$((seconds / 2))s" --until "+$(awk -v s=$seconds 'BEGIN { printf "%.3f", int(s / 2) + s / 1000 }')s")
}
thousandth $ops
indexed "$RECORDS" 32
echo
echo "| question | CPU s without index | CPU s with it | times |"
echo "|---|---|---|---|"
row "\`summary\`, a thousandth of the time" --no-index --progress=json "${summary[@]}" "${slice[@]}"
row "\`summary\`, one log of 32" --no-index --progress=json "${summary[@]}" --comm world --rank 31
"$inspector" summary --approximate -q --output-dir "$tmp/out" "$logs" >/dev/null # makes the sums
row "\`summary --approximate\`" --no-index --progress=json "${summary[@]}" --approximate
row "\`check\`" --no-index --progress=json check -q
row "\`show\`" --no-index --progress=json show --comm world --sn 100
row "\`trace\`, the last second" --no-index --progress=json trace -q --since=-1s -o "$tmp/out.json.gz"
"$inspector" hang "$logs" >/dev/null # it has an index of its own
row "\`hang\`" --no-index --progress=json hang
row "\`summary\` of everything, an index being made" --no-index --reindex "${summary[@]}"
row "\`check\` of everything, an index being made" --no-index --reindex check -q

# Slices of long logs as NVIDIA's come, one gzip member each: the bounds are 50 times for a thousandth of the
# time, 20 for one rank.
long() { # ranks, of a node: a log each
  logs=$BUILD/bench-logs/long-$LONG-$1
  if [ ! -e "$logs/.done" ]; then
    rm -rf "$logs"
    "$BUILD/test/host/loggen" "$logs" --ranks "$1" --node "$2" --ops $((LONG / $1 / 2)) --format v4.0 --gzip
    touch "$logs/.done"
  fi
  echo
  indexed "$LONG" "$1"
  echo
  echo "| NVIDIA's logs, one member each | CPU s without index | CPU s with it | times |"
  echo "|---|---|---|---|"
  thousandth $((LONG / $1 / 2))
  row "\`summary\`, a thousandth of the time, $1 logs" --no-index --progress=json \
    "${summary[@]}" "${slice[@]}"
  row "\`summary\`, one rank of $1" --no-index --progress=json "${summary[@]}" --rank $(($1 - 1))
}
[ "$LONG" = 0 ] || { long 8 4 && long 32 8; }

# What making it costs, in pairs: the bound is 5 %.
cost() { # what, options of loggen...
  local what=$1 dir=$BUILD/bench-logs/cost-$RECORDS-${2#--}-${3#--}-$#
  shift
  [ -e "$dir" ] || "$BUILD/test/host/loggen" "$dir" --ranks 8 --node 4 --ops $((RECORDS / 16)) --format "$@"
  rm -f "$tmp/one" "$tmp/other"
  for ((i = 0; i < RUNS; i++)); do
    cpu one check -q --no-index "$dir"
    cpu other check -q --reindex "$dir"
  done
  awk -v what="$what" -v a="$(median one)" -v b="$(median other)" \
    'BEGIN { printf "| %s | %.2f | %.2f | %.1f %% |\n", what, a, b, 100 * (b / a - 1) }'
}
echo
echo "| \`check\`, 8 logs | CPU s without index | CPU s with it being made | more |"
echo "|---|---|---|---|"
cost "ours, gzip, members of 1,000 lines" ours --gzip --member-lines 1000 --comm-name
cost "ours, plain text" ours --comm-name
cost "NVIDIA's lines, members of 1,000 lines" v4.0 --gzip --member-lines 1000
cost "NVIDIA's, one member a file" v4.0 --gzip
