# shellcheck shell=bash disable=SC2034
# For test/cases/kits/slurm_*.sh: a real slurmctld and real slurmds of Debian's packages. Sourced; and what
# test/lib/case.sh has.
#
# Each node has a /dev/shm and a host name of its own (unshare), so that a black box lies on one node alone.
# All of them are on 127.0.0.1, without munge (auth/none believes whoever speaks: this machine alone can),
# with files in $TMP and on free ports, so that several may run side by side. Jobs run as a user without
# rights. What was begun is ended at exit.
. "$(dirname "${BASH_SOURCE[0]}")/case.sh"
[ "$(id -u)" = 0 ] || skip "needs root: slurmd runs jobs of other users"
PATH=$PATH:/usr/sbin
need slurmctld slurmd sbatch setpriv unshare python3
unshare --mount --uts true 2>/dev/null || skip "unshare --mount --uts is refused"
need "$INSPECTOR" "$SIM" "$BUILD/libnccl-profiler-inspector.so"
chmod 755 "$TMP"
DAEMONS=()
daemons_end() {
  local p i
  for p in "${DAEMONS[@]}"; do kill "$p" 2>/dev/null || true; done
  for ((i = 0; i < 50; i++)); do kill -0 "${DAEMONS[@]}" 2>/dev/null || break; sleep 0.1; done
  { kill -9 "${DAEMONS[@]}"; wait; } 2>/dev/null || true
  pkill -9 -f "^$TMP/" || true # a job's processes outlive a slurmd that is killed
}
at_exit daemons_end
unset "${!NCCL_@}" "${!SLURM_@}" "${!SBATCH_@}"

# free_ports N: the first of N neighbouring ports that are free now, below those that the kernel hands out by
# itself.
free_ports() {
  python3 - "$1" <<'P'
import random, socket, sys
def free(port):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try: s.bind(("127.0.0.1", port)); return True
        except OSError: return False
n = int(sys.argv[1])
while True:
    first = random.randrange(20000, 30000)
    if all(free(first + i) for i in range(n)): print(first); break
P
}

# slurm_begin NODES [LINE OF slurm.conf...]: nodes n1 ... nN of 16 CPUs each.
slurm_begin() {
  local nodes=$1 i port conf=$TMP/slurm.conf
  shift
  port=$(free_ports $((nodes + 1)))
  mkdir -p "$TMP/slurm/state" "$TMP/slurm/spool"
  cat >"$conf" <<C
ClusterName=test
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$port
AuthType=auth/none
CredType=cred/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmUser=root
SlurmdUser=root
SlurmdParameters=config_overrides
StateSaveLocation=$TMP/slurm/state
SlurmdSpoolDir=$TMP/slurm/spool/%n
SlurmctldPidFile=$TMP/slurm/ctld.pid
SlurmdPidFile=$TMP/slurm/%n.pid
SlurmctldLogFile=$TMP/slurm/ctld.log
SlurmdLogFile=$TMP/slurm/%n.log
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
KillWait=1
SchedulerParameters=sched_min_interval=10000,batch_sched_delay=0
NodeName=n[1-$nodes] NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + nodes))] CPUs=16 State=UNKNOWN
PartitionName=p Nodes=ALL Default=YES OverSubscribe=FORCE:8 MaxTime=INFINITE State=UP
C
  [ $# = 0 ] || printf '%s\n' "$@" >>"$conf"
  chmod 644 "$conf"
  export SLURM_CONF=$conf
  slurmctld -D -f "$conf" >"$TMP/slurm/ctld.out" 2>&1 &
  DAEMONS+=($!)
  for ((i = 1; i <= nodes; i++)); do
    unshare --mount --uts sh -c 'hostname $1; mount -t tmpfs -o mode=1777 tmpfs /dev/shm; exec slurmd -D -N $1 -f "$2"' sh n$i "$conf" \
      >"$TMP/slurm/n$i.out" 2>&1 &
    DAEMONS+=($!)
  done
  wait_for 80 idle "$nodes" ||
    { sinfo -N || true; tail -n 5 "$TMP"/slurm/*.out; fatal "Slurm's nodes are not idle after 80 s"; }
}
# Slurm's commands may wait for a busy daemon; the time limit is for one that never answers.
idle() { [ "$(timeout 30 sinfo -h -N -o '%N %t' | grep -c ' idle$')" = "$1" ]; }

# as_user COMMAND...: as `nobody`, who owns the jobs.
as_user() { setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME="$TMP" "$@"; }
# batch [OPTION of sbatch...] with the script on standard input: sets JOB.
batch() {
  JOB=$(as_user timeout 60 sbatch --parsable --chdir="$TMP/user" --output="$TMP/user/%A_%a.out" "$@")
}
state() {
  timeout 30 scontrol show job "$1" |
    sed -n 's/.* JobState=\([A-Z_]*\).*/\1/p;s/^ *JobState=\([A-Z_]*\).*/\1/p' | head -n 1
}
ended() { case $(state "$1") in PENDING | RUNNING | COMPLETING | '') return 1 ;; esac; }
# on_node NODE COMMAND...: with the node's own /dev/shm.
on_node() { nsenter --mount --target "$(cat "$TMP/slurm/$1.pid")" "${@:2}"; }
