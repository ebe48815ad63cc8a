/* What show says of one operation: text, or JSON. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/order.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/json_fields.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/table.h"
#include "exporter/base/text/time_text.h"
#include "exporter/model/counters/beside.h"
#include "exporter/model/counters/series.h"
#include "exporter/model/ledger/implausible.h"
#include "format/names.h"
#include "show.h"

int ni_show_by_operation(const struct ni_show_row *x, const struct ni_show_row *y) {
  int k = NI_BY(x, y, run, hash, n_ranks, sn, p2p);
  return k ? k : strcmp(x->func, y->func);
}

struct op {
  const struct ni_show_row *row;
  size_t n;
  int64_t from_ns, to_ns;         /* from the earliest start to the latest end; NI_NO_START: not told */
  const struct ni_show_row *last; /* came last: the shortest kernel; NULL: cannot be told */
  uint64_t waited_ns;             /* the longest of the others waited so long for it */
};

static struct op sum_up_rows(const struct ni_show_row *row, size_t n) {
  struct op o = {row, n, NI_NO_START, NI_NO_START, NULL, 0};
  uint64_t longest = 0;
  bool gpu = !row->p2p && n > 1;
  int64_t ranks = 0;
  for (size_t i = 0; i < n; i++) {
    const struct ni_show_row *r = &row[i];
    ranks += i == 0 || r->rank != row[i - 1].rank;
    int64_t end;
    gpu &= r->timing == NI_TIMING_KERNEL_GPU && r->exec_ns && r->exec_ns <= NI_MAX_EXEC_NS;
    if (!o.last || r->exec_ns < o.last->exec_ns)
      o.last = r;
    if (r->exec_ns > longest)
      longest = r->exec_ns;
    if (r->start_ns == NI_NO_START || r->exec_ns > NI_MAX_EXEC_NS ||
        __builtin_add_overflow(r->start_ns, (int64_t)r->exec_ns, &end))
      continue;
    if (o.from_ns == NI_NO_START || r->start_ns < o.from_ns)
      o.from_ns = r->start_ns;
    if (o.to_ns == NI_NO_START || end > o.to_ns)
      o.to_ns = end;
  }
  gpu &= ranks >= row->n_ranks; /* one that is not here may have come later still */
  o.waited_ns = gpu ? longest - o.last->exec_ns : 0;
  if (!gpu || !o.waited_ns)
    o.last = NULL;
  return o;
}

static bool has_rank(const struct op *o, int32_t rank) {
  for (size_t i = 0; i < o->n; i++)
    if (o->row[i].rank == rank)
      return true;
  return false;
}

/* Looks at the ranks of the filter itself: to ask the filter would be remembered. */
static bool is_missing(const struct op *o, const struct ni_show *s, int32_t rank) {
  const struct ni_ranks *r = &s->filter.rank;
  bool wanted = r->n == 0 && s->filter.job_rank.n == 0; /* whose records are lost is not known by the job's */
  for (size_t i = 0; i < r->n; i++)
    wanted |= rank >= r->span[i].from && rank <= r->span[i].to;
  return wanted && !has_rank(o, rank);
}

static int add_set(void *arg, const char *host, const struct ni_set *set) {
  return ni_beside_set(arg, host, set);
}

static int add_pair(void *arg, const struct ni_series_sample *after, const struct ni_reading *before) {
  ni_beside_sample(arg, before, after->reading);
  return 0;
}

/*
 * Reads counters of the hosts while the operation ran, each as far as it belongs to that time. 0 or -ENOMEM.
 */
static int read_counters(const struct ni_show *s, const struct op *o, struct ni_beside *b,
                         struct ni_beside_process *p, struct ni_cover *cover) {
  size_t n = 0;
  int e = o->from_ns == NI_NO_START ? 0 : ni_cover_add(cover, o->from_ns, o->to_ns);
  for (size_t i = 0; i < o->n; i++) {
    size_t k = 0;
    while (k < n && strcmp(p[k].host, o->row[i].host) != 0)
      k++;
    if (k == n)
      p[n++] = (struct ni_beside_process){.host = o->row[i].host, .gpu = -1, .cover = cover};
  }
  ni_beside_begin(b, p, n, o->from_ns, o->to_ns, 0);
  for (size_t i = 0; e == 0 && o->from_ns != NI_NO_START && i < s->files.n; i++) {
    struct ni_series_end end;
    if (ni_is_series(s->files.file[i].path))
      e = ni_series_pairs(s->files.file[i].path, &(struct ni_series_pairs){b, add_set, add_pair}, &end);
  }
  return e == 0 ? ni_beside_end(b) : e;
}

static bool is_shown(const struct ni_beside_row *r) {
  return r->what.kind == NI_METRIC_GAUGE ? r->level_with == r->level_with : r->with > 0;
}

/* Each counter that says something of that time, by its unified name. */
static void visit_counters(const struct ni_beside *b, void *arg,
                           void (*say)(void *arg, const struct ni_beside_entity *e, const char *name,
                                       const struct ni_beside_row *r)) {
  for (size_t i = 0; i < b->n_entities; i++)
    for (size_t k = 0; ni_beside_line(k); k++) {
      const struct ni_beside_row *r = ni_beside_unified(b, &b->entity[i], ni_beside_line(k));
      if (r && is_shown(r))
        say(arg, &b->entity[i], ni_beside_line(k), r);
    }
}

