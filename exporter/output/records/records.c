#include "records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dataset.h"
#include "exporter/model/sums/reading/record_row.h"

struct ni_record_writer {
  struct ni_record_writer *next; /* while it is idle */
  struct ni_records *of;
  struct ni_batch *batch;
  struct ni_sorter *sorter;      /* NULL: no data set is asked for */
  struct ni_record_part part;
};

static int new_writer(struct ni_records *x, struct ni_record_writer **out) {
  struct ni_record_writer *w = *out = calloc(1, sizeof *w);
  int e = w && (w->batch = malloc(sizeof *w->batch)) ? 0 : -ENOMEM;
  if (e == 0) {
    w->of = x;
    ni_batch_clear(w->batch);
    if (x->run->opt.dataset) e = ni_sorter_new(&w->sorter, x->run, &x->words);
  }
  if (e < 0) {
    if (w) free(w->batch);
    free(w);
    *out = NULL;
  }
  return e;
}

static int open_part(void *to, const void *what, void **rows) {
  struct ni_records *x = to;
  pthread_mutex_lock(&x->lock);
  struct ni_record_writer *w = x->idle;
  if (w) x->idle = w->next;
  pthread_mutex_unlock(&x->lock);
  int e = w ? 0 : new_writer(x, &w);
  if (e == 0) w->part = *(const struct ni_record_part *)what;
  *rows = w;
  return e;
}

static int flush(struct ni_record_writer *w) {
  struct ni_run *r = w->of->run;
  if (!w->batch->n) return 0;
  int e = w->sorter ? ni_sorter_add(w->sorter, w->batch, (uint32_t)w->part.file, (uint32_t)w->part.range) : 0;
  return e < 0 ? e : ni_parquet_append(r, &r->file[w->part.file], w->part.range, &w->batch);
}

static int add_row(void *rows, const void *row) {
  struct ni_record_writer *w = rows;
  const struct ni_record_row *x = row;
  ni_batch_add(w->batch, &w->of->words, x->line, x->context, x->func, x->algo, x->proto, x->datatype);
  return w->batch->n == NI_BATCH_ROWS ? flush(w) : 0;
}

static int close_part(void *rows) {
  struct ni_record_writer *w = rows;
  struct ni_records *x = w->of;
  int e = ni_run_stopped(x->run) ? 0 : flush(w);
  if (e < 0) ni_run_fail(x->run, e, "%s: %s", x->run->file[w->part.file].file->path, strerror(-e));
  ni_batch_clear(w->batch);
  int over = ni_parquet_range_done(x->run, &x->run->file[w->part.file], w->part.range);
  pthread_mutex_lock(&x->lock);
  w->next = x->idle;
  x->idle = w;
  pthread_mutex_unlock(&x->lock);
  return e < 0 ? e : over;
}

int ni_records_init(struct ni_records *x, struct ni_run *r) {
  *x = (struct ni_records){.run = r, .sink = {x, open_part, add_row, close_part}, .lock = PTHREAD_MUTEX_INITIALIZER};
  return ni_batch_words(r, &x->words);
}

int ni_records_end(struct ni_records *x) {
  int e = 0;
  for (struct ni_record_writer *w; (w = x->idle);) {
    x->idle = w->next;
    int ended = ni_sorter_end(w->sorter);
    if (ended < 0) ni_run_fail(x->run, ended, "%s: %s", x->run->tmp_dir, strerror(-ended));
    if (e == 0) e = ended;
    free(w->batch);
    free(w);
  }
  return e;
}
