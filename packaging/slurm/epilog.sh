#!/bin/bash
# Slurm's Epilog, on each node of a job, as root (docs/slurm.md): what killed processes had not written goes into their logs,
# and one node writes the verdict into the log folder and, with accounting, the job's AdminComment.
#
# Two halves in one file. The outer half runs as root. It opens nothing of the user's, gives the inner half SECONDS in all, puts
# what that says into NI_LOG, and always ends with 0: a node must not go down for this. The inner half (--inside) has the rights
# of the job's user, a clean environment and no file of root's. No text of the job's is ever part of a command: the job's name is
# not looked at, folders are arguments.
#
# Who judges: each node first does its own part and makes done.NODE, then tries to make the folder `judging`. Who gets that
# waits NI_WAIT_SECONDS for the others, judges, and removes it; if a node got done meanwhile, it judges again. A node that is
# gone so costs the wait, and whoever comes last still finds somebody to judge. All of it is in LOGS/.nccl-inspector-slurm.
set -u
PATH=${PATH:-/usr/bin:/bin}:/usr/sbin:/usr/bin:/sbin:/bin
here=${0%/*}
for conf in "$here/nccl-inspector.conf" /etc/nccl-inspector/slurm.conf; do
  # shellcheck disable=SC1090
  [ -r "$conf" ] && { [ "$UID" != 0 ] || [ -O "$conf" ]; } && . "$conf"
done
NI_COMMAND=${NI_COMMAND:-${here%/share/nccl-inspector/slurm}/bin/nccl-inspector}
seconds=${NI_EPILOG_SECONDS:-60}
job=${SLURM_JOB_ID:-} uid=${SLURM_JOB_UID:-} node=${SLURMD_NODENAME:-$(uname -n)}
boxes=${NI_BLACKBOX:-/dev/shm}
for number in "$job" "$uid"; do case $number in '' | *[!0-9]*) exit 0 ;; esac; done
node=${node//[^A-Za-z0-9._-]/_}

# ---- inside: as the job's user ----------------------------------------------------------------------------------------

# run SECONDS COMMAND...: no longer than that, nor than what is left of the epilog's time.
run() {
  local most=$1 left=$((NI_UNTIL - SECONDS))
  shift
  [ "$left" -ge 1 ] || return 124
  timeout -k 2 $((most < left ? most : left)) "$@"
}

# Where the job's logs are: as its black boxes say, and as its tasks have noted.
folders() {
  local note=$boxes/nccl-inspector-slurm-$job-$uid
  run 10 "$NI_COMMAND" boxes --json --box-dir "$boxes" 2>/dev/null | tr -d '\n' | grep -o '{[^{}]*}' |
    grep -E "\"uid\": ?$uid," | grep -E "\"job_id\": ?\"$job\"" | sed -n 's/.*"log": *"\(\/[^"\\]*\)\/[^"\\/]*".*/\1/p'
  if [ -f "$note" ] && [ -O "$note" ] && [ ! -L "$note" ]; then
    head -c 65536 "$note" | grep '^/'
    rm -f "$note"
  fi
}

# ask SECONDS COMMAND FOLDER [OPTION...]: of this job alone, where its id is that of one run in the folder; else of all runs.
ask() {
  local most=$1 command=$2 dir=$3 rc=0 text
  shift 3
  text=$(run "$most" "$NI_COMMAND" "$command" "$@" --run "$job" "$dir" 2>&1) || rc=$?
  if [ "$rc" = 1 ]; then rc=0 && text=$(run "$most" "$NI_COMMAND" "$command" "$@" "$dir" 2>&1) || rc=$?; fi
  case $rc in 124 | 137) text="no answer in the epilog's time: nccl-inspector $command $dir" ;; esac
  printf '%s\n' "$text"
}

judge() { # FOLDER
  local dir=$1 of=$1/.nccl-inspector-slurm hang check first
  hang=$(ask 30 hang "$dir" --box-dir "$boxes" --stuck-after "${NI_STUCK_AFTER:-300}")
  check=$(ask "$seconds" check "$dir" --quiet)
  first=$(printf '%s\n' "$check" | tail -n 1)
  case $hang in HANG* | DEAD*) first="$(printf '%s\n' "$hang" | head -n 1); $first" ;; esac
  printf '%s\n\n%s\n\n%s\n' "$first" "$check" "$hang" >"$of/verdict.$node" &&
    mv -fT "$of/verdict.$node" "$dir/nccl-inspector-verdict.txt"
  printf 'VERDICT %s\n' "$first"
}

