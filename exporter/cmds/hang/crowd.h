/*
 * Lists of ranks as text: "rank 3 (node-a) and rank 17 (node-c)", "12 ranks (0-7, 9-12) on node-a, node-b and 3 more hosts".
 *
 * The caller fills who[] (ni_hang_crowd_new gives room for n) and the names stay its own. One thread.
 */
#ifndef NI_HANG_CROWD_H
#define NI_HANG_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/base/text/safe_text.h"

struct ni_hang_who {
  int64_t number;   /* rank or pid */
  const char *host; /* NULL: not known */
};

struct ni_hang_crowd {
  struct ni_hang_who *who;
  size_t n;
  const char *one, *many; /* "rank", "ranks" */
  const char *of;         /* what the numbers count in, when that is no matter of course: " of dp0"; NULL */
};

/* Room for n, nobody in it; who is NULL without memory. Freed with free(c.who). */
struct ni_hang_crowd ni_hang_crowd_new(size_t n, const char *one, const char *many);
/* Ascending by number from here on. */
void ni_hang_say_crowd(FILE *f, struct ni_hang_crowd *c);

#endif
