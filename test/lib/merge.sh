# Sourced by test/cases/merge/*.sh: one summary of some logs beside shards of them put together; and what
# test/lib/case.sh has.
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/case.sh"

# What one summary says and writes: one NAME OPTIONS... LOGS, into $TMP/NAME.one.
one() {
  local name=$1 rc=0
  shift
  (mkdir "$TMP/$name.one" && cd "$TMP/$name.one" && "$INSPECTOR" summary --output-dir out "$@" >said 2>errors) || rc=$?
  echo "$rc" >"$TMP/$name.one/rc"
}
# shards NAME N OPTIONS... LOGS: partials $TMP/NAME.parts/1 to N.
shards() {
  local name=$1 n=$2 i
  shift 2
  mkdir -p "$TMP/$name.parts"
  for i in $(seq "$n"); do
    "$INSPECTOR" summary --shard "$i/$n" --partial "$TMP/$name.parts/$i" "$@" >/dev/null ||
      fail "$name: shard $i/$n exits $?"
  done
}
# merged NAME AS FILE...: what merge says and writes, into $TMP/NAME.AS; output options in $MERGE.
merged() {
  local name=$1 as=$2 rc=0
  shift 2
  # shellcheck disable=SC2086
  (mkdir "$TMP/$name.$as" && cd "$TMP/$name.$as" && "$INSPECTOR" merge --output-dir out ${MERGE:-} "$@" >said 2>errors) || rc=$?
  echo "$rc" >"$TMP/$name.$as/rc"
}
# The same bytes in everything but the times in front of the lines of output.log.
same() {
  local a=$TMP/$1.one b=$TMP/$1.$2 x
  for x in "$a" "$b"; do
    [ ! -e "$x/out/output.log" ] || sed -i 's/^[0-9-]* [0-9:,]* - //' "$x/out/output.log"
  done
  sed -i 's/^nccl-inspector merge:/nccl-inspector summary:/' "$b/errors"
  diff -r "$a" "$b" >"$TMP/diff" ||
    { fail "$1: $2 is another result than one summary"; head -n 12 "$TMP/diff" | cut -c 1-300; }
}
parts() { find "$TMP/$1.parts" -maxdepth 1 -type f | LC_ALL=C sort; }
