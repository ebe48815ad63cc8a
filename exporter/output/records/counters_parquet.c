#include "counters_parquet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "exporter/output/parquet/writer.h"

enum { ROWS = 4096 };

/* Columns in their order: name in the file, type. Texts are names' codes. */
/* clang-format off */
#define COLUMNS(X) \
  X(uint32_t, hostname, STRING) \
  X(uint32_t, source, STRING) \
  X(uint32_t, device, STRING) \
  X(uint32_t, counter, STRING) \
  X(uint32_t, unit, STRING) \
  X(uint32_t, kind, STRING) \
  X(uint32_t, state, STRING) \
  X(int64_t, realtime_ns, INT64) \
  X(int64_t, monotonic_ns, INT64) \
  X(int64_t, value, INT64) \
  X(int64_t, delta, INT64) \
  X(double, seconds, DOUBLE) \
  X(double, per_second, DOUBLE)
/* clang-format on */
enum column {
#define X(type, name, kind) C_##name,
  COLUMNS(X)
#undef X
      N_COLUMNS
};

struct ni_counters_table {
  struct ni_run *r;
  struct ni_name_cache names;
  const char *file; /* its base name */
  struct ni_pq *w;
  uint32_t n;
#define X(type, name, kind) type name[ROWS];
  COLUMNS(X)
#undef X
  uint8_t has_value[ROWS], has_delta[ROWS];
};

int ni_counters_table_new(struct ni_counters_table **out, struct ni_run *r) {
  struct ni_counters_table *t = *out = calloc(1, sizeof *t);
  if (t)
    t->r = r;
  return t ? 0 : -ENOMEM;
}

void ni_counters_table_free(struct ni_counters_table *t) {
  if (t)
    ni_pq_abort(t->w);
  free(t);
}

static int set_table_error(struct ni_counters_table *t, int e, const char *why) {
  return ni_run_fail(t->r, e, "parquet_counters/%s.parquet: %s", t->file, why);
}

static int create_table(struct ni_counters_table *t) {
  static const struct ni_pq_field field[N_COLUMNS] = {
#define X(type, name, kind) {#name, NI_PQ_##kind},
      COLUMNS(X)
#undef X
  };
  char path[4096], message[512];
  struct ni_pq_options o = {.codec = (enum ni_pq_codec)t->r->opt.codec, .memory_bytes = 8u << 20};
  snprintf(path, sizeof path, "%s/parquet_counters", t->r->tmp_dir);
  if (mkdir(path, 0777) < 0 && errno != EEXIST)
    return set_table_error(t, -errno, strerror(errno));
  snprintf(path, sizeof path, "%s/parquet_counters/%s.parquet", t->r->tmp_dir, t->file);
  int e = ni_pq_create(&t->w, path, field, N_COLUMNS, &o, message, sizeof message);
  return e < 0 ? set_table_error(t, e, message) : 0;
}

static int flush_table(struct ni_counters_table *t) {
  struct ni_pq_dict dict = {t->r->names.text, t->r->names.n, 1};
  struct ni_pq_column c[N_COLUMNS] = {
#define X(type, name, kind) \
  [C_##name] = {.values = t->name, .dict = NI_PQ_##kind == NI_PQ_STRING ? &dict : NULL},
      COLUMNS(X)
#undef X
  };
  c[C_value].valid = t->has_value;
  c[C_delta].valid = c[C_seconds].valid = c[C_per_second].valid = t->has_delta;
  int e = t->n && !t->w ? create_table(t) : 0;
  if (e == 0 && t->n && (e = ni_pq_append(t->w, c, t->n)) < 0)
    return set_table_error(t, e, ni_pq_error(t->w));
  t->n = 0;
  return e;
}

static const char *name_state(const struct ni_change *c) {
  static const char *const names[] = {"same",  "changed", "level", "reset",     "saturated",
                                      "stale", "gone",    "new",   "unreadable"};
  return c->wrapped ? "wrapped" : names[c->state];
}

static int add_change(struct ni_counters_table *t, const struct ni_series_sample *s,
                      const struct ni_entity *e, uint32_t k, const struct ni_change *c) {
  const struct ni_counter *x = &s->set->counter[k];
  uint32_t i = t->n;
  const struct {
    uint32_t *code;
    const char *text;
  } texts[] = {{&t->hostname[i], s->host},   {&t->source[i], ni_source_name(e->source)},
               {&t->device[i], e->name},     {&t->counter[i], x->name},
               {&t->unit[i], x->what.unit},  {&t->kind[i], ni_series_kinds[x->what.kind]},
               {&t->state[i], name_state(c)}};
  for (size_t n = 0; n < sizeof texts / sizeof *texts; n++) {
    int err = ni_name(&t->r->names, &t->names, texts[n].text, texts[n].code);
    if (err < 0)
      return set_table_error(t, err, strerror(-err));
  }
  t->realtime_ns[i] = s->reading[k].real_ns;
  t->monotonic_ns[i] = s->reading[k].mono_ns;
  t->value[i] = (int64_t)s->reading[k].value;
  t->has_value[i] = s->reading[k].state == NI_READ_OK;
  t->delta[i] = c->delta;
  t->seconds[i] = c->seconds;
  t->per_second[i] = ni_change_rate(c) * x->what.scale;
  t->has_delta[i] = c->state == NI_CHANGE_CHANGED || c->state == NI_CHANGE_LEVEL;
  t->n++;
  return t->n == ROWS ? flush_table(t) : 0;
}

static int add_pair(void *arg, const struct ni_series_sample *after, const struct ni_reading *before) {
  struct ni_counters_table *t = arg;
  int e = 0;
  for (size_t i = 0; e == 0 && i < after->set->n_entities; i++) {
    const struct ni_entity *x = &after->set->entity[i];
    for (uint32_t k = x->first; e == 0 && k < x->first + x->n; k++) {
      struct ni_change c =
          ni_change_of(&after->set->counter[k].what, &before[k], &after->reading[k], x->link_bytes_s);
      if (c.state != NI_CHANGE_NONE)
        e = add_change(t, after, x, k, &c);
    }
  }
  return e;
}

static int begin_log(void *arg, size_t file_no) {
  struct ni_counters_table *t = arg;
  t->file = t->r->file[file_no].parquet;
  return 0;
}

static int end_table(void *arg) {
  struct ni_counters_table *t = arg;
  int e = flush_table(t);
  if (e == 0 && t->w && (e = ni_pq_finish(t->w, NULL)) < 0)
    return set_table_error(t, e, ni_pq_error(t->w));
  if (e == 0)
    t->w = NULL;
  return e;
}

struct ni_counters_also ni_counters_table_sink(struct ni_counters_table *t) {
  return (struct ni_counters_also){t, begin_log, end_table, add_pair};
}
