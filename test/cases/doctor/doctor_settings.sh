#!/usr/bin/env bash
# doctor: names that are nearly settings, values that are refused, settings that contradict each other.
. "$(dirname "$0")/../../lib/doctor.sh"
doctor "off" 2 NCCL_INSPECTOR_ENABLE=0
says problem settings "nothing is recorded"
doctor "not set" 2 NCCL_INSPECTOR_ENABLE=
says problem settings "records nothing"
doctor "misspelt" 0 NCCL_INSPECTOR_DUMP_VERBSE=1 NCCL_PROFILE_PLUGIN=x NCCL_INSPECTOR_NONSENSE_ALTOGETHER=1
says warning settings "NCCL_INSPECTOR_DUMP_VERBSE is no setting"
grep -q 'Did you mean NCCL_INSPECTOR_DUMP_VERBOSE?' "$TMP/out" || { fail "no proposal"; }
says warning settings "NCCL_PROFILE_PLUGIN is no setting"
grep -q 'Did you mean NCCL_PROFILER_PLUGIN?' "$TMP/out" || { fail "no proposal for the plugin's variable"; }
says warning settings "NCCL_INSPECTOR_NONSENSE_ALTOGETHER is no setting"
# Only settings are proposed: neither what their names begin with nor one that is far away.
doctor "near the beginning of names" 0 NCCL_INSPECTOR_X=1 NCCL_INSPECTOR_ABC=1 NCCL_INSPECTORS=1
says warning settings "NCCL_INSPECTOR_X is no setting"
while read -r proposed; do
  { [[ $proposed != *_ ]] && grep -qw "$proposed" docs/settings.md; } ||
    fail "doctor proposes what is no setting: $proposed"
done < <(grep -o 'Did you mean [A-Z0-9_]*' "$TMP/out" | sed 's/.* //')
doctor "misspelt, as a gate" 3 NCCL_INSPECTOR_DUMP_VERBSE=1 --gate
doctor "no false alarm" 0 NCCL_PROFILE_COLL_POOL_SIZE=64 NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES=8k
says ok settings "no misspelt name"
says note settings "smaller operations are left out"
doctor "bad values" 0 NCCL_INSPECTOR_DUMP_FORMAT=xml NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=1s
says warning settings 'DUMP_FORMAT="xml" is not accepted'
says warning settings 'MICROSECONDS="1s" is not accepted'
doctor "gone" 0 NCCL_INSPECTOR_POOL_KEEP=last NCCL_INSPECTOR_PROXY_OUTPUT_MODE=nested
says note settings "the plugin says: NCCL_INSPECTOR_POOL_KEEP is accepted, no effect"
says note settings "the plugin says: NCCL_INSPECTOR_PROXY_OUTPUT_MODE is accepted, no effect"
doctor "contradictions" 0 NCCL_INSPECTOR_DUMP_THREAD_ENABLE=0 NCCL_INSPECTOR_DUMP_CONTROL_LINES=0
says warning settings "a job that is killed leaves none"
says warning settings "CONTROL_LINES=0"
doctor "JSON" 2 NCCL_INSPECTOR_ENABLE=0 NCCL_INSPECTOR_DUMP_VERBSE=1 --json
if command -v python3 >/dev/null; then
  python3 - "$TMP/out" <<'PY' || failures=1
import json, sys
d = json.load(open(sys.argv[1]))
assert d["schema_version"] == "nccl-inspector-doctor-1" and d["verdict"] == "problem", d
assert d["problems"] == sum(f["status"] == "problem" for f in d["findings"]) > 0
assert all(f["advice"] for f in d["findings"] if f["status"] == "problem"), d["findings"]
PY
fi
rc=0
"$BIN" doctor some-file >"$TMP/out" 2>&1 || rc=$?
[ $rc = 64 ] || { fail "a file as argument: exit $rc"; }
finish
