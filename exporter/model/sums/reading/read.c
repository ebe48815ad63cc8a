/*
 * The read phase: every thread takes the next range, reads its lines, parses them, and puts each operation
 * into the batch for Parquet and into the segment of its rank and cell. What is rare (a new communicator, a
 * control line) takes the run's lock; what happens for every record does not.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "in_flight.h"
#include "read.h"
#include "reading.h"
#include "record_row.h"
#include "tables.h"
#include "exporter/model/sums/partial/partial.h"
#include "exporter/model/sums/rollups.h"
#include "exporter/model/ledger/take.h"
#include "exporter/input/parse/parse.h"
#include "exporter/model/ledger/read.h"

static bool is_wanted_context(const struct ni_sum_range *x, const struct ni_line *l) {
  const struct ni_filters *o = &x->r->opt.filter;
  const struct ni_atlas_wants w = {
      .comm = &o->comm, .host = &o->host, .rank = &o->rank, .job_rank = &o->job_rank};
  return ni_atlas_wants_context(&w, x->f->file, &l->ident, &l->meta);
}

/* The texts of a line's header, in the order of enum ni_context_text. */
static void list_context_texts(const struct ni_line *l, const char *text[NI_CTX_TEXTS]) {
  text[NI_CTX_COMM_NAME] = l->ident.comm_name;
  text[NI_CTX_VERSION] = l->meta.version;
  text[NI_CTX_GIT_REV] = l->meta.git_rev;
  text[NI_CTX_MECHANISM] = l->meta.rec_mechanism;
  text[NI_CTX_PRODUCER] = l->meta.producer;
}

static bool is_same_text(const struct ni_run *r, uint32_t code, const char *text) {
  return strcmp(ni_name_text(&r->names, code), text ? text : "") == 0;
}

static bool is_same_rank(const struct ni_sum_range *x, const struct ni_seen_context *s,
                         const struct ni_line *l) {
  const struct ni_ident *id = &l->ident;
  return s->hash == id->comm_hash && s->rank == id->rank && s->n_ranks == id->n_ranks &&
      s->c.nnodes == id->nnodes && s->pid == l->meta.pid && s->start_ns == x->start_ns;
}

static bool is_same_context(const struct ni_sum_range *x, const struct ni_seen_context *s,
                            const struct ni_line *l, const char *const text[NI_CTX_TEXTS]) {
  if (!s->used || !is_same_rank(x, s, l) || !is_same_text(x->r, s->host, l->meta.hostname))
    return false;
  for (int i = 0; i < NI_CTX_TEXTS; i++)
    if (!is_same_text(x->r, s->c.text[i], text[i]))
      return false;
  return true;
}

/* Which version of the format the line has, and who wrote it. */
static void note_versions(struct ni_sum_range *x, const char *const text[NI_CTX_TEXTS]) {
  const char *version = text[NI_CTX_VERSION], *producer = text[NI_CTX_PRODUCER];
  const char *mechanism = text[NI_CTX_MECHANISM] ? text[NI_CTX_MECHANISM] : "";
  unsigned from = NI_VERSIONS_OURS;
  if (strncmp(version, "v4.", 3) == 0 && version[3] >= '0' && version[3] <= '9')
    x->t.versions |= 1u << (version[3] - '0');
  for (int i = 0; i < NI_IMPORTS; i++)
    if (strcmp(mechanism, ni_import_names[i]) == 0)
      from = 1u << (NI_VERSIONS_IMPORTED + i);
  if (producer && *producer)
    x->t.versions |= from;
}

