/*
 * What is no operation: the life of communicators, notes, losses, and operations that never ended. Losses are drawn from
 * the record before to the record after, so that empty space is not taken for idleness.
 */
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/now.h"
#include "emit_marks.h"

static int by_number(const void *a, const void *b) {
  const struct ni_tr_gap *x = a, *y = b;
  if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  return x->to < y->to ? -1 : x->to > y->to;
}

void ni_tr_sort_gaps(struct ni_tr_member *m) {
  if (m->n_gaps) qsort(m->gap, m->n_gaps, sizeof *m->gap, by_number);
}

/* Only the two gaps next to the record: what lies between two gaps borders on both. */
void ni_tr_note_gap_border(struct ni_tr_member *m, unsigned kind, uint64_t rec_sn, int64_t ts) {
  size_t i;
  ni_array_search(i, m->n_gaps, m->gap[i].kind < kind || (m->gap[i].kind == kind && m->gap[i].from <= rec_sn));
  if (i < m->n_gaps && m->gap[i].kind == kind && (m->gap[i].after_ns == NI_TR_NO_TIME || ts > m->gap[i].after_ns))
    m->gap[i].after_ns = ts;
  if (i == 0) return;
  struct ni_tr_gap *g = &m->gap[i - 1];
  if (g->kind == kind && rec_sn > g->to && (g->before_ns == NI_TR_NO_TIME || ts < g->before_ns)) g->before_ns = ts;
}

/* Gaps with nothing between them share the record before and the record after. */
static void join_gaps(struct ni_tr_member *m) {
  for (size_t i = 1; i < m->n_gaps; i++)
    if (m->gap[i].kind == m->gap[i - 1].kind && m->gap[i].after_ns == NI_TR_NO_TIME) m->gap[i].after_ns = m->gap[i - 1].after_ns;
  for (size_t i = m->n_gaps; i-- > 1;)
    if (m->gap[i].kind == m->gap[i - 1].kind && m->gap[i - 1].before_ns == NI_TR_NO_TIME)
      m->gap[i - 1].before_ns = m->gap[i].before_ns;
}

static int instant(struct ni_tr *r, uint32_t process, uint32_t unit, int64_t at_ns, enum ni_tr_category category,
                   const char *text, struct ni_tr_event *e) {
  e->phase = NI_TR_INSTANT;
  e->category = (uint8_t)category;
  e->ts = ni_tr_time(r, process, at_ns);
  int err = ni_name(&r->names, &r->cache, text, &e->name);
  return err < 0 ? err : ni_tr_track(r, unit, NI_TR_NONE, NI_TR_T_MARKS, 0, &e->track);
}

static const char *label(const struct ni_tr *r, const struct ni_tr_member *m, char *out, size_t size) {
  const char *name = ni_tr_comm_name(r, m);
  if (*name && !m->ambiguous) snprintf(out, size, "%s", name);
  else snprintf(out, size, "%s%s0x%llx", name, *name ? " " : "", (unsigned long long)ni_tr_who(r, m)->hash);
  return out;
}

static int life(struct ni_tr *r, const struct ni_tr_where *w, int64_t at_ns, const char *what) {
  const struct ni_tr_member *m = &r->member[w->member];
  const struct ni_who_member *who = ni_tr_who(r, m);
  struct ni_tr_event e = {0};
  char comm[160], text[224];
  snprintf(text, sizeof text, "%s: %s", label(r, m, comm, sizeof comm), what);
  int err = instant(r, w->process, m->unit, at_ns, NI_TR_C_LIFE, text, &e);
  ni_tr_u64(&e, NI_TR_K_COMM, who->hash);
  ni_tr_i64(&e, NI_TR_K_RANK, who->rank);
  ni_tr_i64(&e, NI_TR_K_RANKS, who->n_ranks);
  return err < 0 ? err : ni_tr_put(r, &e);
}

