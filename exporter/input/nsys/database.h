/*
 * An SQLite file of a stranger, read and never believed.
 *
 * It is opened as it lies there (read only, immutable: no lock, no journal, no second file). Nothing in it
 * is run: no views, triggers, virtual tables, generated columns and extensions; only plain tables are read,
 * column by column, and what SQLite would have to do for a row is bounded by the length of the file. A file
 * that is being written (a journal beside it) is refused.
 *
 * Tables and columns come and go with the versions of their writer: what is asked for and is not there is
 * NULL in each row.
 *
 * Threads: one for each struct. Ownership: ni_db_close(). Failure: -EBADMSG (no SQLite file, cut, or
 * broken), -EBUSY, -ENOTSUP (built without SQLite), -ENOMEM, -errno. Texts are hostile, and valid until the
 * next row.
 */
#ifndef NI_NSYS_DATABASE_H
#define NI_NSYS_DATABASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NI_DB_COLUMNS = 16, NI_DB_TEXT = 1 << 24 }; /* of one question; of a text in bytes */
#define NI_DB_NONE INT64_MIN                       /* of a number that is not there */

struct ni_db {
  struct sqlite3 *sqlite;
  uint64_t steps, most_steps; /* of its machine, in thousands */
};

struct ni_db_rows { /* all 0: of a table that is not there */
  struct ni_db *db;
  struct sqlite3_stmt *statement;
};

int ni_db_open(struct ni_db *db, const char *path);
void ni_db_close(struct ni_db *db);

/* The rows of a table, in its order. columns: NULL behind the last one. */
int ni_db_select(struct ni_db *db, const char *table, const char *const *columns, struct ni_db_rows *rows);
/* 1: there is a row; 0: no more, and the rows are closed; or failed, and so they are, too. */
int ni_db_next(struct ni_db_rows *rows);
void ni_db_end(struct ni_db_rows *rows); /* before the last row */

bool ni_db_is_null(const struct ni_db_rows *rows, int column);
int64_t ni_db_number(const struct ni_db_rows *rows, int column); /* NI_DB_NONE where it is no integer */
const char *ni_db_text(const struct ni_db_rows *rows,
                       int column); /* "" where it is none; ends at its first 0 */
const uint8_t *ni_db_bytes(const struct ni_db_rows *rows, int column,
                           size_t *n); /* of a blob or a text; NULL: neither */

#endif
