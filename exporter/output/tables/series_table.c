#include "series_table.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "exporter/base/name_table.h"
#include "exporter/base/out_file.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/csv_write.h"
#include "exporter/model/counters/series.h"

enum { COLUMNS_MAX = 20, BATCH = 1024 };
enum type { TEXT = NI_PQ_STRING, WHOLE = NI_PQ_INT64, REAL = NI_PQ_DOUBLE };

struct value { /* of what its column says; TEXT NULL and REAL NAN: none */
  const char *text;
  int64_t whole;
  double real;
};

struct table {
  const char *name; /* series_<name>; "": series */
  const struct series_column {
    const char *name;
    enum type type;
  } *column;
  size_t n_columns, n_rows;
  void (*row)(const struct ni_summary *s, size_t i, struct value *v); /* fills as many as there are columns */
};

/* The columns that all have: the bucket, when it begins in Unix ns, and how long after the first one. */
#define WHEN \
  {"bucket", WHOLE}, {"start_ns", WHOLE}, { "since_ms", WHOLE }

static struct value *fill_time(const struct ni_summary *s, int64_t bucket, struct value *v) {
  const int64_t w = (int64_t)s->buckets.width_ns;
  *v++ = (struct value){.whole = bucket};
  *v++ = (struct value){.whole = s->buckets.first_ns + bucket * w};
  *v++ = (struct value){.whole = bucket * (w / 1000000)};
  return v;
}
#define A_TEXT(x) {.text = (x)}
#define A_WHOLE(x) {.whole = (int64_t)(x)}
#define A_REAL(x) {.real = (x)}
#define PUT(v, ...) \
  memcpy(v, (const struct value[]){__VA_ARGS__}, sizeof((const struct value[]){__VA_ARGS__}))

static const struct series_column of_records[] = {WHEN,
                                                  {"log_group", TEXT},
                                                  {"id", TEXT},
                                                  {"comm_name", TEXT},
                                                  {"kind", TEXT},
                                                  {"func", TEXT},
                                                  {"timing_source", TEXT},
                                                  {"operations", WHOLE},
                                                  {"records", WHOLE},
                                                  {"bytes", WHOLE},
                                                  {"exec_time_us", REAL},
                                                  {"mean_us", REAL},
                                                  {"max_us", REAL},
                                                  {"busbw_gbs", REAL},
                                                  {"late", WHOLE},
                                                  {"late_us", REAL}};

static void fill_record_row(const struct ni_summary *s, size_t i, struct value *v) {
  const struct ni_bucket_row *x = &s->buckets.records.row[i];
  const struct ni_comm_row *c = &s->comm[x->comm];
  const uint64_t with = x->records - x->no_bandwidth;
  v = fill_time(s, x->bucket, v);
  PUT(v, A_TEXT(x->log_group == NI_BUCKET_NONE ? NULL : s->log_group[x->log_group]), A_TEXT(c->id),
      A_TEXT(c->name), A_TEXT(ni_kind_names[x->kind]), A_TEXT(x->func), A_TEXT(ni_timing_names[x->timing]),
      A_WHOLE(x->operations), A_WHOLE(x->records), A_WHOLE(x->bytes), A_REAL((double)x->ns / 1e3),
      A_REAL(x->records ? (double)x->ns / 1e3 / (double)x->records : NAN), A_REAL((double)x->max_ns / 1e3),
      A_REAL(with ? (double)x->bytes_per_s / ((double)with * 1e9) : NAN), A_WHOLE(x->late),
      A_REAL((double)x->late_ns / 1e3));
}

static const struct series_column of_rollups[] = {WHEN,
                                                  {"kind", TEXT},
                                                  {"func", TEXT},
                                                  {"timing_source", TEXT},
                                                  {"operations", WHOLE},
                                                  {"bytes", WHOLE},
                                                  {"exec_time_us", REAL},
                                                  {"mean_us", REAL},
                                                  {"max_us", REAL}};

static void fill_rollup_row(const struct ni_summary *s, size_t i, struct value *v) {
  const struct ni_bucket_row *x = &s->buckets.rolled.row[i];
  v = fill_time(s, x->bucket, v);
  PUT(v, A_TEXT(ni_kind_names[x->kind]), A_TEXT(x->func), A_TEXT(ni_timing_names[x->timing]),
      A_WHOLE(x->operations), A_WHOLE(x->bytes), A_REAL((double)x->ns / 1e3),
      A_REAL(x->operations ? (double)x->ns / 1e3 / (double)x->operations : NAN),
      A_REAL((double)x->max_ns / 1e3));
}

