/*
 * nccl-inspector show: one operation, as all its ranks have it.
 *
 *   parts of the logs that can hold it (atlas.h) ─▶ rows, one a record ─▶ sorted by operation and rank ─▶ text or JSON
 *
 * Who came last is told by times on the GPU alone: all ranks end together, so the last one to come has the shortest kernel. That
 * needs no common clock; starts of several hosts are as their clocks have them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/json_fields.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/table.h"
#include "exporter/base/text/time_text.h"
#include "exporter/cli/command.h"
#include "exporter/index/atlas.h"
#include "exporter/model/counters/beside.h"
#include "exporter/model/counters/series.h"
#include "exporter/model/ledger/implausible.h"
#include "exporter/model/ledger/take.h"

enum { ROWS_MAX = 1 << 20 }; /* of all operations asked for */

struct row {
  uint64_t hash, sn, bytes, exec_ns;
  int64_t start_ns, pid; /* start_ns: NI_NO_START: not told */
  uint32_t run;
  int32_t rank, n_ranks, peer;
  bool p2p, graph;
  uint8_t timing;
  uint32_t nchannels;
  char func[40], comm[64], host[72], algo[24], proto[24];
};

struct show {
  struct ni_inputs inputs;
  struct ni_files files;
  struct ni_runs runs;
  struct ni_filters filter;    /* comm, coll, rank, sn */
  struct ni_atlas_options index;
  bool json;
  struct ni_progress progress;
  struct ni_atlas *atlas;
  struct ni_atlas_wants wants;
  struct ni_ledgers ledgers;
  struct rows {
    struct row *item;
    size_t n, cap;
  } rows;
};

/* What a part is: its rows, and its lines in the account, for the index. */
struct part {
  struct rows rows;
  struct ni_ledger *ledger;
  const struct ni_atlas_wants *wants;
  const struct ni_file *file;
};

static void cut(char *to, size_t cap, const char *from) { snprintf(to, cap, "%s", from ? from : ""); }

static int take_operation(struct part *x, const struct ni_line *l) {
  const struct ni_record *o = &l->op;
  const struct ni_atlas_wants *w = x->wants;
  if (!ni_atlas_wants_context(w, &l->ident, &l->meta) || (w->coll->n && !ni_words_have_func(w->coll, o->func)) ||
      !ni_ranks_have(w->sn, o->sn < INT64_MAX ? (int64_t)o->sn : INT64_MAX))
    return 0;
  if (x->rows.n >= ROWS_MAX) return -E2BIG;
  if (!ni_array_room(x->rows.item, x->rows.n, x->rows.cap)) return -ENOMEM;
  struct row *r = &x->rows.item[x->rows.n++];
  *r = (struct row){.hash = l->ident.comm_hash, .sn = o->sn, .bytes = o->msg_bytes, .exec_ns = ni_exec_ns(o), .start_ns = ni_start_ns(l),
                    .pid = l->meta.pid, .run = x->file->run, .rank = l->ident.rank, .n_ranks = l->ident.n_ranks, .peer = o->root,
                    .p2p = l->is_p2p, .graph = o->graph, .timing = (uint8_t)o->timing, .nchannels = o->nchannels};
  cut(r->func, sizeof r->func, o->func);
  cut(r->comm, sizeof r->comm, l->ident.comm_name);
  cut(r->host, sizeof r->host, l->meta.hostname);
  cut(r->algo, sizeof r->algo, o->algo);
  cut(r->proto, sizeof r->proto, o->proto);
  return 0;
}

static int take(void *arg, struct ni_line *l, uint64_t line_no) {
  struct part *x = arg;
  int e = x->ledger ? ni_ledger_take(x->ledger, l, line_no) : 0;
  return e == 0 && l->kind == NI_LINE_OP ? take_operation(x, l) : e;
}

static int fault(void *arg, const struct ni_fault *f) {
  struct part *x = arg;
  return x->ledger ? ni_ledger_fault(x->ledger, f) : 0;
}

static int read_part(void *arg, struct ni_scan *scan, struct ni_scan_to *to, const struct ni_scan_part *p, void **result) {
  struct show *s = arg;
  struct part *x = *result = calloc(1, sizeof *x);
  struct ni_scan_end end;
  if (!x) return -ENOMEM;
  x->wants = &s->wants;
  x->file = p->file;
  enum ni_atlas_mode mode = ni_atlas_mode(s->atlas, p);
  if (mode == NI_ATLAS_ACCOUNT) {
    x->ledger = ni_atlas_account(s->atlas, p);
    return 0;
  }
  if (mode != NI_ATLAS_GRANULES) {
    if (!(x->ledger = calloc(1, sizeof *x->ledger))) return -ENOMEM;
    ni_ledger_begin(x->ledger, p->file, p->part == 0);
    to->granules = ni_atlas_begin(s->atlas, p, x->ledger);
  }
  to->arg = x;
  to->take = take;
  to->fault = fault;
  int e = ni_scan_file(scan, p->file->path, &p->at, to, &end);
  if (x->ledger) ni_ledger_end(x->ledger, &end);
  return e;
}

