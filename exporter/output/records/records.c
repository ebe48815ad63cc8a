#include "records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "exporter/base/order.h"
#include "exporter/base/spill/spill_sort.h"
#include "exporter/model/sums/reading/record_row.h"

enum { ROWS_MIN = 1024, DIR_NAME_MAX = 240 };
#define MEMORY_SHARE 8 /* of --memory, all buffers together */

/* Which of the columns that may be null are not. */
enum {
#define X(name) H_##name,
  NI_BATCH_NULLABLE(X)
#undef X
      H_OURS
};

struct record_item {
#define X(type, narrow, name) narrow name;
  NI_BATCH_COLUMNS(X)
#undef X
  uint64_t at;                    /* in its range */
  uint32_t host, id, file, range; /* host, id: names */
  int32_t rank;
  uint32_t has;
  bool p2p;
};

struct ni_sorter {
  struct ni_run *r;
  const struct ni_batch_words *words;
  struct ni_sort *sort;
  uint64_t at;
  uint32_t file, range;
};
_Static_assert(sizeof(struct record_item) <= NI_SORT_ITEM_MAX, "rows fit into the sort");

static int compare_by_name(const struct ni_run *r, uint32_t a, uint32_t b) {
  return a == b ? 0 : strcmp(ni_name_text(&r->names, a), ni_name_text(&r->names, b));
}

/* Compares two rows by the folders that they are in; 0: the same one. */
static int compare_by_folder(const struct ni_run *r, const struct record_item *x,
                             const struct record_item *y) {
  int k = 0;
  for (const uint8_t *p = r->opt.partition; k == 0 && *p; p++)
    k = *p == NI_PARTITION_HOST ? compare_by_name(r, x->host, y->host) : compare_by_name(r, x->id, y->id);
  return k;
}

static int compare_by_order(const void *a, const void *b, void *run) {
  const struct ni_run *r = run;
  const struct record_item *x = a, *y = b;
  int k = compare_by_folder(r, x, y);
  if (k == 0)
    k = compare_by_name(r, x->id, y->id);
  if (k == 0)
    k = NI_BY(x, y, p2p);
  if (k == 0)
    k = compare_by_name(r, x->func, y->func);
  return k ? k : NI_BY(x, y, sn, rank, dump_us, file, range, at);
}

static int make_sorter(struct ni_sorter **out, struct ni_run *r, const struct ni_batch_words *w) {
  struct ni_sorter *s = *out = calloc(1, sizeof *s);
  if (!s)
    return -ENOMEM;
  s->r = r;
  s->words = w;
  uint64_t limit = r->opt.memory_bytes / MEMORY_SHARE / r->opt.jobs;
  if (limit < ROWS_MIN * sizeof(struct record_item))
    limit = ROWS_MIN * sizeof(struct record_item);
  return ni_sort_new(&s->sort, &r->store, limit, compare_by_order, r);
}

static void store_row(struct record_item *x, const struct ni_batch *b, uint32_t i) {
  *x = (struct record_item){.has = (uint32_t)(b->has_ours << H_OURS)};
#define COLUMN(type, narrow, name) x->name = (narrow)b->name[i];
#define HAS(name) x->has |= (uint32_t)b->has_##name[i] << H_##name;
  NI_BATCH_USUAL_COLUMNS(COLUMN)
  NI_BATCH_USUAL(HAS)
  if (!b->has_rare)
    return;
  NI_BATCH_RARE_COLUMNS(COLUMN)
  NI_BATCH_RARE(HAS)
#undef COLUMN
#undef HAS
}

static void load_row(struct ni_batch *b, const struct record_item *x) {
  uint32_t i = b->n++;
  if (i > 0 && x->context != b->context[0])
    b->mixed_contexts = true;
  b->has_ours = b->has_ours || (x->has >> H_OURS & 1);
#define X(type, narrow, name) b->name[i] = x->name;
  NI_BATCH_COLUMNS(X)
#undef X
#define X(name) b->has_##name[i] = x->has >> H_##name & 1;
  NI_BATCH_NULLABLE(X)
#undef X
  b->has_rare = true; /* as far as a row can tell: its nulls are filled in */
}

