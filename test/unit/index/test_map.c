/* The map of a log as bytes (exporter/index/map_wire.h): what a forged one may not say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "exporter/index/map_wire.h"

/*
 * Is a map of so many granules taken, of so many bytes and so much text each? The later ones begin in a gzip
 * member.
 */
static bool taken(size_t n, uint64_t bytes, uint64_t text) {
  static const uint8_t window[16];
  struct ni_granules *g = ni_granules_new(0), *back = ni_granules_new(0);
  struct ni_wire stored = {0};
  assert_non_null(g);
  assert_non_null(back);
  g->item = realloc(g->item, n * sizeof *g->item);
  assert_non_null(g->item);
  for (size_t i = 0; i < n; i++)
    g->item[i] = (struct ni_granule){.at = i * bytes,
                                     .bytes = bytes,
                                     .text = text,
                                     .entry = {.window = window, .n = i ? sizeof window : 0}};
  g->n = g->cap = n;
  g->gzip = g->entries = true;
  ni_map_wire(&stored, g);
  assert_false(stored.bad);
  struct ni_wire w = ni_wire_load(stored.bytes, stored.n);
  ni_map_wire(&w, back);
  const bool fine = ni_wire_over(&w);
  for (size_t i = 0; fine && i < n; i++)
    assert_true(back->item[i].text == text && back->item[i].bytes == bytes);
  ni_wire_free(&stored);
  ni_granules_free(g);
  ni_granules_free(back);
  return fine;
}

static void sums_are_bounded(void **unused) {
  (void)unused;
  assert_true(taken(3, 1000, 5000));
  assert_true(taken(1, 1000, INT64_MAX));
  assert_false(taken(1, 1000, (uint64_t)INT64_MAX + 1));
  assert_true(taken(2, 1000, INT64_MAX / 2));
  assert_false(taken(3, 1000, INT64_MAX / 2)); /* each is bounded, their sum is not */
  assert_false(taken(5, 1000, INT64_MAX));     /* and would wrap */
}

/* Clang's sanitizer ends the test where a number is added to NULL, be it 0. */
static void of_nothing_nothing_is_read(void **unused) {
  (void)unused;
  struct ni_wire w = ni_wire_load(NULL, 0);
  uint64_t v = 7;
  assert_null(ni_wire_bytes(&w, NULL, 0));
  assert_false(w.bad);
  assert_true(ni_wire_over(&w));
  ni_wire_u64(&w, &v);
  assert_true(w.bad);
  assert_int_equal(v, 0);
}

static void clocks_are_kept_where_no_text_is(void **unused) {
  (void)unused;
  struct ni_granules *g = ni_granules_new(0), *back = ni_granules_new(0);
  const struct ni_ident ident = {0};
  const struct ni_meta meta = {.version = "", .hostname = ""};
  struct ni_wire stored = {0};
  uint32_t context;
  assert_true(g && back);
  assert_non_null(g->item);
  g->item[0] = (struct ni_granule){.bytes = 1000};
  g->n = 1;
  assert_int_equal(ni_granules_context(g, &ident, &meta, &context), 0);
  assert_int_equal(ni_kept_clock(g, 0, context, 1000, -5), 0);
  assert_null(g->kept_text);
  ni_map_wire(&stored, g);
  assert_false(stored.bad);
  struct ni_wire w = ni_wire_load(stored.bytes, stored.n);
  ni_map_wire(&w, back);
  assert_true(ni_wire_over(&w));
  assert_int_equal(ni_map_unpack(back), 0);
  assert_int_equal(back->n_kept, 1);
  assert_int_equal(back->kept[0].at_ns, 1000);
  assert_int_equal(back->kept[0].offset_ns, -5);
  ni_wire_free(&stored);
  ni_granules_free(g);
  ni_granules_free(back);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_bounded),
                                     cmocka_unit_test(of_nothing_nothing_is_read),
                                     cmocka_unit_test(clocks_are_kept_where_no_text_is)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
