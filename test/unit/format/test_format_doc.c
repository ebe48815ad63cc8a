/*
 * docs/format.md against format/lines.def: the page's lists of keys are printed from it, and every kind has
 * one. `test_format_doc --markdown` prints the page with its lists as they should be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/events.h"

#define PAGE "docs/format.md"
#define WIDTH 120u

/* What a reader of the page is told of a type. */
#define DOC_U64 "integer"
#define DOC_U32 "integer"
#define DOC_I32 "integer"
#define DOC_RANK "integer"
#define DOC_I64 "integer, signed"
#define DOC_SN "integer or null"
#define DOC_NS "integer or null"
#define DOC_I32N "integer or null"
#define DOC_RANKN "integer or null"
#define DOC_OFFSET "integer or null, signed"
#define DOC_BOOL "boolean"
#define DOC_STR "string"
#define DOC_WORD "string"
#define DOC_NAMED "string"
#define DOC_HASH "string"
#define DOC_TIMING "string"
#define DOC_SRC "string"
#define DOC_OBSERVED "string"
#define DOC_US "double or null"
#define DOC_F64 "double"
#define DOC_BW "double or null"
#define DOC_BY "object of numbers"
#define DOC_HIST "object of numbers"
#define DOC_PAIRS "object of strings"
#define DOC_OBJECT "object"
#define DOC_TRACE_SN "object"
#define DOC_TRACE_TS "object"
#define DOC_EVENTS "array of objects"
#define DOC_STEPS "array of objects"
#define DOC_METRICS "array of objects"
#define DOC_NUMBERS "array of integers and null"

#define IF(condition) true
#define HAS(x) true
#define KNOWN(x) true
#define ALWAYS true
#define NEVER false

/* An object, and after it its keys. */
static const struct row {
  const char *object, *key, *type, *unit, *present, *meaning;
  bool written;
} rows[] = {
#define OBJECT(name, ...) {.object = #name},
#define PART(name, tag) {.object = #name},
#define KEY(k, t, member, read, when, u, p, m) \
  {.key = k, .type = DOC_##t, .unit = u, .present = p, .meaning = m, .written = when},
#define OBJ(k, how, name, member, has, when, p, m) \
  {.key = k, .type = DOC_##how, .unit = "", .present = p, .meaning = m, .written = when},
#define STAMP(k, name, tag, member, u, m) \
  {.key = k, .type = DOC_U64, .unit = u, .present = "", .meaning = m, .written = true},
#include "format/lines.def"
};
#define N_ROWS (sizeof rows / sizeof *rows)

/* A list item, its lines no longer than WIDTH where a blank allows it. */
static void put_wrapped(FILE *f, const char *text) {
  size_t at = 0;
  while (*text) {
    size_t n = strcspn(text, " ");
    if (at && at + 1 + n > WIDTH) {
      fputs("\n ", f);
      at = 1;
    }
    if (at)
      at += (size_t)fprintf(f, " ");
    at += (size_t)fprintf(f, "%.*s", (int)n, text);
    text += n + (text[n] == ' ');
  }
  putc('\n', f);
}

static bool alike(const struct row *a, const struct row *b) {
  return b->key && b->written && !strcmp(a->type, b->type) && !strcmp(a->unit, b->unit) &&
      !strcmp(a->present, b->present) && !strcmp(a->meaning, b->meaning);
}

/* Keys that follow one another and of which the same is to be said share an item. */
static void put_keys(FILE *f, const char *object) {
  size_t i = 0;
  while (i < N_ROWS && (!rows[i].object || strcmp(rows[i].object, object) != 0))
    i++;
  if (i == N_ROWS)
    print_error("%s has a list of keys of %s, which lines.def has not\n", PAGE, object);
  assert_true(i < N_ROWS);
  for (i++; i < N_ROWS && rows[i].key; i++) {
    const struct row *r = &rows[i];
    char *item;
    size_t n;
    if (!r->written)
      continue;
    FILE *m = open_memstream(&item, &n);
    fprintf(m, "- `%s`", r->key);
    for (; i + 1 < N_ROWS && alike(r, &rows[i + 1]); i++)
      fprintf(m, ", `%s`", rows[i + 1].key);
    fprintf(m, " (%s%s%s%s%s)%s%s", r->type, *r->unit ? ", " : "", r->unit, *r->present ? "; " : "",
            r->present, *r->meaning ? ": " : "", r->meaning);
    fclose(m);
    put_wrapped(f, item);
    free(item);
  }
}

#define BEGIN "<!-- keys of "
#define END "<!-- end of keys -->\n"

/* The page with its lists made anew; told[i]: row i begins an object whose list the page has. */
static char *page_made_anew(const char *page, bool told[N_ROWS]) {
  char *out = NULL, object[64];
  size_t n;
  FILE *f = open_memstream(&out, &n);
  for (const char *list; (list = strstr(page, BEGIN)) != NULL;) {
    const char *line = strchr(list, '\n'), *end = strstr(list, END);
    assert_non_null(line);
    assert_non_null(end);
    assert_int_equal(sscanf(list + strlen(BEGIN), "%63s", object), 1);
    fprintf(f, "%.*s", (int)(line + 1 - page), page);
    put_keys(f, object);
    for (size_t i = 0; i < N_ROWS; i++)
      told[i] |= rows[i].object && !strcmp(rows[i].object, object);
    page = end;
  }
  fputs(page, f);
  fclose(f);
  return out;
}

static char page[131072];

static bool read_page(void) {
  FILE *f = fopen(PAGE, "r");
  if (!f)
    return false;
  page[fread(page, 1, sizeof page - 1, f)] = 0;
  fclose(f);
  return true;
}

static void the_page_has_the_keys(void **state) {
  (void)state;
  if (!read_page())
    skip(); /* run from elsewhere */
  bool told[N_ROWS] = {false};
  char *want = page_made_anew(page, told);
  if (strcmp(want, page) != 0)
    print_error("%s is not what lines.def says: test_format_doc --markdown prints it\n", PAGE);
  assert_true(strcmp(want, page) == 0);
  free(want);
  /* Said in words: the keys that `recover` adds are those of process, an event's counts are like a kind's. */
  static const char *const in_words[] = {"recovered", "event_stats", "events"};
  for (size_t i = 0; i < N_ROWS; i++) {
    bool words = false;
    for (size_t k = 0; rows[i].object && k < sizeof in_words / sizeof *in_words; k++)
      words |= !strcmp(rows[i].object, in_words[k]);
    if (rows[i].object && !words && !told[i])
      print_error("%s has no list of the keys of %s\n", PAGE, rows[i].object);
    assert_true(!rows[i].object || words || told[i]);
  }
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "--markdown")) {
    bool told[N_ROWS] = {false};
    if (!read_page())
      return 1;
    fputs(page_made_anew(page, told), stdout);
    return 0;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_page_has_the_keys)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
