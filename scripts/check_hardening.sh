#!/usr/bin/env bash
# What the compiler and the linker were to harden (scripts/hardening.mk): check_hardening.sh FILE... of
# programs and libraries of ours, also stripped ones.
#
# Fails, with a line for each thing that is missing, when a program is not position-independent; when the
# linker's tables stay writable or are bound late; when stacks may be executed; when canaries, glibc's checks
# of lengths, or the machine's marks of shadow stacks and of indirect branches (x86-64; aarch64: signed
# returns and BTI) are not in the code. The plugin has no marks of indirect branches.
# READELF and OBJDUMP may be set, for files of another machine. Exit 0 all well, 1 a finding, 2 usage.
set -euo pipefail
export LC_ALL=C
[ $# -gt 0 ] && [ -f "$1" ] || { echo "usage: $0 FILE..." >&2; exit 2; }
readelf=${READELF:-readelf} objdump=${OBJDUMP:-objdump}
FEWEST=20 # canaries and marked functions: archives of others that are linked in bring a few
bad=0

# The code as text is large, and read once: counts of what is looked for, "CANARIES BRANCHES RETURNS PROBES".
marks() {
  "$objdump" -d --no-show-raw-insn "$1" | awk '
    /__stack_chk_fail/ {canaries++}
    /endbr64|bti\t|hint\t#0x2[246]/ {branches++}
    /paciasp|pacibsp/ {returns++}
    END {print canaries + 0, branches + 0, returns + 0}'
}
for file; do
  say() { echo "check_hardening: $file: $*" >&2; bad=1; }
  header=$("$readelf" -hW "$file") segments=$("$readelf" -lW "$file") dynamic=$("$readelf" -dW "$file") \
    notes=$("$readelf" -nW "$file")
  imports=$("$readelf" --dyn-syms -W "$file" | awk '$7 == "UND" {sub(/@.*/, "", $8); print $8}')
  read -r canaries branches returns <<<"$(marks "$file")"
  is_library=$(grep -c '(SONAME)' <<<"$dynamic" || true)

  [ "$is_library" = 1 ] || grep -q '(FLAGS_1).* PIE' <<<"$dynamic" ||
    say "is no position-independent program (-pie)"
  grep -q 'GNU_RELRO' <<<"$segments" || say "its tables stay writable (-z relro)"
  grep -qE '\(FLAGS_1\).* NOW|BIND_NOW' <<<"$dynamic" || say "its tables are bound late (-z now)"
  ! grep -q 'GNU_STACK.*RWE' <<<"$segments" || say "its stack may be executed"
  [ "$canaries" -ge $FEWEST ] || say "$canaries functions look for a canary (-fstack-protector-strong)"
  grep -qE '^__(memcpy|memset|strcpy|snprintf|vsnprintf|read|printf|fprintf)_chk$' <<<"$imports" ||
    say "asks glibc for no checks of lengths (_FORTIFY_SOURCE)"
  case $header in
    *X86-64*)
      grep -q 'x86 feature:.*SHSTK' <<<"$notes" ||
        say "is not marked for shadow stacks (-fcf-protection, -z shstk)"
      [ "$is_library" = 1 ] || [ "$branches" -ge $FEWEST ] ||
        say "$branches targets of indirect branches are marked (-fcf-protection)" ;;
    *AArch64*)
      [ "$returns" -ge $FEWEST ] || say "$returns functions sign where they return to (-mbranch-protection)"
      [ "$is_library" = 1 ] || [ $((branches + returns)) -ge $FEWEST ] ||
        say "targets of indirect branches are not marked (-mbranch-protection)" ;;
  esac
  echo "$file: $canaries canaries, $(grep -c '_chk$' <<<"$imports" || true) checked functions of glibc, $branches marked targets"
done
exit $bad