static double choose_value(const struct ni_beside_row *r) {
  return r->what.kind == NI_METRIC_GAUGE ? r->level_with : r->with;
}

static void print_counter(void *arg, const struct ni_beside_entity *e, const char *name,
                          const struct ni_beside_row *r) {
  ni_say(stdout, "counters     %s %s: %s %.6g %s\n", e->host, e->name, name, choose_value(r),
         r->what.unit ? r->what.unit : "");
}

static void write_json_counter(void *arg, const struct ni_beside_entity *e, const char *name,
                               const struct ni_beside_row *r) {
  struct ni_json *j = arg;
  ni_json_object(j, NULL);
  ni_json_text(j, "hostname", e->host);
  ni_json_text(j, "device", e->name);
  ni_json_text(j, "counter", name);
  ni_json_text(j, "unit", r->what.unit);
  ni_json_f64(j, "value", choose_value(r));
  ni_json_end_object(j);
}

/* Has a rank of the communicator another number in the job, by which findings name it? */
static bool are_ranks_others(const struct op *o) {
  bool differ = false;
  for (size_t i = 0; i < o->n; i++)
    differ |= o->row[i].job_rank >= 0 && o->row[i].job_rank != o->row[i].rank;
  return differ;
}

/* " (rank 11 of the job)", where that is another number. Returns out. */
static const char *put_job_rank(const struct ni_show_row *r, char out[48]) {
  *out = 0;
  if (r->job_rank >= 0 && r->job_rank != r->rank)
    snprintf(out, 48, " (rank %" PRId64 " of the job)", r->job_rank);
  return out;
}

static void print_rows(const struct op *o) {
  static const struct ni_column columns[] = {{"rank", .width = 6},
                                             {"rank", .unit = "of the job", .width = 10},
                                             {"host", .width = 12, .left = true},
                                             {"pid", .width = 8, .drop = 4},
                                             {"size", .width = 9},
                                             {"start", .unit = "after the first", .width = 15},
                                             {"time", .width = 10},
                                             {"timing", .width = 12, .left = true, .drop = 3},
                                             {"algo", .width = 6, .left = true, .drop = 2},
                                             {"proto", .width = 6, .left = true, .drop = 1},
                                             {"", .left = true}};
  struct ni_table t;
  char a[32];
  const bool has_others = are_ranks_others(o);
  const size_t n = sizeof columns / sizeof *columns;
  struct ni_column shown[sizeof columns / sizeof *columns];
  shown[0] = columns[0];
  memcpy(shown + 1, columns + 2 - has_others, (n - 2 + has_others) * sizeof *shown);
  ni_table_begin(&t, shown, n - !has_others);
  for (size_t i = 0; i < o->n; i++) {
    const struct ni_show_row *r = &o->row[i];
    ni_table_cell(&t, "%d", r->rank);
    if (has_others && r->job_rank >= 0)
      ni_table_cell(&t, "%" PRId64, r->job_rank);
    else if (has_others)
      ni_table_cell(&t, "-");
    ni_table_cell(&t, "%s", r->host);
    ni_table_cell(&t, "%" PRId64, r->pid);
    ni_table_cell(&t, "%s", ni_size_text(r->bytes, a));
    ni_table_cell(&t, "%s", r->start_ns == NI_NO_START ? "-" : ni_span_text(r->start_ns - o->from_ns, a));
    ni_table_cell(&t, "%s", ni_duration_text((double)r->exec_ns / 1000, a));
    ni_table_cell(&t, "%s", ni_timing_names[r->timing]);
    ni_table_cell(&t, "%s", r->algo);
    ni_table_cell(&t, "%s", r->proto);
    ni_table_cell(&t, "%s", r == o->last ? "came last" : "");
  }
  ni_table_print(&t, stdout);
}

/* Ranks that were asked for and have no record. */
static void print_missing(const struct op *o, const struct ni_show *s) {
  const struct ni_show_row *r = o->row;
  int missing = 0, all = 0;
  for (int32_t k = 0; !r->p2p && k < r->n_ranks && k < 65536; k++)
    missing += is_missing(o, s, k);
  if (missing)
    ni_say(stdout, "without a record: %s", ni_plural((uint64_t)missing, "rank", "ranks"));
  for (int32_t k = 0; all < missing && all < 16; k++)
    if (is_missing(o, s, k))
      ni_say(stdout, "%s %d", all++ ? "," : "", k);
  if (missing > all)
    ni_say(stdout, " and %d more", missing - all);
  if (missing)
    ni_say(stdout, "%s\n", r->timing == NI_TIMING_KERNEL_GPU ? ", so who came last cannot be told" : "");
}

