/*
 * The first pass: who is there, when, what was lost and what never ended; clock lines; and the collectives
 * that tell the hosts' clocks apart.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/mix.h"
#include "exporter/base/now.h"
#include "exporter/base/order.h"
#include "align.h"
#include "choose.h"
#include "pass.h"
#include "scan.h"
#include "units.h"
#include "exporter/model/ledger/judge.h"
#include "format/names.h"

/*
 * In these functions every rank needs something from every other rank, so none can end before the last one
 * has begun.
 */
static bool is_meeting_point(const struct ni_record *o, int32_t n_ranks) {
  enum ni_func f = ni_func_from_name(o->func);
  return n_ranks > 1 && o->msg_bytes > 0 &&
      (f == NI_FUNC_ALLREDUCE || f == NI_FUNC_ALLGATHER || f == NI_FUNC_REDUCESCATTER);
}

/*
 * A message: the k-th Send of a rank to another and the k-th Recv there from it, in one communicator. k is
 * counted, so all records of a rank up to it must be there: they are sorted by number (`p2p_sn`, from 0), and
 * with the first that is missing (lost, expired, sampled, below the smallest size) a rank's messages end.
 * Matched one off they would be no outliers: all bounds of a host would agree on a wrong clock. So nothing
 * counts either of a communicator whose hash came twice, or where P2P was not asked for all the time; nor
 * times that the CPU saw, which are late by any time. Where the log states k (`pair_sn`), it is that.
 */
struct message {
  struct ni_match_entry entry;
  uint64_t sn, bytes, pair_sn; /* pair_sn: NI_NO_SN: not stated */
  int32_t peer;
  bool timed;
};

static int by_number(const void *a, const void *b, void *unused) {
  const struct message *x = a, *y = b;
  return NI_BY(x, y, entry.member, sn);
}

static int add_message(struct ni_tr *r, const struct ni_record *o, const struct ni_match_entry *e,
                       bool timed) {
  enum ni_func f = ni_func_from_name(o->func);
  struct message m = {.entry = *e,
                      .sn = o->sn,
                      .bytes = o->msg_bytes,
                      .peer = o->root,
                      .pair_sn = o->has & NI_HAS_PAIR_SN ? o->pair_sn : NI_NO_SN,
                      .timed = timed && (f == NI_FUNC_SEND || f == NI_FUNC_RECV)};
  m.entry.receives = f == NI_FUNC_RECV;
  int err = r->p2p ? 0 : ni_sort_new(&r->p2p, r->store, r->opt.memory_bytes, by_number, NULL);
  return err < 0 ? err : ni_sort_add(r->p2p, &m, sizeof m);
}

static uint64_t hash_message(const struct ni_tr *r, const struct message *m, uint64_t k) {
  const struct ni_who_member *who = &r->who.member[m->entry.member];
  uint64_t here = (uint32_t)who->rank, there = (uint32_t)m->peer;
  uint64_t pair = m->entry.receives ? there << 32 | here : here << 32 | there;
  return ni_mix(ni_match_key(who->hash, 0, "Send", k, m->bytes) ^ ni_spread(pair));
}

static int match_messages(struct ni_tr *r) {
  const void *item;
  size_t len, n_counts = 0, cap_counts = 0;
  struct ni_map pairs = {0}; /* of the member at hand: peers and directions */
  uint64_t next = 0, *count = NULL;
  uint32_t member = NI_TR_NONE;
  bool whole = false;
  int e = r->p2p ? ni_match_init(&r->messages, NI_MATCH_ENTRIES) : 0, got = 0;
  while (e == 0 && r->p2p && (got = ni_sort_next(r->p2p, &item, &len)) > 0) {
    const struct message *m = item;
    if (m->entry.member != member) {
      member = m->entry.member;
      ni_map_free(&pairs);
      n_counts = next = 0;
      whole = r->member[r->member[member].first].n_instances == 1 &&
          !r->process[r->who.member[member].process].p2p_changed;
    }
    if (m->sn > next)
      whole = false;
    if (!whole || m->sn < next)
      continue;
    next++;
    int64_t at = ni_map_find_or_add(&pairs, ni_hash(ni_hash(0, (uint32_t)m->peer), m->entry.receives), 0,
                                    (uint32_t)n_counts);
    if (at < 0)
      e = (int)at;
    else if ((size_t)at == n_counts && !ni_array_room(count, n_counts, cap_counts))
      e = -ENOMEM;
    if (e < 0)
      break;
    if ((size_t)at == n_counts)
      count[n_counts++] = 0;
    const uint64_t counted = count[at]++, k = m->pair_sn != NI_NO_SN ? m->pair_sn : counted;
    if (m->timed && m->peer != r->who.member[member].rank)
      e = ni_match_add(&r->messages, hash_message(r, m, k), &m->entry);
  }
  ni_map_free(&pairs);
  free(count);
  ni_sort_free(r->p2p);
  r->p2p = NULL;
  return e < 0 ? e : got;
}