static int add_context(struct ni_sum_range *x, const struct ni_line *l, const char *const text[NI_CTX_TEXTS],
                       struct ni_seen_context *out) {
  struct ni_run *r = x->r;
  const struct ni_ident *id = &l->ident;
  struct ni_seen_context n = {.used = true,
                              .hash = id->comm_hash,
                              .start_ns = x->start_ns,
                              .pid = l->meta.pid,
                              .rank = id->rank,
                              .n_ranks = id->n_ranks,
                              .c.nnodes = id->nnodes,
                              .wanted = is_wanted_context(x, l),
                              .type = (uint8_t)ni_comm_type_of(r, id->n_ranks, id->nnodes)};
  int e = ni_name(&r->names, &x->names, l->meta.hostname, &n.host);
  for (int i = 0; e == 0 && i < NI_CTX_TEXTS; i++)
    e = ni_name(&r->names, &x->names, text[i], &n.c.text[i]);
  if (e == 0)
    e = ni_find_or_add_process(r, n.host, n.pid, x->start_ns, (uint32_t)x->file_no, &n.process);
  if (e == 0)
    e = ni_find_or_add_member(r, n.process, x->f->file->run, id, &n.c.member);
  if (e == 0)
    e = ni_find_or_add_context(r, &n.c, &n.code);
  if (e < 0)
    return e;
  note_versions(x, text);
  ni_stamps_of_context(x, &n);
  *out = n;
  return 0;
}

static bool is_same_head(const struct ni_sum_range *x, const struct ni_seen_context *s,
                         const struct ni_line *l) {
  return l->head_no && s->head_no == l->head_no && s->start_ns == x->start_ns;
}

/* The numbers of a line's header and metadata. */
static int find_or_add_context(struct ni_sum_range *x, const struct ni_line *l,
                               struct ni_seen_context **out) {
  struct ni_seen_context *s = x->last;
  int e = 0;
  if (!s || !is_same_head(x, s, l))
    s = &x->seen[ni_hash(l->ident.comm_hash, (uint32_t)l->ident.rank) & (CONTEXT_SLOTS - 1)];
  if (!is_same_head(x, s, l)) {
    const char *text[NI_CTX_TEXTS];
    list_context_texts(l, text);
    if (!is_same_context(x, s, l, text))
      e = add_context(x, l, text, s);
    if (e == 0)
      s->head_no = l->head_no;
  }
  if (e == 0)
    x->last = *out = s;
  return e;
}

static bool is_wanted_operation(const struct ni_run *r, const struct ni_line *l,
                                const struct ni_seen_context *c, int64_t time_us) {
  const struct ni_filters *filter = &r->opt.filter;
  const struct ni_record *o = &l->op;
  const int64_t bytes = (int64_t)(o->msg_bytes < INT64_MAX ? o->msg_bytes : INT64_MAX);
  if (!c->wanted || (filter->coll.n && !ni_words_have_func(&filter->coll, o->func)))
    return false;
  if (filter->sn.n && !ni_ranks_have(&filter->sn, (int64_t)o->sn))
    return false;
  if (filter->size.n && !ni_ranks_have(&filter->size, bytes))
    return false;
  if (filter->tag.n && !ni_tags_have(&filter->tag, o->user_tag))
    return false;
  if (r->opt.compat && (l->is_p2p || o->src != NI_SRC_EVENT))
    return false;
  return time_us >= r->since_us && time_us <= r->until_us;
}

/* Most are what they were in the record before. NULL: 0. */
static int number_name(struct ni_sum_range *x, const char *text, uint32_t *last, uint32_t *out) {
  int e = !text || is_same_text(x->r, *last, text) ? 0 : ni_name(&x->r->names, &x->names, text, last);
  *out = text ? *last : 0;
  return e;
}

/* The names of a record; those that it does not state stay 0. */
static int number_names(struct ni_sum_range *x, const struct ni_line *l, struct ni_record_row *row) {
  const struct ni_record *o = &l->op;
  /*
   * A collective without a Coll event has a number of its own kind, and the time of its call: a function by
   * itself.
   */
  char marked[64];
  const char *func = o->func;
  row->func = o->src == NI_SRC_EVENT ? x->func[l->func_no] : 0;
  if (o->src != NI_SRC_EVENT) {
    snprintf(marked, sizeof marked, "%.40s (%s)", o->func, ni_src_names[o->src]);
    func = marked;
  }
  int e = row->func ? 0 : ni_name(&x->r->names, &x->names, func, &row->func);
  if (e == 0 && l->func_no && o->src == NI_SRC_EVENT)
    x->func[l->func_no] = row->func;
  if (e == 0)
    e = number_name(x, o->algo, &x->algo, &row->algo);
  if (e == 0)
    e = number_name(x, o->proto, &x->proto, &row->proto);
  if (e == 0)
    e = number_name(x, o->datatype, &x->datatype, &row->datatype);
  if (e == 0)
    e = number_name(x, o->kernel, &x->kernel, &row->kernel);
  return e;
}

