#!/usr/bin/env bash
# doctor: folders that cannot be written, are full, or live in memory. The trial writes there as the plugin
# does.
. "$(dirname "$0")/../../lib/doctor.sh"
doctor "to be made" 0
says ok directory "a trial log was written"
[ ! -e "$TMP/logs" ] || { fail "the trial left a folder"; }
mkdir -p "$TMP/logs/a/b"
doctor "already there" 0
says ok directory "a trial log was written"
[ -d "$TMP/logs/a/b" ] && [ -z "$(ls "$TMP/logs/a/b")" ] || { fail "the folder went, or is not empty"; }
doctor "with tokens" 0 NCCL_INSPECTOR_DUMP_DIR="$TMP/logs/%h/%j" SLURM_JOB_ID=77
says ok directory "logs/.*/77/"
[ -z "$(find "$TMP/logs" -mindepth 1 -maxdepth 1 ! -name a)" ] ||
  { fail "a folder of the trial is left"; ls "$TMP/logs"; }

echo >"$TMP/file"
doctor "below a file" 2 NCCL_INSPECTOR_DUMP_DIR="$TMP/file/logs"
says problem directory "the plugin says: .*Not a directory"
if [ "$(id -u)" != 0 ]; then
  mkdir -m 555 "$TMP/readonly"
  doctor "read-only" 2 NCCL_INSPECTOR_DUMP_DIR="$TMP/readonly/logs"
  says problem directory "the plugin says: .*Permission denied"
fi

# A small file system of its own needs a namespace, or root.
mkdir "$TMP/full"
own_boxes
boxes=$BOXES
[ "$boxes" != 0 ] || boxes=1
cat >"$TMP/inside" <<EOS
mount -t tmpfs -o size=64k none "$TMP/full" || exit 77
case \$1 in
  full) dd if=/dev/zero of="$TMP/full/filler" bs=4k count=64 2>/dev/null; export NCCL_INSPECTOR_DUMP_DIR="$TMP/full/logs" ;;
  readonly) mount -o remount,ro "$TMP/full" || exit 77; export NCCL_INSPECTOR_DUMP_DIR="$TMP/full/logs" ;;
esac
export NCCL_PROFILER_PLUGIN="$PLUGIN" NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_BLACKBOX=$boxes
timeout 60 "$BIN" doctor --no-sim --shm-dir "$TMP/full" >"$TMP/out" 2>&1
EOS
in_namespace() {
  unshare --mount $([ "$(id -u)" = 0 ] || echo --map-root-user --user) bash "$TMP/inside" "$1" 2>"$TMP/why"
}
for how in full readonly; do
  CASE="$how file system" rc=0
  in_namespace $how || rc=$?
  if [ $rc = 2 ]; then
    says problem directory "the plugin says\|are free"
    says warning shm "."
    [ "$boxes" = 1 ] || rmdir "$boxes" ||
      { fail "$CASE: the trial's black box is left behind"; rm -rf "$boxes"; }
    [ "$boxes" = 1 ] || mkdir "$boxes"
  elif [ $rc = 77 ] || [ $rc = 1 ] && ! [ -s "$TMP/out" ]; then
    echo "skip $CASE: no file system can be mounted here"
  else
    fail "$CASE: exit $rc"; cat "$TMP/out" "$TMP/why"
  fi
done
finish
