#!/usr/bin/env bash
# ctl LOGS show: what processes made of control files, and a mask that somebody else changed; check names the
# latter, and says what to set where device counters ran apart.
. "$(dirname "$0")/../../lib/case.sh"
need python3 "$INSPECTOR"
mkdir "$TMP/logs" "$TMP/quiet" "$TMP/empty"
python3 - "$TMP" <<'P'
import sys
sys.path.insert(0, "test/lib")
from exp_logs import Rank, T0, job

S = 1000000000
MASK = "NCCL's event mask is 0x46 now, 0x47 was asked for"


def control(x, ns, source, command, result, why=None):
    file = {"file": "nccl-inspector.control", "line": 1} if source == "file" else {}
    line = {"source": source, **file, "command": command, "result": result, "why": why, "events": "coll",
            "verbose": False,
            "sample": 1, "ns": ns}
    del x.lines[-1]  # the process's last line
    x.add("control", line, True)
    x.process_end()


ranks = job()
for i, x in enumerate(ranks):
    control(x, T0 + i, "file", "preset deep", "done")
    control(x, T0 + 60 * S + i, "file", "preset light", "refused",
            "needs a new process: KernelCh stays as it is")
    if i == 1:
        control(x, T0 + 90 * S, "mask", MASK, "done")
    control(x, T0 + 120 * S + i, "file", "preset deep", "no_change")
    x.lines = [l.replace('"nccl_version":23007', '"nccl_version":23102') for l in x.lines]
    # Both accounts of the communicator: times of earlier works.
    x.lines = [l.replace('"timing_fallback_by":{}', '"timing_fallback_by":{"counters_apart":3}', 1)
               if '"final":true' in l else l
               for l in x.lines]
    x.write(sys.argv[1] + "/logs", False)
for x in job():
    x.write(sys.argv[1] + "/quiet", True)
P
n=$(ls "$TMP/logs" | wc -l)
"$INSPECTOR" ctl "$TMP/logs" show >"$TMP/out" || fail "show: exit $?"
cat "$TMP/out"
at() { sed -n "$1p" "$TMP/out" | grep -qE "^[0-9]{4}-[0-9-]+ [0-9:]+Z  $2\$" || fail "line $1 is not: $2"; }
at 1 "done       file: preset deep \($n processes\)"
at 2 "refused    file: preset light \($n processes\): needs a new process: KernelCh stays as it is"
at 3 "done       mask: NCCL's event mask is 0x46 now, 0x47 was asked for \(1 process\)"
at 4 "no_change  file: preset deep \($n processes\)"
[ "$(wc -l <"$TMP/out")" = 4 ] || fail "other lines"
"$INSPECTOR" ctl "$TMP/quiet" show | grep -qx 'no process has been told anything' || fail "a quiet job"
rc=0 && "$INSPECTOR" ctl "$TMP/empty" show 2>"$TMP/err" || rc=$?
[ $rc = 1 ] && grep -q 'no log lies in' "$TMP/err" || fail "an empty folder: exit $rc"
rc=0 && "$INSPECTOR" ctl "$TMP/logs" show --rank 1 2>/dev/null || rc=$?
[ $rc = 64 ] || fail "show of one rank: exit $rc"

"$INSPECTOR" check --no-index "$TMP/logs" >"$TMP/out" || { fail "check: exit $?"; cat "$TMP/out"; }
grep -q "^note  *1 change of NCCL's event mask by another than the plugin" "$TMP/out" ||
  { fail "no note of the mask"; cat "$TMP/out"; }
grep -q "0x46 now, 0x47 was asked for" "$TMP/out" || fail "not what it is"
grep -q 'set NCCL_ALLGATHERV_ENABLE=0' "$TMP/out" && grep -q 'CONTROL PROFILER_MASK' "$TMP/out" ||
  fail "not what to set"
sed -i 's/"nccl_version":23102/"nccl_version":23007/' "$TMP"/logs/*
"$INSPECTOR" check --no-index "$TMP/logs" >"$TMP/out" || fail "check of 2.30: exit $?"
! grep -q NCCL_ALLGATHERV_ENABLE "$TMP/out" && grep -q 'what a rank sends to itself' "$TMP/out" ||
  fail "2.30 is told what is 2.31's"
finish