# all_done FOLDER: every node of the job has made its part.
all_done() {
  local name
  for name in $NI_NODES; do [ -e "$1/done.$name" ] || return 1; done
}

take_turn() { # FOLDER
  local dir=$1 of=$1/.nccl-inspector-slurm until
  # Left by a node that went down while it judged.
  [ -z "$(find "$of/judging" -maxdepth 0 -mmin +10 2>/dev/null)" ] || rmdir "$of/judging"
  while mkdir "$of/judging" 2>/dev/null; do
    # Somebody has judged since this node was done.
    [ ! "$of/judged" -nt "$of/done.$node" ] || { rmdir "$of/judging"; break; }
    until=$((SECONDS + ${NI_WAIT_SECONDS:-10}))
    while ! all_done "$of" && [ $SECONDS -lt $until ]; do sleep 0.2; done
    touch "$of/judged"
    judge "$dir"
    rmdir "$of/judging"
    [ -n "$(find "$of" -maxdepth 1 -name 'done.*' -newer "$of/judged")" ] || break
  done
}

inside() {
  local dir of
  while IFS= read -r dir; do
    [ -d "$dir" ] || continue
    of=$dir/.nccl-inspector-slurm
    echo "job $job: logs $dir"
    run 30 "$NI_COMMAND" recover --remove --box-dir "$boxes" "$dir"
    [ -d "$of" ] || mkdir -m 700 "$of" || continue
    # What is still there had no room, or holds damage: a copy outlives the node's memory.
    run 20 "$NI_COMMAND" snapshot --exit-zero --quiet --box-dir "$boxes" --output "$of/boxes" "$dir" 2>&1 | grep -v ': no black box of this'
    rmdir "$of/boxes" 2>/dev/null
    touch "$of/done.$node"
    take_turn "$dir"
  done < <(folders | sort -u | head -n 8)
}

if [ "${1:-}" = --inside ]; then
  NI_UNTIL=$((seconds - 2))
  cd / && inside
  exit 0
fi

# ---- outside: as root -------------------------------------------------------------------------------------------------

gid=$(id -g "$uid" 2>/dev/null) groups=--init-groups
[ -n "$gid" ] || { gid=${SLURM_JOB_GID:-} groups=--clear-groups; }
case $gid in '' | *[!0-9]*) exit 0 ;; esac
as=()
[ "$UID" != 0 ] || as=(setpriv --reuid="$uid" --regid="$gid" "$groups" --inh-caps=-all --no-new-privs)
nodes=$(timeout 5 scontrol show hostnames "${SLURM_JOB_NODELIST:-$node}" 2>/dev/null | tr -cd 'A-Za-z0-9._\n-' | tr '\n' ' ')

# A job that has ended is changed by slurmdbd alone: without accounting there is no comment. Nobody else's is overwritten.
comment() { # TEXT: of the job's log
  local text old
  text=$(printf 'nccl-inspector: %s' "$1" | tr -cd ' -~' | tr -d "'\"\\\\\`\$=" | cut -c 1-400)
  old=$(timeout 5 sacct -X -n -P -j "$job" -o AdminComment 2>/dev/null) || return 0
  case $old in '' | nccl-inspector:*) timeout 5 sacctmgr -i -Q modify job where JobID="$job" set AdminComment="$text" ;; esac
}

# All files of root's are closed for the inside: it has a pipe.
work() {
  env -i PATH="$PATH" LC_ALL=C SLURM_JOB_ID="$job" SLURM_JOB_UID="$uid" SLURMD_NODENAME="$node" NI_NODES="${nodes:-$node}" \
    "${as[@]}" timeout -k 2 "$seconds" nice -n 10 bash "$0" --inside 2>&1 </dev/null |
    head -c 65536 | LC_ALL=C tr -cd '\n -~' |
    while IFS= read -r line; do
      printf '%(%FT%TZ)T %s job %s: %s\n' -1 "$node" "$job" "$line"
      case $line in 'VERDICT '*) [ "${NI_COMMENT:-1}" != 1 ] || comment "${line#VERDICT }" ;; esac
    done
}
log=${NI_LOG:-/var/log/nccl-inspector-epilog.log}
: >>"$log" || log=/dev/null
TZ=UTC work >>"$log" 2>&1 </dev/null &
# A file system that does not answer keeps a process whatever signal it gets: it is left behind then.
for ((turn = 0; turn < (seconds + 5) * 5; turn++)); do
  kill -0 $! 2>/dev/null || break
  sleep 0.2
done
exit 0
