#!/usr/bin/env bash
# A log of one record: every number is 1, and no message says "1 files".
. "$(dirname "$0")/../../lib/case.sh"
cd "$TMP"
mkdir logs many
line=$(PYTHONPATH=$ROOT/test/lib python3 -c 'import logs
print(logs.text(logs.line(logs.header("0x5d1c7e90aa41b2", 0, 2, 2), logs.metadata(1790000000123456, "node-a", 4242, git_rev="1", producer=None), "coll_perf",
                          logs.perf("coll", "AllReduce", sn=1, msg_size_bytes=1, exec_time_us=59, timing_source="kernel_gpu", algobw_gbs=1.5, busbw_gbs=1.5,
                                    enqueue_ns=1790000000123000000, gpu_start_delta_ns=100))))')
printf '%s\nx\n%s\n' "$line" "${line//\"coll_sn\":1/\"coll_sn\":3}" >logs/a.log
touch many/a.log
for sn in 1 3 3; do printf '%s\nx\n' "${line//\"coll_sn\":1/\"coll_sn\":$sn}"; done >>many/a.log
cp many/a.log many/b.log
printf '%s\n' "$line" >one.log
"$BUILD/nccl-inspector" check one.log >check || [ $? = 2 ]
"$BUILD/nccl-inspector" summary one.log --no-plots --output-dir one >summary || [ $? = 2 ]
"$BUILD/nccl-inspector" trace one.log -o one.json >trace || [ $? = 2 ]
"$BUILD/nccl-inspector" check logs/a.log >check1 || [ $? = 2 ]
"$BUILD/nccl-inspector" summary logs/a.log --no-plots --output-dir out >summary1 || [ $? = 2 ]
"$BUILD/nccl-inspector" trace logs/a.log -o out.json >trace1 || [ $? = 2 ]
"$BUILD/nccl-inspector" summary logs --rank 7 --no-plots --output-dir none >none 2>&1 || [ $? = 1 ]
all=(check summary trace check1 summary1 trace1 none one/output.log out/output.log)
if grep -nE '(^|[^0-9.])1 (more )?(bad )?(files|records|operations|lines|ranks|hosts|groups|slices|arrows|processes|communicators|places|are|were)\b' "${all[@]}"; then
  echo "a number that is 1 has its word in the plural"
  exit 1
fi
has() { grep -qF -- "$2" "$1" || { echo "$1 does not say: $2"; cat "$1"; exit 1; }; }
has check 'lines       1: 1 operation, 0 about the run'
has summary '1 record, 1 operation, from 1 file '
has summary 'INCOMPLETE: 1 rank missing: communicator'
has trace '1 operation of 1 rank on 1 host: 2 slices, 1 arrow'
has check1 'problem     1 bad line'
has summary1 '1 bad line: logs/a.log:2'
has summary1 '1 operation missing by its number'
has trace1 'incomplete  1 bad line'
has out/output.log ' - 1 file, 3 lines, 2 records'
# And more than one.
"$BUILD/nccl-inspector" summary many --no-plots --output-dir many-out >summary2 || [ $? = 2 ]
has summary2 '6 bad lines: '
has summary2 '4 records there twice: '
echo "one is one"
