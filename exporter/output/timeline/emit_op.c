/*
 * Operations: the kernel on the track of its communicator, its channels in verbose logs, and the enqueue on
 * the host.
 *
 * What is no operation: the life of communicators, notes, losses, and operations that never ended. Losses are
 * drawn from the record before to the record after, so that empty space is not taken for idleness.
 */
#include "emit_op.h"

#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/now.h"
#include "exporter/base/order.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"
#include "exporter/model/timeline/scan.h"
#include "exporter/model/timeline/with.h"
#include "emit_parts.h"

static int compare_by_number(const void *a, const void *b) {
  const struct ni_tr_gap *x = a, *y = b;
  return NI_BY(x, y, kind, from, to);
}

void ni_tr_sort_gaps(struct ni_tr_member *m) {
  if (m->n_gaps)
    qsort(m->gap, m->n_gaps, sizeof *m->gap, compare_by_number);
}

/*
 * A record tells the gaps of its member where they lie. Only the two gaps next to the record: what lies
 * between two gaps borders on both.
 */
static void note_gap_border(struct ni_tr_member *m, unsigned kind, uint64_t rec_sn, int64_t ts) {
  size_t i;
  ni_array_search(i, m->n_gaps,
                  m->gap[i].kind < kind || (m->gap[i].kind == kind && m->gap[i].from <= rec_sn));
  struct ni_tr_gap *next = i < m->n_gaps && m->gap[i].kind == kind ? &m->gap[i] : NULL;
  if (next && (next->after_ns == NI_TR_NO_TIME || ts > next->after_ns))
    next->after_ns = ts;
  if (i == 0)
    return;
  struct ni_tr_gap *g = &m->gap[i - 1];
  const bool is_behind = g->kind == kind && rec_sn > g->to;
  if (is_behind && (g->before_ns == NI_TR_NO_TIME || ts < g->before_ns))
    g->before_ns = ts;
}

/* Gaps with nothing between them share the record before and the record after. */
static void join_gaps(struct ni_tr_member *m) {
  for (size_t i = 1; i < m->n_gaps; i++)
    if (m->gap[i].kind == m->gap[i - 1].kind && m->gap[i].after_ns == NI_TR_NO_TIME)
      m->gap[i].after_ns = m->gap[i - 1].after_ns;
  for (size_t i = m->n_gaps; i-- > 1;)
    if (m->gap[i].kind == m->gap[i - 1].kind && m->gap[i - 1].before_ns == NI_TR_NO_TIME)
      m->gap[i - 1].before_ns = m->gap[i].before_ns;
}

static int emit_instant(struct ni_tr *r, uint32_t process, uint32_t unit, int64_t at_ns,
                        enum ni_tr_category category, const char *text, struct ni_tr_event *e) {
  e->phase = NI_TR_INSTANT;
  e->category = (uint8_t)category;
  e->ts = ni_tr_time(r, process, at_ns);
  int err = ni_name(&r->names, &r->cache, text, &e->name);
  return err < 0 ? err : ni_tr_track(r, unit, NI_TR_NONE, NI_TR_T_MARKS, 0, &e->track);
}

static const char *make_label(const struct ni_tr *r, const struct ni_tr_member *m, char *out, size_t size) {
  const char *name = ni_tr_comm_name(r, m);
  if (*name && !m->ambiguous)
    snprintf(out, size, "%s", name);
  else
    snprintf(out, size, "%s%s0x%llx", name, *name ? " " : "", (unsigned long long)ni_tr_who(r, m)->hash);
  return out;
}

static int emit_life(struct ni_tr *r, const struct ni_tr_where *w, int64_t at_ns, const char *what) {
  const struct ni_tr_member *m = &r->member[w->member];
  const struct ni_who_member *who = ni_tr_who(r, m);
  struct ni_tr_event e = {0};
  char comm[160], text[224];
  snprintf(text, sizeof text, "%s: %s", make_label(r, m, comm, sizeof comm), what);
  int err = emit_instant(r, w->process, m->unit, at_ns, NI_TR_C_LIFE, text, &e);
  ni_tr_u64(&e, NI_TR_K_COMM, who->hash);
  ni_tr_i64(&e, NI_TR_K_RANK, who->rank);
  ni_tr_i64(&e, NI_TR_K_RANKS, who->n_ranks);
  return err < 0 ? err : ni_tr_put(r, &e);
}

