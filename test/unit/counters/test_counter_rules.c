/*
 * The rules of what counters mean: each row of rules.def fires on a value at its threshold and is silent
 * below it, for each of its counters and each of its two tests; its words are whole, and docs/counters.md has
 * it.
 */
#include "pair_made.h"

/* ---- all rows ---- */

enum kind {
  ALWAYS_,
  RISE_,
  FALL_,
  PER_S_,
  TIME_,
  RATIO_,
  LEVEL_,
  BITS_,
  LOW_,
  ODD_,
  LINK_,
  QUIET_,
  LONE_,
  STUCK_,
  GONE_,
  NEW_,
  RELOADED_,
  RESETS_,
  WARNED_,
  SLOW_LINK_,
  DOWN_,
  OFF_
};
struct test {
  enum kind kind;
  double limit, per;
  const char *of;
  unsigned source;
};
#define ALWAYS {ALWAYS_, 0, 0, NULL, 0}
#define RISE(n) {RISE_, n, 0, NULL, 0}
#define FALL(n) {FALL_, n, 0, NULL, 0}
#define PER_S(x) {PER_S_, x, 0, NULL, 0}
#define TIME_NS(x) {TIME_, x, 1e9, NULL, 0}
#define TIME_US(x) {TIME_, x, 1e6, NULL, 0}
#define RATIO(x, of) {RATIO_, x, 0, of, 0}
#define LEVEL(x) {LEVEL_, x, 0, NULL, 0}
#define BITS(x) {BITS_, x, 0, NULL, 0}
#define LOW(x, y) {LOW_, x, y, NULL, 0}
#define ODD(x) {ODD_, x, 0, NULL, 0}
#define LINK(x) {LINK_, x, 0, NULL, 0}
#define QUIET(source, of) {QUIET_, 0, 0, of, NI_METRIC_##source}
#define LONE(of) {LONE_, 0, 0, of, 0}
#define STUCK {STUCK_, 0, 0, NULL, 0}
#define GONE {GONE_, 0, 0, NULL, 0}
#define NEW {NEW_, 0, 0, NULL, 0}
#define RELOADED {RELOADED_, 0, 0, NULL, 0}
#define RESETS {RESETS_, 0, 0, NULL, 0}
#define WARNED {WARNED_, 0, 0, NULL, 0}
#define SLOW_LINK {SLOW_LINK_, 0, 0, NULL, 0}
#define DOWN {DOWN_, 0, 0, NULL, 0}
#define OFF {OFF_, 0, 0, NULL, 0}
#define NI_METRIC_ANY NI_METRIC_GPU
static const struct rule {
  unsigned level;
  enum ni_metric_source source;
  const char *id, *counters;
  struct test first, second;
  const char *says, *advice;
} rules[] = {
#define RULE(level, id, source, counters, first, second, says, advice) \
  {NI_LEVEL_##level, NI_METRIC_##source, id, counters, first, second, says, advice},
#include "exporter/model/counters/rules.def"
};
enum { N_RULES = sizeof rules / sizeof *rules };

/* The next of several patterns as a name: # is 3, * is x. NULL: no more. */
static const char *next_name(const char **patterns, char out[128]) {
  size_t n = 0;
  if (!*patterns || !**patterns)
    return NULL;
  for (; **patterns && **patterns != ' '; ++*patterns)
    out[n++] = **patterns == '#' ? '3' : **patterns == '*' ? 'x' : **patterns;
  if (**patterns)
    ++*patterns;
  out[n] = 0;
  return out;
}
static const char *first_name(const char *patterns, char out[128]) { return next_name(&patterns, out); }

/* What a counter must rise by to pass the test by itself; 0: others decide. */
static double need(const struct test *t) {
  switch (t->kind) {
    case RISE_:
    case FALL_:
    case LEVEL_:
      return t->limit;
    case PER_S_:
      return t->limit * SECONDS * 1.01 + 1;
    case TIME_:
      return t->limit * t->per * SECONDS * 1.01;
    case LINK_:
      return t->limit * 25e9 * SECONDS * 1.01;
    default:
      return 0;
  }
}
/* Just too little. */
static double too_little(const struct test *t) {
  double n = need(t);
  return t->kind == RISE_ || t->kind == FALL_ || t->kind == LEVEL_ ? n - 1 : floor(n * 0.97);
}

/* The machine in which `name` of `source` passes the rule; miss 1: its first test just not, 2: its second. */
static void plant(const struct rule *r, const char *name, int miss) {
  const struct test *t = &r->first, *u = &r->second;
  char other[128];
  double rise = fmax(need(t), need(u)), ratio = miss == 1 ? t->limit * 0.99 : t->limit * 1.01;
  if (rise <= 0)
    rise = 1e9;
  if (miss == 1 && need(t) > 0)
    rise = too_little(t);
  if (miss == 2 && need(u) > 0)
    rise = too_little(u);
  rise = floor(rise);
  begin();
  entity_in(BOTH, r->source, "it", t->kind == LINK_ ? 25e9 : 0);
  if (t->kind == STUCK_)
    counter_of(name, 65535, miss ? 65534 : 65535, NI_METRIC_COUNTER + !miss, 16, "");
  else if (t->kind == BITS_)
    counter_of(name, 0, miss ? ~(uint64_t)t->limit & 0xff : (uint64_t)t->limit & ~((uint64_t)t->limit - 1),
               NI_METRIC_GAUGE, 0, "");
  else if (t->kind == LEVEL_)
    counter_of(name, (uint64_t)rise, (uint64_t)rise, NI_METRIC_GAUGE, 0, "");
  else if (t->kind == FALL_)
    counter_of(name, 1000, (uint64_t)(1000 - rise), NI_METRIC_GAUGE, 0, "");
  else
    counter_of(name, 1000, 1000 + (uint64_t)rise, NI_METRIC_COUNTER, 64, t->kind == LINK_ ? "bytes" : "");
  if (t->kind == RATIO_) {
    /* The first of those it is measured by, but itself, makes the ratio. */
    const char *of = t->of;
    bool itself = false;
    char made[128] = "";
    while (next_name(&of, other)) {
      if (strcmp(other, name) == 0)
        itself = true;
      else if (!*made)
        strcpy(made, other);
    }
    if (*made)
      counter(made, rise / ratio - (itself ? rise : 0));
  }
  for (int i = 0; i < (t->kind == LOW_ ? 1 : t->kind == ODD_ ? 2 : 0); i++) {
    entity(r->source, i ? "sibling1" : "sibling0");
    counter(name, t->kind == LOW_ ? rise / (t->limit * (miss ? 1.01 : 0.99)) : rise / ratio);
  }
  if (u->kind == QUIET_) {
    entity((enum ni_metric_source)u->source, "beside");
    counter(first_name(u->of, other), miss == 2 ? 1 : 0);
  }
  if (u->kind == LONE_) {
    entity(r->source, "other");
    counter(first_name(u->of, other), miss == 2 ? 0 : 5);
  }
  judge();
}

/* The finding of a rule about an entity. */
static const struct ni_counter_finding *of_rule(size_t rule, const char *name) {
  for (size_t i = 0; i < b.found.n; i++)
    if (b.found.finding[i].rule == rule && strcmp(b.found.finding[i].entity, name) == 0)
      return &b.found.finding[i];
  return NULL;
}

static void plant_whole(const struct rule *r, bool miss) {
  begin();
  enum kind k = r->first.kind;
  struct ni_entity *e = entity_in(k == GONE_ && !miss      ? BEFORE
                                      : k == NEW_ && !miss ? AFTER
                                                           : BOTH,
                                  r->source, "it", k == SLOW_LINK_ ? 12.5e9 : 0);
  if (k == WARNED_ && !miss)
    e->warning = "PCIe link x8 of x16";
  if (k == GONE_ || k == NEW_)
    return judge();
  for (int i = 0; i < 8; i++) {
    char name[16];
    snprintf(name, sizeof name, "counter%d", i);
    bool falls = !miss && (k == RELOADED_ ? i < 4 : k == RESETS_ && i < 1);
    counter_of(name, 1000, falls ? 3 : 1000, NI_METRIC_COUNTER, 64, "");
  }
  for (int i = 0; k == SLOW_LINK_ && i < 3; i++)
    entity_in(BOTH, r->source, i == 0 ? "a" : i == 1 ? "b" : "c", miss ? 12.5e9 : 25e9);
  if (k == DOWN_ || k == OFF_) {
    e->state = k == DOWN_ ? NI_LINK_DOWN : NI_LINK_OFF;
    e->kind = "one kind";
    for (int i = 0; i < 3; i++) {
      struct ni_entity *other = entity_in(BOTH, r->source, i == 0 ? "a" : i == 1 ? "b" : "c", 0);
      other->state = NI_LINK_UP;
      other->kind = miss ? "another" : "one kind";
    }
  }
  judge();
}

static void each_rule(void **state) {
  (void)state;
  for (size_t i = 0; i < N_RULES; i++) {
    const struct rule *r = &rules[i];
    if (r->first.kind >= GONE_) {
      plant_whole(r, false);
      if (!of_rule(i, "it"))
        fail_msg("%s (row %zu): silent on what was planted", r->id, i);
      plant_whole(r, true);
      if (of_rule(i, "it"))
        fail_msg("%s (row %zu): speaks where nothing is", r->id, i);
      continue;
    }
    char name[128];
    for (const char *p = r->counters; next_name(&p, name);) {
      plant(r, name, 0);
      const struct ni_counter_finding *f = of_rule(i, "it");
      if (!f)
        fail_msg("%s (row %zu): silent on %s at its threshold", r->id, i, name);
      if (!f->row || strcmp(f->row->name, name) != 0 || !strstr(f->text, name) ||
          strncmp(f->text, "it ", 3) != 0)
        fail_msg("%s (row %zu): names another than %s: %s", r->id, i, name, f->text);
      if (f->level != r->level || strcmp(f->id, r->id) != 0)
        fail_msg("%s: %s, %s", r->id, f->id, f->text);
      plant(r, name, 1);
      if (of_rule(i, "it"))
        fail_msg("%s (row %zu): speaks of %s below its threshold: %s", r->id, i, name,
                 of_rule(i, "it")->text);
      if (r->second.kind == ALWAYS_)
        continue;
      plant(r, name, 2);
      if (of_rule(i, "it"))
        fail_msg("%s (row %zu): speaks of %s without its second test: %s", r->id, i, name,
                 of_rule(i, "it")->text);
    }
  }
}

/* Sentences are sentences: no advice without a full stop, no second one in what is said. */
static void words(void **state) {
  (void)state;
  for (size_t i = 0; i < N_RULES; i++) {
    const struct rule *r = &rules[i];
    size_t n = strlen(r->advice);
    if (!n || r->advice[n - 1] != '.' || strchr(r->says, '.') || strchr(r->id, ' '))
      fail_msg("%s (row %zu): its words", r->id, i);
    if (i && r->level == NI_LEVEL_CRITICAL && rules[i - 1].level == NI_LEVEL_WARNING)
      fail_msg("%s (row %zu): stands below warnings", r->id, i);
  }
}

/* docs/counters.md names each rule that a program may meet. */
static void documented(void **state) {
  (void)state;
  static char page[1 << 17], id[64];
  FILE *f = fopen("docs/counters.md", "re");
  assert_non_null(f);
  page[fread(page, 1, sizeof page - 1, f)] = 0;
  fclose(f);
  for (size_t i = 0; i < N_RULES; i++) {
    snprintf(id, sizeof id, "`%s`", rules[i].id);
    if (!strstr(page, id))
      fail_msg("docs/counters.md has no %s", id);
  }
}
int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_rule), cmocka_unit_test(words),
                                     cmocka_unit_test(documented)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  begin();
  return failed;
}