/* Copies the rows of b, which stand in `range` of `file` behind those that were added before. */
static int add_to_sorter(struct ni_sorter *s, const struct ni_batch *b, uint32_t file, uint32_t range) {
  enum { PIECE = 64 };
  struct ni_run *r = s->r;
  struct record_item row[PIECE];
  int e = 0;
  if (file != s->file || range != s->range)
    s->at = 0;
  s->file = file;
  s->range = range;
  for (uint32_t i = 0, n; e == 0 && i < b->n; i += n) {
    n = b->n - i < PIECE ? b->n - i : PIECE;
    pthread_mutex_lock(&r->lock); /* tables of members may move */
    for (uint32_t k = 0; k < n; k++) {
      struct record_item *x = &row[k];
      store_row(x, b, i + k);
      const struct ni_who_member *m = &r->who.member[r->context[x->context].member];
      x->host = r->process[m->process].host;
      x->id = r->comm[m->comm].id;
      x->rank = m->rank;
      x->p2p = x->kind == s->words->kind[NI_KIND_P2P];
      x->file = file;
      x->range = range;
      x->at = s->at++;
    }
    pthread_mutex_unlock(&r->lock);
    for (uint32_t k = 0; e == 0 && k < n; k++)
      e = ni_sort_add(s->sort, &row[k], sizeof *row);
  }
  return e;
}

/* Joins what was added before, by main. Frees s, also on failure; NULL is fine. */
static int end_sorter(struct ni_sorter *s) {
  if (!s)
    return 0;
  struct ni_run *r = s->r;
  int e = 0;
  if (ni_run_stopped(r))
    ni_sort_free(s->sort);
  else if (!r->sorted)
    r->sorted = s->sort;
  else
    e = ni_sort_join(r->sorted, s->sort);
  free(s);
  return e;
}

struct record_merge {
  struct ni_run *r;
  struct ni_batch *batch;
  struct ni_sum_file file; /* that is being written */
  struct record_item in;   /* a row of its folder */
  uint32_t n_folders;
  bool any;
};

/* "host=<name>": bytes that are no letter, digit, - _ or . become %XX, which readers turn back. */
static void name_partition(const char *key, const char *value, uint32_t number, char out[DIR_NAME_MAX + 16]) {
  size_t n = (size_t)sprintf(out, "%s=", key);
  if (!*value)
    n += (size_t)sprintf(out + n, "__HIVE_DEFAULT_PARTITION__");
  for (const unsigned char *p = (const unsigned char *)value; *p; p++) {
    unsigned c = *p;
    if (n + 3 > DIR_NAME_MAX) { /* too long for a folder: `hostname` in the rows has it all */
      sprintf(out + n, "~%u", number);
      return;
    }
    const bool is_letter_or_digit = c - '0' < 10 || (c | 32) - 'a' < 26;
    if (is_letter_or_digit || c == '-' || c == '_' || c == '.')
      out[n++] = (char)c;
    else
      n += (size_t)sprintf(out + n, "%%%02X", c);
  }
  out[n] = 0;
}

/* The folder that a row is in, below the data set. */
static void name_folder(const struct record_merge *m, const struct record_item *x, char *out, size_t size) {
  static const char *const keys[NI_PARTITIONS] = {"", "host", "comm"};
  const struct ni_names *names = &m->r->names;
  size_t n = 0;
  for (const uint8_t *p = m->r->opt.partition; *p; p++) {
    char dir[DIR_NAME_MAX + 16];
    name_partition(keys[*p], ni_name_text(names, *p == NI_PARTITION_HOST ? x->host : x->id), m->n_folders,
                   dir);
    n += (size_t)snprintf(out + n, size - n, "%s%s", n ? "/" : "", dir);
  }
}

static int flush_rows(struct record_merge *m) {
  int e = m->batch->n ? ni_parquet_write(m->r, &m->file, m->batch) : 0;
  ni_batch_clear(m->batch);
  return e;
}

static int end_folder(struct record_merge *m) {
  if (!m->any)
    return 0;
  int e = flush_rows(m);
  return e < 0 ? e : ni_parquet_close(m->r, &m->file);
}

