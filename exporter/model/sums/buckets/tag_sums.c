#include "tag_sums.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/base/order.h"
#include "exporter/model/sums/join/join.h"
#include "exporter/model/sums/state.h"

static int drop_if_too_many(struct ni_tag_sums *t, int e) {
  if (e != -E2BIG && t->rows.n <= NI_TAG_ROWS_MAX)
    return e;
  ni_bucket_free(&t->rows);
  t->too_many = true;
  return e == -E2BIG ? 0 : e;
}

int ni_tag_sums_count(struct ni_tag_sums *t, const struct ni_operation *op, uint64_t msg_bytes,
                      const char *no_func) {
  bool counted = false;
  for (uint32_t i = 0; i < op->n && !t->too_many; i++) {
    const struct ni_entry *x = &op->part[i].e;
    const struct ni_bucket_row key = {.bucket = (int64_t)x->tag,
                                      .comm = NI_BUCKET_NONE,
                                      .log_group = NI_BUCKET_NONE,
                                      .func = no_func,
                                      .timing = x->timing};
    struct ni_bucket_row *row;
    if (!x->tag)
      continue;
    int e = ni_bucket_find_or_add(&t->rows, &key, &row);
    if (e == 0) {
      row->records++;
      row->operations += !counted;
      counted = true;
      ni_add_capped(&row->bytes, msg_bytes);
      if (!x->tail)
        ni_add_capped(&row->ns, x->exec_ns);
      if (x->bytes_per_s == NI_NO_BW)
        row->no_bandwidth++;
      else
        row->bytes_per_s += x->bytes_per_s;
    }
    if ((e = drop_if_too_many(t, e)) < 0)
      return e;
  }
  return 0;
}

int ni_tag_sums_merge(struct ni_tag_sums *to, const struct ni_tag_sums *from) {
  if (from->too_many && !to->too_many)
    ni_bucket_free(&to->rows);
  to->too_many |= from->too_many;
  return to->too_many ? 0 : drop_if_too_many(to, ni_bucket_merge(&to->rows, &from->rows));
}

void ni_tag_sums_free(struct ni_tag_sums *t) { ni_bucket_free(&t->rows); }

static int compare_tags_by_time(const void *a, const void *b) {
  const struct ni_tag_row *x = a, *y = b;
  if (x->exec_ns != y->exec_ns)
    return x->exec_ns > y->exec_ns ? -1 : 1;
  return NI_BY(x, y, tag, timing);
}

int ni_tag_sums_build(struct ni_run *r, struct ni_summary *s, double all_ns) {
  const struct ni_bucket_table *t = &s->tag_sums.rows;
  s->tag = calloc(t->n + 1, sizeof *s->tag);
  if (!s->tag)
    return -ENOMEM;
  s->tagged_share = 0;
  for (size_t i = 0; i < t->n; i++) {
    const struct ni_bucket_row *x = &t->row[i];
    const char *name = ni_tag_name(&r->tag_names, (uint64_t)x->bucket);
    const uint64_t timed = x->records - x->no_bandwidth;
    uint32_t code = 0;
    int e = name ? ni_name(&r->names, NULL, name, &code) : 0;
    if (e < 0)
      return e;
    s->tag[s->n_tags++] =
        (struct ni_tag_row){.tag = (uint64_t)x->bucket,
                            .name = name ? ni_name_text(&r->names, code) : NULL,
                            .timing = (enum ni_timing)x->timing,
                            .operations = x->operations,
                            .records = x->records,
                            .bytes = x->bytes,
                            .no_bandwidth = x->no_bandwidth,
                            .exec_ns = (double)x->ns,
                            .busbw_gbs = timed ? (double)x->bytes_per_s / ((double)timed * 1e9) : NAN,
                            .time_share = all_ns > 0 ? (double)x->ns / all_ns : 0};
    s->capped += ni_capped(x->added, sizeof x->added / sizeof *x->added);
    s->tagged_share += s->tag[i].time_share;
  }
  qsort(s->tag, s->n_tags, sizeof *s->tag, compare_tags_by_time);
  return 0;
}
