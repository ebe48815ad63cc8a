#include "datatypes.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "exporter/model/sums/reading/record_row.h"

enum { SEEN = 64 };

struct json_rows { /* of a range: what it has told already */
  struct ni_datatypes *t;
  struct {
    struct ni_datatype kind;
    bool used;
  } seen[SEEN];
};

int ni_datatypes_init(struct ni_datatypes *t) {
  *t = (struct ni_datatypes){0};
  return -pthread_mutex_init(&t->lock, NULL);
}

void ni_datatypes_free(struct ni_datatypes *t) {
  pthread_mutex_destroy(&t->lock);
  ni_index_free(&t->at_hash);
  free(t->item);
}

static bool is_same_kind(const struct ni_datatype *x, const struct ni_datatype *y) {
  return x->of == y->of && x->func == y->func && x->bytes == y->bytes;
}

static uint64_t hash_kind(const struct ni_datatype *x) {
  return ni_hash(ni_hash(ni_hash(0, x->of), x->func), x->bytes);
}

/* Under the lock. */
static int add_datatype(struct ni_datatypes *t, const struct ni_datatype *x, uint64_t hash) {
  uint32_t k;
  for (size_t at = 0; (k = ni_index_next(&t->at_hash, hash, &at)) != NI_INDEX_NONE;)
    if (is_same_kind(&t->item[k], x)) {
      t->item[k].several |= t->item[k].datatype != x->datatype;
      return 0;
    }
  if (t->n >= NI_DATATYPES_MAX)
    return 0;
  if (!ni_array_room(t->item, t->n, t->cap))
    return -ENOMEM;
  const int e = ni_index_add(&t->at_hash, hash, (uint32_t)t->n);
  if (e == 0)
    t->item[t->n++] = *x;
  return e;
}

static int open_json_rows(void *to, const void *what, void **rows) {
  (void)what;
  struct json_rows *x = *rows = calloc(1, sizeof *x);
  if (!x)
    return -ENOMEM;
  x->t = to;
  return 0;
}

static int read_json_row(void *rows, const void *row) {
  struct json_rows *x = rows;
  const struct ni_record_row *r = row;
  const struct ni_datatype d = {
      .bytes = r->line->op.msg_bytes, .of = r->context, .func = r->func, .datatype = r->datatype};
  const uint64_t hash = hash_kind(&d);
  const size_t at = (hash ^ d.datatype) % SEEN;
  const struct ni_datatype *seen = &x->seen[at].kind;
  if (x->seen[at].used && is_same_kind(seen, &d) && seen->datatype == d.datatype)
    return 0;
  pthread_mutex_lock(&x->t->lock);
  const int e = add_datatype(x->t, &d, hash);
  pthread_mutex_unlock(&x->t->lock);
  x->seen[at].kind = d;
  x->seen[at].used = true;
  return e;
}

static int close_json_rows(void *rows) {
  free(rows);
  return 0;
}

struct ni_sink ni_datatypes_sink(struct ni_datatypes *t) {
  return (struct ni_sink){t, open_json_rows, read_json_row, close_json_rows};
}

static NI_ORDER_BY(by_kind, struct ni_datatype, of, func, bytes);

void ni_datatypes_sort(struct ni_datatypes *t, const struct ni_run *r) {
  size_t kept = 0;
  if (t->n >= NI_DATATYPES_MAX)
    t->n = 0;
  for (size_t i = 0; i < t->n; i++)
    t->item[i].of = r->comm_at[r->who.member[r->context[t->item[i].of].member].comm];
  if (t->n)
    qsort(t->item, t->n, sizeof *t->item, by_kind);
  for (size_t i = 0; i < t->n; i++) {
    struct ni_datatype *last = kept ? &t->item[kept - 1] : NULL;
    if (last && is_same_kind(last, &t->item[i]))
      last->several |= t->item[i].several || t->item[i].datatype != last->datatype;
    else
      t->item[kept++] = t->item[i];
  }
  t->n = kept;
}

const char *ni_datatype_of(const struct ni_datatypes *t, const struct ni_run *r, uint32_t comm,
                           const char *func, uint64_t bytes) {
  size_t i;
  if (!t)
    return NULL;
  ni_array_search(i, t->n, t->item[i].of < comm);
  for (; i < t->n && t->item[i].of == comm; i++) {
    const struct ni_datatype *x = &t->item[i];
    if (x->bytes != bytes || ni_name_text(&r->names, x->func) != func)
      continue;
    return x->several || !x->datatype ? NULL : ni_name_text(&r->names, x->datatype);
  }
  return NULL;
}
