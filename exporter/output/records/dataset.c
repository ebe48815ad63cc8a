#include "dataset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/heap.h"

enum { ROWS_MIN = 1024, MERGE_ROWS_MIN = 8, MERGE_ROWS_MAX = 4096, DIR_NAME_MAX = 240 };
#define MEMORY_SHARE 8 /* of --memory, all buffers together */

/* Which of the columns that may be null are not. */
enum {
#define X(name) H_##name,
  NI_BATCH_NULLABLE(X)
#undef X
  H_OURS
};

struct row {
#define X(type, narrow, name) narrow name;
  NI_BATCH_COLUMNS(X)
#undef X
  uint64_t at;                 /* in its range */
  uint32_t host, id, file, range; /* host, id: names */
  int32_t rank;
  uint16_t has;
  bool p2p;
};

struct ni_sorter {
  struct ni_run *r;
  uint32_t p2p;                /* name of that kind */
  struct row *row;
  const struct row **order;
  size_t n, cap;
  uint64_t at;
  uint32_t file, range;
};

static int by_name(const struct ni_run *r, uint32_t a, uint32_t b) {
  return a == b ? 0 : strcmp(ni_name_text(&r->names, a), ni_name_text(&r->names, b));
}
#define COMPARE(field) if (x->field != y->field) return x->field < y->field ? -1 : 1

static int compare(const struct ni_run *r, const struct row *x, const struct row *y) {
  int k;
  if ((k = by_name(r, x->host, y->host)) != 0 || (k = by_name(r, x->id, y->id)) != 0) return k;
  COMPARE(p2p);
  if ((k = by_name(r, x->func, y->func)) != 0) return k;
  COMPARE(sn);
  COMPARE(rank);
  COMPARE(dump_us);
  COMPARE(file);
  COMPARE(range);
  COMPARE(at);
  return 0;
}
static int by_order(const void *a, const void *b, void *run) {
  return compare(run, *(const struct row *const *)a, *(const struct row *const *)b);
}

int ni_sorter_new(struct ni_sorter **out, struct ni_run *r, const struct ni_batch_words *w) {
  struct ni_sorter *s = *out = calloc(1, sizeof *s);
  if (!s) return -ENOMEM;
  s->r = r;
  s->p2p = w->kind[NI_KIND_P2P];
  s->cap = r->opt.memory_bytes / MEMORY_SHARE / r->opt.jobs / (sizeof(struct row) + sizeof(struct row *));
  if (s->cap < ROWS_MIN) s->cap = ROWS_MIN;
  s->row = malloc(s->cap * sizeof *s->row);
  s->order = malloc(s->cap * sizeof(const struct row *));
  return s->row && s->order ? 0 : -ENOMEM;
}

/* Sorts what is there and writes it as a run. */
static int spill(struct ni_sorter *s) {
  enum { PIECE = 512 };
  struct ni_run *r = s->r;
  if (s->n == 0) return 0;
  struct row *piece = malloc(PIECE * sizeof *piece);
  struct ni_sorted_run run = {.rows = s->n};
  int e = piece ? ni_store_reserve(&r->store, s->n * sizeof *s->row, &run.offset) : -ENOMEM;
  for (size_t i = 0; i < s->n; i++) s->order[i] = &s->row[i];
  qsort_r(s->order, s->n, sizeof(const struct row *), by_order, r);
  for (size_t i = 0, k; e == 0 && i < s->n; i += k) {
    for (k = 0; k < PIECE && i + k < s->n; k++) piece[k] = *s->order[i + k];
    e = ni_store_write(&r->store, piece, k * sizeof *piece, run.offset + i * sizeof *piece);
  }
  free(piece);
  s->n = 0;
  pthread_mutex_lock(&r->lock);
  if (e == 0 && !ni_array_room(r->sorted, r->n_sorted, r->cap_sorted)) e = -ENOMEM;
  if (e == 0) r->sorted[r->n_sorted++] = run;
  pthread_mutex_unlock(&r->lock);
  return e;
}