/* Before the clocks of the hosts are known: notes when an operation was, and who took part. */
static int match_operation(struct ni_tr *r, struct ni_tr_member *m, uint32_t member, const struct ni_line *l,
                           int64_t start, int64_t dur, enum ni_placed how) {
  const struct ni_who_member *who = &r->who.member[member];
  struct ni_tr_host *h = &r->host[ni_tr_host_of(r, m)];
  if (start < h->first_ns)
    h->first_ns = start;
  if (start + dur > h->last_ns)
    h->last_ns = start + dur;
  if (!l->is_p2p && (how == NI_BY_ENQUEUE || !is_meeting_point(&l->op, who->n_ranks)))
    return 0;
  struct ni_match_entry e = {.start_ns = start,
                             .end_ns = start + dur,
                             .member = member,
                             .stated_ns = how == NI_BY_GPU ? m->gpu_offset_ns : NI_NO_OFFSET};
  if (l->is_p2p)
    return r->windowed ? 0 : add_message(r, &l->op, &e, how == NI_BY_GPU);
  return ni_match_add(&r->match, ni_match_key(who->hash, m->instance, l->op.func, l->op.sn, l->op.msg_bytes),
                      &e);
}

static int add_operation(struct ni_tr *r, struct ni_tr_member *m, uint32_t member, const struct ni_line *l) {
  int64_t start, dur;
  enum ni_placed how = ni_place(l, &start, &dur);
  r->count.operations += r->pass != NI_TR_MATCH;
  if (how == NI_NOWHERE)
    return 0;
  if (r->pass != NI_TR_MATCH && start < r->first_ns)
    r->first_ns = start;
  if (r->pass != NI_TR_MATCH && start > r->last_ns)
    r->last_ns = start;
  return r->pass == NI_TR_WHO ? 0 : match_operation(r, m, member, l, start, dur, how);
}

static int add_clock(struct ni_tr *r, struct ni_tr_member *m, const struct ni_clock_line *k) {
  if (!ni_gpu_point_sound(k->gpu_offset_at_ns, k->gpu_offset_ns))
    return 0;
  m->gpu_offset_ns = k->gpu_offset_ns;
  return r->pass == NI_TR_MATCH ? 0 : ni_gpu_points_add(&m->points, k->gpu_offset_at_ns, k->gpu_offset_ns);
}

static int add_gap(struct ni_tr *r, struct ni_tr_member *m, const struct ni_gap_line *g, int64_t told_us) {
  struct ni_tr_gap x = {.from = g->rec_sn_from,
                        .to = g->rec_sn_to,
                        .count = g->count,
                        .kind = ni_kind_from_name(g->kind),
                        .after_ns = NI_TR_NO_TIME,
                        .before_ns = NI_TR_NO_TIME,
                        .told_us = told_us,
                        .file = r->file,
                        .granule = r->granule};
  int e = ni_name(&r->names, &r->cache, g->cause, &x.cause);
  if (e < 0)
    return e;
  if (!ni_array_room(m->gap, m->n_gaps, m->cap_gaps))
    return -ENOMEM;
  m->gap[m->n_gaps++] = x;
  return 0;
}

/* More hanging operations than this in one communicator say no more than these. */
enum { OPEN_MAX = 4096 };

