#!/usr/bin/env bash
# A process without its own last line is not complete: check and summary say so, name `recover` with the
# folder and the hosts, and a part that `recover` writes makes it complete again. A rank that was killed is
# not missing.
. "$(dirname "$0")/../../lib/sim.sh"
INSPECTOR=$BUILD/nccl-inspector
[ "$BOXES" != 0 ] || skip "no /dev/shm to put black boxes into"

# says NAME CODE PATTERN COMMAND...: its exit status, and a line with the pattern in what it prints.
says() {
  local name=$1 code=$2 pattern=$3 rc=0
  shift 3
  "$@" >"$TMP/said" 2>&1 || rc=$?
  if [ $rc = "$code" ] && grep -q -- "$pattern" "$TMP/said"; then echo "ok   $name"; return; fi
  fail "$name: exit status $rc, expected $code with '$pattern':"
  tail -n 6 "$TMP/said"
}
not_said() { ! grep -q -- "$2" "$TMP/said" || fail "$1: says '$2': $(grep -- "$2" "$TMP/said")"; }
summary() { "$INSPECTOR" summary --no-plots --no-html --output-dir "$TMP/out" "$@"; }

# Killed when all had finished and nothing was written; of the logs what a disk that was full from the second
# line on has.
cat >"$TMP/lost.scn" <<'SCN'
set ranks=4
set procs=1
comm w label=world
init w
coll w func=AllReduce bytes=64k repeat=100
sync w
sleep ms=1500
exit how=sigkill
SCN
lost() {
  RC=0
  rm -f "$BOXES"/*
  run_logged NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=60000000 "$TMP/lost.scn" >"$TMP/out.sim" \
    2>&1 || RC=$?
  mkdir -p "$TMP/logs"
  python3 - "$BOXES" "$TMP/logs" <<'PY'
import glob, gzip, os, struct, sys
for path in glob.glob(sys.argv[1] + "/*.box"):
    box = open(path, "rb").read(1 << 20)
    # the session that is whole
    at = struct.unpack_from("<Q", box, 808 + 24 * struct.unpack_from("<I", box, 884)[0])[0]
    start, *n = struct.unpack_from("<QIII", box, at)
    file, line = (box[at + 24 + a:at + 24 + b].decode()
                  for a, b in ((n[0], n[0] + n[1]), (n[0] + n[1], sum(n))))
    gzip.open(os.path.join(sys.argv[2], file + ".jsonl.gz"), "wt").write(line)
PY
}
lost
host=$(zcat "$TMP/logs"/*.gz | grep -o '"hostname":"[^"]*"' | head -n 1 | cut -d'"' -f4)
says "check: the disk was full" 2 "INCOMPLETE.*4 processes without their own last line.*recover $TMP/logs. on $host" "$INSPECTOR" check "$TMP/logs"
says "summary: the disk was full" 2 "4 processes without their own last line.*recover $TMP/logs. on $host" \
  summary "$TMP/logs"
says "check: its boxes say how they ended" 2 "by the black boxes in .*: 4 killed, 0 ended" "$INSPECTOR" \
  check "$TMP/logs" --box-dir "$BOXES"
says "no_end in JSON" 2 "no_end" "$INSPECTOR" check --json "$TMP/logs"
"$INSPECTOR" recover "$TMP/logs" --box-dir "$BOXES" >"$TMP/said" 2>&1 || fail "recover: $(cat "$TMP/said")"
says "check: recovered" 0 "^COMPLETE" "$INSPECTOR" check "$TMP/logs"
says "check: all records are there" 0 "AllReduce 400" "$INSPECTOR" check "$TMP/logs"
says "summary: recovered" 0 "400" summary "$TMP/logs"

# One process of four was killed: its rank is there.

run_logged 1x4 --procs >"$TMP/out.sim" 2>&1 || fail "the job: $(tail -n 3 "$TMP/out.sim")"
says "a whole job" 0 "^COMPLETE" "$INSPECTOR" check "$TMP/logs"
first=$(ls "$TMP/logs"/*.gz | head -n 1)
n=$(zcat "$first" | wc -l)
(set +o pipefail; zcat "$first" | head -n $((n - 1)) | gzip >"$first.cut")
mv "$first.cut" "$first"
says "check: cut before its last line" 2 "1 process without its own last line" "$INSPECTOR" check "$TMP/logs"
not_said "check: cut before its last line" "rank missing"
says "summary: cut before its last line" 2 "1 process without its own last line" summary "$TMP/logs"

# A rank whose log is not there is missing, still: by the job's size, and only once.
rm "$first"
says "check: no log of a rank" 2 "the job: 1 of 4 ranks has no log" "$INSPECTOR" check "$TMP/logs"

# NVIDIA's logs have no such line.
says "NVIDIA's logs" 0 "^COMPLETE" "$INSPECTOR" check --partial test/golden/check_nvidia_v40/input
finish
