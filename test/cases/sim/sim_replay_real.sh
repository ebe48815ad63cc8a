#!/usr/bin/env bash
# Recordings of real NCCL (test/data/real) are replayed against the plugin, every value verified, and keep the
# contract.
# NI_REAL_DATA: another folder with such recordings.
. "$(dirname "$0")/../../lib/sim.sh"
real=${NI_REAL_DATA:-test/data/real}
shopt -s nullglob
files=("$real"/*.rec.gz)
own=0
if [ ${#files[@]} = 0 ]; then
  # Nothing real yet: one of our own under such a name shows that the way works.
  need "$BUILD/test/recorder.so"
  own=1
  NI_RECORDER_FILE=$TMP/sim-nccl2.28.9-hostid-mix-rank0.rec "$SIM" --quiet --plugin \
    "$BUILD/test/recorder.so" --nccl 2.28.9 --scenario p2p
  gzip -n "$TMP"/*.rec
  files=("$TMP"/*.rec.gz)
fi
for f in "${files[@]}"; do
  name=$(basename "$f" .rec.gz)
  release=$(sed -n 's/.*-nccl\([0-9.]*\)-.*/\1/p' <<<"$name")
  [ -n "$release" ] || { fail "$name: the name has no -nccl<release>-"; continue; }
  gzip -dc "$f" >"$TMP/$name.rec"
  rm -rf "$TMP/logs"
  more=()
  # Without a device: 2.31 and later count a Broadcast on the device alone, if its kernels count as those of
  # 2.30, whose source is public. Stamps may then be of earlier work, and what the plugin does not believe
  # need not agree.
  [[ $name != *-nccl2.3[1-9]*-nodevice-* ]] || more=(--set overrun=1)
  if NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR="$TMP/logs" timeout 100 "$SIM" --quiet --plugin \
    "$PLUGIN" --nccl "$release" \
    --replay "$TMP/$name.rec" --truth "$TMP/truth" \
    "${more[@]}" >"$TMP/out" 2>&1 && "$SIM" --verify "$TMP/truth" "$TMP/logs" >"$TMP/out" 2>&1; then
    echo "ok   $name: $(tail -n 1 "$TMP/out")"
  else
    fail "$name"; tail -n 20 "$TMP/out"
  fi
  if [ -x "$BUILD/test/gpu/gpu_contract" ] &&
    ! "$BUILD/test/gpu/gpu_contract" "$TMP/$name.rec" >"$TMP/out" 2>&1; then
    fail "$name: the contract"; grep '^FAIL' "$TMP/out"
  fi
done
[ $own = 0 ] || skip "no recording of real NCCL in $real yet (scripts/gpu_validate.sh makes them); only one of nccl-sim was replayed"
finish
