#include "exporter/base/text/plural.h"
#include "crowd.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAMED 4 /* so many are named one by one with their hosts */
#define RANGES 8
#define HOSTS 3

struct ni_hang_crowd ni_hang_crowd_new(size_t n, const char *one, const char *many) {
  return (struct ni_hang_crowd){.who = calloc(n + 1, sizeof(struct ni_hang_who)), .one = one, .many = many};
}

static int by_number(const void *a, const void *b) {
  const struct ni_hang_who *x = a, *y = b;
  return x->number < y->number ? -1 : x->number > y->number;
}

static int by_host(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static void say_hosts(FILE *f, const struct ni_hang_crowd *c) {
  const char *first[HOSTS], **all = calloc(c->n + 1, sizeof *all);
  size_t n = 0, hosts = 0, there = 0;
  for (size_t i = 0; all && i < c->n; i++) {
    if (!c->who[i].host) continue;
    all[there++] = c->who[i].host;
    bool known = n == HOSTS;
    for (size_t j = 0; j < n && !known; j++) known = strcmp(first[j], c->who[i].host) == 0;
    if (!known) first[n++] = c->who[i].host;
  }
  if (there > 1) qsort(all, there, sizeof *all, by_host);
  for (size_t i = 0; i < there; i++) hosts += i == 0 || strcmp(all[i - 1], all[i]) != 0;
  free(all);
  for (size_t i = 0; i < n; i++) {
    ni_say(f, "%s%s", i == 0 ? " on " : i + 1 == n && hosts == n ? " and " : ", ", first[i]);
  }
  if (hosts > n) ni_say(f, " and %zu more host%s", hosts - n, ni_plural(hosts - n, "", "s"));
}

static void say_each(FILE *f, const struct ni_hang_crowd *c) {
  for (size_t i = 0; i < c->n; i++) {
    const char *between = i == 0 ? "" : i + 1 == c->n ? " and " : ", ";
    ni_say(f, "%s%s %" PRId64 "%s", between, c->one, c->who[i].number, c->of ? c->of : "");
    if (c->who[i].host) ni_say(f, " (%s)", c->who[i].host);
  }
}

void ni_hang_say_crowd(FILE *f, struct ni_hang_crowd *c) {
  if (c->n > 1) qsort(c->who, c->n, sizeof *c->who, by_number);
  if (c->n <= NAMED) {
    say_each(f, c);
    return;
  }
  size_t ranges = 0;
  ni_say(f, "%zu %s (", c->n, c->many);
  for (size_t i = 0, end; i < c->n; i = end, ranges++) {
    for (end = i + 1; end < c->n && c->who[end].number == c->who[end - 1].number + 1; end++) {}
    if (ranges == RANGES) {
      fputs(", ...", f);
      break;
    }
    ni_say(f, "%s%" PRId64, ranges ? ", " : "", c->who[i].number);
    if (end - i > 1) ni_say(f, "-%" PRId64, c->who[end - 1].number);
  }
  ni_say(f, "%s)", c->of ? c->of : "");
  say_hosts(f, c);
}
