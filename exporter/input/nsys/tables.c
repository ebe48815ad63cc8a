#include "tables.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/index.h"
#include "exporter/base/now.h"
#include "nsys.h"

enum { TEXTS = 1 << 18, CALLS_OF_A_NUMBER = 16 }; /* texts of StringIds that are looked at further */

/* ---- texts --------------------------------------------------------------------------------------------- */

/* A text of StringIds that may be a kernel's, a call's or a step's. */
struct kept_texts {
  struct kept_text {
    int64_t id;
    char text[256];
  } *text;
  size_t n, cap;
};

static bool is_of_interest(const char *text) {
  uint32_t number;
  size_t before;
  char func[32];
  const bool payload =
      *text == '{' && (strstr(text, "\"Message size [bytes]\"") || strstr(text, "\"NCCL communicator ID\""));
  return payload || strncmp(text, "nccl", 4) == 0 || ni_imported_kernel(text, func) ||
      ni_nsys_step(text, &number, &before);
}

static int compare_by_id(const void *a, const void *b) {
  const struct kept_text *x = a, *y = b;
  return x->id < y->id ? -1 : x->id > y->id;
}

static int read_texts(struct kept_texts *t, struct ni_db *db) {
  static const char *const columns[] = {"id", "value", NULL};
  struct ni_db_rows rows;
  int e = ni_db_select(db, "StringIds", columns, &rows);
  while (e >= 0 && (e = ni_db_next(&rows)) == 1) {
    const char *text = ni_db_text(&rows, 1);
    if (!is_of_interest(text) || t->n == TEXTS)
      continue;
    if (!ni_array_room(t->text, t->n, t->cap)) {
      ni_db_end(&rows);
      return -ENOMEM;
    }
    t->text[t->n].id = ni_db_number(&rows, 0);
    snprintf(t->text[t->n++].text, sizeof t->text->text, "%s", text);
  }
  if (t->n)
    qsort(t->text, t->n, sizeof *t->text, compare_by_id);
  return e;
}

/* "": none of interest. */
static const char *find_text(const struct kept_texts *t, int64_t id) {
  size_t i;
  ni_array_search(i, t->n, t->text[i].id < id);
  return id != NI_DB_NONE && i < t->n && t->text[i].id == id ? t->text[i].text : "";
}

/* ---- kernels ------------------------------------------------------------------------------------------- */

static int compare_by_launch(const void *a, const void *b) {
  const struct ni_nsys_kernel *x = a, *y = b;
  if (x->process != y->process)
    return x->process < y->process ? -1 : 1;
  if (x->correlation != y->correlation)
    return x->correlation < y->correlation ? -1 : 1;
  if (x->start != y->start)
    return x->start < y->start ? -1 : 1;
  return x->device < y->device ? -1 : x->device > y->device;
}

/* NCCL's grids are flat: a block for each channel. */
static int64_t count_blocks(const struct ni_db_rows *rows, int column) {
  const int64_t x = ni_db_number(rows, column), y = ni_db_number(rows, column + 1),
                z = ni_db_number(rows, column + 2);
  const bool flat = (y == 1 || y == NI_DB_NONE) && (z == 1 || z == NI_DB_NONE);
  return flat && x > 0 && x < 1 << 16 ? x : 0;
}

static int read_kernels(struct ni_nsys_tables *t, struct ni_db *db, const struct kept_texts *texts) {
  static const char *const columns[] = {"shortName", "demangledName", "mangledName",   "start",     "end",
                                        "deviceId",  "streamId",      "correlationId", "globalPid", "gridX",
                                        "gridY",     "gridZ",         "graphNodeId",   NULL};
  struct ni_db_rows rows;
  int e = ni_db_select(db, "CUPTI_ACTIVITY_KIND_KERNEL", columns, &rows);
  while (e >= 0 && (e = ni_db_next(&rows)) == 1) {
    struct ni_nsys_kernel k = {.start = ni_db_number(&rows, 3),
                               .end = ni_db_number(&rows, 4),
                               .device = ni_db_number(&rows, 5),
                               .stream = ni_db_number(&rows, 6),
                               .correlation = ni_db_number(&rows, 7),
                               .launch = NI_DB_NONE,
                               .range = UINT32_MAX};
    bool named = false;
    for (int i = 0; i < 3 && !named; i++)
      named = ni_imported_kernel(find_text(texts, ni_db_number(&rows, i)), k.func);
    if (!named)
      continue;
    if (k.start < 0 || k.end < k.start) {
      t->bad++;
      continue;
    }
    if (!ni_db_is_null(&rows, 8))
      k.process = ni_nsys_process((uint64_t)ni_db_number(&rows, 8));
    k.blocks = count_blocks(&rows, 9);
    k.graph = ni_db_number(&rows, 12) > 0;
    if (t->n_kernels == NI_NSYS_KERNELS) {
      ni_db_end(&rows);
      return -EFBIG;
    }
    if (!ni_array_room(t->kernel, t->n_kernels, t->cap_kernels)) {
      ni_db_end(&rows);
      return -ENOMEM;
    }
    t->kernel[t->n_kernels++] = k;
  }
  if (t->n_kernels)
    qsort(t->kernel, t->n_kernels, sizeof *t->kernel, compare_by_launch);
  return e;
}