static void drop(void *arg, void *part) {
  struct part *x = part;
  (void)arg;
  if (x->ledger) ni_ledgers_drop(NULL, x->ledger);
  free(x->rows.item);
  free(x);
}

static int merge(void *arg, const struct ni_scan_part *p, void *part) {
  struct show *s = arg;
  struct part *x = part;
  int e = x->ledger ? ni_ledgers_merge(&s->ledgers, p->file_no, x->ledger) : 0;
  x->ledger = NULL;
  for (size_t i = 0; e == 0 && i < x->rows.n; i++) {
    if (s->rows.n >= ROWS_MAX) e = -E2BIG;
    else if (!ni_array_room(s->rows.item, s->rows.n, s->rows.cap)) e = -ENOMEM;
    else s->rows.item[s->rows.n++] = x->rows.item[i];
  }
  drop(NULL, x);
  return e;
}

static int file_done(void *arg, size_t file_no) { return ni_ledgers_file_done(&((struct show *)arg)->ledgers, file_no); }

static int by_operation(const struct row *x, const struct row *y) {
  int k = NI_BY(x, y, run, hash, n_ranks, sn, p2p);
  return k ? k : strcmp(x->func, y->func);
}

static int by_rank(const void *a, const void *b) {
  const struct row *x = a, *y = b;
  int k = by_operation(x, y);
  if (k == 0) k = NI_BY(x, y, rank, start_ns, pid, exec_ns);
  return k ? k : strcmp(x->host, y->host);
}

static int read_all(struct show *s) {
  struct ni_ledger ledger = {0};
  struct ni_scan_plan plan = {0};
  const struct ni_filters *f = &s->filter;
  s->wants = (struct ni_atlas_wants){.since_us = INT64_MIN, .until_us = INT64_MAX, .comm = &f->comm, .host = &f->host,
                                     .coll = &f->coll, .rank = &f->rank, .sn = &f->sn, .size = &f->size, .records = true};
  int e = ni_atlas_open(&s->atlas, "nccl-inspector show", &s->files, &s->index, false);
  if (e == 0) e = ni_ledgers_init(&s->ledgers, &ledger, &s->files);
  s->ledgers.mapped = s->atlas ? ni_atlas_mapped : NULL;
  s->ledgers.arg = s->atlas;
  if (e == 0) e = ni_atlas_plan(s->atlas, &plan, &s->files, ni_scan_jobs(), &s->wants);
  if (e == 0)
    e = ni_scan_files(&(struct ni_scan_team){.plan = &plan, .jobs = ni_scan_jobs(), .progress = &s->progress, .arg = s, .part = read_part,
                                             .merge = merge, .file_done = file_done, .drop = drop});
  ni_atlas_close(s->atlas, e == 0, NULL);
  ni_scan_plan_free(&plan);
  ni_ledgers_free(&s->ledgers);
  ni_ledger_free(&ledger);
  if (e == 0 && s->rows.n > 1) qsort(s->rows.item, s->rows.n, sizeof *s->rows.item, by_rank);
  return e;
}

/* ---- what is said of one operation ------------------------------------------------------------------------------------- */

struct op {
  const struct row *row;
  size_t n;
  int64_t from_ns, to_ns;        /* from the earliest start to the latest end; NI_NO_START: not told */
  const struct row *last;        /* came last: the shortest kernel; NULL: cannot be told */
  uint64_t waited_ns;            /* the longest of the others waited so long for it */
};

