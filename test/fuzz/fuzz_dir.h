/*
 * Where a fuzzer keeps files: a new folder below $NI_FUZZ_DIR, else in memory, else in /tmp. test/fuzz/run.sh
 * sets that and removes all of it, because a fuzzer ends where libFuzzer ends it.
 */
#ifndef NI_FUZZ_DIR_H
#define NI_FUZZ_DIR_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Makes the folder. One a process: what is returned stays. Aborts where none can be made. */
static inline const char *fuzz_dir(const char *name) {
  static char path[256];
  const char *in = getenv("NI_FUZZ_DIR");
  if (!in)
    in = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  snprintf(path, sizeof path, "%s/fuzz_%s.XXXXXX", in, name);
  if (!mkdtemp(path))
    abort();
  return path;
}

#endif
