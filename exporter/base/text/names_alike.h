/*
 * Which names of communicators are of one kind. Pure, any thread.
 */
#ifndef NI_NAMES_ALIKE_H
#define NI_NAMES_ALIKE_H

#include <stdbool.h>
#include <string.h>

/* Do two names differ in digits alone ("tp0", "tp1"; also when nobody gave any)? Then they are likely groups of one kind, side
 * by side, with no rank in common. */
static inline bool ni_names_alike(const char *a, const char *b) {
  for (a = a ? a : "", b = b ? b : "";; a++, b++) {
    a += strspn(a, "0123456789");
    b += strspn(b, "0123456789");
    if (*a != *b || !*a) return *a == *b;
  }
}

#endif
