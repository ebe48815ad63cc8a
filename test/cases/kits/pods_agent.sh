#!/usr/bin/env bash
# The agent as the Helm chart runs it, among pods: each has its own pid and mount namespace, host name and
# /dev/shm, and what they share is a folder on a tmpfs for the black boxes and one for the logs. Without any
# capability the agent tells of the jobs of its own user, and says whom it leaves out. Of a pod whose boxes it
# cannot see it says "logs only", never that nothing hangs.
. "$(dirname "$0")/../../lib/agent.sh"
[ "$(id -u)" = 0 ] || skip "needs root: pods of two users"
unshare --mount --uts --pid --fork true 2>/dev/null || skip "unshare is refused"
chmod 755 "$TMP"
mkdir -m 1777 "$TMP/shared" "$TMP/logs"
mkdir -m 777 "$TMP/state1" "$TMP/state2" # as an emptyDir is
mount -t tmpfs -o mode=1777 ni-pods "$TMP/shared" 2>/dev/null || skip "a tmpfs cannot be mounted"
# Who became another user outlives unshare --kill-child: that ends the sign that its parent is gone.
pods_end() {
  local p
  for p in "${AGENTS[@]}"; do pkill -KILL -P "$p"; done
  umount -l "$TMP/shared"
}
at_exit pods_end
cp "$BUILD/nccl-sim" "$INSPECTOR" "$INSPECTOR-live" "$BUILD/libnccl-profiler-inspector.so" \
  test/scenarios/hang_late.scn "$TMP"
unset "${!NCCL_@}" "${!SLURM_@}"

in_pod() { # NAME COMMAND...
  local name=$1
  shift
  exec unshare --mount --uts --pid --fork --kill-child sh \
    -c 'hostname "$1"; mount -t proc proc /proc; mount -t tmpfs -o mode=1777 tmpfs /dev/shm
    shift; exec "$@"' sh "$name" "$@"
}
# pod NAME USER BLACKBOX: a job whose rank 2 never comes.
pod() {
  in_pod "$1" setpriv --reuid="$2" --regid="$(id -g "$2")" --clear-groups env KUBERNETES_SERVICE_HOST=x \
    JOB_NAME="$1" NCCL_INSPECTOR_ENABLE=1 \
    NCCL_PROFILER_PLUGIN="$TMP/libnccl-profiler-inspector.so" NCCL_INSPECTOR_BLACKBOX="$3" \
    NCCL_INSPECTOR_DUMP_DIR="$TMP/logs/%j" \
    "$TMP/nccl-sim" --quiet --scenario "$TMP/hang_late.scn" --set procs=0 >"$TMP/$1.out" 2>&1 &
  AGENTS+=($!)
}
# watcher NUMBER USER: as the chart's container, without a capability.
watcher() {
  : >"$TMP/agent$1.err"
  in_pod "agent$1" setpriv --reuid="$2" --regid="$(id -g "$2")" --clear-groups --bounding-set=-all \
    --inh-caps=-all --ambient-caps=-all \
    --no-new-privs "$TMP/nccl-inspector" agent --foreground --listen 127.0.0.1:0 --node node-1 \
    --stuck-after 5s --box-dir "$TMP/shared" \
    --log-dir "$TMP/logs" --state-dir "$TMP/state$1/agent" 2>>"$TMP/agent$1.err" &
  AGENTS+=($!)
  wait_for 30 grep -q ' serves ' "$TMP/agent$1.err" ||
    { fail "agent $1 does not serve:"; cat "$TMP/agent$1.err"; finish; }
  URL=$(sed -n 's/.* serves \(http[^ ]*\) .*/\1/p' "$TMP/agent$1.err" | head -n 1)
}
tells() { grep -qE -- "$1" < <(curl -sf "$2/metrics"); }
pod roots root "$TMP/shared"
pod theirs nobody "$TMP/shared"
pod node-1 nobody 1 # its boxes are its own; its host name is the node's, so its logs are
watcher 1 root
one=$URL
watcher 2 nobody
two=$URL
wait_for 40 tells 'job_hang.*job_id="roots".*verdict="(stuck|likely|certain)".* 1.0' "$one" ||
  fail "the hang of the agent's own user: $(cat "$TMP/roots.out"; curl -s "$one/metrics" | grep job_)"
wait_for 20 tells 'agent_users_left_out.* 1.0' "$one" ||
  fail "nobody is left out: $(curl -s "$one/metrics" | grep users_left)"
[ "$(grep -c 'cannot become uid 65534, whose jobs are not told' "$TMP/agent1.err")" = 1 ] ||
  fail "who is left out is not said once: $(cat "$TMP/agent1.err")"
! tells 'job_id="theirs"' "$one" || fail "the agent without rights tells of another user's job"
wait_for 40 tells 'job_hang.*job_id="theirs".*verdict="(stuck|likely|certain)".* 1.0' "$two" ||
  fail "the hang of the second agent's user: $(cat "$TMP/theirs.out"; curl -s "$two/metrics" | grep job_)"
wait_for 20 tells 'job_logs_only.*job_id="node-1".* 1.0' "$two" ||
  fail "a pod without a shared box is not told as logs only: $(curl -s "$two/metrics" | grep job_)"
! tells 'job_hang.*job_id="node-1"' "$two" ||
  fail "a pod without a shared box: $(curl -s "$two/metrics" | grep job_hang)"
curl -s "$two/v1/now" | python3 -c 'import json, sys
jobs = {j["job_id"]: j["state"] for j in json.load(sys.stdin)["jobs"]}
assert jobs == {"theirs": "stuck", "node-1": "logs_only"}, jobs' || fail "/v1/now"
finish
