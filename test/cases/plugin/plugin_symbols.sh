#!/usr/bin/env bash
# The built plugin passes scripts/check_symbols.sh, and objects with one fault each do not.
. "$(dirname "$0")/../../lib/case.sh"
so=$BUILD/libnccl-profiler-inspector.so
need "$so"
if readelf -d -W "$so" | grep -E 'lib(a|t|ub)san' >/dev/null; then skip "sanitizer build"; fi

scripts/check_symbols.sh "$so"
for v in 1 2 3 4 5 6 7; do # one object for every NCCL from 2.23 on
  readelf --dyn-syms -W "$so" | grep "OBJECT.* ncclProfiler_v$v$" >/dev/null ||
    fatal "ncclProfiler_v$v is not there"
done

# fault NAME EXPECTED-WORDS [cc flags...] <source
fault() {
  local name=$1 words=$2
  shift 2
  ${CC:-cc} -shared -fPIC -o "$TMP/$name.so" -x c - "$@"
  if scripts/check_symbols.sh "$TMP/$name.so" 2>"$TMP/err"; then
    fatal "$name was not noticed"
  fi
  grep -q "$words" "$TMP/err" || { cat "$TMP/err"; fatal "$name: expected '$words'"; }
}

ok='int ncclProfiler_v4;'
fault export 'exports secret' <<<"$ok int secret;"
fault nothing 'exports nothing' <<<"static int x; int *f(void); __attribute__((visibility(\"hidden\"))) int *f(void) { return &x; }"
fault constructor 'static constructors' <<<"$ok __attribute__((constructor)) static void run(void) { ncclProfiler_v4 = 1; }"
fault library 'needs libz' -Wl,--no-as-needed -lz <<<"$ok"
# Only a libc of 2.34 or later has the newer symbol.
if [ "$(printf '2.34\n%s\n' "$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)" | sort -V | head -n 1)" = \
  2.34 ]; then
  fault newer 'newer than GLIBC_2.28' <<<"#include <pthread.h>
    int ncclProfiler_v4(void) { return pthread_detach(pthread_self()); }"
  fault split 'does not need libdl' -I. <<<"#include \"plugin/os/glibc_compat.h\"
    #include <dlfcn.h>
    void *ncclProfiler_v4(void) { return dlopen(\"x\", RTLD_NOW); }"
fi
echo "all faults noticed"
