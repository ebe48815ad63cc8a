#!/bin/bash
# A summary of many logs by a job array: each task reads one part, and a last job merges (docs/slurm.md).
#   summary_array.sh submit LOGS OUT [FIRST-LAST[:STEP]]    default 0-15; OUT is made; MaxArraySize is at most 1001 by default
#   summary_array.sh again LOGS OUT FIRST-LAST[:STEP] TASK  after a task has failed: that one, and the merge, again
# The merge runs after the tasks have ended however they ended (afterany): afterok would wait for ever when one fails. It
# judges itself: a part that is missing is named, exit code 2. Options of sbatch are in SBATCH_* variables.
set -eu
me=$(realpath "$0") inspector=${NI_COMMAND:-nccl-inspector}

if [ "$1" = task ]; then # LOGS OUT FIRST STEP COUNT: the plan is in the arguments, since Slurm's own changes with `again`
  exec "$inspector" summary "$2" --shard $(((SLURM_ARRAY_TASK_ID - $4) / $5 + 1))/"$6" --partial "$3/part.$SLURM_ARRAY_TASK_ID" --quiet
elif [ "$1" = merge ]; then # OUT
  shopt -s nullglob
  parts=("$2"/part.*[0-9])
  exec "$inspector" merge "${parts[@]}" --output-dir "$2/summary" --force
fi

logs=$(realpath "$2") array=${4:-0-15}
mkdir -p "$3"
out=$(realpath "$3")
step=${array#*:}
[ "$step" != "$array" ] || step=1
range=${array%:*} first=${array%%-*}
last=${range#*-}
count=$(((last - first) / step + 1))
tasks=$array
[ "$1" = submit ] || tasks=$5
id=$(sbatch --parsable --array="$tasks" --output="$out/task-%a.log" "$me" task "$logs" "$out" "$first" "$step" "$count")
sbatch --parsable --dependency="afterany:$id" --output="$out/merge.log" "$me" merge "$out"