static int number_mix(struct ni_sum_range *x, const struct ni_record_row *row) {
  if (row->algo == x->mix_algo && row->proto == x->mix_proto)
    return 0;
  int e = ni_find_or_add_mix(x->r, row->algo, row->proto, &x->mix);
  x->mix_algo = row->algo;
  x->mix_proto = row->proto;
  return e;
}

static void widen_tally_times(struct ni_tally_sum *t, int64_t time_us, int64_t end_us, bool no_start) {
  if (!t->any || time_us < t->first_us)
    t->first_us = time_us;
  if (!t->any || end_us > t->last_us)
    t->last_us = end_us;
  t->any = true;
  t->no_start |= no_start;
}

/*
 * What its kernel waited for its peers, ns + 1: the opening barrier of symmetric kernels, by the clock of its
 * own GPU. Other kernels begin before they meet a peer, LL kernels take the first data with the wait, and
 * those over rails that are no ring (RailA2A) wait for their own host only. 0: nothing is known of it.
 */
static int64_t encode_wait(const struct ni_record *o) {
  const char *algo = o->algo ? o->algo : "";
  const bool is_rail = strncmp(algo, "Rail", 4) == 0 && strncmp(algo, "RailRing", 8) != 0;
  const bool has_barrier = o->symmetric && (o->has & NI_HAS_PHASES);
  const bool waits_for_peers = *algo && !is_rail && !strstr(algo, "LL");
  if (!has_barrier || !waits_for_peers)
    return 0;
  return o->initial_sync_ns <= ni_exec_ns(o) ? (int64_t)o->initial_sync_ns + 1 : 0;
}

static int32_t encode_lead(int64_t ns) {
  const int64_t us = ns / 1000 - (ns % 1000 < 0); /* rounded down */
  return us > INT32_MIN && us < NI_NO_LEAD ? (int32_t)us : NI_NO_LEAD;
}

/* What the segment has of a record. */
static struct ni_entry pack_entry(const struct ni_line *l, int64_t start_ns, uint64_t exec_ns, uint8_t mix) {
  const struct ni_record *o = &l->op;
  const uint64_t pair_sn = o->has & NI_HAS_PAIR_SN ? o->pair_sn : NI_NO_SN;
  struct ni_entry n = {.sn = o->sn,
                       .exec_ns = exec_ns,
                       .bytes_per_s = NI_NO_BW,
                       .dump_us = l->meta.dump_timestamp_us,
                       .start_ns = start_ns,
                       .peer_or_wait = l->is_p2p ? ni_entry_message(o->root, pair_sn) : encode_wait(o),
                       .lead_us = NI_NO_LEAD,
                       .timing = (uint8_t)o->timing,
                       .mix = mix,
                       .tag = o->user_tag <= INT64_MAX ? o->user_tag : 0};
  /*
   * Of several calls that one kernel did the first has its channels, the others none: the time counts with
   * the first.
   */
  n.tail = o->shared_span && (o->has & NI_HAS_NCHANNELS) && o->nchannels == 0;
  if (o->timing == NI_TIMING_KERNEL_GPU && (o->has & NI_HAS_ENQUEUE) && (o->has & NI_HAS_GPU_DELTA))
    n.lead_us = encode_lead(o->gpu_start_delta_ns);
  if (o->has & NI_HAS_BUSBW)
    n.bytes_per_s = (uint64_t)llround(o->busbw_gbs * 1e9);
  return n;
}

