#include "database.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/array.h"

#ifndef NI_HAVE_SQLITE

int ni_db_open(struct ni_db *db, const char *path) {
  *db = (struct ni_db){0};
  return -ENOTSUP;
}
void ni_db_close(struct ni_db *db) {}
int ni_db_select(struct ni_db *db, const char *table, const char *const *columns, struct ni_db_rows *rows) {
  return -ENOTSUP;
}
int ni_db_next(struct ni_db_rows *rows) { return 0; }
void ni_db_end(struct ni_db_rows *rows) {}
bool ni_db_is_null(const struct ni_db_rows *rows, int column) { return true; }
int64_t ni_db_number(const struct ni_db_rows *rows, int column) { return NI_DB_NONE; }
const char *ni_db_text(const struct ni_db_rows *rows, int column) { return ""; }
const uint8_t *ni_db_bytes(const struct ni_db_rows *rows, int column, size_t *n) { return *n = 0, NULL; }

#else

#include <sqlite3.h>

enum { TICK = 1000 }; /* steps of SQLite's machine between two looks at the bound */

/* ---- opening ------------------------------------------------------------------------------------------- */

/* Is there a file beside it that only a writer, or one that died, leaves? */
static bool is_being_written(const char *path) {
  static const char *const suffix[] = {"-wal", "-journal"};
  char name[4096 + 16];
  struct stat st;
  for (size_t i = 0; i < sizeof suffix / sizeof *suffix; i++) {
    const int n = snprintf(name, sizeof name, "%s%s", path, suffix[i]);
    const bool fits = n > 0 && (size_t)n < sizeof name;
    if (fits && stat(name, &st) == 0 && st.st_size > 0)
      return true;
  }
  return false;
}

/* SQLite takes an empty file for an empty database, and says nothing of others before the first question. */
static int check_head(const char *path, uint64_t *bytes) {
  char head[16] = "";
  struct stat st;
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return -errno;
  int e = fstat(fd, &st) < 0 ? -errno : 0;
  if (e == 0 && !S_ISREG(st.st_mode))
    e = -EINVAL;
  if (e == 0 && read(fd, head, sizeof head) != sizeof head)
    e = -EBADMSG;
  close(fd);
  if (e == 0 && memcmp(head, "SQLite format 3", sizeof head) != 0)
    e = -EBADMSG;
  if (e == 0)
    *bytes = (uint64_t)st.st_size;
  return e;
}

/* "file:/a%20b?immutable=1"; the caller's to free. */
static char *make_uri(const char *path) {
  static const char *const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-";
  char *uri = malloc(3 * strlen(path) + 64), *p = uri;
  if (!uri)
    return NULL;
  p += sprintf(p, "file:%s", *path == '/' ? "" : "./");
  for (; *path; path++) {
    if (strchr(safe, *path))
      *p++ = *path;
    else
      p += sprintf(p, "%%%02x", (unsigned char)*path);
  }
  strcpy(p, "?mode=ro&immutable=1");
  return uri;
}

/* Files that claim to be larger than can be make SQLite say that it has no memory: it is the file. */
static int convert_error(int code) {
  switch (code & 0xff) {
    case SQLITE_PERM:
      return -EACCES;
    case SQLITE_CANTOPEN:
      return -EACCES;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return -EBUSY;
    case SQLITE_IOERR:
      return code == SQLITE_IOERR_SHORT_READ ? -EBADMSG : -EIO;
    default:
      return -EBADMSG;
  }
}

static int count_steps(void *arg) {
  struct ni_db *db = arg;
  return ++db->steps > db->most_steps;
}

/* Only what ni_db_select() asks: reading columns of tables, and what columns there are. */
static int authorize(void *arg, int action, const char *a, const char *b, const char *database,
                     const char *trigger) {
  if (action == SQLITE_SELECT || action == SQLITE_READ)
    return trigger ? SQLITE_DENY : SQLITE_OK;
  return action == SQLITE_PRAGMA && strcmp(a, "table_xinfo") == 0 ? SQLITE_OK : SQLITE_DENY;
}