/* NVIDIA's log says how many were dropped since the dump before, not which. */
static int emit_dropped(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_stats_line *s) {
  const struct ni_tr_member *m = &r->member[w->member];
  int err = 0;
  for (int k = 0; err == 0 && k < NI_KIND_COUNT; k++) {
    struct ni_tr_event e = {0};
    char comm[160], text[224];
    if (!s->dropped_since[k])
      continue;
    snprintf(text, sizeof text, "%s: %llu %s lost before here", make_label(r, m, comm, sizeof comm),
             (unsigned long long)s->dropped_since[k],
             ni_plural(s->dropped_since[k], "operation", "operations"));
    err = emit_instant(r, w->process, m->unit, w->dump_us * 1000, NI_TR_C_LOSS, text, &e);
    ni_tr_u64(&e, NI_TR_K_COUNT, s->dropped_since[k]);
    if (err == 0)
      err = ni_tr_put(r, &e);
  }
  return err;
}

/* Process lines go to every unit of the process that is shown. */
static int emit_to_units(struct ni_tr *r, const struct ni_tr_where *w, int64_t at_ns,
                         enum ni_tr_category category, const char *name, enum ni_tr_key_id key,
                         const char *text) {
  int err = 0;
  for (uint32_t u = r->process[w->process].first_unit; err == 0 && u != NI_TR_NONE;
       u = r->unit[u].next_in_process) {
    struct ni_tr_event e = {0};
    if (!r->unit[u].shown)
      continue;
    err = emit_instant(r, w->process, u, at_ns, category, name, &e);
    if (err == 0 && text)
      err = ni_tr_text(r, &e, key, text);
    if (err == 0)
      err = ni_tr_put(r, &e);
  }
  return err;
}

/* A mark that somebody set, or a change of detail: from there on other things are recorded. */
static int emit_control(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_control_line *c) {
  char text[256];
  int64_t at = ni_time_of_a_job((int64_t)c->ns) ? (int64_t)c->ns : w->dump_us * 1000;
  uint64_t tag;
  const char *name;
  if (ni_tag_line(c, &tag, &name))
    return 0; /* what it names says so itself, and there can be thousands */
  if (c->mark)
    snprintf(text, sizeof text, "mark: %.200s", c->mark);
  else
    snprintf(text, sizeof text, "%.20s: %.180s%s", c->source, c->command,
             strcmp(c->result, "refused") == 0 ? " (refused)" : "");
  r->count.marks += c->mark != NULL;
  return emit_to_units(r, w, at, NI_TR_C_MARK, text, NI_TR_K_EVENTS, c->events);
}

int ni_tr_emit_mark(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_line *l) {
  struct ni_tr_member *m = w->member == NI_TR_NONE ? NULL : &r->member[w->member];
  if (l->kind == NI_LINE_CLOCK) {
    if (m && ni_gpu_point_sound(l->clock.gpu_offset_at_ns, l->clock.gpu_offset_ns))
      m->gpu_offset_ns = l->clock.gpu_offset_ns;
    return 0;
  }
  if (m && !m->shown)
    return 0;
  switch (l->kind) {
    case NI_LINE_COMM:
      /* Repeated at the head of every rotated file. */
      if (!m || !l->comm.init_ns || m->announced)
        return 0;
      m->announced = true;
      return emit_life(r, w, (int64_t)l->comm.init_ns, "begins");
    case NI_LINE_COMM_END: {
      char what[64];
      snprintf(what, sizeof what, "ends (%.40s)", l->comm_end.why);
      return m ? emit_life(r, w, (int64_t)l->comm_end.ns, what) : 0;
    }
    case NI_LINE_NOTE:
      return emit_to_units(r, w, w->dump_us * 1000, NI_TR_C_MARK, "note", NI_TR_K_TEXT, l->note.text);
    case NI_LINE_CONTROL:
      return emit_control(r, w, &l->control);
    case NI_LINE_DUMP_STATS:
      return m && !l->stats.has_accounting ? emit_dropped(r, w, &l->stats) : 0;
    default:
      return 0;
  }
}