static const struct series_column of_hosts[] = {
    WHEN,           {"hostname", TEXT}, {"source", TEXT},   {"device", TEXT}, {"counter", TEXT},
    {"unit", TEXT}, {"kind", TEXT},     {"samples", WHOLE}, {"delta", WHOLE}, {"per_second", REAL},
    {"mean", REAL}, {"min", REAL},      {"max", REAL}};

static int64_t clamp_sum(__int128 sum) {
  if (sum > INT64_MAX)
    return INT64_MAX;
  return sum < INT64_MIN ? INT64_MIN : (int64_t)sum;
}

/* A gauge has levels, what counts has differences. */
static void fill_host_row(const struct ni_summary *s, size_t i, struct value *v) {
  const struct ni_host_bucket *x = &s->buckets.hosts.row[i];
  const bool level = x->min <= x->max;
  v = fill_time(s, x->bucket, v);
  PUT(v, A_TEXT(x->host), A_TEXT(x->source), A_TEXT(x->device), A_TEXT(x->counter), A_TEXT(x->unit),
      A_TEXT(ni_series_kinds[x->kind]), A_WHOLE(x->samples), A_WHOLE(level ? 0 : clamp_sum(x->sum)),
      A_REAL(!level && x->seconds > 0 ? (double)x->sum / x->seconds * x->scale : NAN),
      A_REAL(level ? (double)x->sum / (double)x->samples * x->scale : NAN),
      A_REAL(level ? (double)x->min * x->scale : NAN), A_REAL(level ? (double)x->max * x->scale : NAN));
}

/* Lists the tables that have rows; the first one in any case. */
static size_t list_tables(const struct ni_summary *s, struct table t[3]) {
  const struct ni_buckets *b = &s->buckets;
  size_t n = 0;
#define TABLE(what, columns, rows, fill) \
  t[n++] = (struct table) { what, columns, sizeof(columns) / sizeof *(columns), rows, fill }
  if (!b->width_ns)
    return 0;
  TABLE("", of_records, b->records.n, fill_record_row);
  if (b->rolled.n)
    TABLE("rollups", of_rollups, b->rolled.n, fill_rollup_row);
  if (b->hosts.n)
    TABLE("hosts", of_hosts, b->hosts.n, fill_host_row);
  return n;
}

static void name_file(const struct table *t, const char *dir, const char *ending, char path[PATH_MAX]) {
  snprintf(path, PATH_MAX, "%.4000s/series%s%s.%s", dir, *t->name ? "_" : "", t->name, ending);
}

int ni_series_csv(const struct ni_summary *s, const char *dir, char *path) {
  struct table t[3];
  struct value v[COLUMNS_MAX];
  int e = 0;
  for (size_t k = 0, n = list_tables(s, t); e == 0 && k < n; k++) {
    name_file(&t[k], dir, "csv", path);
    FILE *f = fopen(path, "we");
    if (!f)
      return -errno;
    for (size_t c = 0; c < t[k].n_columns; c++) {
      fputs(c ? "," : "", f);
      ni_csv_text(f, t[k].column[c].name);
    }
    putc('\n', f);
    for (size_t i = 0; i < t[k].n_rows; i++) {
      t[k].row(s, i, v);
      for (size_t c = 0; c < t[k].n_columns; c++) {
        if (c && t[k].column[c].type != REAL)
          putc(',', f);
        if (t[k].column[c].type == TEXT)
          ni_csv_text(f, v[c].text);
        else if (t[k].column[c].type == WHOLE)
          ni_say(f, "%lld", (long long)v[c].whole);
        else
          ni_csv_doubles(f, &v[c].real, 1);
      }
      putc('\n', f);
    }
    e = ni_out_end(f);
  }
  return e;
}

static void put_value(struct ni_json *j, const struct series_column *c, const struct value *v) {
  if (c->type == TEXT)
    ni_json_text(j, c->name, v->text);
  else if (c->type == WHOLE)
    ni_json_i64(j, c->name, v->whole);
  else
    ni_json_f64(j, c->name, v->real);
}