/* NVIDIA's log says how many were dropped since the dump before, not which. */
static int dropped(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_stats_line *s) {
  const struct ni_tr_member *m = &r->member[w->member];
  int err = 0;
  for (int k = 0; err == 0 && k < NI_KIND_COUNT; k++) {
    struct ni_tr_event e = {0};
    char comm[160], text[224];
    if (!s->dropped_since[k]) continue;
    snprintf(text, sizeof text, "%s: %llu %s lost before here", label(r, m, comm, sizeof comm),
             (unsigned long long)s->dropped_since[k], ni_plural(s->dropped_since[k], "operation", "operations"));
    err = instant(r, w->process, m->unit, w->dump_us * 1000, NI_TR_C_LOSS, text, &e);
    ni_tr_u64(&e, NI_TR_K_COUNT, s->dropped_since[k]);
    if (err == 0) err = ni_tr_put(r, &e);
  }
  return err;
}

/* Process lines go to every unit of the process that is shown. */
static int to_units(struct ni_tr *r, const struct ni_tr_where *w, int64_t at_ns, enum ni_tr_category category,
                    const char *name, enum ni_tr_key_id key, const char *text) {
  int err = 0;
  for (uint32_t u = r->process[w->process].first_unit; err == 0 && u != NI_TR_NONE; u = r->unit[u].next_in_process) {
    struct ni_tr_event e = {0};
    if (!r->unit[u].shown) continue;
    err = instant(r, w->process, u, at_ns, category, name, &e);
    if (err == 0 && text) err = ni_tr_text(r, &e, key, text);
    if (err == 0) err = ni_tr_put(r, &e);
  }
  return err;
}

/* A mark that somebody set, or a change of detail: from there on other things are recorded. */
static int take_control(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_control_line *c) {
  char text[256];
  int64_t at = ni_time_of_a_job((int64_t)c->ns) ? (int64_t)c->ns : w->dump_us * 1000;
  if (c->mark) snprintf(text, sizeof text, "mark: %.200s", c->mark);
  else snprintf(text, sizeof text, "%.20s: %.180s%s", c->source, c->command, strcmp(c->result, "refused") == 0 ? " (refused)" : "");
  r->count.marks += c->mark != NULL;
  return to_units(r, w, at, NI_TR_C_MARK, text, NI_TR_K_EVENTS, c->events);
}

