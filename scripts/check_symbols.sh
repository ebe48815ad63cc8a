#!/usr/bin/env bash
# What the plugin brings into somebody else's process: check_symbols.sh LIB.so
#
# Fails when the object exports anything but ncclProfiler_v*, imports a symbol newer than GLIBC_2.28, needs a
# library outside libc, libm, libpthread, libdl (and the loader), has static constructors of its own, or an
# executable stack.
# MAX_GLIBC and READELF may be set. Exit 0 all well, 1 a finding, 2 usage.
set -euo pipefail

so=${1:-}
[ -f "$so" ] || { echo "usage: $0 LIB.so" >&2; exit 2; }
readelf=${READELF:-readelf}
max=${MAX_GLIBC:-2.28}
bad=0
say() { echo "check_symbols: $so: $*" >&2; bad=1; }

symbols=$(LC_ALL=C "$readelf" --dyn-syms -W "$so")

# Num: Value Size Type Bind Vis Ndx Name
exported=$(awk '$1 ~ /^[0-9]+:$/ && $7 != "UND" && $5 != "LOCAL" {print $8}' <<<"$symbols")
for name in $exported; do
  [[ $name =~ ^ncclProfiler_v[0-9]+$ ]] ||
    say "exports $name; only ncclProfiler_v* may be seen (plugin/life/plugin.map)"
done
[ -n "$exported" ] || say "exports nothing: NCCL would find no profiler in it"

imports=$(awk '$1 ~ /^[0-9]+:$/ && $7 == "UND" && NF >= 8 {print $8}' <<<"$symbols")
for name in $imports; do
  case $name in *@*) ;; *) continue ;; esac
  version=${name##*@}
  case $version in
    GLIBC_*)
      v=${version#GLIBC_}
      newest=$(printf '%s\n%s\n' "$v" "$max" | sort -V | tail -n 1)
      [ "$newest" = "$max" ] ||
        say "imports $name, newer than GLIBC_$max (plugin/os/glibc_compat.h says what to do)"
      ;;
    *) say "imports $name, which is not glibc's" ;;
  esac
done

dynamic=$(LC_ALL=C "$readelf" -d -W "$so")
needed=$(sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' <<<"$dynamic")
for lib in $needed; do
  case $lib in
    libc.so.6 | libm.so.6 | libpthread.so.0 | libdl.so.2 | ld-linux-x86-64.so.2 | ld-linux-aarch64.so.1) ;;
    *) say "needs $lib; only libc, libm, libpthread and libdl are on every host" ;;
  esac
done
# The pinned pthread and dl functions live in libraries of their own on glibc before 2.34.
if grep -qE '(^|\s)(pthread_create|pthread_detach|pthread_join)@' <<<"$imports" &&
  ! grep -q '^libpthread\.so\.0$' <<<"$needed"; then
  say "imports pthread functions but does not need libpthread.so.0, where glibc before 2.34 has them"
fi
if grep -qE '(^|\s)(dlopen|dlsym|dladdr)@' <<<"$imports" && ! grep -q '^libdl\.so\.2$' <<<"$needed"; then
  say "imports dl functions but does not need libdl.so.2, where glibc before 2.34 has them"
fi

# One pointer (frame_dummy of the compiler's start files) is no constructor of ours.
size=$(sed -n 's/.*(INIT_ARRAYSZ) *\([0-9]*\).*/\1/p' <<<"$dynamic")
# On aarch64 a second one is libgcc's: it asks the kernel whether the CPU has the atomic instructions of
# ARMv8.1.
allowed=8
grep -q ' init_have_lse_atomics$' <<<"$(LC_ALL=C "$readelf" -sW "$so")" && allowed=16
[ "${size:-0}" -le $allowed ] || say "has static constructors (INIT_ARRAYSZ $size): code of ours would run at dlopen"
grep -q 'GNU_STACK.*RWE' <<<"$(LC_ALL=C "$readelf" -lW "$so")" && say "wants an executable stack"

if [ "$bad" = 0 ]; then
  echo "check_symbols: $(wc -w <<<"$exported") exports, $(wc -w <<<"$imports") imports up to GLIBC_$max, needs $(tr '\n' ' ' <<<"$needed")"
fi
exit "$bad"