/* Seen from afar a slice of some microseconds is nothing; a mark is. */
static int put_mark(struct ni_tr *r, uint32_t unit, struct ni_tr_event e) {
  e.phase = NI_TR_INSTANT;
  e.dur = 0;
  int err = ni_tr_track(r, unit, NI_TR_NONE, NI_TR_T_MARKS, 0, &e.track);
  return err < 0 ? err : ni_tr_put(r, &e);
}

static int put_gap(struct ni_tr *r, uint32_t member, const struct ni_tr_gap *g) {
  const struct ni_tr_member *m = &r->member[member];
  struct ni_tr_event e = {.category = NI_TR_C_LOSS};
  char text[128];
  snprintf(text, sizeof text, "%llu %s lost: %s", (unsigned long long)g->count,
           g->kind ? "send/receive" : "collectives", ni_name_text(&r->names, g->cause));
  int err = ni_name(&r->names, &r->cache, text, &e.name);
  if (err == 0)
    err = ni_tr_track(r, m->unit, member, g->kind ? NI_TR_T_P2P : NI_TR_T_COLL, 0, &e.track);
  if (err < 0)
    return err;
  int64_t told = ni_tr_time(r, ni_tr_who(r, m)->process, g->told_us * 1000);
  e.ts = g->after_ns != NI_TR_NO_TIME ? g->after_ns : g->before_ns != NI_TR_NO_TIME ? g->before_ns : told;
  int64_t end = g->before_ns != NI_TR_NO_TIME ? g->before_ns : told;
  e.dur = end > e.ts ? end - e.ts : 0;
  ni_tr_u64(&e, NI_TR_K_COUNT, g->count);
  ni_tr_u64(&e, NI_TR_K_CAUSE, g->cause);
  ni_tr_u64(&e, NI_TR_K_FROM, g->from);
  ni_tr_u64(&e, NI_TR_K_TO, g->to);
  if ((err = ni_tr_put(r, &e)) < 0)
    return err;
  return put_mark(r, m->unit, e);
}

static int put_open(struct ni_tr *r, uint32_t member, const struct ni_tr_open *x) {
  const struct ni_tr_member *m = &r->member[member];
  const struct ni_unfinished_line *u = &x->u;
  struct ni_tr_event e = {.category = NI_TR_C_OPEN};
  char size[32], text[160];
  ni_size_text(u->msg_bytes, size);
  snprintf(text, sizeof text, "%s %s NOT FINISHED", ni_name_text(&r->names, x->func), size);
  int err = ni_name(&r->names, &r->cache, text, &e.name);
  if (err == 0)
    err = ni_tr_track(r, m->unit, member, x->kind ? NI_TR_T_P2P : NI_TR_T_COLL, 0, &e.track);
  if (err < 0)
    return err;
  if (u->enqueue_ns < 1000000000000000000u || u->enqueue_ns > INT64_MAX || u->age_ms > INT64_MAX / 2000000)
    return 0;
  e.ts = ni_tr_time(r, ni_tr_who(r, m)->process, (int64_t)u->enqueue_ns);
  e.dur = (int64_t)u->age_ms * 1000000;
  ni_tr_u64(&e, NI_TR_K_SN, u->sn);
  ni_tr_u64(&e, NI_TR_K_REC_SN, u->rec_sn);
  ni_tr_u64(&e, NI_TR_K_BYTES, u->msg_bytes);
  ni_tr_u64(&e, NI_TR_K_WHY, x->why);
  if (x->state)
    ni_tr_u64(&e, NI_TR_K_STATE, x->state);
  if (u->channels_open)
    ni_tr_u64(&e, NI_TR_K_OPEN, u->channels_open);
  if (x->net_state) {
    ni_tr_u64(&e, NI_TR_K_NET_STATE, x->net_state);
    ni_tr_i64(&e, NI_TR_K_NET_PEER, u->net_peer);
    ni_tr_i64(&e, NI_TR_K_NET_CHANNEL, u->net_channel);
  }
  if (u->channels_expected >= 0)
    ni_tr_i64(&e, NI_TR_K_EXPECTED, u->channels_expected);
  ni_tr_i64(&e, NI_TR_K_STARTED, u->channels_started);
  ni_tr_i64(&e, NI_TR_K_STOPPED, u->channels_stopped);
  ni_tr_u64(&e, NI_TR_K_COMM, ni_tr_who(r, m)->hash);
  if ((err = ni_tr_put(r, &e)) < 0)
    return err;
  return put_mark(r, m->unit, e);
}

