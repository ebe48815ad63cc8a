/*
 * The one printer of tables: columns as wide as their widest cell, as many of them as the terminal has room
 * for.
 *
 * Into a file or a pipe all columns go, each at least as wide as its `width`, so that tables of several runs
 * lie below one another. On a terminal that is too narrow for that they shrink to their cells; then columns
 * are left out, the highest `drop` first, and a line says which. Cells are made safe (safe_text.h). Gathered
 * in memory until ni_table_print(), which frees it; without memory a line says so instead. One thread a
 * table.
 */
#ifndef NI_TABLE_H
#define NI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct ni_column {
  const char *head, *unit; /* unit: of a second line of heads, which is there when any column has one */
  int width;               /* at least */
  bool left;               /* words; numbers stand to the right */
  bool below;              /* a line of its own below the row, when there is any text; head "" */
  int drop;                /* 0: never left out */
};

struct ni_table {
  const struct ni_column *column;
  size_t n_columns, n, cap;
  int room;    /* columns at most; 0: as many as the terminal has */
  char **cell; /* n of them, by rows */
  bool failed;
};

/* The columns stay the caller's and are needed until the table is printed. */
void ni_table_begin(struct ni_table *t, const struct ni_column *column, size_t n_columns);
/* The next cell; rows end by themselves when they are full. */
void ni_table_cell(struct ni_table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints the table with its heads, and frees it. A table without rows prints nothing. */
void ni_table_print(struct ni_table *t, FILE *f);

#endif
