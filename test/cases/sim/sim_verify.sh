#!/usr/bin/env bash
# The verifier itself: it must reject a log in which one value, one line or one loss is not what happened.
. "$(dirname "$0")/../../lib/sim.sh"
run_logged NCCL_INSPECTOR_DUMP_FORMAT=jsonl multirank >"$TMP/out" 2>&1 || { cat "$TMP/out"; exit 1; }
"$SIM" --verify "$TMP/truth" "$TMP/logs" >"$TMP/out" 2>&1 ||
  { cat "$TMP/out"; fatal "the untouched log is rejected"; }
log=$(ls "$TMP"/logs/*.jsonl)
[ -n "$log" ] && cp "$log" "$TMP/good.jsonl"
mutate() { # what, python expression over the list of lines L
  python3 - "$TMP/good.jsonl" "$log" "$2" <<'PY'
import json, re, sys
L = open(sys.argv[1]).read().splitlines()
before = list(L)
ops = [(json.loads(l).get("coll_perf", {}).get("coll_busbw_gbs", 0), i) for i, l in enumerate(L)
       if '"coll_perf"' in l and '"comm_name":"world"' in l]
i = max(ops)[1] # fast enough that a hundredth of its bandwidth is more than its last digit
exec(sys.argv[3])
assert L != before, "the mutation changes nothing"
open(sys.argv[2], "w").write("\n".join(L) + "\n")
PY
  if "$SIM" --verify "$TMP/truth" "$TMP/logs" >"$TMP/out" 2>&1; then
    fail "not noticed: $1"
  else
    echo "ok   noticed: $1"
  fi
}
swap() { # key, replacement of its number
  mutate "$1 changed" "L[i] = re.sub(r'\"$1\":(-?[0-9.]+)', lambda m: '\"$1\":' + str($2), L[i])"
}
swap coll_exec_time_ns 'int(m[1]) + 32'
swap coll_msg_size_bytes 'int(m[1]) + 1'
swap coll_sn 'int(m[1]) + 1'
swap coll_nchannels 'int(m[1]) + 1'
swap coll_root 'int(m[1]) + 1'
swap coll_busbw_gbs 'float(m[1]) * 1.01'
swap coll_enqueue_ns 'int(m[1]) + 50000000'
swap nccl_tests_size_bytes 'int(m[1]) + 8'
swap n_ranks 'int(m[1]) + 1'
mutate "the datatype" 'L[i] = re.sub(r"\"coll_datatype\":\"[^\"]*\"", "\"coll_datatype\":\"ncclInt32\"", L[i])'
mutate "the algorithm" 'L[i] = re.sub(r"\"coll_algo\":\"[^\"]*\"", "\"coll_algo\":\"PAT\"", L[i])'
mutate "the timing source" 'L[i] = L[i].replace("kernel_gpu", "kernel_cpu")'
mutate "a line lost" 'del L[i]'
mutate "a line twice" 'L.insert(i, L[i])'
mutate "a line of nowhere" 'L.append(re.sub(r"\"rec_sn\":[0-9]+", "\"rec_sn\":999999", L[i]))'
mutate "the communicator's name" 'L[i] = L[i].replace("\"comm_name\":\"world\"", "\"comm_name\":\"word\"")'
mutate "a final count" 'L[:] = [re.sub(r"(\"final\":true,\"coll\":\{\"started\":)([1-9]\d*)", lambda m: m[1] + str(int(m[2]) + 1), l) for l in L]'
mutate "a broken line" 'L[i] = L[i][:-1]'
finish
