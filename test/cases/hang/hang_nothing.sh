#!/usr/bin/env bash
# hang, recover, snapshot and boxes where there is nothing to work with: no folder, an empty one, a file in
# its place, no boxes, boxes and folders of another user. Each says which file, why, and what to do; nobody is
# told that all is well.
. "$(dirname "$0")/../../lib/hang.sh"
mkdir "$TMP/empty" "$TMP/out"
echo "not a log" >"$TMP/text.txt"
: >"$TMP/none.jsonl"
I=$INSPECTOR

# gives exit-code REGEX COMMAND... : exit code, and a line of the messages that the extended expression
# matches
gives() {
  local code=$1 want=$2
  shift 2
  RC=0
  timeout 20 "$@" >"$TMP/said" 2>&1 </dev/null || RC=$?
  [ "$RC" = "$code" ] || { fail "${*#"$INSPECTOR"}: exit code $RC, expected $code"; cat "$TMP/said"; }
  grep -qE -- "$want" "$TMP/said" || { fail "${*#"$INSPECTOR"}: does not say: $want"; cat "$TMP/said"; }
}

nobox=(--box-dir "$BOXES")
gives 1 "^nccl-inspector hang: $TMP/gone: No such file or directory\. The folder is that of NCCL_INSPECTOR_DUMP_DIR" "$I" hang "$TMP/gone" "${nobox[@]}"
gives 1 "^nccl-inspector hang: $TMP/empty: holds neither logs .* nor black boxes" "$I" hang "$TMP/empty" \
  "${nobox[@]}"
gives 1 "^nccl-inspector hang: $BOXES: no black box of this machine\. .*snapshot" "$I" hang "$TMP/empty" \
  "${nobox[@]}"
gives 1 "^nccl-inspector hang: $TMP/text.txt: no line in it is one of a log" "$I" hang "$TMP/text.txt" \
  "${nobox[@]}"
gives 1 "^nccl-inspector hang: $TMP/none.jsonl: no line in it is one of a log" "$I" hang "$TMP/none.jsonl" \
  "${nobox[@]}"
gives 1 "^nccl-inspector hang: /dev/null: cannot be read: neither a file nor a folder" "$I" hang /dev/null \
  "${nobox[@]}"
gives 1 '"verdict":"no_data",.*"job":\{"state":"no_data"' "$I" hang "$TMP/empty" "${nobox[@]}" --json

gives 1 "^nccl-inspector recover: $TMP/gone: No such file or directory" "$I" recover "$TMP/gone" "${nobox[@]}"
gives 0 "^nothing to recover" "$I" recover "$TMP/empty" "${nobox[@]}"
gives 0 "^nothing to recover" "$I" recover "${nobox[@]}"
gives 1 "^nccl-inspector snapshot: $TMP/gone: No such file or directory" "$I" snapshot "$TMP/gone" \
  "${nobox[@]}" --output "$TMP/out"
gives 0 "^nothing to copy" "$I" snapshot "${nobox[@]}" --output "$TMP/out"
gives 1 "^nccl-inspector snapshot: --output $TMP/text.txt: Not a directory" "$I" snapshot \
  "${nobox[@]}" --output "$TMP/text.txt"
gives 0 "^nothing to copy" "$I" snapshot "${nobox[@]}" --output "$TMP/a/b"

# Boxes of another job: passed over by all three, and said to be.
job hang_late
hangs "the other job" world "ReduceScatter 0" never_called=2 inside=0,1,3
gives 1 "^nccl-inspector hang: $BOXES: 4 black boxes of processes that log elsewhere, passed over" "$I" hang \
  "$TMP/empty" "${nobox[@]}"
gives 0 "^nccl-inspector snapshot: $BOXES: 4 black boxes of processes that log elsewhere" "$I" snapshot \
  "$TMP/empty" "${nobox[@]}" --output "$TMP/out"
[ -z "$(ls "$TMP/out")" ] || fail "boxes of another job were copied: $(ls "$TMP/out")"
gives 0 "^$TMP/out/.*\.box" "$I" snapshot "$TMP/logs" "${nobox[@]}" --output "$TMP/out"
[ "$(find "$TMP/out" -name '*.box' | wc -l)" = 4 ] || fail "four boxes, not $(ls "$TMP/out")"
# boxes goes by the folder of the logs as the others do.
gives 1 "^nccl-inspector boxes: $TMP/gone: No such file or directory\." "$I" boxes "$TMP/gone" "${nobox[@]}"
gives 0 "^nccl-inspector boxes: $BOXES: 4 black boxes of processes that log elsewhere, passed over" "$I" \
  boxes "$TMP/empty" "${nobox[@]}"