/* Where the log of a process ends without its last word, what follows is not known. */
static int put_ends(struct ni_tr *r) {
  int err = 0;
  for (uint32_t p = 0; err == 0 && p < r->n_processes; p++) {
    const struct ni_tr_process *x = &r->process[p];
    struct ni_tr_where w = {.process = p};
    if (!x->ours || x->final || !x->has_lines)
      continue;
    err = emit_to_units(r, &w, x->last_us * 1000, NI_TR_C_LOSS, "the log ends here: killed, or still running",
                        NI_TR_K_TEXT, "no final line; what came after the last flush is not in the log");
  }
  return err;
}

static bool is_open_wanted(const struct ni_tr *r, const struct ni_tr_open *x) {
  const struct ni_filters *f = &r->opt.filter;
  if (x->finished)
    return false;
  if (f->tag.n && !ni_tags_have(&f->tag, x->u.user_tag))
    return false;
  return !f->coll.n || ni_words_have_func(&f->coll, ni_name_text(&r->names, x->func));
}

int ni_tr_emit_kept(struct ni_tr *r) {
  int err = 0;
  for (uint32_t i = 0; err == 0 && i < r->n_members; i++) {
    struct ni_tr_member *m = &r->member[i];
    if (!m->shown)
      continue;
    join_gaps(m);
    for (size_t k = 0; err == 0 && k < m->n_gaps; k++)
      if (!m->gap[k].away)
        err = put_gap(r, i, &m->gap[k]);
    for (size_t k = 0; err == 0 && k < m->n_open; k++)
      if (is_open_wanted(r, &m->open[k]))
        err = put_open(r, i, &m->open[k]);
  }
  if (err == 0)
    err = ni_tr_replays_end(r);
  return err < 0 ? err : put_ends(r);
}

static int name_operation(struct ni_tr *r, const struct ni_line *l, const char *after, uint32_t *out) {
  char size[32], text[256];
  const char *tag = ni_tag_name(&r->tags, l->op.user_tag);
  ni_size_text(l->op.msg_bytes, size);
  if (l->is_p2p)
    snprintf(text, sizeof text, "%s %s %d %s%s", l->op.func, strcmp(l->op.func, "Recv") == 0 ? "from" : "to",
             l->op.root, size, after);
  else
    snprintf(text, sizeof text, "%.150s %s%s", l->op.func, size, after);
  if (tag && strlen(text) + strlen(tag) + 2 <= sizeof text)
    strcat(strcat(text, " "), tag);
  return ni_name(&r->names, &r->cache, text, out);
}