/* How many records there are, and the earliest. replay_indexed_lines() has counted those of granules. */
static void count_record(struct ni_sum_range *x, int64_t at_ns) {
  if (x->of_granule)
    x->t.filtered--; /* as one that is left out */
  else if (x->t.records++ == 0 || at_ns < x->t.origin_ns)
    x->t.origin_ns = at_ns;
}

static int store_operation(struct ni_sum_range *x, const struct ni_line *l, const struct ni_seen_context *c) {
  struct ni_run *r = x->r;
  const struct ni_record *o = &l->op;
  struct ni_record_row row = {.line = l, .context = c->code};
  struct ni_stream *s;
  int e = number_names(x, l, &row);
  if (e < 0)
    return e;
  int64_t start = ni_start_ns(l);
  uint64_t exec_ns = ni_exec_ns(o);
  int64_t time_us = ni_op_time_us(l);
  const int64_t at = ni_time_ns(start, l->meta.dump_timestamp_us);
  count_record(x, at);
  if (!is_wanted_operation(r, l, c, time_us)) {
    x->t.filtered++;
    return 0;
  }
  if ((e = r->records->row(x->rows, &row)) < 0)
    return e;
  if (ni_implausible(o) != NI_PLAUSIBLE)
    return 0; /* the ledger counts it */
  if ((e = ni_find_or_add_stream(x, c, l, row.func, &s)) < 0 || (e = number_mix(x, &row)) < 0)
    return e;
  struct ni_entry n = pack_entry(l, start, exec_ns, x->mix);
  n.stated_ns = c->stamp ? x->stamp[c->stamp - 1].stated_ns : 0;
  if (!(o->has & NI_HAS_BUSBW))
    x->t.no_bandwidth++;
  if ((e = ni_in_flight_add_operation(x, c->process, start, exec_ns)) < 0)
    return e;
  widen_tally_times(&x->t, time_us, start != NI_NO_START ? (start + (int64_t)exec_ns) / 1000 : time_us,
                    start == NI_NO_START);
  return ni_segment_add(&s->piece->s, &r->store, &n);
}

static int store_process(struct ni_sum_range *x, const struct ni_line *l) {
  struct ni_run *r = x->r;
  const struct ni_process_line *p = &l->process;
  uint32_t host, job_code, exe, producer, process;
  int e = ni_name(&r->names, &x->names, l->meta.hostname, &host);
  if (e == 0)
    e = ni_name(&r->names, &x->names, ni_job_id(p), &job_code);
  if (e == 0)
    e = ni_name(&r->names, &x->names, p->exe, &exe);
  if (e == 0)
    e = ni_name(&r->names, &x->names, l->meta.producer, &producer);
  if (e == 0)
    e = ni_find_or_add_process(r, host, l->meta.pid, p->start_ns, (uint32_t)x->file_no, &process);
  if (e < 0)
    return e;
  x->start_ns = p->start_ns;
  pthread_mutex_lock(&r->lock);
  struct ni_sum_process *s = &r->process[process];
  s->rank = p->rank;
  s->world_size = p->world_size;
  s->nccl_version = p->nccl_version;
  s->job = job_code;
  s->exe = exe;
  s->producer = producer;
  pthread_mutex_unlock(&r->lock);
  return 0;
}

