#!/usr/bin/env bash
# Where the index lies, and whose is believed: folders that cannot be written, no HOME, a full disk, other
# users, root.
umask 022
. "$(dirname "$0")/../../lib/case.sh"
need_users 64001
at_exit 'umount "$TMP/full" 2>/dev/null'
cp "$BUILD/nccl-inspector" "$TMP/nccl-inspector"
I=$TMP/nccl-inspector
chmod 755 "$TMP" "$I"
made() { # name owner -> $TMP/name: logs of that owner
  "$BUILD/test/host/loggen" "$TMP/$1" --ranks 2 --node 2 --ops 200 --format ours --comm-name --gzip \
    --member-lines 40
  chown -R "$2:$2" "$TMP/$1"
}
as() { # uid home command...
  local uid=$1 home=$2
  shift 2
  env -u XDG_CACHE_HOME -u HOME ${home:+HOME="$home"} setpriv --reuid "$uid" --regid "$uid" --clear-groups \
    "$@"
}
folder() { echo "$TMP/$1/.nccl-inspector-index"; }
check() { # uid home logs options...: as without an index, and $notes on stderr
  local want got
  want=$("$I" check --no-index "$TMP/$3")
  got=$(as "$1" "$2" "$I" check "${@:4}" "$TMP/$3" 2>"$TMP/err") || fail "check as $1 of $3: exit $?"
  [ "$got" = "$want" ] || fail "check as $1 of $3: another result"
  notes=$(grep -c ': the index of ' "$TMP/err" || true)
}

# A folder of one's own: beside the logs. Another reader uses it, and so does root.
made own 64001
check 64001 /nowhere own --reindex
[ "$notes" = 0 ] && [ -f "$(folder own)/index" ] || fail "no index beside one's own logs"
[ "$(stat -c %u "$(folder own)/index")" = 64001 ] || fail "the index belongs to somebody else"
sleep 2.1
as 64001 /nowhere "$I" index --quiet "$TMP/own"
"$I" index "$TMP/own" | grep -q "^2 logs: 2 indexed as before" || fail "root does not use the owner's index"

# Root leaves none in another user's folder, nor does anybody where he may not write: the cache, else a note.
made theirs 64001
mkdir "$TMP/home"
HOME=$TMP/home "$I" check --quiet --reindex "$TMP/theirs" >"$TMP/out" 2>"$TMP/err"
[ ! -e "$(folder theirs)" ] || fail "root has written into another user's folder"
[ -n "$(ls "$TMP/home/.cache/nccl-inspector/index")" ] && [ ! -s "$TMP/err" ] ||
  fail "root's cache is not used"
mkdir "$TMP/home2" && chown 64002 "$TMP/home2"
check 64002 "$TMP/home2" theirs --reindex
[ "$notes" = 0 ] && [ -n "$(ls "$TMP/home2/.cache/nccl-inspector/index")" ] || fail "the cache is not used"
check 64002 "" theirs --reindex
[ "$notes" = 1 ] || fail "without HOME: $notes notes"
check 64002 "" theirs
[ "$notes" = 0 ] || fail "small logs are told of"
XDG_CACHE_HOME=$TMP/xdg "$I" index --quiet "$TMP/theirs"
[ -n "$(ls "$TMP/xdg/nccl-inspector/index")" ] || fail "XDG_CACHE_HOME is not used"

