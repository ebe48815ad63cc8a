#include "../plural.h"
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

static void say_hosts(FILE *f, const struct ni_hang_crowd *c) {
  const char *host[HOSTS];
  size_t n = 0, more = 0;
  for (size_t i = 0; i < c->n; i++) {
    bool known = !c->who[i].host;
    for (size_t j = 0; j < n && !known; j++) known = strcmp(host[j], c->who[i].host) == 0;
    for (size_t j = i; n == HOSTS && j-- > 0 && !known;)
      known = c->who[j].host && strcmp(c->who[j].host, c->who[i].host) == 0;
    if (known) continue;
    if (n < HOSTS) host[n++] = c->who[i].host;
    else more++;
  }
  for (size_t i = 0; i < n; i++) {
    fputs(i == 0 ? " on " : i + 1 == n && !more ? " and " : ", ", f);
    ni_put_text(f, host[i]);
  }
  if (more) ni_say(f, " and %zu more host%s", more, ni_plural(more, "", "s"));
}

static void say_each(FILE *f, const struct ni_hang_crowd *c) {
  for (size_t i = 0; i < c->n; i++) {
    fputs(i == 0 ? "" : i + 1 == c->n ? " and " : ", ", f);
    ni_say(f, "%s %" PRId64, c->one, c->who[i].number);
    if (c->of) ni_put_text(f, c->of);
    if (!c->who[i].host) continue;
    fputs(" (", f);
    ni_put_text(f, c->who[i].host);
    fputc(')', f);
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
  if (c->of) ni_put_text(f, c->of);
  fputc(')', f);
  say_hosts(f, c);
}