static void take_row(struct row *x, const struct ni_batch *b, uint32_t i) {
  *x = (struct row){.has = (uint16_t)(b->has_ours << H_OURS)};
#define X(type, narrow, name) x->name = (narrow)b->name[i];
  NI_BATCH_COLUMNS(X)
#undef X
#define X(name) x->has |= (uint16_t)(b->has_##name[i] << H_##name);
  NI_BATCH_NULLABLE(X)
#undef X
}

static void give_row(struct ni_batch *b, const struct row *x) {
  uint32_t i = b->n++;
  if (i > 0 && x->context != b->context[0]) b->mixed_contexts = true;
  b->has_ours = b->has_ours || (x->has >> H_OURS & 1);
#define X(type, narrow, name) b->name[i] = x->name;
  NI_BATCH_COLUMNS(X)
#undef X
#define X(name) b->has_##name[i] = x->has >> H_##name & 1;
  NI_BATCH_NULLABLE(X)
#undef X
}

int ni_sorter_add(struct ni_sorter *s, const struct ni_batch *b, uint32_t file, uint32_t range) {
  struct ni_run *r = s->r;
  if (file != s->file || range != s->range) s->at = 0;
  s->file = file;
  s->range = range;
  for (uint32_t i = 0; i < b->n;) {
    if (s->n == s->cap) {
      int e = spill(s);
      if (e < 0) return e;
    }
    pthread_mutex_lock(&r->lock); /* tables of members may move */
    for (; i < b->n && s->n < s->cap; i++) {
      struct row *x = &s->row[s->n++];
      take_row(x, b, i);
      const struct ni_who_member *m = &r->who.member[r->context[x->context].member];
      x->host = r->process[m->process].host;
      x->id = r->comm[m->comm].id;
      x->rank = m->rank;
      x->p2p = x->kind == s->p2p;
      x->file = file;
      x->range = range;
      x->at = s->at++;
    }
    pthread_mutex_unlock(&r->lock);
  }
  return 0;
}

int ni_sorter_end(struct ni_sorter *s) {
  if (!s) return 0;
  int e = s->row && s->order && !ni_run_stopped(s->r) ? spill(s) : 0;
  free(s->row);
  free(s->order);
  free(s);
  return e;
}

/* A run while it is merged: the rows [next, n) of its buffer, then `left` in the file. */
struct source {
  struct row *row;
  size_t next, n, cap;
  uint64_t offset, left;
};

static int refill(struct ni_run *r, struct source *x) {
  x->next = 0;
  x->n = x->left < x->cap ? (size_t)x->left : x->cap;
  x->left -= x->n;
  int e = x->n ? ni_store_read(&r->store, x->row, x->n * sizeof *x->row, x->offset) : 0;
  x->offset += x->n * sizeof *x->row;
  return e;
}

struct merge {
  struct ni_run *r;
  struct source *source, **heap;
  size_t n;
  struct ni_batch *batch;
  struct ni_sum_file file;     /* of the host that is being written */
  uint32_t host, n_hosts;
  bool any;
};

#define before(a, b) (compare(m->r, &(a)->row[(a)->next], &(b)->row[(b)->next]) < 0)

/* "host=<name>": bytes that are no letter, digit, - _ or . become %XX, which readers turn back. */
static void dir_name(const char *host, uint32_t number, char out[DIR_NAME_MAX + 16]) {
  size_t n = (size_t)sprintf(out, "host=");
  if (!*host) n += (size_t)sprintf(out + n, "__HIVE_DEFAULT_PARTITION__");
  for (const unsigned char *p = (const unsigned char *)host; *p; p++) {
    unsigned c = *p;
    if (n + 3 > DIR_NAME_MAX) { /* too long for a folder: `hostname` in the rows has it all */
      sprintf(out + n, "~%u", number);
      return;
    }
    if (c - '0' < 10 || (c | 32) - 'a' < 26 || c == '-' || c == '_' || c == '.') out[n++] = (char)c;
    else n += (size_t)sprintf(out + n, "%%%02X", c);
  }
  out[n] = 0;
}