# A stranger's index is not believed, whatever it says: here it says that there are no losses in logs that
# have some.
made good 64002
made bad 64001
rm "$TMP/bad"/*0.log.gz
as 64002 /nowhere "$I" index --quiet "$TMP/good"
mkdir -p "$(folder bad)"
cp -p "$(folder good)/index" "$(folder bad)/index"
want=$("$I" check --no-index "$TMP/bad") || true
got=$(as 64003 "" "$I" check "$TMP/bad" 2>"$TMP/err") || true
[ "$got" = "$want" ] || fail "a stranger's index is believed"
grep -q "belongs neither to the owner of the logs nor to you" "$TMP/err" ||
  fail "nothing is said of a stranger's index"
# A link in its place is not followed.
rm "$(folder bad)/index" && ln -s "$(folder good)/index" "$(folder bad)/index"
got=$(as 64002 "" "$I" check "$TMP/bad" 2>/dev/null) || true
[ "$got" = "$want" ] || fail "a link is followed"

# The same of hang's own file: root leaves none in another user's folder, and a stranger's is not believed.
# The forged one knows the logs by size, times and inode, and says of them what is true of others. Whoever
# wrote it believes it, so it is a good forgery.
mkdir "$TMP/hung" "$TMP/others"
python3 test/lib/hang_logs.py "$TMP/hung" AllReduce AllReduce
for f in "$TMP/hung"/*; do sed 's/"AllReduce"/"Broadcast"/g' "$f" >"$TMP/others/${f##*/}"; done
chown -R 64001:64001 "$TMP/hung" && chown -R 64002:64002 "$TMP/others"
sleep 2.1 # a ctime is trusted from then on
sums() {
  HOME=$TMP/home3 "$I" summary "$@" --no-plots --no-html --output-dir "$TMP/sums" "$TMP/hung" >"$TMP/out" \
    2>"$TMP/err" || true
}
sums --reindex
[ ! -e "$(folder hung)" ] || fail "root's summary has written into another user's folder"
ls "$TMP/home3/.cache/nccl-inspector/index"/*.hang >/dev/null || fail "root's cache has no file of hang's"
rm -r "$TMP/home3"
"$I" hang --reindex "$TMP/hung" >/dev/null || [ $? = 3 ] || fail "hang as root: exit $?"
# That looks with the owner's rights (docs/hang.md), so what it leaves is his.
[ "$(find "$TMP/hung" -printf '%u ' | tr ' ' '\n' | sort -u | xargs)" = 64001 ] ||
  fail "hang as root leaves: $(find "$TMP/hung" -ls)"
rm -r "$(folder hung)"
as 64002 "" "$I" hang --reindex "$TMP/others" >/dev/null || [ $? = 3 ] || fail "hang as 64002: exit $?"
mkdir "$(folder hung)"
python3 - "$(folder others)/hang" "$(folder hung)/hang" "$TMP"/hung/*.jsonl <<'P'
import os, struct, sys, zlib
index, st = open(sys.argv[1], "rb").read(), [os.stat(f) for f in sorted(sys.argv[3:])]
# exporter/index/shelf.h
stats = b"".join(struct.pack("<QQqq", s.st_size, s.st_ino, s.st_mtime_ns, s.st_ctime_ns) for s in st)
open(sys.argv[2], "wb").write(index[:-len(stats) - 4] + stats + struct.pack("<I", zlib.crc32(stats)))
P
chown 64002:64002 "$(folder hung)/hang"
hangs_in() { # uid function: what hang tells that user of the logs; $notes on stderr
  local rc=0
  as "$1" "" "$I" hang "$TMP/hung" >"$TMP/out" 2>"$TMP/err" || rc=$?
  [ $rc = 3 ] || fail "hang as $1: exit $rc"
  grep -q "$2" "$TMP/out" || fail "hang as $1 does not tell of $2: $(cat "$TMP/out")"
  notes=$(grep -c 'belongs neither to the owner of the logs nor to you' "$TMP/err" || true)
}
hangs_in 64002 Broadcast
[ "$notes" = 0 ] || fail "one's own file of hang's is passed over"
for uid in 64001 64003 0; do
  hangs_in $uid AllReduce
  [ "$notes" = 1 ] || fail "hang as $uid: $notes notes of a stranger's file"
  [ "$(stat -c %u "$(folder hung)/hang")" = 64002 ] || fail "hang as $uid has replaced a stranger's file"
done
sums
grep -q 'belongs neither to the owner of the logs nor to you' "$TMP/err" ||
  fail "root's summary: no note of a stranger's file: $(cat "$TMP/err")"
! grep -q Broadcast "$TMP/out" || fail "root's summary believes a stranger's file"

# A full disk, and a place that is none.
mkdir "$TMP/full"
if mount -t tmpfs -o size=64k,mode=777 none "$TMP/full" 2>/dev/null; then
  dd if=/dev/zero of="$TMP/full/x" bs=4k 2>/dev/null || true
  check 64001 /nowhere own --reindex --index-dir "$TMP/full"
  [ "$notes" = 1 ] || fail "a full disk: $notes notes"
  [ -z "$(find "$TMP/full" -name '.tmp-*')" ] || fail "a full disk: something is left"
fi
check 64001 /nowhere own --index-dir /dev/null/x
[ "$notes" = 1 ] || fail "no folder: $notes notes"
! "$I" index --index-dir /dev/null/x "$TMP/own" 2>/dev/null ||
  fail "index says that it has written what it has not"
finish