int ni_tr_emit_mark(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_line *l) {
  struct ni_tr_member *m = w->member == NI_TR_NONE ? NULL : &r->member[w->member];
  if (l->kind == NI_LINE_CLOCK) {
    if (m && l->clock.gpu_offset_ns != NI_NO_OFFSET) m->gpu_offset_ns = l->clock.gpu_offset_ns;
    return 0;
  }
  if (m && !m->shown) return 0;
  switch (l->kind) {
    case NI_LINE_COMM:
      /* Repeated at the head of every rotated file. */
      if (!m || !l->comm.init_ns || m->announced) return 0;
      m->announced = true;
      return life(r, w, (int64_t)l->comm.init_ns, "begins");
    case NI_LINE_COMM_END: {
      char what[64];
      snprintf(what, sizeof what, "ends (%.40s)", l->comm_end.why);
      return m ? life(r, w, (int64_t)l->comm_end.ns, what) : 0;
    }
    case NI_LINE_NOTE: return to_units(r, w, w->dump_us * 1000, NI_TR_C_MARK, "note", NI_TR_K_TEXT, l->note.text);
    case NI_LINE_CONTROL: return take_control(r, w, &l->control);
    case NI_LINE_DUMP_STATS: return m && !l->stats.has_accounting ? dropped(r, w, &l->stats) : 0;
    default: return 0;
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
  snprintf(text, sizeof text, "%llu %s lost: %s", (unsigned long long)g->count, g->kind ? "send/receive" : "collectives",
           ni_name_text(&r->names, g->cause));
  int err = ni_name(&r->names, &r->cache, text, &e.name);
  if (err == 0) err = ni_tr_track(r, m->unit, member, g->kind ? NI_TR_T_P2P : NI_TR_T_COLL, 0, &e.track);
  if (err < 0) return err;
  int64_t told = ni_tr_time(r, ni_tr_who(r, m)->process, g->told_us * 1000);
  e.ts = g->after_ns != NI_TR_NO_TIME ? g->after_ns : g->before_ns != NI_TR_NO_TIME ? g->before_ns : told;
  int64_t end = g->before_ns != NI_TR_NO_TIME ? g->before_ns : told;
  e.dur = end > e.ts ? end - e.ts : 0;
  ni_tr_u64(&e, NI_TR_K_COUNT, g->count);
  ni_tr_u64(&e, NI_TR_K_CAUSE, g->cause);
  ni_tr_u64(&e, NI_TR_K_FROM, g->from);
  ni_tr_u64(&e, NI_TR_K_TO, g->to);
  if ((err = ni_tr_put(r, &e)) < 0) return err;
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
  if (err == 0) err = ni_tr_track(r, m->unit, member, x->kind ? NI_TR_T_P2P : NI_TR_T_COLL, 0, &e.track);
  if (err < 0) return err;
  if (u->enqueue_ns < 1000000000000000000u || u->enqueue_ns > INT64_MAX || u->age_ms > INT64_MAX / 2000000) return 0;
  e.ts = ni_tr_time(r, ni_tr_who(r, m)->process, (int64_t)u->enqueue_ns);
  e.dur = (int64_t)u->age_ms * 1000000;
  ni_tr_u64(&e, NI_TR_K_SN, u->sn);
  ni_tr_u64(&e, NI_TR_K_REC_SN, u->rec_sn);
  ni_tr_u64(&e, NI_TR_K_BYTES, u->msg_bytes);
  ni_tr_u64(&e, NI_TR_K_WHY, x->why);
  if (x->state) ni_tr_u64(&e, NI_TR_K_STATE, x->state);
  if (u->channels_open) ni_tr_u64(&e, NI_TR_K_OPEN, u->channels_open);
  if (x->net_state) {
    ni_tr_u64(&e, NI_TR_K_NET_STATE, x->net_state);
    ni_tr_i64(&e, NI_TR_K_NET_PEER, u->net_peer);
    ni_tr_i64(&e, NI_TR_K_NET_CHANNEL, u->net_channel);
  }
  if (u->channels_expected >= 0) ni_tr_i64(&e, NI_TR_K_EXPECTED, u->channels_expected);
  ni_tr_i64(&e, NI_TR_K_STARTED, u->channels_started);
  ni_tr_i64(&e, NI_TR_K_STOPPED, u->channels_stopped);
  ni_tr_u64(&e, NI_TR_K_COMM, ni_tr_who(r, m)->hash);
  if ((err = ni_tr_put(r, &e)) < 0) return err;
  r->count.open++;
  return put_mark(r, m->unit, e);
}

/* Where the log of a process ends without its last word, what follows is not known. */
static int put_ends(struct ni_tr *r) {
  int err = 0;
  for (uint32_t p = 0; err == 0 && p < r->n_processes; p++) {
    const struct ni_tr_process *x = &r->process[p];
    struct ni_tr_where w = {.process = p};
    if (!x->ours || x->final || !x->has_lines) continue;
    err = to_units(r, &w, x->last_us * 1000, NI_TR_C_LOSS, "the log ends here: killed, or still running", NI_TR_K_TEXT,
                   "no final line; what came after the last flush is not in the log");
  }
  return err;
}

int ni_tr_emit_kept(struct ni_tr *r) {
  int err = 0;
  for (uint32_t i = 0; err == 0 && i < r->n_members; i++) {
    struct ni_tr_member *m = &r->member[i];
    if (!m->shown) continue;
    join_gaps(m);
    for (size_t k = 0; err == 0 && k < m->n_gaps; k++) err = put_gap(r, i, &m->gap[k]);
    for (size_t k = 0; err == 0 && k < m->n_open; k++)
      if (!m->open[k].finished && (!r->opt.coll.n || ni_words_have_func(&r->opt.coll, ni_name_text(&r->names, m->open[k].func))))
        err = put_open(r, i, &m->open[k]);
  }
  return err < 0 ? err : put_ends(r);
}
