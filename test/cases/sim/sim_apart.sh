#!/usr/bin/env bash
# Device stamps of other work, because NCCL and its kernels count apart (format/apart.h): with a P2P with the
# own rank only what lies on its channels loses its GPU time, and where no callback shows a reason,
# contradictions do.
. "$(dirname "$0")/../../lib/sim.sh"
apart() {
  { zcat "$TMP"/logs/*.gz | grep -a '"final":true' | grep -o '"counters_apart":[0-9]*' || true; } |
    cut -d: -f2 | awk '{n += $1} END {print n + 0}'
}
count() { # what at-least at-most
  local n
  n=$(apart)
  if [ "$n" -ge "$2" ] && [ "$n" -le "$3" ]; then echo "ok   $1: $n without GPU time"
  else fail "$1: $n without GPU time, expected $2 to $3"; fi
}
# One channel of the self, the others lie on 2 and 3: their times stay.
printf '%s\n' 'set ranks=2' 'comm w label=w' 'loop times=20' \
  '  sendrecv w shift=1 bytes=1m first=2 channels=2' \
  '  coll w func=AllReduce bytes=1m channels=4' '  self w bytes=32k' 'end' >"$TMP/sound.scn"
verified "$TMP/sound.scn" --nccl 2.30
count "sound channels beside the self's" 0 0
verified "$TMP/sound.scn" --nccl 2.30 --interface v4 # nobody tells on how many channels it lies
count "all channels doubtful" 100 120
verified "$TMP/sound.scn" --nccl 2.31
count "2.31 counts it" 0 0
printf '%s\n' 'set ranks=2' 'comm w label=w' 'loop times=20' '  coll w func=AllReduce bytes=4k channels=1' \
  '  self w bytes=32k' 'end' >"$TMP/on0.scn"
verified "$TMP/on0.scn" --nccl 2.28
count "after the first self on channel 0" 38 38
verified NCCL_INSPECTOR_ENABLE_P2P=0 "$TMP/on0.scn" --nccl 2.28
count "P2P not recorded, but seen" 38 38
# From 2.31 on the device alone counts a Broadcast without a Coll. A second later that is certain; the gaps
# are too short to show it.
printf '%s\n' 'set ranks=2 nccl=2.31' 'comm w label=w' 'coll w func=AllReduce bytes=4k channels=1 repeat=10' \
  'coll w func=Broadcast bytes=4k channels=1' 'sleep ms=1500' \
  'coll w func=AllReduce bytes=4k channels=1 repeat=200' >"$TMP/broadcast.scn"
verified "$TMP/broadcast.scn"
count "after a Broadcast on 2.31" 396 400
verified "$TMP/broadcast.scn" --set allgatherv=0
count "a Broadcast with a Coll" 0 0
verified behind --nccl 2.30
count "contradictions" 190 198
finish