void ni_series_json(struct ni_json *j, const struct ni_summary *s) {
  struct table t[3];
  struct value v[COLUMNS_MAX];
  size_t n = list_tables(s, t);
  if (!n)
    return;
  ni_json_object(j, "series");
  ni_json_u64(j, "time_granularity_ns", s->buckets.width_ns);
  ni_json_i64(j, "origin_ns", s->buckets.origin_ns);
  ni_json_i64(j, "first_bucket_ns", s->buckets.first_ns);
  for (size_t k = 0; k < n; k++) {
    ni_json_array(j, *t[k].name ? t[k].name : "records");
    for (size_t i = 0; i < t[k].n_rows; i++) {
      t[k].row(s, i, v);
      NI_JSON_OBJECT (j, NULL)
        for (size_t c = 0; c < t[k].n_columns; c++)
          put_value(j, &t[k].column[c], &v[c]);
    }
    ni_json_end_array(j);
  }
  ni_json_end_object(j);
}

/* ---- Parquet ---- */

struct batch {
  struct value v[COLUMNS_MAX];
  union {
    uint32_t code[BATCH];
    int64_t whole[BATCH];
    double real[BATCH];
  } at[COLUMNS_MAX];
  uint8_t valid[COLUMNS_MAX][BATCH];
};

static int add_row(const struct ni_summary *s, const struct table *t, size_t i, struct ni_names *names,
                   struct batch *b, size_t at) {
  int e = 0;
  t->row(s, i, b->v);
  for (size_t c = 0; e == 0 && c < t->n_columns; c++) {
    const struct value *v = &b->v[c];
    const enum type type = t->column[c].type;
    b->valid[c][at] = type == WHOLE || (type == TEXT ? v->text != NULL : !isnan(v->real));
    if (type == WHOLE)
      b->at[c].whole[at] = v->whole;
    else if (type == REAL)
      b->at[c].real[at] = v->real;
    else
      e = ni_name(names, NULL, v->text, &b->at[c].code[at]);
  }
  return e;
}

static int write_table(const struct ni_summary *s, const struct table *t, struct ni_pq *w,
                       struct ni_names *names, struct batch *b) {
  int e = 0;
  for (size_t from = 0, n; e == 0 && from < t->n_rows; from += n) {
    n = t->n_rows - from < BATCH ? t->n_rows - from : BATCH;
    for (size_t i = 0; e == 0 && i < n; i++)
      e = add_row(s, t, from + i, names, b, i);
    const struct ni_pq_dict dict = {names->text, names->n, 1};
    struct ni_pq_column column[COLUMNS_MAX];
    for (size_t c = 0; c < t->n_columns; c++)
      column[c] = (struct ni_pq_column){
          .values = &b->at[c], .valid = b->valid[c], .dict = t->column[c].type == TEXT ? &dict : NULL};
    if (e == 0)
      e = ni_pq_append(w, column, n);
  }
  return e;
}

static int write_parquet(const struct ni_summary *s, const struct table *t, const char *path,
                         enum ni_pq_codec codec, struct ni_names *names, struct batch *b) {
  struct ni_pq_field field[COLUMNS_MAX];
  const struct ni_pq_options o = {.codec = codec, .memory_bytes = 8u << 20};
  struct ni_pq *w = NULL;
  char why[512];
  for (size_t c = 0; c < t->n_columns; c++)
    field[c] = (struct ni_pq_field){t->column[c].name, (enum ni_pq_type)t->column[c].type};
  int e = ni_pq_create(&w, path, field, t->n_columns, &o, why, sizeof why);
  if (e == 0)
    e = write_table(s, t, w, names, b);
  if (e == 0 && (e = ni_pq_finish(w, NULL)) == 0)
    w = NULL;
  ni_pq_abort(w);
  return e;
}

int ni_series_parquet(const struct ni_summary *s, const char *dir, enum ni_pq_codec codec, char *path) {
  struct table t[3];
  char folder[PATH_MAX];
  struct ni_names names;
  size_t n = list_tables(s, t);
  if (!n)
    return 0;
  snprintf(folder, sizeof folder, "%s/parquet_series", dir);
  snprintf(path, PATH_MAX, "%s", folder);
  if (mkdir(folder, 0777) < 0 && errno != EEXIST)
    return -errno;
  struct batch *b = malloc(sizeof *b);
  int e = b ? ni_names_init(&names) : -ENOMEM;
  if (e < 0) {
    free(b);
    return e;
  }
  for (size_t k = 0; e == 0 && k < n; k++) {
    name_file(&t[k], folder, "parquet", path);
    e = write_parquet(s, &t[k], path, codec, &names, b);
  }
  ni_names_free(&names);
  free(b);
  return e;
}
