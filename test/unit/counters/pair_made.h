/*
 * A pair of sweeps built by hand, and what is judged of it: for test_counter_rules.c and
 * test_counter_faults.c.
 */
#ifndef NI_TEST_PAIR_MADE_H
#define NI_TEST_PAIR_MADE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/model/counters/verdict.h"

#define NS INT64_C(1000000000)
enum { SECONDS = 10, MOST = 40000 };

/* ---- a pair, built by hand: entities, then counters with what they were and are ---- */

static struct bench {
  struct ni_set before, after;
  struct ni_reading was[MOST], is[MOST];
  struct ni_pair pair;
  struct ni_counter_findings found;
} b;

static void begin(void) {
  ni_counter_findings_free(&b.found);
  ni_pair_free(&b.pair);
  ni_set_free(&b.before);
  ni_set_free(&b.after);
}

enum { BEFORE = 1, AFTER = 2, BOTH = 3 };
static struct ni_entity *entity_in(unsigned when, enum ni_metric_source source, const char *name,
                                   double link) {
  struct ni_entity *e = NULL, *a = NULL;
  if (when & BEFORE)
    (e = ni_set_entity(&b.before, source, name))->link_bytes_s = link;
  if (when & AFTER)
    (a = ni_set_entity(&b.after, source, name))->link_bytes_s = link;
  return a ? a : e;
}
static struct ni_entity *entity(enum ni_metric_source source, const char *name) {
  return entity_in(BOTH, source, name, 0);
}

/* kind and width: as given, whatever metrics.def says of the name; UINT8_MAX: as it says. */
static void counter_of(const char *name, uint64_t was, uint64_t is, unsigned kind, unsigned width,
                       const char *unit) {
  struct ni_set *sets[2] = {&b.before, &b.after};
  for (int i = 0; i < 2; i++) {
    assert_true(ni_set_counter(sets[i], name));
    if (kind != UINT8_MAX)
      sets[i]->counter[sets[i]->n_counters - 1].what =
          (struct ni_metric){(uint8_t)kind, (uint8_t)width, 1, unit};
  }
  b.was[b.before.n_counters - 1] = (struct ni_reading){.value = was, .real_ns = NS};
  b.is[b.after.n_counters - 1] = (struct ni_reading){.value = is, .real_ns = NS + SECONDS * NS};
}
static void counter(const char *name, double delta) {
  counter_of(name, 1000, 1000 + (uint64_t)llround(delta), NI_METRIC_COUNTER, 64, "");
}

static void judge(void) {
  assert_int_equal(ni_pair_make(&b.pair, &b.before, b.was, &b.after, b.is), 0);
  assert_int_equal(ni_counter_findings_make(&b.found, &b.pair), 0);
}

#endif
