#!/bin/bash
# Slurm's TaskProlog: turns the plugin on for jobs that ask for it (docs/slurm.md). Runs as the job's user before each task.
# What it prints as `export NAME=value` slurmstepd puts into the task's environment. It sets nothing that the user has set, never
# fails, and leaves a note with the log folder for the epilog, which does not see the job's environment.
here=${0%/*}
# shellcheck disable=SC1091
[ -r "$here/nccl-inspector.conf" ] && . "$here/nccl-inspector.conf"
# shellcheck disable=SC1091
[ -r /etc/nccl-inspector/slurm.conf ] && . /etc/nccl-inspector/slurm.conf
if [ -z "${NI_PLUGIN:-}" ]; then
  prefix=${here%/share/nccl-inspector/slurm}
  for NI_PLUGIN in "$prefix"/lib/libnccl-profiler-inspector.so "$prefix"/lib*/{,*/}libnccl-profiler-inspector.so; do
    [ ! -r "$NI_PLUGIN" ] || break
  done
fi
set -f

[ "${NCCL_INSPECTOR_ENABLE:-${NI_DEFAULT:-0}}" = 1 ] || exit 0
case ${NCCL_PROFILER_PLUGIN:-} in
  '' | inspector | */libnccl-profiler-inspector.so | libnccl-profiler-inspector.so) ;;
  *) exit 0 ;; # another profiler: the user's business
esac
if [ -z "${NCCL_PROFILER_PLUGIN:-}" ] && [ ! -r "${NI_PLUGIN:-}" ]; then
  [ -z "${NCCL_INSPECTOR_ENABLE:-}" ] || echo "print nccl-inspector: ${NI_PLUGIN:-NI_PLUGIN} is not there: NCCL is not recorded"
  exit 0
fi

dir=${NCCL_INSPECTOR_DUMP_DIR:-}
if [ -z "$dir" ]; then
  dir=${NI_DUMP_DIR:-}
  dir=${dir//%u/${SLURM_JOB_USER//[^A-Za-z0-9._-]/_}}
fi
give() { [ -n "${!1:-}" ] || [ -z "$2" ] || printf 'export %s=%s\n' "$1" "$2"; }
give NCCL_PROFILER_PLUGIN "${NI_PLUGIN:-}"
give NCCL_INSPECTOR_ENABLE 1
give NCCL_INSPECTOR_DUMP_DIR "$dir"
give NCCL_INSPECTOR_BLACKBOX "${NI_BLACKBOX:-}"

# The note: log folders, up to what differs between processes, a line each. A file of the user's own, or none.
dir=${dir:-nccl-inspector-%j}
dir=${dir//%j/$SLURM_JOB_ID}
case $dir in *%[hpr]*) dir=${dir%%%[hpr]*} dir=${dir%/*} ;; esac
case $dir in /*) ;; *) dir=$PWD/$dir ;; esac
note=${NI_BLACKBOX:-/dev/shm}/nccl-inspector-slurm-$SLURM_JOB_ID-$UID
{
  umask 077
  set -C
  [ -e "$note" ] || : >"$note"
  [ -O "$note" ] && [ -f "$note" ] && [ ! -L "$note" ] && ! grep -qxF -- "$dir" "$note" && printf '%s\n' "$dir" >>"$note"
} 2>/dev/null
exit 0