static int add_open_operation(struct ni_tr *r, struct ni_tr_member *m, const struct ni_unfinished_line *u,
                              int64_t told_us) {
  uint8_t kind = ni_kind_from_name(u->kind);
  struct ni_tr_open *x = NULL;
  for (size_t i = 0; i < m->n_open && !x; i++)
    if (m->open[i].u.rec_sn == u->rec_sn && m->open[i].kind == kind)
      x = &m->open[i];
  if (x && x->told_us > told_us)
    return 0;
  if (!x && m->n_open == OPEN_MAX) {
    r->count.open_lost++;
    return 0;
  }
  if (!x && !ni_array_room(m->open, m->n_open, m->cap_open))
    return -ENOMEM;
  if (!x)
    x = &m->open[m->n_open++];
  *x = (struct ni_tr_open){.u = *u, .told_us = told_us, .kind = kind};
  int e = ni_name(&r->names, &r->cache, u->func, &x->func);
  if (e == 0)
    e = ni_name(&r->names, &r->cache, u->why, &x->why);
  if (e == 0)
    e = ni_name(&r->names, &r->cache, u->state, &x->state);
  if (e == 0)
    e = ni_name(&r->names, &r->cache, u->net_state, &x->net_state);
  x->u.func = x->u.why = x->u.kind = x->u.state = x->u.net_state = x->u.datatype = NULL;
  return e;
}

/*
 * Does this list of kinds leave out P2P? A list of kinds names coll; the name of a preset does not. Without
 * P2P, NCCL does not tell of it and nobody counts it.
 */
static bool has_no_p2p(const char *events) {
  size_t n = events ? strlen(events) : 0;
  return n && strstr(events, "coll") && !strstr(events, "p2p,") &&
      (n < 3 || strcmp(events + n - 3, "p2p") != 0);
}

static int scan_line(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_line *l) {
  struct ni_tr_process *p = &r->process[w->process];
  struct ni_tr_member *m = w->member == NI_TR_NONE ? NULL : &r->member[w->member];
  if (w->dump_us > p->last_us)
    p->last_us = w->dump_us;
  if (r->pass == NI_TR_MATCH && l->kind != NI_LINE_OP && l->kind != NI_LINE_CLOCK)
    return 0;
  switch (l->kind) {
    case NI_LINE_PROCESS:
      p->has_lines = true;
      if (l->process.rank >= 0)
        p->rank = l->process.rank;
      for (uint32_t i = 0; i < l->process.settings.n; i++)
        if (strcmp(l->process.settings.item[i].key, "NCCL_INSPECTOR_EVENTS") == 0)
          p->p2p_changed |= has_no_p2p(l->process.settings.item[i].value);
      return 0;
    case NI_LINE_COMM:
      if (m && l->comm.init_ns && l->comm.gpu_index >= 0)
        m->gpu = l->comm.gpu_index;
      return 0;
    case NI_LINE_OP:
      return add_operation(r, m, w->member, l);
    case NI_LINE_CLOCK:
      return m ? add_clock(r, m, &l->clock) : 0;
    case NI_LINE_GAP:
      return m ? add_gap(r, m, &l->gap, w->dump_us) : 0;
    case NI_LINE_INCOMPLETE:
    case NI_LINE_STUCK:
    case NI_LINE_IN_FLIGHT:
      return m ? add_open_operation(r, m, &l->unfinished, w->dump_us) : 0;
    case NI_LINE_DUMP_STATS:
      p->final |= l->stats.has_accounting && l->stats.final && !m;
      return 0;
    case NI_LINE_CONTROL:
      p->p2p_changed |= has_no_p2p(l->control.events);
      return ni_tag_names_take(&r->tags, &l->control);
    case NI_LINE_API:
      p->has_api = true;
      return 0;
    case NI_LINE_LAUNCH:
      p->has_launches = true;
      return 0;
    case NI_LINE_PROXY:
      p->has_net |= l->proxy.start_ns != 0;
      return 0;
    default:
      return 0;
  }
}

static bool is_same_member(const struct ni_who_member *a, const struct ni_who_process *p,
                           const struct ni_ledger_member *m) {
  const struct ni_who_member *b = m->who;
  const struct ni_who_process *q = m->process->who;
  return a->hash == b->hash && a->rank == b->rank && a->n_ranks == b->n_ranks && a->init_ns == b->init_ns &&
      p->pid == q->pid && p->start_ns == q->start_ns && strcmp(p->host, q->host) == 0;
}

static uint64_t hash_member(const struct ni_who_member *m, const struct ni_who_process *p) {
  uint64_t hash = ni_hash(ni_hash(ni_hash(0, m->hash), (uint32_t)m->rank), m->init_ns);
  return ni_hash_text(ni_hash(hash, (uint64_t)p->pid), p->host);
}

