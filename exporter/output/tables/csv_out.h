/*
 * A cell of text for tables: quoted where needed (RFC 4180), what could steer a terminal as '?' (safe_text.h), and an
 * apostrophe in front of what a spreadsheet would run. Pure; write errors stay in the FILE.
 */
#ifndef NI_CSV_OUT_H
#define NI_CSV_OUT_H

#include <stdio.h>

/* NULL: an empty cell. */
void ni_csv_text(FILE *f, const char *text);
/* Shortest form; nothing for NAN. */
void ni_csv_double(FILE *f, double value);

#endif
