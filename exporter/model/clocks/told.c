/* What is said of the clocks of hosts: lines, and a member of a JSON document. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/time_text.h"
#include "hosts.h"

enum { NAMED = 4, TEXT = 1024 };

struct clock_telling {
  const struct ni_clocks *c;
  uint32_t run;
  bool of_run; /* there are several: each line says which */
  bool corrected;
  char text[TEXT];
};

static void __attribute__((format(printf, 2, 3))) append_text(struct clock_telling *t, const char *format,
                                                              ...) {
  const size_t at = strlen(t->text);
  va_list args;
  va_start(args, format);
  (void)vsnprintf(t->text + at, sizeof t->text - at, format, args);
  va_end(args);
}

static void begin_line(struct clock_telling *t) {
  *t->text = 0;
  if (t->of_run)
    append_text(t, "run %u: ", t->run);
}

static const char *name_host(const struct ni_clocks_host *h, char out[96]) {
  return ni_safe_text(h->name, out, 96);
}

/* The larger offset of both ends. */
static double find_farthest_offset(const struct ni_host_clock *c) {
  const double first = ni_clock_ahead(c, c->first_ns), last = ni_clock_ahead(c, c->last_ns);
  return fabs(first) > fabs(last) ? first : last;
}

static bool is_far(const struct ni_clocks_host *h) {
  return h->off && (h->clock.n_steps || fabs(find_farthest_offset(&h->clock)) > (double)NI_CLOCKS_SAID_NS);
}

static const char *word_direction(double ahead_ns) { return ahead_ns < 0 ? "behind" : "ahead of"; }

/* "was set forward by 2 s at 12:00:01" */
static void append_steps(struct clock_telling *t, const struct ni_host_clock *c) {
  char span[32], when[40];
  for (uint32_t k = 0; k < c->n_steps && k < 2; k++) {
    const struct ni_clock_step *s = &c->step[k];
    append_text(t, "%s set %s by %s at %s", k ? ", and" : " was", s->by_ns < 0 ? "back" : "forward",
                ni_span_text(llabs(s->by_ns), span), ni_utc_text(s->before_ns / 1000, ' ', 0, when));
  }
}

static void append_one_host(struct clock_telling *t, const struct ni_clocks_host *h, const char *reference) {
  char name[96], span[32];
  const double ahead = find_farthest_offset(&h->clock);
  append_text(t, "the clock of %s", name_host(h, name));
  append_steps(t, &h->clock);
  if (fabs(ahead) <= (double)NI_CLOCKS_SAID_NS)
    return;
  append_text(t, "%s is %s %s %s's", h->clock.n_steps ? ", and" : "",
              ni_span_text((int64_t)fabs(ahead), span), word_direction(ahead), reference);
}

static void append_several_hosts(struct clock_telling *t, const struct ni_clocks_host *const *far, size_t n,
                                 const char *reference) {
  char name[96], span[32];
  append_text(t, "the clocks of %zu hosts are not %s's:", n, reference);
  for (size_t i = 0; i < n && i < NAMED; i++) {
    const double ahead = find_farthest_offset(&far[i]->clock);
    append_text(t, "%s %s", i ? "," : "", name_host(far[i], name));
    append_steps(t, &far[i]->clock);
    if (fabs(ahead) > (double)NI_CLOCKS_SAID_NS)
      append_text(t, " %s %s", ni_span_text((int64_t)fabs(ahead), span), ahead < 0 ? "behind" : "ahead");
  }
  if (n > NAMED)
    append_text(t, " and %zu more", n - NAMED);
}

/* Says which hosts of this run are far from its reference. */
static void say_far_hosts(struct clock_telling *t, uint32_t from, uint32_t end, uint32_t reference,
                          const struct ni_clocks_host **far, void (*line)(void *arg, const char *text),
                          void *arg) {
  const struct ni_clocks *c = t->c;
  size_t n = 0;
  int64_t error = 0;
  char name[96], span[32];
  for (uint32_t i = from; i < end; i++) {
    const struct ni_clocks_host *h = &c->host[c->order[i]];
    if (h->reference != reference || !is_far(h))
      continue;
    if (h->clock.spread_ns > error)
      error = h->clock.spread_ns;
    far[n++] = h;
  }
  if (!n)
    return;
  begin_line(t);
  name_host(&c->host[reference], name);
  if (n == 1)
    append_one_host(t, far[0], name);
  else
    append_several_hosts(t, far, n, name);
  if (t->corrected)
    append_text(t, "; times here are corrected, to within about %s", ni_span_text(error, span));
  else
    append_text(t, "; times here are as they were written");
  line(arg, t->text);
}