static int describe_operation(struct ni_tr *r, struct ni_tr_event *e, const struct ni_tr_member *m,
                              const struct ni_line *l) {
  const struct ni_record *o = &l->op;
  ni_tr_u64(e, NI_TR_K_SN, o->sn);
  ni_tr_u64(e, NI_TR_K_BYTES, o->msg_bytes);
  if ((o->has & NI_HAS_TESTS_SIZE) && o->tests_bytes != o->msg_bytes)
    ni_tr_u64(e, NI_TR_K_TESTS_BYTES, o->tests_bytes);
  if (o->has & NI_HAS_BUSBW)
    ni_tr_f64(e, NI_TR_K_BUSBW, o->busbw_gbs);
  int err = ni_tr_text(r, e, NI_TR_K_ALGO, o->algo);
  if (err == 0)
    err = ni_tr_text(r, e, NI_TR_K_PROTO, o->proto);
  if (err == 0)
    err = ni_tr_text(r, e, NI_TR_K_DATATYPE, o->datatype);
  if (l->is_p2p)
    ni_tr_i64(e, NI_TR_K_PEER, o->root);
  else if ((o->has & NI_HAS_ROOT) && (strcmp(o->func, "Broadcast") == 0 || strcmp(o->func, "Reduce") == 0))
    ni_tr_i64(e, NI_TR_K_ROOT, o->root);
  if (o->has & NI_HAS_NCHANNELS)
    ni_tr_u64(e, NI_TR_K_CHANNELS, o->nchannels);
  if (err == 0)
    err = ni_tr_text(r, e, NI_TR_K_TIMING, ni_timing_names[o->timing]);
  ni_tr_i64(e, NI_TR_K_RANK, ni_tr_who(r, m)->rank);
  ni_tr_u64(e, NI_TR_K_COMM, ni_tr_who(r, m)->hash);
  if (o->has & NI_HAS_REC_SN)
    ni_tr_u64(e, NI_TR_K_REC_SN, o->rec_sn);
  if (o->has & NI_HAS_CALL_SN)
    ni_tr_u64(e, NI_TR_K_CALL_SN, o->call_sn);
  if (o->has & NI_HAS_PLAN_SN)
    ni_tr_u64(e, NI_TR_K_PLAN_SN, o->plan_sn);
  if (o->graph)
    ni_tr_u64(e, NI_TR_K_GRAPH, 1);
  if (err == 0)
    err = ni_tr_tag(r, e, o->user_tag);
  if (!o->symmetric || err < 0)
    return err;
  ni_tr_u64(e, NI_TR_K_SYMMETRIC, 1);
  if (o->shared_span)
    ni_tr_u64(e, NI_TR_K_SHARED, 1);
  if (o->has & NI_HAS_PHASES) {
    ni_tr_i64(e, NI_TR_K_INITIAL_SYNC, (int64_t)o->initial_sync_ns);
    ni_tr_i64(e, NI_TR_K_COMPUTE, (int64_t)o->compute_ns);
    ni_tr_i64(e, NI_TR_K_FINAL_SYNC, (int64_t)o->final_sync_ns);
  }
  return ni_tr_text(r, e, NI_TR_K_KERNEL, o->kernel);
}

/*
 * Channel events are times at which the CPU heard of them. A start without a stop goes to the end of its
 * operation.
 */
static int put_channels(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_tr_member *m,
                        const struct ni_line *l, uint32_t name) {
  int err = 0;
  for (uint32_t i = 0; err == 0 && i < l->trace->n; i++) {
    const struct ni_trace_event *c = &l->trace->event[i];
    const bool has_times = c->start_us && c->start_us <= INT64_MAX / 1000 && c->stop_us <= INT64_MAX / 1000;
    if (!has_times || c->channel < 0)
      continue;
    struct ni_tr_event e = {.name = name, .category = NI_TR_C_CHANNEL};
    uint64_t stop = c->stop_us >= c->start_us ? c->stop_us : c->start_us;
    e.ts = ni_tr_time(r, w->process, (int64_t)c->start_us * 1000);
    e.dur = (int64_t)(stop - c->start_us) * 1000;
    err = ni_tr_track(r, m->unit, w->member, NI_TR_T_CHANNEL, (uint32_t)c->channel, &e.track);
    ni_tr_u64(&e, NI_TR_K_SN, l->op.sn);
    ni_tr_u64(&e, NI_TR_K_CHANNEL, (uint64_t)c->channel);
    if (err == 0)
      err = ni_tr_put(r, &e);
  }
  return err;
}

/* What one record comes to. */
struct drawn {
  struct ni_tr *r;
  const struct ni_tr_where *w;
  const struct ni_line *l;
  struct ni_tr_member *m;
  enum ni_placed how;
  bool bracket_only; /* only the bracket around the enqueue is known: no kernel can be drawn */
  bool flows;        /* arrows are wanted, and there is a kernel for them */
  int64_t enqueue;   /* aligned; NI_TR_NO_TIME */
  uint32_t name;
  struct ni_tr_event e; /* the kernel, or the bracket */
};