static int store_comm_line(struct ni_sum_range *x, const struct ni_line *l, const struct ni_seen_context *c) {
  struct ni_run *r = x->r;
  uint32_t func, pci;
  int e = 0;
  switch (l->kind) {
    case NI_LINE_ROLLUP:
      if (!c->wanted || (r->opt.filter.coll.n && !ni_words_have_func(&r->opt.filter.coll, l->rollup.func)))
        return 0;
      e = ni_name(&r->names, &x->names, l->rollup.func, &func);
      return e < 0 ? e : ni_rollups_add(r, c->c.member, func, &l->rollup);
    case NI_LINE_PROXY:
      return ni_in_flight_add_proxy(x, c->process, &l->proxy);
    case NI_LINE_COMM:
      if ((e = ni_name(&r->names, &x->names, l->comm.gpu_pci, &pci)) < 0)
        return e;
      pthread_mutex_lock(&r->lock);
      if (l->comm.gpu_index >= 0)
        r->process[c->process].gpu = l->comm.gpu_index;
      if (pci)
        r->process[c->process].gpu_pci = pci;
      pthread_mutex_unlock(&r->lock);
      return 0;
    default: /* dump_stats */
      if (!ni_by_count(&l->stats.kind[NI_KIND_P2P].filtered_by, "sampled"))
        return 0;
      pthread_mutex_lock(&r->lock);
      r->comm[r->who.member[c->c.member].comm].p2p_sampled = true;
      pthread_mutex_unlock(&r->lock);
      return 0;
  }
}

static int store_mark(struct ni_sum_range *x, const struct ni_line *l) {
  uint32_t host, text, process;
  int e = ni_name(&x->r->names, &x->names, l->meta.hostname, &host);
  if (e == 0)
    e = ni_name(&x->r->names, &x->names, l->control.mark, &text);
  if (e == 0)
    e = ni_find_or_add_process(x->r, host, l->meta.pid, x->start_ns, (uint32_t)x->file_no, &process);
  return e < 0 ? e : ni_step_marks_add(x->r, process, (int64_t)l->control.ns, text);
}

static int store_tag_name(struct ni_run *r, const struct ni_control_line *c) {
  pthread_mutex_lock(&r->lock);
  const int e = ni_tag_names_take(&r->tag_names, c);
  pthread_mutex_unlock(&r->lock);
  return e;
}

static int take_clock_line(struct ni_sum_range *x, const struct ni_line *l) {
  struct ni_seen_context *c;
  if (l->ident.rank < 0 || l->ident.comm_hash == 0)
    return 0;
  const int e = find_or_add_context(x, l, &c);
  return e < 0 ? e : ni_stamps_take(x, c, &l->clock);
}

static int dispatch_line(void *arg, struct ni_line *l, uint64_t line_no) {
  struct ni_sum_range *x = arg;
  struct ni_seen_context *c;
  int e = x->ledger ? ni_ledger_take(x->ledger, l, line_no) : 0;
  if (e < 0)
    return e;
  switch (l->kind) {
    case NI_LINE_OP:
      return (e = find_or_add_context(x, l, &c)) < 0 ? e : store_operation(x, l, c);
    case NI_LINE_PROCESS:
      return store_process(x, l);
    case NI_LINE_CONTROL:
      return l->control.mark ? store_mark(x, l) : store_tag_name(x->r, &l->control);
    case NI_LINE_CLOCK:
      return take_clock_line(x, l);
    case NI_LINE_PROXY:
      if (!x->r->has_counters)
        return 0;
      /* fall through */
    case NI_LINE_DUMP_STATS:
    case NI_LINE_COMM:
    case NI_LINE_ROLLUP:
      if (l->ident.rank < 0 || l->ident.comm_hash == 0)
        return 0;
      return (e = find_or_add_context(x, l, &c)) < 0 ? e : store_comm_line(x, l, c);
    default:
      return 0;
  }
}

static int record_fault(void *arg, const struct ni_fault *f) {
  return ni_ledger_fault(((struct ni_sum_range *)arg)->ledger, f);
}

/*
 * Of granules the index has told all but their operations and roll-ups (replay_indexed_lines()), and the
 * account has their lines.
 */
static int dispatch_granule_line(void *arg, struct ni_line *l, uint64_t line_no) {
  const bool is_told = l->kind != NI_LINE_OP && l->kind != NI_LINE_ROLLUP && l->kind != NI_LINE_CLOCK;
  return is_told ? 0 : dispatch_line(arg, l, line_no);
}

static int dispatch_kept_line(void *arg, struct ni_line *l, uint64_t line_no) {
  return l->kind == NI_LINE_CLOCK ? 0 : dispatch_line(arg, l, line_no);
}

