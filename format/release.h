/*
 * A release of NCCL as people write it: ncclGetVersion's 23007 is "2.30.7", 2804 (before 2.9) "2.8.4".
 */
#ifndef NI_RELEASE_H
#define NI_RELEASE_H

#include <stdio.h>

/* version: 0 or less is "of unknown release". */
static inline const char *ni_release_text(int version, char out[40]) {
  int major = version < 10000 ? 1000 : 10000;
  if (version <= 0)
    snprintf(out, 40, "of unknown release");
  else
    snprintf(out, 40, "%d.%d.%d", version / major, version % major / 100, version % 100);
  return out;
}

#endif