static int begin_folder(struct record_merge *m, const struct record_item *row) {
  char folder[(NI_PARTITIONS - 1) * (DIR_NAME_MAX + 16)], path[4096];
  int e = end_folder(m);
  if (e < 0)
    return e;
  m->n_folders++;
  name_folder(m, row, folder, sizeof folder);
  const size_t base = (size_t)snprintf(path, sizeof path, "%s/dataset/", m->r->tmp_dir);
  snprintf(path + base, sizeof path - base, "%s/", folder);
  for (char *slash = strchr(path + base, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    if (mkdir(path, 0777) < 0 && errno != EEXIST)
      return -errno;
    *slash = '/';
  }
  free(m->file.parquet);
  m->any = true;
  m->in = *row;
  m->file = (struct ni_sum_file){.folder = "dataset"};
  if (asprintf(&m->file.parquet, "%s/part-0", folder) < 0) {
    m->file.parquet = NULL;
    return -ENOMEM;
  }
  return ni_parquet_new(&m->file);
}

static int write_sorted(struct record_merge *m) {
  struct ni_run *r = m->r;
  const void *item;
  size_t len;
  uint64_t n = 0;
  int e = 0;
  while (r->sorted && (e = ni_sort_next(r->sorted, &item, &len)) > 0) {
    const struct record_item *row = item;
    if ((++n & 4095) == 0 && ni_run_stopped(r))
      return -EINTR;
    e = 0;
    if (!m->any || compare_by_folder(r, &m->in, row) != 0)
      e = begin_folder(m, row);
    else if (m->batch->n == NI_BATCH_ROWS)
      e = flush_rows(m);
    if (e < 0)
      return e;
    load_row(m->batch, row);
  }
  return e < 0 ? e : end_folder(m);
}

int ni_dataset_write(struct ni_run *r) {
  struct record_merge m = {.r = r, .batch = calloc(1, sizeof *m.batch)};
  char path[4096];
  snprintf(path, sizeof path, "%s/dataset", r->tmp_dir);
  int e = !m.batch ? -ENOMEM : mkdir(path, 0777) < 0 ? -errno : write_sorted(&m);
  if (e < 0)
    ni_run_fail(r, e, "%s: %s", path, strerror(-e));
  ni_parquet_abort(&m.file);
  free(m.file.parquet);
  free(m.batch);
  ni_sort_free(r->sorted);
  r->sorted = NULL;
  return e;
}

struct ni_record_writer {
  struct ni_record_writer *next; /* while it is idle */
  struct ni_records *of;
  struct ni_batch *batch;
  struct ni_sorter *sorter; /* NULL: no data set is asked for */
  struct ni_record_part part;
};

static int make_writer(struct ni_records *x, struct ni_record_writer **out) {
  struct ni_record_writer *w = *out = calloc(1, sizeof *w);
  int e = w && (w->batch = malloc(sizeof *w->batch)) ? 0 : -ENOMEM;
  if (e == 0) {
    w->of = x;
    ni_batch_clear(w->batch);
    if (x->run->opt.dataset)
      e = make_sorter(&w->sorter, x->run, &x->words);
  }
  if (e < 0) {
    if (w)
      free(w->batch);
    free(w);
    *out = NULL;
  }
  return e;
}

static int open_part(void *to, const void *what, void **rows) {
  struct ni_records *x = to;
  pthread_mutex_lock(&x->lock);
  struct ni_record_writer *w = x->idle;
  if (w)
    x->idle = w->next;
  pthread_mutex_unlock(&x->lock);
  int e = w ? 0 : make_writer(x, &w);
  if (e == 0)
    w->part = *(const struct ni_record_part *)what;
  *rows = w;
  return e;
}

static int flush_batch(struct ni_record_writer *w) {
  struct ni_run *r = w->of->run;
  if (!w->batch->n)
    return 0;
  int e = w->sorter ? add_to_sorter(w->sorter, w->batch, (uint32_t)w->part.file, (uint32_t)w->part.range) : 0;
  return e < 0 ? e : ni_parquet_append(r, &r->file[w->part.file], w->part.range, &w->batch);
}

static int add_row(void *rows, const void *row) {
  struct ni_record_writer *w = rows;
  if (w->of->run->opt.no_parquet && !w->sorter)
    return 0;
  ni_batch_add(w->batch, &w->of->words, row);
  return w->batch->n == NI_BATCH_ROWS ? flush_batch(w) : 0;
}

static int close_part(void *rows) {
  struct ni_record_writer *w = rows;
  struct ni_records *x = w->of;
  int e = ni_run_stopped(x->run) ? 0 : flush_batch(w);
  if (e < 0)
    ni_run_fail(x->run, e, "%s: %s", x->run->file[w->part.file].file->path, strerror(-e));
  ni_batch_clear(w->batch);
  int over = ni_parquet_range_done(x->run, &x->run->file[w->part.file], w->part.range);
  pthread_mutex_lock(&x->lock);
  w->next = x->idle;
  x->idle = w;
  pthread_mutex_unlock(&x->lock);
  return e < 0 ? e : over;
}

int ni_records_init(struct ni_records *x, struct ni_run *r) {
  *x = (struct ni_records){
      .run = r, .sink = {x, open_part, add_row, close_part}, .lock = PTHREAD_MUTEX_INITIALIZER};
  if (!*r->opt.partition)
    *r->opt.partition = NI_PARTITION_HOST;
  return ni_batch_words(r, &x->words);
}

int ni_records_end(struct ni_records *x) {
  int e = 0;
  for (struct ni_record_writer *w; (w = x->idle);) {
    x->idle = w->next;
    int ended = end_sorter(w->sorter);
    if (ended < 0)
      ni_run_fail(x->run, ended, "%s: %s", x->run->tmp_dir, strerror(-ended));
    if (e == 0)
      e = ended;
    free(w->batch);
    free(w);
  }
  return e;
}
