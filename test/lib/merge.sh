# shellcheck disable=SC2154 # $work is the caller's
# Sourced by test/cases/merge/*.sh: one summary of some logs beside shards of them put together. After the caller has set $work.
inspector=${BUILD:-build}/nccl-inspector
case $inspector in /*) ;; *) inspector=$PWD/$inspector ;; esac
failures=0
fail() { echo "FAIL $*"; failures=$((failures + 1)); }
finish() { [ $failures = 0 ] || { echo "$failures failures"; exit 1; }; exit 0; }

# What one summary says and writes: one NAME OPTIONS... LOGS, into $work/NAME.one.
one() {
  local name=$1 rc=0
  shift
  (mkdir "$work/$name.one" && cd "$work/$name.one" && "$inspector" summary --output-dir out "$@" >said 2>errors) || rc=$?
  echo "$rc" >"$work/$name.one/rc"
}
# shards NAME N OPTIONS... LOGS: partials $work/NAME.parts/1 to N.
shards() {
  local name=$1 n=$2 i
  shift 2
  mkdir -p "$work/$name.parts"
  for i in $(seq "$n"); do
    "$inspector" summary --shard "$i/$n" --partial "$work/$name.parts/$i" "$@" >/dev/null || fail "$name: shard $i/$n exits $?"
  done
}
# merged NAME AS FILE...: what merge says and writes, into $work/NAME.AS; output options in $MERGE.
merged() {
  local name=$1 as=$2 rc=0
  shift 2
  # shellcheck disable=SC2086
  (mkdir "$work/$name.$as" && cd "$work/$name.$as" && "$inspector" merge --output-dir out ${MERGE:-} "$@" >said 2>errors) || rc=$?
  echo "$rc" >"$work/$name.$as/rc"
}
# The same bytes in everything but the times in front of the lines of output.log.
same() {
  local a=$work/$1.one b=$work/$1.$2 x
  for x in "$a" "$b"; do [ ! -e "$x/out/output.log" ] || sed -i 's/^[0-9-]* [0-9:,]* - //' "$x/out/output.log"; done
  sed -i 's/^nccl-inspector merge:/nccl-inspector summary:/' "$b/errors"
  diff -r "$a" "$b" >"$work/diff" || { fail "$1: $2 is another result than one summary"; head -n 12 "$work/diff" | cut -c 1-300; }
}
parts() { find "$work/$1.parts" -maxdepth 1 -type f | LC_ALL=C sort; }