/* Fills the kernel's name, its track and what is said of it. */
static int fill_kernel(struct drawn *d) {
  static const char *const brackets[NI_SRC_COUNT] = {
      [NI_SRC_CE] = " (copy engine, enqueue only)", [NI_SRC_API] = " (API call only)"};
  const struct ni_record *o = &d->l->op;
  bool p2p = d->l->is_p2p;
  int err = 0;
  d->e.category = d->bracket_only ? NI_TR_C_ENQUEUE : p2p ? NI_TR_C_P2P : NI_TR_C_COLL;
  d->e.name = d->name;
  const char *bracket = o->symmetric && o->graph ? " (replay, enqueue only)" : " (enqueue only)";
  if (brackets[o->src])
    bracket = brackets[o->src];
  if (d->bracket_only)
    err = name_operation(d->r, d->l, bracket, &d->e.name);
  else if (o->shared_span)
    err = name_operation(d->r, d->l, " (fused)", &d->e.name);
  enum ni_tr_class class = d->bracket_only ? NI_TR_T_ENQUEUE : p2p ? NI_TR_T_P2P : NI_TR_T_COLL;
  if (err == 0)
    err = ni_tr_track(d->r, d->m->unit, d->w->member, class, 0, &d->e.track);
  if (err == 0)
    err = describe_operation(d->r, &d->e, d->m, d->l);
  if (err < 0)
    return err;
  if (d->how == NI_BY_ENQUEUE && !d->bracket_only) {
    err = ni_tr_text(d->r, &d->e, NI_TR_K_PLACED, "enqueue: the start is not known");
  } else if (d->how == NI_BY_CPU) {
    err = ni_tr_text(d->r, &d->e, NI_TR_K_PLACED, "arrival at the CPU");
  }
  const bool has_waited = d->enqueue != NI_TR_NO_TIME && d->how != NI_BY_ENQUEUE;
  if (err == 0 && has_waited && !d->bracket_only)
    ni_tr_i64(&d->e, NI_TR_K_WAITED, d->e.ts - d->enqueue);
  return err;
}

/*
 * The enqueue of a kernel, and the arrows from it. Where the group of the plan is a line of its own, that
 * shows the enqueue; network operations hang on the operation's.
 */
static int put_enqueue(struct drawn *d) {
  const struct ni_record *o = &d->l->op;
  const struct ni_trace *t = d->l->trace;
  uint32_t member = d->w->member;
  bool p2p = d->l->is_p2p, has_net = d->r->process[d->w->process].has_net;
  if (d->bracket_only || d->enqueue == NI_TR_NO_TIME)
    return 0;
  if ((o->has & NI_HAS_PLAN_SN) && !has_net)
    return 0;
  uint64_t number = o->has & NI_HAS_REC_SN ? o->rec_sn : o->sn;
  /* A kernel may have begun before its call was told of (contract: the bracket comes after the launch). */
  bool forward = d->enqueue < d->e.ts && d->how != NI_BY_ENQUEUE;
  struct ni_tr_event q = {.ts = d->enqueue, .name = d->name, .category = NI_TR_C_ENQUEUE};
  int err = ni_tr_track(d->r, d->m->unit, member, NI_TR_T_ENQUEUE, 0, &q.track);
  ni_tr_u64(&q, NI_TR_K_SN, o->sn);
  if (d->flows && forward) {
    uint64_t id = ni_tr_arrow_id(member, NI_TR_A_ENQUEUE, p2p, number);
    ni_tr_arrow(&q, NI_TR_A_ENQUEUE, true, id);
    ni_tr_arrow(&d->e, NI_TR_A_ENQUEUE, false, id);
  }
  if (d->flows && has_net)
    ni_tr_arrow(&q, NI_TR_A_POST, true, ni_tr_arrow_id(member, NI_TR_A_POST, p2p, number));
  /* The call's bracket in verbose logs, else the moment of its start. */
  const bool has_bracket = t && t->has_ts && t->start_us && t->stop_us > t->start_us;
  if (has_bracket && t->stop_us - t->start_us < 3600000000u)
    q.dur = (int64_t)(t->stop_us - t->start_us) * 1000;
  return err < 0 ? err : ni_tr_put(d->r, &q);
}