static struct op look_at(const struct row *row, size_t n) {
  struct op o = {row, n, NI_NO_START, NI_NO_START, NULL, 0};
  uint64_t longest = 0;
  bool gpu = !row->p2p && n > 1;
  int64_t ranks = 0;
  for (size_t i = 0; i < n; i++) {
    const struct row *r = &row[i];
    ranks += i == 0 || r->rank != row[i - 1].rank;
    int64_t end;
    gpu &= r->timing == NI_TIMING_KERNEL_GPU && r->exec_ns && r->exec_ns <= NI_MAX_EXEC_NS;
    if (!o.last || r->exec_ns < o.last->exec_ns) o.last = r;
    if (r->exec_ns > longest) longest = r->exec_ns;
    if (r->start_ns == NI_NO_START || r->exec_ns > NI_MAX_EXEC_NS || __builtin_add_overflow(r->start_ns, (int64_t)r->exec_ns, &end)) continue;
    if (o.from_ns == NI_NO_START || r->start_ns < o.from_ns) o.from_ns = r->start_ns;
    if (o.to_ns == NI_NO_START || end > o.to_ns) o.to_ns = end;
  }
  gpu &= ranks >= row->n_ranks; /* one that is not here may have come later still */
  o.waited_ns = gpu ? longest - o.last->exec_ns : 0;
  if (!gpu || !o.waited_ns) o.last = NULL;
  return o;
}

static bool has_rank(const struct op *o, int32_t rank) {
  for (size_t i = 0; i < o->n; i++)
    if (o->row[i].rank == rank) return true;
  return false;
}

/* Filters that were asked remember that; this is not asking. */
static bool is_missing(const struct op *o, const struct show *s, int32_t rank) {
  const struct ni_ranks *r = &s->filter.rank;
  bool wanted = r->n == 0;
  for (size_t i = 0; i < r->n; i++) wanted |= rank >= r->span[i].from && rank <= r->span[i].to;
  return wanted && !has_rank(o, rank);
}

static int on_set(void *arg, const char *host, const struct ni_set *set) { return ni_beside_set(arg, host, set); }

static int on_pair(void *arg, const struct ni_series_sample *after, const struct ni_reading *before) {
  ni_beside_sample(arg, before, after->reading);
  return 0;
}

/* Counters of the hosts while it ran; of each as much as falls to that time. 0 or -ENOMEM. */
static int read_counters(const struct show *s, const struct op *o, struct ni_beside *b, struct ni_beside_process *p, struct ni_cover *cover) {
  size_t n = 0;
  int e = o->from_ns == NI_NO_START ? 0 : ni_cover_add(cover, o->from_ns, o->to_ns);
  for (size_t i = 0; i < o->n; i++) {
    size_t k = 0;
    while (k < n && strcmp(p[k].host, o->row[i].host) != 0) k++;
    if (k == n) p[n++] = (struct ni_beside_process){.host = o->row[i].host, .gpu = -1, .cover = cover};
  }
  ni_beside_begin(b, p, n, o->from_ns, o->to_ns, 0);
  for (size_t i = 0; e == 0 && o->from_ns != NI_NO_START && i < s->files.n; i++) {
    struct ni_series_end end;
    if (ni_is_series(s->files.file[i].path))
      e = ni_series_pairs(s->files.file[i].path, &(struct ni_series_pairs){b, on_set, on_pair}, &end);
  }
  return e == 0 ? ni_beside_end(b) : e;
}

static bool shown(const struct ni_beside_row *r) { return r->what.kind == NI_METRIC_GAUGE ? r->level_with == r->level_with : r->with > 0; }

/* Each counter that says something of that time, by its unified name. */
static void each_counter(const struct ni_beside *b, void *arg, void (*say)(void *arg, const struct ni_beside_entity *e, const char *name,
                                                                        const struct ni_beside_row *r)) {
  for (size_t i = 0; i < b->n_entities; i++)
    for (size_t k = 0; ni_beside_line(k); k++) {
      const struct ni_beside_row *r = ni_beside_unified(b, &b->entity[i], ni_beside_line(k));
      if (r && shown(r)) say(arg, &b->entity[i], ni_beside_line(k), r);
    }
}

static double value_of(const struct ni_beside_row *r) { return r->what.kind == NI_METRIC_GAUGE ? r->level_with : r->with; }

static void counter_text(void *arg, const struct ni_beside_entity *e, const char *name, const struct ni_beside_row *r) {
  (void)arg;
  ni_say(stdout, "counters     %s %s: %s %.6g %s\n", e->host, e->name, name, value_of(r), r->what.unit ? r->what.unit : "");
}

static void counter_json(void *arg, const struct ni_beside_entity *e, const char *name, const struct ni_beside_row *r) {
  struct ni_json *j = arg;
  ni_json_object(j, NULL);
  ni_json_text(j, "hostname", e->host);
  ni_json_text(j, "device", e->name);
  ni_json_text(j, "counter", name);
  ni_json_text(j, "unit", r->what.unit);
  ni_json_f64(j, "value", value_of(r));
  ni_json_end_object(j);
}