static void say_unaligned_hosts(struct clock_telling *t, uint32_t from, uint32_t end,
                                void (*line)(void *arg, const char *text), void *arg) {
  const struct ni_clocks *c = t->c;
  size_t n = 0;
  char name[96];
  begin_line(t);
  for (uint32_t i = from; i < end; i++) {
    const struct ni_clocks_host *h = &c->host[c->order[i]];
    if (h->joined)
      continue;
    if (n < NAMED)
      append_text(t, "%s%s", n ? ", " : "", name_host(h, name));
    n++;
  }
  if (!n)
    return;
  if (n > NAMED)
    append_text(t, " and %zu more", n - NAMED);
  append_text(
      t,
      " %s no timed collective in common with the other hosts: %s cannot be compared, and %s times are as "
      "written",
      n > 1 ? "have" : "has", n > 1 ? "their clocks" : "its clock", n > 1 ? "their" : "its");
  line(arg, t->text);
}

static bool has_several_runs(const struct ni_clocks *c) {
  return c->n_hosts && c->host[c->order[0]].run != c->host[c->order[c->n_hosts - 1]].run;
}

void ni_clocks_say(const struct ni_clocks *c, bool corrected, void (*line)(void *arg, const char *text),
                   void *arg) {
  const struct ni_clocks_host **far = c->n_hosts ? malloc(c->n_hosts * sizeof *far) : NULL;
  struct clock_telling t = {.c = c, .corrected = corrected};
  if (!c->order || !far) {
    free(far);
    return;
  }
  t.of_run = has_several_runs(c);
  for (uint32_t i = 0, end; i < c->n_hosts; i = end) {
    t.run = c->host[c->order[i]].run;
    for (end = i; end < c->n_hosts && c->host[c->order[end]].run == t.run; end++) {}
    for (uint32_t k = i; k < end; k++)
      if (c->host[c->order[k]].reference == c->order[k])
        say_far_hosts(&t, i, end, c->order[k], far, line, arg);
    if (c->too_many && !c->host[c->order[i]].joined) {
      begin_line(&t);
      append_text(&t, "%u hosts: their clocks are not compared, and times are as they were written", end - i);
      line(arg, t.text);
    } else {
      say_unaligned_hosts(&t, i, end, line, arg);
    }
  }
  free(far);
}

static void write_json_host(struct ni_json *j, const struct ni_clocks *c, const struct ni_clocks_host *h) {
  const struct ni_host_clock *x = &h->clock;
  ni_json_object(j, NULL);
  ni_json_text(j, "hostname", h->name);
  ni_json_u64(j, "run", h->run);
  ni_json_text(j, "reference", c->host[h->reference].name);
  ni_json_bool(j, "compared", h->joined);
  ni_json_bool(j, "corrected", h->off);
  /* at the middle of its run */
  ni_json_i64(j, "ahead_ns", (int64_t)ni_clock_ahead(x, x->first_ns / 2 + x->last_ns / 2));
  ni_json_rounded(j, "drift_ppm", x->drift * 1e6, 6);
  ni_json_i64(j, "error_ns", x->error_ns);
  ni_json_i64(j, "spread_ns", x->spread_ns);
  NI_JSON_ARRAY (j, "set") {
    for (uint32_t k = 0; k < x->n_steps; k++) {
      ni_json_object(j, NULL);
      ni_json_i64(j, "after_ns", x->step[k].before_ns);
      ni_json_i64(j, "by_ns", x->step[k].by_ns);
      ni_json_end_object(j);
    }
  }
  ni_json_end_object(j);
}

void ni_clocks_json(struct ni_json *j, const struct ni_clocks *c) {
  if (c->n_hosts < 2)
    return;
  ni_json_object(j, "clocks");
  ni_json_bool(j, "corrected", c->any);
  NI_JSON_ARRAY (j, "hosts") {
    for (uint32_t i = 0; i < c->n_hosts; i++)
      write_json_host(j, c, &c->host[c->order ? c->order[i] : i]);
  }
  ni_json_end_object(j);
}
