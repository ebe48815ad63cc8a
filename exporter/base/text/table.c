#include "table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "safe_text.h"
#include "terminal.h"

void ni_table_begin(struct ni_table *t, const struct ni_column *column, size_t n_columns) {
  *t = (struct ni_table){.column = column, .n_columns = n_columns};
}

void ni_table_cell(struct ni_table *t, const char *format, ...) {
  va_list args;
  char *raw = NULL, *safe = NULL;
  va_start(args, format);
  int n = vasprintf(&raw, format, args);
  va_end(args);
  /* Safe text is no longer: '?' is one byte. */
  if (n >= 0 && ni_array_room(t->cell, t->n, t->cap) && (safe = malloc((size_t)n + 1)))
    t->cell[t->n++] = (char *)ni_safe_text(raw, safe, (size_t)n + 1);
  else
    t->failed = true;
  if (n >= 0)
    free(raw);
}

static int measure_text(const char *text) { return text ? ni_text_columns(text, strlen(text)) : 0; }

/* The width of a column's widest cell, head and unit. */
static int measure_column(const struct ni_table *t, size_t k) {
  if (t->column[k].below)
    return 0;
  int most = measure_text(t->column[k].head), unit = measure_text(t->column[k].unit);
  if (unit > most)
    most = unit;
  for (size_t i = k; i < t->n; i += t->n_columns)
    if (measure_text(t->cell[i]) > most)
      most = measure_text(t->cell[i]);
  return most;
}

static int sum_widths(const int *width, size_t n) {
  int sum = -1;
  for (size_t k = 0; k < n; k++)
    sum += width[k] ? width[k] + 1 : 0;
  return sum;
}

/* 0: left out, as empty columns are. */
static void choose_widths(const struct ni_table *t, int room, int *width) {
  for (size_t k = 0; k < t->n_columns; k++) {
    int wanted = measure_column(t, k);
    width[k] = wanted && wanted < t->column[k].width ? t->column[k].width : wanted;
  }
  if (!room || sum_widths(width, t->n_columns) <= room)
    return;
  for (size_t k = 0; k < t->n_columns; k++)
    width[k] = measure_column(t, k);
  while (sum_widths(width, t->n_columns) > room) {
    size_t out = t->n_columns;
    for (size_t k = 0; k < t->n_columns; k++) {
      bool can_go = width[k] && t->column[k].drop;
      if (can_go && (out == t->n_columns || t->column[k].drop >= t->column[out].drop))
        out = k;
    }
    if (out == t->n_columns)
      return;
    width[out] = 0;
  }
}

/* cell NULL: the heads; with units: their second line. Spaces stand before a cell only when one follows. */
static void print_row(const struct ni_table *t, FILE *f, const int *width, char *const *cell, bool units) {
  int owed = 0;
  for (size_t k = 0, shown = 0; k < t->n_columns; k++) {
    const char *head = units ? t->column[k].unit : t->column[k].head;
    const char *text = cell ? cell[k] : head ? head : "";
    if (!width[k])
      continue;
    int pad = width[k] - measure_text(text);
    if (shown++)
      owed++;
    if (*text) {
      ni_say(f, "%*s%s", owed + (t->column[k].left ? 0 : pad), "", text);
      owed = 0;
    }
    owed += !*text ? width[k] : t->column[k].left ? pad : 0;
  }
  ni_say(f, "\n");
  for (size_t k = 0; cell && k < t->n_columns; k++)
    if (t->column[k].below && *cell[k])
      ni_say(f, "%s\n", cell[k]);
}

static void print_left_out(const struct ni_table *t, FILE *f, const int *width) {
  const char *before = "no room for: ";
  for (size_t k = 0; k < t->n_columns; k++)
    if (!width[k] && *t->column[k].head && measure_column(t, k)) {
      ni_say(f, "%s%s", before, t->column[k].head);
      before = ", ";
    }
  if (*before == ',')
    ni_say(f, "\n");
}

void ni_table_print(struct ni_table *t, FILE *f) {
  int *width = calloc(t->n_columns, sizeof *width);
  bool units = false;
  if (!width || t->failed) {
    ni_say(f, "no memory for a table\n");
  } else if (t->n >= t->n_columns) {
    choose_widths(t, t->room ? t->room : ni_terminal_columns(f), width);
    for (size_t k = 0; k < t->n_columns; k++)
      units |= t->column[k].unit != NULL;
    print_row(t, f, width, NULL, false);
    if (units)
      print_row(t, f, width, NULL, true);
    for (size_t i = 0; i + t->n_columns <= t->n; i += t->n_columns)
      print_row(t, f, width, t->cell + i, false);
    print_left_out(t, f, width);
  }
  for (size_t i = 0; i < t->n; i++)
    free(t->cell[i]);
  free(t->cell);
  free(width);
}