static void harden_database(struct ni_db *db) {
  sqlite3 *s = db->sqlite;
  sqlite3_db_config(s, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  sqlite3_db_config(s, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
  sqlite3_db_config(s, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
  sqlite3_db_config(s, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
  sqlite3_db_config(s, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
  sqlite3_limit(s, SQLITE_LIMIT_LENGTH, NI_DB_TEXT);
  sqlite3_limit(s, SQLITE_LIMIT_SQL_LENGTH, 1 << 20); /* also of what the file says of its tables */
  sqlite3_limit(s, SQLITE_LIMIT_EXPR_DEPTH, 100);
  sqlite3_limit(s, SQLITE_LIMIT_COLUMN, 1000);
  sqlite3_limit(s, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(s, SQLITE_LIMIT_WORKER_THREADS, 0);
  sqlite3_set_authorizer(s, authorize, NULL);
  sqlite3_progress_handler(s, TICK, count_steps, db);
}

int ni_db_open(struct ni_db *db, const char *path) {
  uint64_t bytes = 0;
  *db = (struct ni_db){0};
  int e = check_head(path, &bytes);
  if (e < 0)
    return e;
  if (is_being_written(path))
    return -EBUSY;
  /* A row costs 10 bytes and more of the file, and some 40 steps; pages that name each other in a
   * circle cost no bytes. */
  db->most_steps = 1000 + bytes / 50;
  char *uri = make_uri(path);
  if (!uri)
    return -ENOMEM;
  const int code = sqlite3_open_v2(
      uri, &db->sqlite,
      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, NULL);
  free(uri);
  if (code != SQLITE_OK) {
    ni_db_close(db);
    return convert_error(code);
  }
  harden_database(db);
  return 0;
}

void ni_db_close(struct ni_db *db) {
  sqlite3_close_v2(db->sqlite);
  db->sqlite = NULL;
}

/* ---- asking -------------------------------------------------------------------------------------------- */

static int prepare_query(struct ni_db *db, const char *text, sqlite3_stmt **out) {
  const int code = sqlite3_prepare_v2(db->sqlite, text, -1, out, NULL);
  return code == SQLITE_OK ? 0 : convert_error(code);
}

/* 1, 0, or what failed. */
static int step_query(sqlite3_stmt *s) {
  const int code = sqlite3_step(s);
  return code == SQLITE_ROW ? 1
      : code == SQLITE_DONE ? 0
                            : convert_error(sqlite3_extended_errcode(sqlite3_db_handle(s)));
}

/* Names stand in these questions as they are: they are ours, never the file's. */
static int is_plain_table(struct ni_db *db, const char *table) {
  sqlite3_stmt *s;
  int e = prepare_query(db, "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ?1", &s);
  if (e < 0)
    return e;
  sqlite3_bind_text(s, 1, table, -1, SQLITE_STATIC);
  e = step_query(s);
  if (e == 1)
    e = sqlite3_column_int64(s, 0) > 0; /* 0: of a virtual one */
  sqlite3_finalize(s);
  return e;
}

/* Which of the columns are stored in the table's rows, bit by bit. */
static int find_columns(struct ni_db *db, const char *table, const char *const *columns, unsigned *found) {
  char text[256];
  sqlite3_stmt *s;
  *found = 0;
  snprintf(text, sizeof text, "PRAGMA table_xinfo(\"%s\")", table);
  int e = prepare_query(db, text, &s);
  if (e < 0)
    return e;
  while ((e = step_query(s)) == 1) {
    const char *name = (const char *)sqlite3_column_text(s, 1);
    if (!name || sqlite3_column_int(s, 6) != 0)
      continue; /* generated, hidden */
    for (int i = 0; columns[i]; i++)
      if (sqlite3_stricmp(name, columns[i]) == 0)
        *found |= 1u << i;
  }
  sqlite3_finalize(s);
  return e;
}

int ni_db_select(struct ni_db *db, const char *table, const char *const *columns, struct ni_db_rows *rows) {
  char text[2048] = "SELECT ";
  size_t n = strlen(text);
  unsigned found;
  *rows = (struct ni_db_rows){.db = db};
  int e = is_plain_table(db, table);
  if (e <= 0)
    return e;
  e = find_columns(db, table, columns, &found);
  for (int i = 0; columns[i] && n < sizeof text - 128; i++)
    n += (size_t)snprintf(text + n, sizeof text - n, found & 1u << i ? "%s\"%.60s\"" : "%sNULL",
                          i ? ", " : "", columns[i]);
  snprintf(text + n, sizeof text - n, " FROM main.\"%.60s\" NOT INDEXED", table);
  return e < 0 ? e : prepare_query(db, text, &rows->statement);
}

void ni_db_end(struct ni_db_rows *rows) {
  sqlite3_finalize(rows->statement);
  rows->statement = NULL;
}

int ni_db_next(struct ni_db_rows *rows) {
  if (!rows->statement)
    return 0;
  const int e = step_query(rows->statement);
  if (e != 1)
    ni_db_end(rows);
  return e;
}

bool ni_db_is_null(const struct ni_db_rows *rows, int column) {
  return sqlite3_column_type(rows->statement, column) == SQLITE_NULL;
}

int64_t ni_db_number(const struct ni_db_rows *rows, int column) {
  return sqlite3_column_type(rows->statement, column) == SQLITE_INTEGER
      ? sqlite3_column_int64(rows->statement, column)
      : NI_DB_NONE;
}

const char *ni_db_text(const struct ni_db_rows *rows, int column) {
  const bool is_text = sqlite3_column_type(rows->statement, column) == SQLITE_TEXT;
  const char *text = is_text ? (const char *)sqlite3_column_text(rows->statement, column) : NULL;
  return text ? text : "";
}

const uint8_t *ni_db_bytes(const struct ni_db_rows *rows, int column, size_t *n) {
  const int type = sqlite3_column_type(rows->statement, column);
  const uint8_t *bytes =
      type == SQLITE_BLOB || type == SQLITE_TEXT ? sqlite3_column_blob(rows->statement, column) : NULL;
  *n = bytes ? (size_t)sqlite3_column_bytes(rows->statement, column) : 0;
  return bytes;
}

#endif