/* The first of several calls of one number: the driver's lies in the runtime's. Kernels without a
 * process (exports before 2020.3) are of the one process that there is. All kernels of a graph's
 * launch have its number, and a number few calls: a file that says otherwise is not followed. */
static void note_launch(struct ni_nsys_tables *t, uint64_t thread, int64_t correlation, int64_t start) {
  const uint64_t process = t->n_kernels && t->kernel[0].process == 0 ? 0 : ni_nsys_process(thread);
  size_t i;
  ni_array_search(i, t->n_kernels,
                  t->kernel[i].process < process ||
                      (t->kernel[i].process == process && t->kernel[i].correlation < correlation));
  if (i == t->n_kernels || t->kernel[i].calls == CALLS_OF_A_NUMBER)
    return;
  t->kernel[i].calls++;
  for (; i < t->n_kernels && t->kernel[i].process == process && t->kernel[i].correlation == correlation;
       i++) {
    struct ni_nsys_kernel *k = &t->kernel[i];
    if (start > k->start || (k->launch != NI_DB_NONE && k->launch <= start))
      continue;
    k->launch = start;
    k->thread = thread;
  }
}

static int read_launches(struct ni_nsys_tables *t, struct ni_db *db) {
  static const char *const columns[] = {"start", "globalTid", "correlationId", NULL};
  struct ni_db_rows rows;
  int e = ni_db_select(db, "CUPTI_ACTIVITY_KIND_RUNTIME", columns, &rows);
  while (e >= 0 && (e = ni_db_next(&rows)) == 1) {
    const int64_t start = ni_db_number(&rows, 0), thread = ni_db_number(&rows, 1),
                  correlation = ni_db_number(&rows, 2);
    if (start < 0 || correlation == NI_DB_NONE || thread == NI_DB_NONE)
      continue;
    note_launch(t, (uint64_t)thread, correlation, start);
  }
  return e;
}

/* ---- ranges -------------------------------------------------------------------------------------------- */

static int compare_by_begin(const void *a, const void *b) {
  const struct ni_nsys_range_row *x = a, *y = b;
  if (x->thread != y->thread)
    return x->thread < y->thread ? -1 : 1;
  if (x->start != y->start)
    return x->start < y->start ? -1 : 1;
  return x->end > y->end ? -1 : x->end < y->end;
}

static int add_step(struct ni_nsys_tables *t, const char *text, uint64_t thread, int64_t start, int64_t end) {
  struct ni_nsys_step s = {.process = ni_nsys_process(thread), .start = start, .end = end};
  size_t before;
  if (!ni_nsys_step(text, &s.number, &before) || t->n_steps == NI_IMPORTED_STEPS)
    return 0;
  for (size_t i = 0; i < before; i++)
    s.word = ni_hash(s.word, (unsigned char)text[i] + 1u);
  if (!ni_array_room(t->step, t->n_steps, t->cap_steps))
    return -ENOMEM;
  t->step[t->n_steps++] = s;
  return 0;
}

static int add_range(struct ni_nsys_tables *t, const struct ni_db_rows *rows, const char *text,
                     const struct kept_texts *texts, const struct ni_payload_schemas *schemas) {
  struct ni_nsys_range_row r = {.start = ni_db_number(rows, 0),
                                .end = ni_db_number(rows, 1),
                                .thread = (uint64_t)ni_db_number(rows, 2)};
  size_t n;
  if (r.start < 0 || r.end < r.start || ni_db_is_null(rows, 2))
    return 0;
  r.what = ni_nsys_range_of(text, &r.func);
  if (r.what == NI_NSYS_OTHER)
    return add_step(t, text, r.thread, r.start, r.end);
  if (t->n_ranges == NI_NSYS_KERNELS)
    return -EFBIG;
  ni_payload_nothing(&r.said);
  const uint8_t *bytes = ni_db_bytes(rows, 7, &n);
  ni_payload_bytes(schemas, bytes, n, &r.said);
  const char *json = ni_db_text(rows, 6);
  if (!*json)
    json = find_text(texts, ni_db_number(rows, 8));
  if (*json == '{')
    ni_payload_json(json, &r.said);
  if (!ni_array_room(t->range, t->n_ranges, t->cap_ranges))
    return -ENOMEM;
  t->range[t->n_ranges++] = r;
  return 0;
}