/* The clock lines that the index has kept, and what they state where each part of granules begins. */
static int replay_clock_lines(struct ni_sum_range *x, const struct ni_granules *g) {
  const struct ni_scan_parts *parts = &x->r->plan.of_file[x->file_no];
  int e = 0, next = 1;
  for (size_t i = 0; e == 0 && i < g->n_kept; i++) {
    const struct ni_kept *k = &g->kept[i];
    for (; e == 0 && next < parts->n && parts->at[next].from <= g->item[k->granule].at; next++)
      e = ni_stamps_note(x, next - 1);
    const struct ni_line l = {.has_header = true,
                              .kind = NI_LINE_CLOCK,
                              .ident = g->context[k->context].ident,
                              .meta = g->context[k->context].meta,
                              .clock = {.gpu_offset_ns = k->offset_ns, .gpu_offset_at_ns = k->at_ns}};
    if (e == 0 && !k->len)
      e = take_clock_line(x, &l);
  }
  for (; e == 0 && next < parts->n; next++)
    e = ni_stamps_note(x, next - 1);
  return e;
}

/*
 * What the index knows of all lines of a file: who is there, what was said of them, and that all operations
 * are left out.
 */
static int replay_indexed_lines(struct ni_sum_range *x, const struct ni_granules *g, struct ni_scan *scan) {
  struct ni_seen_context *c;
  struct ni_line l = {.has_header = true};
  int e = 0;
  for (size_t i = 0; e == 0 && i < g->n_contexts; i++) {
    if (!g->context[i].told)
      continue;
    l.ident = g->context[i].ident;
    l.meta = g->context[i].meta;
    l.kind = NI_LINE_DUMP_STATS;
    l.stats = (struct ni_stats_line){0};
    if (g->context[i].p2p_sampled)
      ni_by_add(&l.stats.kind[NI_KIND_P2P].filtered_by, "sampled", 1);
    if ((e = find_or_add_context(x, &l, &c)) == 0)
      e = store_comm_line(x, &l, c);
  }
  if (g->records && (x->t.records == 0 || g->origin_ns < x->t.origin_ns))
    x->t.origin_ns = g->origin_ns;
  x->t.records += g->records;
  x->t.filtered += g->records;
  const struct ni_scan_to to = {.arg = x, .take = dispatch_kept_line};
  if (e == 0)
    e = ni_scan_kept(scan, g, 0, g->n, &to);
  return e < 0 ? e : replay_clock_lines(x, g);
}

/*
 * The lines of a range, or what the index knows instead; *ledger: what they are in the account, NULL:
 * nothing.
 */
static int read_lines(struct ni_sum_range *x, struct ni_scan *scan, struct ni_scan_to *to,
                      const struct ni_scan_part *p, struct ni_ledger **ledger) {
  struct ni_atlas *a = x->r->atlas;
  enum ni_atlas_mode mode = ni_atlas_mode(a, p);
  struct ni_scan_end end;
  int e = 0;
  x->ledger = NULL;
  x->of_granule = mode == NI_ATLAS_GRANULES;
  to->arg = x;
  if (mode == NI_ATLAS_ACCOUNT) {
    e = replay_indexed_lines(x, ni_atlas_map(a, p), scan);
    *ledger = ni_atlas_account(a, p);
  } else if (mode == NI_ATLAS_GRANULES) {
    to->take = dispatch_granule_line;
    e = ni_scan_file(scan, p->file->path, &p->at, to, &end);
  } else {
    x->ledger = *ledger = calloc(1, sizeof *x->ledger);
    if (!x->ledger)
      return -ENOMEM;
    ni_ledger_begin(x->ledger, p->file, p->part == 0);
    to->take = dispatch_line;
    to->fault = record_fault;
    to->granules = ni_atlas_begin(a, p, x->ledger);
    e = ni_scan_file(scan, p->file->path, &p->at, to, &end);
    ni_ledger_end(x->ledger, &end);
  }
  return e;
}

