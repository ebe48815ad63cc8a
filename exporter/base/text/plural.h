/*
 * Words behind a number: "1 file", "2 files". One function, so that all messages count alike.
 */
#ifndef NI_PLURAL_H
#define NI_PLURAL_H

#include <stdint.h>

static inline const char *ni_plural(uint64_t n, const char *one, const char *many) {
  return n == 1 ? one : many;
}

#endif