static int read_ranges(struct ni_nsys_tables *t, struct ni_db *db, const struct kept_texts *texts) {
  enum { PUSH_POP = 59, START_END = 60 };
  static const char *const columns[] = {"start",  "end",      "globalTid",  "eventType",  "text",
                                        "textId", "jsonText", "binaryData", "jsonTextId", NULL};
  struct ni_payload_schemas schemas;
  struct ni_db_rows rows = {0};
  int e = ni_payload_schemas(&schemas, db);
  if (e == 0)
    e = ni_db_select(db, "NVTX_EVENTS", columns, &rows);
  while (e >= 0 && (e = ni_db_next(&rows)) == 1) {
    const int64_t type = ni_db_number(&rows, 3);
    if (type != NI_DB_NONE && type != PUSH_POP && type != START_END)
      continue;
    const char *text = ni_db_text(&rows, 4);
    if (!*text)
      text = find_text(texts, ni_db_number(&rows, 5));
    if (!*text)
      continue;
    e = add_range(t, &rows, text, texts, &schemas);
    if (e < 0)
      ni_db_end(&rows);
  }
  if (t->n_ranges)
    qsort(t->range, t->n_ranges, sizeof *t->range, compare_by_begin);
  ni_payload_free(&schemas);
  return e;
}

/* ---- the machine --------------------------------------------------------------------------------------- */

static int read_session(struct ni_nsys_tables *t, struct ni_db *db) {
  static const char *const columns[] = {"utcEpochNs", NULL};
  struct ni_db_rows rows;
  t->session_ns = NI_DB_NONE;
  int e = ni_db_select(db, "TARGET_INFO_SESSION_START_TIME", columns, &rows);
  if (e == 0 && (e = ni_db_next(&rows)) == 1) {
    const int64_t ns = ni_db_number(&rows, 0);
    if (ni_time_of_a_job(ns))
      t->session_ns = ns;
    ni_db_end(&rows);
  }
  return e < 0 ? e : 0;
}

static int read_environment(struct ni_nsys_tables *t, struct ni_db *db) {
  static const char *const columns[] = {"name", "value", NULL};
  struct ni_db_rows rows;
  const char *by;
  char line[512];
  int32_t world;
  t->env_rank = t->env_world = -1;
  int e = ni_db_select(db, "TARGET_INFO_SYSTEM_ENV", columns, &rows);
  while (e >= 0 && (e = ni_db_next(&rows)) == 1) {
    const char *value = ni_db_text(&rows, 1);
    char name[64];
    snprintf(name, sizeof name, "%s", ni_db_text(&rows, 0));
    if (strcmp(name, "Hostname") == 0)
      snprintf(t->host, sizeof t->host, "%s", value);
    const bool has_all = strcmp(name, "DeviceEnvironment") == 0;
    snprintf(line, sizeof line, "%s=%.400s", name, value); /* or a variable a row */
    const int32_t rank = ni_nsys_rank_in(has_all ? value : line, &world, &by);
    if (rank >= 0 && (t->env_rank < 0 || has_all)) {
      t->env_rank = rank;
      t->env_world = world;
    }
  }
  return e;
}

static int read_ranks(struct ni_nsys_tables *t, struct ni_db *db) {
  static const char *const columns[] = {"globalTid", "rank", NULL};
  struct ni_db_rows rows;
  int e = ni_db_select(db, "MPI_RANKS", columns, &rows);
  while (e >= 0 && (e = ni_db_next(&rows)) == 1) {
    const int64_t rank = ni_db_number(&rows, 1);
    const bool is_rank = rank >= 0 && rank < INT32_MAX;
    if (!is_rank || ni_db_is_null(&rows, 0) || t->n_ranks == NI_IMPORTED_STEPS)
      continue;
    if (!ni_array_room(t->rank, t->n_ranks, t->cap_ranks)) {
      ni_db_end(&rows);
      return -ENOMEM;
    }
    t->rank[t->n_ranks++] =
        (struct ni_nsys_rank){ni_nsys_process((uint64_t)ni_db_number(&rows, 0)), (int32_t)rank};
  }
  return e;
}

int ni_nsys_tables(struct ni_nsys_tables *t, struct ni_db *db) {
  struct kept_texts texts = {0};
  *t = (struct ni_nsys_tables){0};
  int e = read_texts(&texts, db);
  if (e == 0)
    e = read_kernels(t, db, &texts);
  if (e == 0 && t->n_kernels == 0)
    e = -ENODATA;
  if (e == 0)
    e = read_launches(t, db);
  if (e == 0)
    e = read_ranges(t, db, &texts);
  if (e == 0)
    e = read_session(t, db);
  if (e == 0)
    e = read_environment(t, db);
  if (e == 0)
    e = read_ranks(t, db);
  free(texts.text);
  return e;
}

void ni_nsys_tables_free(struct ni_nsys_tables *t) {
  free(t->kernel);
  free(t->range);
  free(t->step);
  free(t->rank);
  *t = (struct ni_nsys_tables){0};
}
