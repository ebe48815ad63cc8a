/* Cells of a CSV file. Write errors stay in the FILE. Any thread. */
#ifndef NI_CSV_WRITE_H
#define NI_CSV_WRITE_H

#include <stdio.h>

/* A cell of text: quoted where needed (RFC 4180), what could steer a terminal as '?' (safe_text.h), and an
 * apostrophe in front of what a spreadsheet would run; NULL: empty. */
void ni_csv_text(FILE *f, const char *text);
/* Numbers in their shortest form, each behind a comma; nothing for NAN. */
void ni_csv_doubles(FILE *f, const double *v, size_t n);

#endif