/* Finds open operations whose record came after all: the account has their number. 0 or -ENOMEM. */
static int find_finished(struct ni_tr *r) {
  struct ni_index open = {0}; /* of members that have some */
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < r->n_members; i++)
    if (r->member[i].n_open)
      e = ni_index_add(&open, hash_member(&r->who.member[i], &r->who.process[r->who.member[i].process]), i);
  for (size_t k = 0; e == 0 && k < r->ledger.n_members; k++) {
    const struct ni_ledger_member *x = r->ledger.member[k];
    const uint64_t hash = hash_member(x->who, x->process->who);
    uint32_t i;
    for (size_t at = 0; (i = ni_index_next(&open, hash, &at)) != NI_INDEX_NONE;) {
      struct ni_tr_member *m = &r->member[i];
      const struct ni_who_member *who = &r->who.member[i];
      for (size_t o = 0; is_same_member(who, &r->who.process[who->process], x) && o < m->n_open; o++) {
        const struct ni_seq_set *there = &x->kind[m->open[o].kind].rec_sn;
        m->open[o].finished |=
            m->open[o].u.rec_sn < there->floor || ni_seq_set_has(there, m->open[o].u.rec_sn);
      }
    }
  }
  ni_index_free(&open);
  return e;
}

/* What is said of the whole run. */
static int settle_run(struct ni_tr *r) {
  int e = ni_tr_settle(r);
  if (e == 0)
    e = ni_ledger_judge(&r->ledger);
  if (e == 0)
    e = find_finished(r);
  if (e < 0)
    return e;
  for (size_t i = 0; i < r->ledger.n_members; i++)
    for (int k = 0; k < NI_KIND_COUNT; k++) {
      r->count.filtered += r->ledger.member[i]->kind[k].filtered;
      r->count.sampled += r->ledger.member[i]->kind[k].sampled;
    }
  const struct ni_tally *unknown = &r->ledger.unknown_kinds;
  r->count.unknown_lines = unknown->other;
  for (size_t i = 0; i < unknown->n; i++)
    r->count.unknown_lines += unknown->item[i].count;
  return 0;
}

int ni_tr_scan(struct ni_tr *r) {
  r->first_ns = INT64_MAX;
  r->last_ns = INT64_MIN;
  int e = r->log ? 0 : ni_match_init(&r->match, NI_MATCH_ENTRIES);
  if (e == 0)
    e = ni_tr_pass(r, r->log ? NI_TR_WHO : NI_TR_ALL, scan_line);
  if (e == 0 && !r->log)
    e = match_messages(r);
  return e < 0 ? e : settle_run(r);
}

static int match_all(struct ni_tr *r, bool windowed) {
  r->windowed = windowed;
  ni_tr_choose(r, NI_TR_MATCH);
  for (uint32_t i = 0; i < r->n_members; i++)
    r->member[i].gpu_offset_ns = NI_NO_OFFSET;
  for (uint32_t i = 0; i < r->n_hosts; i++) {
    r->host[i].first_ns = INT64_MAX;
    r->host[i].last_ns = INT64_MIN;
  }
  int e = ni_match_init(&r->match, NI_MATCH_ENTRIES);
  if (e == 0)
    e = ni_tr_pass(r, NI_TR_MATCH, scan_line);
  return e < 0 || windowed ? e : match_messages(r);
}

/* Do all hosts that are shown have a clock, within what was read for it? */
static bool are_clocks_known(const struct ni_tr *r) {
  for (uint32_t i = 0; i < r->n_units; i++) {
    const struct ni_tr_host *h = &r->host[r->process[r->unit[i].process].host];
    if (!r->unit[i].shown)
      continue;
    const int64_t at[] = {r->since_ns == INT64_MIN ? r->first_ns : r->since_ns,
                          r->until_ns == INT64_MAX ? r->last_ns : r->until_ns};
    for (int k = 0; k < 2; k++)
      if (!h->clock.aligned || fabs(ni_clock_ahead(&h->clock, at[k])) > (double)NI_TR_CLOCK_NS)
        return false;
  }
  return true;
}

int ni_tr_clocks(struct ni_tr *r) {
  const bool windowed = r->since_ns != INT64_MIN || r->until_ns != INT64_MAX;
  int e = r->log ? match_all(r, windowed) : 0;
  if (e == 0)
    e = ni_tr_align(r);
  const bool is_chosen = r->log && windowed;
  if (e == 0 && is_chosen && !are_clocks_known(r)) {
    e = match_all(r, false);
    if (e == 0)
      e = ni_tr_align(r);
  }
  return e;
}