gives 0 '"boxes":\[\]' "$I" boxes "$TMP/empty" "${nobox[@]}" --json
gives 2 "^4 black boxes, .*" "$I" boxes "$TMP/logs" "$TMP/gone" "${nobox[@]}"
gives 0 "^4 black boxes, .*" "$I" boxes "$TMP/logs" "${nobox[@]}"
gives 0 "^4 black boxes, .*" "$I" boxes "${nobox[@]}"
# A path that is not there beside one that is; one that a box names may come yet.
gives 1 "^nccl-inspector snapshot: $TMP/gone: No such file or directory\." "$I" snapshot "$TMP/logs" \
  "$TMP/gone" "${nobox[@]}" --output "$TMP/out"
gives 1 "^nccl-inspector recover: $TMP/gone: No such file or directory\." "$I" recover "$TMP/logs" \
  "$TMP/gone" "${nobox[@]}"
mv "$TMP/logs" "$TMP/kept"
gives 0 "^$TMP/out/.*\.box" "$I" snapshot "$TMP/logs" "${nobox[@]}" --output "$TMP/out"
gives 0 "left alone" "$I" recover "$TMP/logs" "${nobox[@]}" --output "$TMP/out"
gives 0 "^4 black boxes, .*" "$I" boxes "$TMP/logs" "${nobox[@]}"
rm -rf "$TMP/logs" "$TMP/out"/*
mv "$TMP/kept" "$TMP/logs"
"$I" snapshot "$TMP/logs" "${nobox[@]}" --output "$TMP/out" -q
# A box folder that was named and is not there: an error, also where there is enough else to read.
for c in hang recover "snapshot --output $TMP/out"; do
  for p in "$TMP/logs" "$TMP/out" ''; do
    # shellcheck disable=SC2086
    gives 1 "^nccl-inspector ${c%% *}: --box-dir $TMP/gone: No such file or directory\. Give the folder that NCCL_INSPECTOR_BLACKBOX names" "$I" $c $p --box-dir "$TMP/gone"
  done
  # shellcheck disable=SC2086
  gives 1 "^nccl-inspector ${c%% *}: --box-dir $TMP/text.txt: Not a directory\." "$I" $c --box-dir "$TMP/text.txt"
done
gives 0 "^nccl-inspector snapshot: --box-dir $TMP/gone: No such file" "$I" snapshot --box-dir "$TMP/gone" \
  --output "$TMP/out" --exit-zero
mkdir "$TMP/part"
for b in $(find "$TMP/out" -name '*.box' | head -n 3); do cp "$b" "$TMP/part"; done
gives 2 "no data of 1 of the 4 ranks of world" "$I" hang "$TMP/part"

# Of another user: only root can become one.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  cp "$I" "$TMP/nccl-inspector"
  chmod 755 "$TMP" "$BOXES"
  chmod 700 "$TMP/empty"
  mkdir "$BOXES/private"
  chmod 700 "$BOXES/private"
  as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups "$TMP/nccl-inspector")
  gives 1 "^nccl-inspector hang: $BOXES: 4 black boxes of other users \(one is of uid 0\).*Run as that user" \
    "${as_nobody[@]}" hang "${nobox[@]}"
  gives 1 "^nccl-inspector hang: $TMP/empty: Permission denied\. Run as the user of the job" \
    "${as_nobody[@]}" hang "$TMP/empty" "${nobox[@]}"
  gives 0 "^nccl-inspector recover: $BOXES: 4 black boxes of other users" \
    "${as_nobody[@]}" recover "${nobox[@]}"
  gives 1 "^nccl-inspector recover: $TMP/empty: Permission denied" \
    "${as_nobody[@]}" recover "$TMP/empty" "${nobox[@]}"
  gives 1 "^nccl-inspector snapshot: --output $TMP/out: Permission denied" \
    "${as_nobody[@]}" snapshot "${nobox[@]}" --output "$TMP/out"
  gives 1 "^nccl-inspector recover: --box-dir $BOXES/private: Permission denied\. Run as the user" \
    "${as_nobody[@]}" recover --box-dir "$BOXES/private"
  chmod 777 "$TMP/out"
  gives 0 "^nccl-inspector snapshot: $BOXES: 4 black boxes of other users" \
    "${as_nobody[@]}" snapshot "${nobox[@]}" --output "$TMP/out"
else
  echo "not root, or no setpriv: boxes of another user are not tried"
fi
finish