static int read_range(void *worker, struct ni_scan *scan, struct ni_scan_to *to, const struct ni_scan_part *p,
                      void **result) {
  struct ni_sum_range *x = worker;
  struct ni_ledger *ledger = NULL;
  x->file_no = (int)p->file_no;
  x->f = &x->r->file[p->file_no];
  x->range_no = p->part;
  x->start_ns = x->f->file->head.start_ns;
  x->ordinal = 0;
  x->last = NULL;
  memset(x->seen, 0, sizeof x->seen);
  const struct ni_record_part part = {x->file_no, x->range_no};
  int e = x->r->records->open(x->r->records->to, &part, &x->rows), e2;
  if (e < 0)
    return e;
  e = read_lines(x, scan, to, p, &ledger);
  *result = ledger;
  e2 = ni_range_hand_over(x);
  if (e == 0)
    e = e2;
  e2 = ni_stamps_hand_over(x, p);
  if (e == 0)
    e = e2;
  e2 = ni_in_flight_hand_over(x);
  if (e == 0)
    e = e2;
  if (e < 0)
    ni_run_fail(x->r, e, "%s: %s", x->f->file->path, strerror(-e));
  e2 = x->r->records->close(x->rows);
  return e < 0 ? e : e2;
}

void ni_tally_sum_add(struct ni_run *r, const struct ni_tally_sum *t) {
  struct ni_tally_sum *s = &r->tally;
  pthread_mutex_lock(&r->lock);
  if (t->records && (!s->records || t->origin_ns < s->origin_ns))
    s->origin_ns = t->origin_ns;
  ni_add_counts(s->added, t->added);
  if (t->any && (!s->any || t->first_us < s->first_us))
    s->first_us = t->first_us;
  if (t->any && (!s->any || t->last_us > s->last_us))
    s->last_us = t->last_us;
  s->any = s->any || t->any;
  s->no_start = s->no_start || t->no_start;
  s->versions |= t->versions;
  pthread_mutex_unlock(&r->lock);
}

static int open_range_reader(void *run, void **worker) {
  struct ni_sum_range *x = *worker = calloc(1, sizeof *x);
  if (x)
    x->r = run;
  return x ? 0 : -ENOMEM;
}

static int close_range_reader(void *run, void *worker) {
  struct ni_sum_range *x = worker;
  if (!x)
    return 0;
  ni_tally_sum_add(run, &x->t);
  free(x->stream);
  free(x->stamp);
  free(x);
  return 0;
}

static int merge_range_ledger(void *run, const struct ni_scan_part *p, void *ledger) {
  return ledger ? ni_ledgers_merge(&((struct ni_run *)run)->ledgers, p->file_no, ledger) : 0;
}

static int finish_file_ledger(void *run, size_t file_no) {
  struct ni_run *r = run;
  return r->partial ? ni_partial_account(r, file_no, &r->ledgers.of_file[file_no])
                    : ni_ledgers_file_done(&r->ledgers, file_no);
}

int ni_read_all(struct ni_run *r) {
  int e = ni_ledgers_init(&r->ledgers, &r->ledger, &r->files);
  r->ledgers.mapped = r->atlas ? ni_atlas_mapped : NULL;
  r->ledgers.arg = r->atlas;
  if (e == 0)
    e = ni_scan_files(&(struct ni_scan_team){.plan = &r->plan,
                                             .jobs = r->opt.jobs,
                                             .progress = &r->progress,
                                             .arg = r,
                                             .open = open_range_reader,
                                             .close = close_range_reader,
                                             .part = read_range,
                                             .merge = merge_range_ledger,
                                             .file_done = finish_file_ledger,
                                             .drop = ni_ledgers_drop,
                                             .stop = ni_run_stopped});
  ni_ledgers_free(&r->ledgers);
  if (e < 0)
    ni_run_fail(r, e, "%s", strerror(-e));
  return r->stop && *r->stop ? -EINTR : e;
}
