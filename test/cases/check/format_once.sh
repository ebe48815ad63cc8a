#!/usr/bin/env bash
# The keys of the log stand in format/lines.def and nowhere else in what writes, reads and recovers it. Keys
# of one word are left out: `stuck`, `file`, `rank` are words of values, commands and other outputs, too. So
# is prom.c: its labels are NVIDIA's, and Kineto's keys are PyTorch's, ACCL's are AMD's, RAS's are NCCL's.
. "$(dirname "$0")/../../lib/case.sh"
keys=$(printf '%s\n' '#define IF(c) 1' '#define HAS(x) 1' '#define KNOWN(x) 1' '#define KEY(k, ...) @ k @' '#define OBJ(k, ...) @ k @' \
  '#define STAMP(k, ...) @ k @' '#define OPERATION(k, ...) @ k @' '#define KIND(k, ...) @ k @' \
  '#include "format/lines.def"' |
  ${CC:-gcc} -E -P -I. - | tr '\n' ' ' | grep -o '@ "[^@]*@' | tr -d '@ "' | grep _ | sort -u)
n=$(wc -w <<<"$keys")
[ "$n" -gt 100 ] || { echo "only $n keys found in format/lines.def"; exit 1; }
found=$(git grep -nE "\"($(tr '\n' '|' <<<"$keys" | sed 's/|$//'))\\\\?\"" -- plugin ':!plugin/write/prom.c' 'format/*.[ch]' exporter/input ':!exporter/input/kineto/kineto.cc' ':!exporter/input/accl/lines.cc' ':!exporter/input/ras' \
  'exporter/cmds/recover/recover_*' |
  grep -vE '^[^:]+:[0-9]+: *(/\*|\*)' || true)
[ -z "$found" ] || { echo "keys of lines.def that are spelled again:"; echo "$found"; exit 1; }
echo "$n keys, each once"