/* Arrows between the kernel and lines of other kinds. */
static void join_others(struct drawn *d) {
  const struct ni_record *o = &d->l->op;
  const struct ni_tr_process *p = &d->r->process[d->w->process];
  uint32_t member = d->w->member;
  bool p2p = d->l->is_p2p;
  if (!d->flows)
    return;
  if (p->has_api && (o->has & NI_HAS_CALL_SN) && !o->graph)
    ni_tr_arrow(&d->e, NI_TR_A_CALL, false, ni_tr_arrow_id(member, NI_TR_A_CALL, p2p, o->call_sn));
  if (p->has_launches && (o->has & NI_HAS_PLAN_SN))
    ni_tr_arrow(&d->e, NI_TR_A_LAUNCH, false, ni_tr_arrow_id(member, NI_TR_A_LAUNCH, 0, o->plan_sn));
  if (p->has_net && (o->has & NI_HAS_REC_SN))
    ni_tr_arrow(&d->e, NI_TR_A_NET, true, ni_tr_arrow_id(member, NI_TR_A_NET, p2p, o->rec_sn));
}

int ni_tr_emit_op(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_line *l) {
  struct ni_tr_member *m = &r->member[w->member];
  const struct ni_record *o = &l->op;
  int64_t start, dur;
  enum ni_placed how = ni_place(l, &start, &dur);
  if (how == NI_NOWHERE) {
    r->count.no_start += m->shown && r->granule == NI_TR_NONE; /* of maps: ni_tr_choose() */
    return 0;
  }
  if (how == NI_BY_GPU)
    start += ni_gpu_clock_correction(&r->unit[m->unit].clock, m->gpu_offset_ns, start);
  struct drawn d = {.r = r,
                    .w = w,
                    .l = l,
                    .m = m,
                    .how = how,
                    .bracket_only = o->timing == NI_TIMING_COLLECTIVE_CPU,
                    .e = {.ts = ni_tr_time(r, w->process, start), .dur = dur}};
  int err = how == NI_BY_ENQUEUE || d.bracket_only ? 0 : ni_tr_with_note(r, m->unit, d.e.ts, o);
  if (err < 0)
    return err;
  d.flows = !r->opt.no_flows && !d.bracket_only;
  d.enqueue = o->has & NI_HAS_ENQUEUE ? ni_tr_time(r, w->process, (int64_t)o->enqueue_ns) : NI_TR_NO_TIME;
  if (o->has & NI_HAS_REC_SN)
    note_gap_border(m, l->is_p2p, o->rec_sn, d.enqueue != NI_TR_NO_TIME ? d.enqueue : d.e.ts);
  /* every filter is asked: which words fit nothing */
  if ((r->opt.filter.coll.n && !ni_words_have_func(&r->opt.filter.coll, o->func)) || !m->shown)
    return 0;
  if (r->opt.filter.tag.n && !ni_tags_have(&r->opt.filter.tag, o->user_tag))
    return 0;
  if ((err = name_operation(r, l, "", &d.name)) < 0)
    return err;
  if ((err = fill_kernel(&d)) == 0)
    err = put_enqueue(&d);
  join_others(&d);
  const bool is_replay = d.bracket_only && o->symmetric && o->graph;
  if (err == 0 && is_replay)
    return ni_tr_put_replay(r, w->member, o, &d.e);
  const uint64_t events = r->count.events;
  if (err == 0)
    err = ni_tr_put(r, &d.e);
  if (err == 0 && !d.bracket_only && how == NI_BY_GPU)
    err = ni_tr_put_phases(r, &d.e, o);
  const bool seen = r->count.events != events;
  r->count.shown += seen;
  r->count.start_assumed += seen && how == NI_BY_ENQUEUE && !d.bracket_only;
  if (err == 0 && l->trace && l->trace->has_ts)
    err = put_channels(r, w, m, l, d.name);
  return err;
}