static int flush(struct merge *m) {
  int e = m->batch->n ? ni_parquet_write(m->r, &m->file, m->batch) : 0;
  m->batch->n = 0;
  m->batch->mixed_contexts = m->batch->has_ours = false;
  return e;
}

static int end_host(struct merge *m) {
  if (!m->any) return 0;
  int e = flush(m);
  return e < 0 ? e : ni_parquet_close(m->r, &m->file);
}

static int begin_host(struct merge *m, uint32_t host) {
  char dir[DIR_NAME_MAX + 16], path[4096];
  int e = end_host(m);
  if (e < 0) return e;
  dir_name(ni_name_text(&m->r->names, host), ++m->n_hosts, dir);
  snprintf(path, sizeof path, "%s/dataset/%s", m->r->tmp_dir, dir);
  if (mkdir(path, 0777) < 0) return -errno;
  free(m->file.parquet);
  m->any = true;
  m->host = host;
  m->file = (struct ni_sum_file){.folder = "dataset"};
  if (asprintf(&m->file.parquet, "%s/part-0", dir) < 0) {
    m->file.parquet = NULL;
    return -ENOMEM;
  }
  return ni_parquet_new(&m->file);
}

static int merge_all(struct merge *m) {
  struct ni_run *r = m->r;
  uint64_t n = 0;
  int e = 0;
  ni_heap_make(m->heap, m->n, before);
  while (e == 0 && m->n) {
    struct source *x = m->heap[0];
    const struct row *row = &x->row[x->next];
    if ((++n & 4095) == 0 && ni_run_stopped(r)) return -EINTR;
    if (!m->any || row->host != m->host) e = begin_host(m, row->host);
    else if (m->batch->n == NI_BATCH_ROWS) e = flush(m);
    if (e < 0) return e;
    give_row(m->batch, row);
    if (++x->next == x->n && (e = refill(r, x)) == 0 && x->n == 0) m->heap[0] = m->heap[--m->n];
    if (e == 0) ni_heap_down(m->heap, m->n, 0, before);
  }
  return e < 0 ? e : end_host(m);
}

int ni_dataset_write(struct ni_run *r) {
  struct merge m = {.r = r, .batch = calloc(1, sizeof *m.batch)};
  char path[4096];
  size_t cap = r->n_sorted ? r->opt.memory_bytes / MEMORY_SHARE / r->n_sorted / sizeof(struct row) : 0;
  if (cap < MERGE_ROWS_MIN) cap = MERGE_ROWS_MIN;
  if (cap > MERGE_ROWS_MAX) cap = MERGE_ROWS_MAX;
  m.source = calloc(r->n_sorted + 1, sizeof *m.source);
  m.heap = calloc(r->n_sorted + 1, sizeof(struct source *));
  int e = m.batch && m.source && m.heap ? 0 : -ENOMEM;
  snprintf(path, sizeof path, "%s/dataset", r->tmp_dir);
  if (e == 0 && mkdir(path, 0777) < 0) e = -errno;
  for (size_t i = 0; e == 0 && i < r->n_sorted; i++) {
    struct source *x = m.heap[m.n++] = &m.source[i];
    *x = (struct source){.row = malloc(cap * sizeof *x->row), .cap = cap, .offset = r->sorted[i].offset,
                         .left = r->sorted[i].rows};
    e = x->row ? refill(r, x) : -ENOMEM;
  }
  if (e == 0) e = merge_all(&m);
  if (e < 0) ni_run_fail(r, e, "%s: %s", path, strerror(-e));
  ni_parquet_abort(&m.file);
  free(m.file.parquet);
  for (size_t i = 0; m.source && i < r->n_sorted; i++) free(m.source[i].row);
  free(m.source);
  free(m.heap);
  free(m.batch);
  return e;
}