static void print_operation(const struct op *o, const struct ni_show *s, const struct ni_beside *b) {
  const struct ni_show_row *r = o->row;
  char when[40], span[32], least[32], text[32], job[48];
  ni_say(stdout, "%s number %" PRIu64 " on communicator 0x%" PRIx64 "%s%s%s, %zu of %d ranks\n", r->func,
         r->sn, r->hash, *r->comm ? " (" : "", r->comm, *r->comm ? ")" : "", o->n, r->n_ranks);
  if (o->from_ns != NI_NO_START)
    ni_say(stdout, "from %s, %s to the last end\n", ni_utc_text(o->from_ns / 1000, ' ', 6, when),
           ni_duration_text((double)(o->to_ns - o->from_ns) / 1000, span));
  print_rows(o);
  if (o->last)
    ni_say(
        stdout,
        "rank %d%s on %s came last: its kernel took %s, the longest one %s, which waited %s of that for it\n",
        o->last->rank, put_job_rank(o->last, job), o->last->host,
        ni_duration_text((double)o->last->exec_ns / 1000, least),
        ni_duration_text((double)(o->last->exec_ns + o->waited_ns) / 1000, span),
        ni_duration_text((double)o->waited_ns / 1000, text));
  print_missing(o, s);
  visit_counters(b, NULL, print_counter);
}

/* clang-format off */
static NI_JSON_FORM(put_start, int64_t, if (*v != NI_NO_START) ni_json_i64(j, key, *v))
static NI_JSON_FORM(put_timing, uint8_t, ni_json_text(j, key, ni_timing_names[*v]))
static NI_JSON_FORM(put_peer, struct ni_show_row, if (v->p2p) ni_json_i64(j, key, v->peer))
static NI_JSON_FORM(put_known_rank, int64_t, if (*v >= 0) ni_json_i64(j, key, *v))
static NI_JSON_FORM(put_true, bool, if (*v) ni_json_bool(j, key, true))
    /* clang-format on */
    static const
    struct ni_json_field of_row[] = {NI_JSON(ni_show_row, rank),
                                     NI_JSON_FROM(put_known_rank, ni_show_row, job_rank, "global_rank"),
                                     NI_JSON_AS(ni_show_row, host, "hostname"),
                                     NI_JSON(ni_show_row, pid),
                                     NI_JSON(ni_show_row, bytes),
                                     NI_JSON_FROM(put_start, ni_show_row, start_ns, "start_ns"),
                                     NI_JSON(ni_show_row, exec_ns),
                                     NI_JSON_FROM(put_timing, ni_show_row, timing, "timing"),
                                     NI_JSON_FROM(ni_json_member_some, ni_show_row, algo, "algo"),
                                     NI_JSON_FROM(ni_json_member_some, ni_show_row, proto, "proto"),
                                     NI_JSON_BY(put_peer, "peer"),
                                     NI_JSON_FROM(put_true, ni_show_row, graph, "graph")};

static void write_json_op(struct ni_json *j, const struct op *o, const struct ni_beside *b) {
  const struct ni_show_row *r = o->row;
  ni_json_object(j, NULL);
  ni_json_text(j, "function", r->func);
  ni_json_u64(j, "sn", r->sn);
  ni_json_hex_text(j, "communicator", r->hash);
  ni_json_text(j, "name", *r->comm ? r->comm : NULL);
  ni_json_i64(j, "n_ranks", r->n_ranks);
  if (o->last)
    ni_json_i64(j, "last_rank", o->last->rank);
  if (o->last)
    ni_json_u64(j, "waited_ns", o->waited_ns);
  NI_JSON_OBJECTS(j, "ranks", of_row, o->row, o->n, NULL);
  NI_JSON_ARRAY (j, "counters")
    visit_counters(b, j, write_json_counter);
  ni_json_end_object(j);
}

static void print_clock_line(void *unused, const char *text) { ni_say(stdout, "CLOCKS: %s\n", text); }

int ni_show_say(const struct ni_show *s) {
  struct ni_json json;
  int e = 0;
  if (s->json) {
    ni_json_open(&json, stdout, "nccl-inspector-show-1");
    ni_clocks_json(&json, &s->clocks);
    ni_json_array(&json, "operations");
  } else if (s->rows.n) {
    ni_clocks_say(&s->clocks, true, print_clock_line, NULL);
  }
  for (size_t i = 0, n; e == 0 && i < s->rows.n; i += n) {
    for (n = 1; i + n < s->rows.n && ni_show_by_operation(&s->rows.item[i], &s->rows.item[i + n]) == 0; n++) {
    }
    const struct op o = sum_up_rows(&s->rows.item[i], n);
    struct ni_beside b = {0};
    struct ni_cover cover = {0};
    struct ni_beside_process *p = calloc(n, sizeof *p);
    e = p ? read_counters(s, &o, &b, p, &cover) : -ENOMEM;
    if (e == 0 && s->json)
      write_json_op(&json, &o, &b);
    if (e == 0 && !s->json && i)
      ni_say(stdout, "\n");
    if (e == 0 && !s->json)
      print_operation(&o, s, &b);
    ni_beside_free(&b);
    ni_cover_free(&cover);
    free(p);
  }
  if (s->json) {
    ni_json_end_array(&json);
    ni_json_close(&json);
  }
  return e;
}
