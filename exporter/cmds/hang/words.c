#include "words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/order.h"
#include "exporter/cli/command.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/time_text.h"

const struct ni_hang_answer_words *ni_hang_words_of(enum ni_hang_answer answer) {
  static const struct ni_hang_answer_words all[NI_HANG_ANSWER_COUNT] = {
      [NI_HANG_NO_DATA_AT_ALL] = {"no data", "no_data", "no_data", NI_EXIT_COULD_NOT_RUN},
      [NI_HANG_CERTAIN] = {"HANG (certain)", "hang_certain", "certain", NI_EXIT_FINDING},
      [NI_HANG_LIKELY] = {"HANG (likely)", "hang_likely", "likely", NI_EXIT_FINDING},
      [NI_HANG_NOT_YET] = {"not yet a hang", "not_yet", "no_hang", NI_EXIT_FINE},
      [NI_HANG_NO_HANG] = {"no hang", "no_hang", "no_hang", NI_EXIT_FINE},
      [NI_HANG_CANNOT_TELL] = {"CANNOT TELL", "cannot_tell", "cannot_tell", NI_EXIT_INCOMPLETE},
      [NI_HANG_ALL_DEAD] = {"DEAD", "dead", "no_hang", NI_EXIT_DEAD},
      [NI_HANG_ALL_ENDED] = {"ENDED", "ended", "no_hang", NI_EXIT_FINE}};
  return &all[answer];
}

const char *ni_hang_where_name(enum ni_hang_where where) {
  static const char *const names[NI_HANG_WHERE_COUNT] = {
      "finished",   "inside", "in_replay", "queued",    "called",  "never_called",
      "other_call", "gone",   "left",      "elsewhere", "no_data", "not_involved"};
  return names[where];
}

const char *ni_hang_state_name(uint8_t state) {
  static const char *const names[NI_HANG_STATE_COUNT] = {"called",    "launched",  "kernel",  "network",
                                                         "finishing", "in_flight", "replayed"};
  return names[state < NI_HANG_STATE_COUNT ? state : NI_HANG_UNSTATED];
}

int32_t ni_hang_global(const struct ni_hang_verdict *v, const struct ni_hang_view *w) {
  const struct ni_hang_process *p = ni_hang_process_at(v, w);
  return p->several ? -1 : p->rank;
}

void ni_hang_say_comm(FILE *f, const struct ni_hang_member *x) {
  if (x->who->name && *x->who->name)
    ni_put_text(f, x->who->name);
  else
    ni_say(f, "0x%" PRIx64, x->who->hash);
}

void ni_hang_say_op(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_op *op) {
  const char *func = ni_hang_text(v->model, op->func);
  ni_put_text(f, *func ? func : "an operation");
  if (op->kind == NI_KIND_COLL)
    ni_say(f, " %" PRIu64, op->sn);
  else if (op->root >= 0)
    ni_say(f, " %s rank %d", strcmp(func, "Send") == 0 ? "to" : "from", op->root);
}

void ni_hang_say_span(FILE *f, uint64_t ns) {
  char text[32];
  ni_say(f, "%s", ni_age_text(ns, text));
}

void ni_hang_say_when(FILE *f, const struct ni_hang_verdict *v, uint64_t ns) {
  char text[40];
  ni_say(f, "%s", ni_utc_text((int64_t)(ns / 1000), 'T', 0, text));
  if (!v->wall_ns)
    return;
  fputs(" (", f);
  ni_hang_say_span(f, v->wall_ns > ns ? v->wall_ns - ns : 0);
  fputs(" ago)", f);
}

/* ---- lists of ranks ---- */

#define NAMED 4 /* so many are named one by one with their hosts */
#define RANGES 8
#define HOSTS 3

struct ni_hang_crowd ni_hang_crowd_new(size_t n, const char *one, const char *many) {
  return (struct ni_hang_crowd){.who = calloc(n + 1, sizeof(struct ni_hang_who)), .one = one, .many = many};
}

static NI_ORDER_BY(by_number, struct ni_hang_who, number);

static int by_host(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void say_hosts(FILE *f, const struct ni_hang_crowd *c) {
  const char *first[HOSTS], **all = calloc(c->n + 1, sizeof *all);
  size_t n = 0, hosts = 0, there = 0;
  for (size_t i = 0; all && i < c->n; i++) {
    if (!c->who[i].host)
      continue;
    all[there++] = c->who[i].host;
    bool known = n == HOSTS;
    for (size_t j = 0; j < n && !known; j++)
      known = strcmp(first[j], c->who[i].host) == 0;
    if (!known)
      first[n++] = c->who[i].host;
  }
  if (there > 1)
    qsort(all, there, sizeof *all, by_host);
  for (size_t i = 0; i < there; i++)
    hosts += i == 0 || strcmp(all[i - 1], all[i]) != 0;
  free(all);
  for (size_t i = 0; i < n; i++) {
    ni_say(f, "%s%s", i == 0 ? " on " : i + 1 == n && hosts == n ? " and " : ", ", first[i]);
  }
  if (hosts > n)
    ni_say(f, " and %zu more host%s", hosts - n, ni_plural(hosts - n, "", "s"));
}

static void say_each(FILE *f, const struct ni_hang_crowd *c) {
  for (size_t i = 0; i < c->n; i++) {
    const char *between = i == 0 ? "" : i + 1 == c->n ? " and " : ", ";
    ni_say(f, "%s%s %" PRId64 "%s", between, c->one, c->who[i].number, c->of ? c->of : "");
    if (c->who[i].host)
      ni_say(f, " (%s)", c->who[i].host);
  }
}

/*
 * Sorts the ranks. They mostly come in order: with 65,536 ranks without data, listed in each of 2,000 waits,
 * sorting took half of all time.
 */
static void sort_crowd(struct ni_hang_crowd *c) {
  for (size_t i = 1; i < c->n; i++) {
    if (c->who[i - 1].number <= c->who[i].number)
      continue;
    qsort(c->who, c->n, sizeof *c->who, by_number);
    return;
  }
}

void ni_hang_say_crowd(FILE *f, struct ni_hang_crowd *c) {
  sort_crowd(c);
  if (c->n <= NAMED) {
    say_each(f, c);
    return;
  }
  size_t ranges = 0;
  ni_say(f, "%s %s (", NI_COUNT(c->n), c->many);
  for (size_t i = 0, end; i < c->n; i = end, ranges++) {
    for (end = i + 1; end < c->n && c->who[end].number == c->who[end - 1].number + 1; end++) {}
    if (ranges == RANGES) {
      fputs(", ...", f);
      break;
    }
    ni_say(f, "%s%" PRId64, ranges ? ", " : "", c->who[i].number);
    if (end - i > 1)
      ni_say(f, "-%" PRId64, c->who[end - 1].number);
  }
  ni_say(f, "%s)", c->of ? c->of : "");
  say_hosts(f, c);
}
