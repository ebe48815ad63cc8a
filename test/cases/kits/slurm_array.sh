#!/usr/bin/env bash
# packaging/slurm/summary_array.sh on a real Slurm: an array with a step of which one task fails. The merge
# runs all the same, ends with 2 and names what is missing; with the task again it is complete, and its bytes
# are those of one summary (but for output.log, which has times of day).
. "$(dirname "$0")/../../lib/slurm.sh"
mkdir "$TMP/user" "$TMP/bin" "$TMP/logs"
cp "$BUILD/nccl-inspector" packaging/slurm/summary_array.sh "$TMP/bin/"
for i in 1 2; do
  env NCCL_INSPECTOR_ENABLE=1 NCCL_PROFILER_PLUGIN="$BUILD/libnccl-profiler-inspector.so" \
    NCCL_INSPECTOR_DUMP_DIR="$TMP/logs" SLURM_JOB_ID=$i \
    "$BUILD/nccl-sim" --job 2x4 --procs --quiet --iterations 5
done
chown -R nobody "$TMP/user" "$TMP/logs"
cat >"$TMP/bin/watched" <<C
#!/bin/bash
[ "\${SLURM_ARRAY_TASK_ID:-}" != 6 ] || [ -e $TMP/user/mended ] || exit 9
exec $TMP/bin/nccl-inspector "\$@"
C
chmod 755 "$TMP/bin/watched"
slurm_begin 1
array() { as_user env NI_COMMAND="$TMP/bin/watched" timeout 20 "$TMP/bin/summary_array.sh" "$@"; }
exit_code() { timeout 5 scontrol show job "$1" | sed -n 's/.* ExitCode=\([0-9]*\):.*/\1/p' | head -n 1; }

cd "$TMP/user"
merge=$(array submit "$TMP/logs" "$TMP/user/out" 0-12:2)
wait_for 120 ended "$merge" || fail "the merge does not run: $(timeout 5 scontrol show job "$merge")"
[ "$(exit_code "$merge")" = 2 ] ||
  fail "with a task that failed the merge ends with $(exit_code "$merge"): $(cat "$TMP/user/out"/*.log)"
grep -q 'shard 4 of 7 is missing' "$TMP/user/out/merge.log" ||
  fail "it does not name what is missing: $(cat "$TMP/user/out/merge.log")"
touch "$TMP/user/mended"
merge=$(array again "$TMP/logs" "$TMP/user/out" 0-12:2 6)
wait_for 120 ended "$merge" || fail "the second merge does not run"
[ "$(exit_code "$merge")" = 0 ] ||
  fail "with all tasks the merge ends with $(exit_code "$merge"): $(cat "$TMP/user/out"/*.log)"
as_user "$TMP/bin/nccl-inspector" summary "$TMP/logs" --output-dir "$TMP/user/one" --quiet >"$TMP/said" \
  2>&1 || fail "one summary: $(cat "$TMP/said")"
diff -r -x output.log "$TMP/user/one" "$TMP/user/out/summary" >"$TMP/said" 2>&1 ||
  fail "other bytes than one summary: $(head -n 5 "$TMP/said")"
[ "$(find "$TMP/user/one" -type f | wc -l)" -gt 5 ] || fail "nothing was compared"
finish