static void print_rows(const struct op *o) {
  static const struct ni_column columns[] = {
      {"rank", .width = 6}, {"host", .width = 12, .left = true}, {"pid", .width = 8, .drop = 4}, {"size", .width = 9},
      {"start", .unit = "after the first", .width = 15}, {"time", .width = 10}, {"timing", .width = 12, .left = true, .drop = 3},
      {"algo", .width = 6, .left = true, .drop = 2}, {"proto", .width = 6, .left = true, .drop = 1}, {"", .left = true}};
  struct ni_table t;
  char a[32];
  ni_table_begin(&t, columns, sizeof columns / sizeof *columns);
  for (size_t i = 0; i < o->n; i++) {
    const struct row *r = &o->row[i];
    ni_table_cell(&t, "%d", r->rank);
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
static void print_missing(const struct op *o, const struct show *s) {
  const struct row *r = o->row;
  int missing = 0, all = 0;
  for (int32_t k = 0; !r->p2p && k < r->n_ranks && k < 65536; k++) missing += is_missing(o, s, k);
  if (missing) ni_say(stdout, "without a record: %s", ni_plural((uint64_t)missing, "rank", "ranks"));
  for (int32_t k = 0; all < missing && all < 16; k++)
    if (is_missing(o, s, k)) ni_say(stdout, "%s %d", all++ ? "," : "", k);
  if (missing > all) ni_say(stdout, " and %d more", missing - all);
  if (missing) ni_say(stdout, "%s\n", r->timing == NI_TIMING_KERNEL_GPU ? ", so who came last cannot be told" : "");
}

static void print_op(const struct op *o, const struct show *s, const struct ni_beside *b) {
  const struct row *r = o->row;
  char when[40], span[32], least[32], text[32];
  ni_say(stdout, "%s number %" PRIu64 " on communicator 0x%" PRIx64 "%s%s%s, %zu of %d ranks\n", r->func, r->sn, r->hash, *r->comm ? " (" : "",
         r->comm, *r->comm ? ")" : "", o->n, r->n_ranks);
  if (o->from_ns != NI_NO_START)
    ni_say(stdout, "from %s, %s to the last end\n", ni_utc_text(o->from_ns / 1000, ' ', 6, when),
           ni_duration_text((double)(o->to_ns - o->from_ns) / 1000, span));
  print_rows(o);
  if (o->last)
    ni_say(stdout, "rank %d on %s came last: its kernel took %s, the longest one %s, which waited %s of that for it\n", o->last->rank, o->last->host,
           ni_duration_text((double)o->last->exec_ns / 1000, least), ni_duration_text((double)(o->last->exec_ns + o->waited_ns) / 1000, span),
           ni_duration_text((double)o->waited_ns / 1000, text));
  print_missing(o, s);
  each_counter(b, NULL, counter_text);
}

static NI_JSON_FORM(put_start, int64_t, if (*v != NI_NO_START) ni_json_i64(j, key, *v))
static NI_JSON_FORM(put_timing, uint8_t, ni_json_text(j, key, ni_timing_names[*v]))
static NI_JSON_FORM(put_peer, struct row, if (v->p2p) ni_json_i64(j, key, v->peer))
static NI_JSON_FORM(put_true, bool, if (*v) ni_json_bool(j, key, true))
static const struct ni_json_field of_row[] = {
    NI_JSON(row, rank), NI_JSON_AS(row, host, "hostname"), NI_JSON(row, pid), NI_JSON(row, bytes),
    NI_JSON_FROM(put_start, row, start_ns, "start_ns"), NI_JSON(row, exec_ns), NI_JSON_FROM(put_timing, row, timing, "timing"),
    NI_JSON_FROM(ni_json_member_some, row, algo, "algo"), NI_JSON_FROM(ni_json_member_some, row, proto, "proto"),
    NI_JSON_BY(put_peer, "peer"), NI_JSON_FROM(put_true, row, graph, "graph")};

static void json_op(struct ni_json *j, const struct op *o, const struct ni_beside *b) {
  const struct row *r = o->row;
  ni_json_object(j, NULL);
  ni_json_text(j, "function", r->func);
  ni_json_u64(j, "sn", r->sn);
  ni_json_hex_text(j, "communicator", r->hash);
  ni_json_text(j, "name", *r->comm ? r->comm : NULL);
  ni_json_i64(j, "n_ranks", r->n_ranks);
  if (o->last) ni_json_i64(j, "last_rank", o->last->rank);
  if (o->last) ni_json_u64(j, "waited_ns", o->waited_ns);
  NI_JSON_OBJECTS(j, "ranks", of_row, o->row, o->n, NULL);
  ni_json_array(j, "counters");
  each_counter(b, j, counter_json);
  ni_json_end_array(j);
  ni_json_end_object(j);
}

static int say_all(const struct show *s) {
  struct ni_json json;
  int e = 0;
  if (s->json) {
    ni_json_open(&json, stdout, "nccl-inspector-show-1");
    ni_json_array(&json, "operations");
  }
  for (size_t i = 0, n; e == 0 && i < s->rows.n; i += n) {
    for (n = 1; i + n < s->rows.n && by_operation(&s->rows.item[i], &s->rows.item[i + n]) == 0; n++) {}
    const struct op o = look_at(&s->rows.item[i], n);
    struct ni_beside b = {0};
    struct ni_cover cover = {0};
    struct ni_beside_process *p = calloc(n, sizeof *p);
    e = p ? read_counters(s, &o, &b, p, &cover) : -ENOMEM;
    if (e == 0 && s->json) json_op(&json, &o, &b);
    if (e == 0 && !s->json && i) ni_say(stdout, "\n");
    if (e == 0 && !s->json) print_op(&o, s, &b);
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

static const char *refuse(void *into) {
  const struct show *s = into;
  if (!s->filter.comm.n) return "which operation? give --comm NAME --sn N; nccl-inspector check says which communicators there are";
  return !s->filter.sn.n ? "which operation of that communicator? give its number with --sn N" : NULL;
}

const struct ni_command ni_show_command = {
    .name = "show", .need = NI_NEED_AFTER, .purpose = "one operation: all ranks, their times, who came last",
    .about = "One operation as all its ranks have it: sizes, starts, times, who came last, counters of that time.", .refuse = refuse,
    .run = ni_show_run,
    .opt = (const struct ni_opt[]){
        NI_ROWS_LOGS(struct show, 1),
        {"comm", 0, NI_OPT_NAMES, "ID|NAME,...", "Of these communicators, by hash (0x...) or name", NI_INTO(struct show, filter.comm),
         .want = "names or hashes (0x...)"},
        {"sn", 0, NI_OPT_RANKS, "N,M-K,...", "The operations of these sequence numbers", NI_INTO(struct show, filter.sn),
         .want = "numbers and ranges, such as 40-49,60"},
        {"coll", 0, NI_OPT_NAMES, "NAME,...", "Only these functions (AllReduce, Send, ...)", NI_INTO(struct show, filter.coll),
         .want = "names, such as AllReduce,Send"},
        {"rank", 0, NI_OPT_RANKS, "N,M-K,...", "Only these ranks (within the communicator)", NI_INTO(struct show, filter.rank)},
        NI_ROWS_INDEX(struct show),
        NI_ROW_JSON(struct show, "show"),
        {0}},
    .exits = {{"0", "shown"}, {"1", "could not run, or there is no such operation"}},
    .examples = {{"--comm dp0 --sn 4711 logs/", "that operation, rank by rank"},
                 {"--comm dp0 --coll AllReduce --sn 100-103 --json logs/", "for a program"}}};

int ni_show_run(int argc, char **argv) {
  struct show s = {.progress = NI_PROGRESS_INIT};
  int done, code = ni_words_parse(&ni_show_command, argc, argv, &s, &done), e;
  if (done) goto out;
  code = NI_EXIT_COULD_NOT_RUN;
  e = ni_inputs_find(&s.inputs, argv[0], &s.files, &s.runs);
  if (e == -ENOENT) goto out;
  ni_inputs_unreadable(argv[0], &s.files);
  s.progress.mode = ni_inputs_progress(&s.inputs, s.json);
  if (e == 0) e = read_all(&s);
  if (e == 0) ni_filters_say_unmet(&s.filter, argv[0]);
  if (e == 0) e = say_all(&s);
  if (e == -E2BIG) ni_say(stderr, "%s: more than %d records: ask for fewer numbers with --sn, or for one function with --coll\n", argv[0], ROWS_MAX);
  else if (e < 0) ni_say(stderr, "%s: %s\n", argv[0], strerror(-e));
  else if (s.rows.n == 0)
    ni_say(stderr, "%s: there is no such operation in these logs; one that never finished is told by nccl-inspector hang\n", argv[0]);
  else code = NI_EXIT_FINE;
out:
  free(s.rows.item);
  ni_files_free(&s.files);
  ni_runs_free(&s.runs);
  ni_inputs_free(&s.inputs);
  ni_filters_free(&s.filter);
  return code;
}
