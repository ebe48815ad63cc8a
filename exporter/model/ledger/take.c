/*
 * Lines into the account: whose each one is, what it counts, what it states.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/now.h"
#include "exporter/base/text/plural.h"
#include "ledger.h"
#include "take.h"
#include "format/line_tables.h"
#include "format/names.h"

static int find_or_add_process(struct ni_ledger *c, const struct ni_line *l) {
  const struct ni_who_process *p = c->now_process < 0 ? NULL : &c->who.process[c->now_process];
  uint64_t start_ns = l->kind == NI_LINE_PROCESS ? l->process.start_ns : 0;
  bool same = p && p->pid == l->meta.pid && strcmp(p->host, l->meta.hostname) == 0;
  if (same && (start_ns == 0 || start_ns == p->start_ns))
    return 0;
  int64_t k = ni_who_process_in(&c->who, l->meta.hostname, l->meta.pid, start_ns, c->file->path);
  if (ni_ledger_accounts(c, k) < 0)
    return -ENOMEM;
  c->process[k]->ours |= l->meta.producer != NULL;
  c->process[k]->imported |= ni_is_imported(l->meta.rec_mechanism);
  c->now_process = k;
  c->now_member = -1;
  return 0;
}

/* If a hash comes back after destroy and init it is another member: a comm line tells. */
static int find_or_add_member(struct ni_ledger *c, const struct ni_line *l) {
  if (c->now_member >= 0 && l->kind != NI_LINE_COMM && ni_who_is(&c->who.member[c->now_member], &l->ident))
    return 0;
  uint64_t init_ns = l->kind == NI_LINE_COMM ? l->comm.init_ns : 0;
  c->now_member = ni_who_member(&c->who, (uint32_t)c->now_process, c->process[c->now_process]->file->run,
                                &l->ident, init_ns);
  return ni_ledger_accounts(c, c->now_member) < 0 ? -ENOMEM : 0;
}

static struct ni_ledger_func *find_or_add_func(struct ni_ledger_member *x, const char *name) {
  struct ni_ledger_func *f = x->funcs;
  while (f && strcmp(f->name, name) != 0)
    f = f->next;
  if (f)
    return f;
  f = calloc(1, sizeof *f);
  if (!f || !(f->name = strdup(name))) {
    free(f);
    return NULL;
  }
  f->next = x->funcs;
  return x->funcs = f;
}

static int count_nvidia(struct ni_ledger *c, const struct ni_line *l, struct ni_ledger_member *x) {
  struct ni_ledger_met *met = &c->met[l->func_no];
  const int k = c->now_member & 1;
  if (!l->func_no || met->member[k] != x) {
    met->func[k] = find_or_add_func(x, l->op.func);
    met->member[k] = met->func[k] ? x : NULL;
  }
  return met->func[k] ? ni_seq_set_add(&met->func[k]->sn, l->op.sn) : -ENOMEM;
}

static int count_func(struct ni_ledger *c, const struct ni_line *l) {
  struct ni_ledger_met *met = &c->met[l->func_no];
  if (l->func_no && met->tally) {
    c->funcs.item[met->tally - 1].count++;
    return 0;
  }
  int e = ni_tally_add(&c->funcs, l->op.func, 1);
  met->tally = c->funcs.last < NI_LEDGER_NAMES ? c->funcs.last + 1 : 0;
  return e;
}

static bool may_span_hosts(const struct ni_line *l) { return l->ident.n_ranks > 1 && l->ident.nnodes != 1; }

static int count_operation(struct ni_ledger *c, const struct ni_line *l, struct ni_ledger_member *x,
                           uint64_t line_no) {
  struct ni_ledger_kind *k = &x->kind[l->is_p2p];
  enum ni_implausible wrong = ni_implausible(&l->op);
  k->records++;
  c->operations++;
  if (wrong != NI_PLAUSIBLE) {
    c->implausible[wrong]++;
    ni_ledger_problem_at(c, NI_PROBLEM_IMPLAUSIBLE, 1, line_no, " %s", ni_implausible_names[wrong]);
  }
  int e = count_func(c, l);
  if (e == 0 && (l->op.has & NI_HAS_REC_SN))
    e = ni_seq_set_add(&k->rec_sn, l->op.rec_sn);
  else if (e == 0 && !x->ours && !l->is_p2p)
    e = count_nvidia(c, l, x);
  if (e == 0 && !l->is_p2p && may_span_hosts(l) && ni_anchors_want(&x->anchors, l->op.sn, l->op.msg_bytes))
    e = ni_anchors_add_line(&x->anchors, l);
  return e;
}

static int count_causes_by(struct ni_tally *t, const struct ni_by *by) {
  uint64_t listed = 0;
  for (uint32_t i = 0; i < by->n; i++) {
    listed += by->item[i].count;
    if (ni_tally_add(t, by->item[i].name, by->item[i].count) < 0)
      return -ENOMEM;
  }
  t->other += by->total - listed;
  return 0;
}

/*
 * Keeps the causes of what a rank lost that has no final line yet: the newest replace those of the line
 * before.
 */
static int keep_causes(struct ni_ledger *c, struct ni_ledger_kind *k, const struct ni_by *by) {
  free(k->cause);
  k->cause = NULL;
  k->n_causes = 0;
  if (!by->n)
    return 0;
  if (!(k->cause = calloc(by->n, sizeof *k->cause)))
    return -ENOMEM;
  for (uint32_t i = 0; i < by->n; i++) {
    if (ni_tally_add(&c->dropped_by, by->item[i].name, 0) < 0)
      return -ENOMEM;
    k->cause[k->n_causes++] = (struct ni_ledger_cause){(uint32_t)c->dropped_by.last, by->item[i].count};
  }
  return 0;
}

/* The kind of event that a line is, or -1. */
static int event_kind_of(const struct ni_line *l) {
  switch (l->kind) {
    case NI_LINE_API:
      return l->event.api[0] == 'g' ? NI_EVENT_GROUP_API
          : l->event.api[0] == 'p'  ? NI_EVENT_P2P_API
                                    : NI_EVENT_COLL_API;
    case NI_LINE_LAUNCH:
      return NI_EVENT_LAUNCH;
    case NI_LINE_GROUP:
      return NI_EVENT_GROUP;
    case NI_LINE_CE:
      return NI_EVENT_CE;
    case NI_LINE_SYNC:
      return NI_EVENT_SYNC;
    case NI_LINE_BATCH:
      return NI_EVENT_BATCH;
    case NI_LINE_PROXY_CTRL:
      return NI_EVENT_PROXY_CTRL;
    case NI_LINE_NET:
      return NI_EVENT_NET;
    case NI_LINE_PROXY: /* segments are a part of their operation, whose own line comes later */
      return strcmp(l->proxy.record_type, "proxy_step") == 0 ? NI_EVENT_STEPS
          : strcmp(l->proxy.record_type, "proxy_op") == 0    ? NI_EVENT_PROXY_OP
                                                             : -1;
    default:
      return -1;
  }
}

static void count_events(struct ni_ledger *c, struct ni_ledger_member *x, int kind, uint64_t n) {
  c->events[kind] += n;
  x->events_there[kind] += n;
}

bool ni_ledger_newest(const struct ni_ledger_member *x, bool final, uint64_t started) {
  return final == x->final ? started >= x->stats_started : final;
}

static int read_stats(struct ni_ledger *c, const struct ni_line *l, struct ni_ledger_member *x) {
  const struct ni_stats_line *s = &l->stats;
  if (!s->has_accounting) {
    for (int k = 0; k < NI_KIND_COUNT; k++)
      if (s->dropped_total[k] > x->kind[k].nvidia_dropped)
        x->kind[k].nvidia_dropped = s->dropped_total[k];
    return 0;
  }
  uint64_t started = s->kind[NI_KIND_COLL].started + s->kind[NI_KIND_P2P].started;
  bool newest = ni_ledger_newest(x, s->final, started);
  x->proxy_flushed += s->proxy_records;
  for (int i = 0; i < NI_KIND_COUNT; i++) {
    struct ni_ledger_kind *k = &x->kind[i];
    const struct ni_kind_stats *n = &s->kind[i];
    k->flushed += s->records[i];
    if (!newest)
      continue;
    k->stated = true;
    k->started = n->started;
    k->written = n->written;
    k->filtered = n->filtered_by.total;
    k->sampled = ni_by_count(&n->filtered_by, "sampled");
    k->dropped = n->dropped_by.total;
    k->expired = ni_by_count(&n->dropped_by, "expired");
    k->incomplete = n->incomplete;
    k->late = n->late;
    k->in_flight = n->in_flight;
    k->fallback = n->timing_fallback_by.total;
    /* Totals since the start: only the last line of a communicator may be added up by cause. */
    if (keep_causes(c, k, s->final ? &(struct ni_by){0} : &n->dropped_by) < 0)
      return -ENOMEM;
    if (!s->final)
      continue;
    if (count_causes_by(&c->dropped_by, &n->dropped_by) < 0 ||
        count_causes_by(&c->filtered_by, &n->filtered_by) < 0 ||
        count_causes_by(&c->fallback_by, &n->timing_fallback_by) < 0)
      return -ENOMEM;
  }
  if (newest)
    x->stats_started = started;
  for (int i = 0; newest && i < NI_EVENT_COUNT; i++) /* they only grow; a line by recover has none */
    if (s->events.kind[i].started >= x->events.kind[i].started)
      x->events.kind[i] = s->events.kind[i];
  if (s->final)
    x->final = true;
  if (s->refused_communicators)
    ni_ledger_problem(c, NI_PROBLEM_REFUSED, s->refused_communicators,
                      "%s: raise NCCL_INSPECTOR_POOL_MAX_BYTES, or give the job more memory", c->file->path);
  return s->final ? count_causes_by(&c->strays, &s->strays) : 0;
}

/* If the clock cannot be right, every time in the file is wrong. */
static void read_clock(struct ni_ledger *c, const struct ni_clock_line *k, uint64_t line_no) {
  struct ni_ledger_process *p = c->process[c->now_process];
  const struct ni_ledger_clock now = {k->ticks, k->monotonic_ns, line_no, k->ns_per_tick};
  const char *wrong = NULL;
  if (!ni_time_of_a_job((int64_t)k->realtime_ns))
    wrong = "realtime_ns is not between 2001 and 2100";
  else if (!(k->ns_per_tick >= 0.01 && k->ns_per_tick <= 1000))
    wrong = "ns_per_tick is not between 0.01 and 1000";
  else
    wrong = ni_ledger_clock_wrong(p->has_clock ? &p->clock : NULL, &now);
  if (wrong)
    ni_ledger_problem_at(c, NI_PROBLEM_CLOCK, 1, line_no, " %s", wrong);
  if (!p->has_clock)
    p->first_clock = now;
  p->has_clock = true;
  p->clock = now;
}

static struct ni_ledger_kind *find_kind(struct ni_ledger_member *x, const char *name) {
  return &x->kind[ni_kind_from_name(name)];
}

/* A line about a communicator, or about the process's own account. */
static int read_account_line(struct ni_ledger *c, const struct ni_line *l, struct ni_ledger_member *x,
                             int event) {
  if (event >= 0)
    count_events(c, x, event, 1);
  switch (l->kind) {
    case NI_LINE_PROXY:
      count_events(c, x, NI_EVENT_STEPS, l->proxy.steps.n + l->proxy.steps.more);
      x->proxy_lines++;
      return 0;
    case NI_LINE_DUMP_STATS:
      return read_stats(c, l, x);
    case NI_LINE_ROLLUP:
      ni_add_capped(&find_kind(x, l->rollup.kind)->rolled, l->rollup.count);
      x->process->rollups = true;
      return 0;
    case NI_LINE_COMM_END:
      x->killed = strcmp(l->comm_end.why, "killed") == 0;
      return 0;
    case NI_LINE_GAP:
      find_kind(x, l->gap.kind)->gap_lines += l->gap.count;
      return 0;
    case NI_LINE_INCOMPLETE:
      find_kind(x, l->unfinished.kind)->incomplete_lines++;
      return 0;
    case NI_LINE_LATE:
      find_kind(x, l->late.kind)->late_lines++;
      return 0;
    default:
      return 0;
  }
}

int ni_ledger_take(void *arg, struct ni_line *l, uint64_t line_no) {
  struct ni_ledger *c = arg;
  c->unknown_keys += l->unknown_keys;
  if (!l->has_header && l->kind == NI_LINE_PROXY)
    c->proxy_lines++;
  if (!l->has_header && l->kind != NI_LINE_OP)
    return 0;
  if (l->kind == NI_LINE_COUNTER_NAMES || l->kind == NI_LINE_COUNTERS)
    return ni_ledger_add_series(c, l);
  int e = find_or_add_process(c, l);
  if (e < 0)
    return e;
  /* Lines about the whole process carry the hash 0; an operation belongs to a communicator whatever its hash.
   * The process line opens the account that its last line closes. */
  int event = event_kind_of(l);
  bool about_comm = l->ident.comm_hash != 0 || l->kind == NI_LINE_OP || l->kind == NI_LINE_DUMP_STATS ||
      l->kind == NI_LINE_PROCESS || l->kind == NI_LINE_PROXY || event >= 0;
  if (about_comm && find_or_add_member(c, l) < 0)
    return -ENOMEM;
  struct ni_ledger_member *x = about_comm ? c->member[c->now_member] : NULL;
  struct ni_ledger_process *p = c->process[c->now_process];
  if (l->kind == NI_LINE_OP)
    return count_operation(c, l, x, line_no);
  c->control_lines++;
  c->unfinished += l->kind == NI_LINE_STUCK || l->kind == NI_LINE_IN_FLIGHT;
  p->control_lines = true;
  uint64_t sample = ni_sampling_of(l);
  if (sample > 1 && sample > p->sample)
    p->sample = sample;
  switch (l->kind) {
    case NI_LINE_PROCESS:
      p->has_line = true;
      c->since_231 += l->process.nccl_version >= 23100;
      p->limits |= ni_expiry_limits(&l->process);
      p->killed |= l->process.recovered_ns && !l->process.recovered_live;
      break;
    case NI_LINE_PROXY:
      c->proxy_lines++;
      break;
    case NI_LINE_CLOCK:
      read_clock(c, &l->clock, line_no);
      return x && may_span_hosts(l) ? ni_anchors_add_clock(&x->anchors, &l->clock) : 0;
    case NI_LINE_NOTE:
      c->notes++;
      break;
    case NI_LINE_CONTROL:
      if (strcmp(l->control.source, "mask") == 0)
        ni_ledger_problem_at(c, NI_PROBLEM_MASK, 1, line_no, ": %s", l->control.command);
      break;
    case NI_LINE_UNKNOWN:
      ni_ledger_problem_at(c, NI_PROBLEM_UNKNOWN_KIND, 1, line_no, " %s", l->kind_name);
      return ni_tally_add(&c->unknown_kinds, l->kind_name, 1);
    default:
      break;
  }
  return about_comm ? read_account_line(c, l, x, event) : 0;
}

int ni_ledger_fault(void *arg, const struct ni_fault *f) {
  struct ni_ledger *c = arg;
  switch (f->kind) {
    case NI_FAULT_BAD_LINE:
      c->reasons[f->why]++;
      c->bad_lines++;
      ni_ledger_problem_at(c, NI_PROBLEM_BAD_LINES, 1, f->line_no, "%s", "");
      return ni_ledger_sample(c, f->line_no, ": %s%s%s%s", ni_reject_name(f->why), f->key ? " (" : "",
                              f->key ? f->key : "", f->key ? ")" : "");
    case NI_FAULT_ORPHAN:
      c->orphans++;
      ni_ledger_problem_at(c, NI_PROBLEM_ORPHANS, 1, f->line_no, "%s", "");
      return 0;
    case NI_FAULT_MARKER:
      ni_ledger_problem_at(c, NI_PROBLEM_MARKER, f->announced - f->followed, f->line_no,
                           " announces %" PRIu64 " %s, %" PRIu64 " %s", f->announced,
                           ni_plural(f->announced, "record", "records"), f->followed,
                           ni_plural(f->followed, "follows", "follow"));
      return 0;
    case NI_FAULT_CUT_LINE:
      ni_ledger_problem_at(c, NI_PROBLEM_CUT, 1, f->line_no, " is cut: the file ends inside it");
      return 0;
  }
  return 0;
}

void ni_ledger_begin(struct ni_ledger *c, const struct ni_file *file, bool first) {
  c->file = file;
  c->first = first;
  c->file_lines = 0;
  c->now_process = c->now_member = -1;
  memset(c->met, 0, sizeof c->met);
}

void ni_ledger_end(struct ni_ledger *c, const struct ni_scan_end *end) {
  const struct ni_reader_stats *s = &end->stats;
  const char *path = c->file->path;
  c->files += c->first;
  c->file_bytes += s->file_bytes;
  c->text_bytes += s->text_bytes;
  c->lines += s->lines;
  c->file_lines = s->lines;
  c->blank += end->blank;
  c->reasons[NI_REJ_BLANK] += end->blank;
  if (end->error) {
    ni_ledger_problem(c, NI_PROBLEM_UNREADABLE, 1, "%s: %s", path, strerror(-end->error));
    return;
  }
  if (s->lines == 0 && s->damages == 0)
    ni_ledger_problem(c, NI_PROBLEM_EMPTY, 1, "%s", path);
  if (s->cut)
    ni_ledger_problem_at(c, NI_PROBLEM_CUT, 1, s->lines,
                         " is the last line before the file ends inside a gzip member");
  if (s->damages > s->cut)
    ni_ledger_problem(
        c, NI_PROBLEM_DAMAGED, s->damages - s->cut, "%s at byte %" PRIu64 ": %s%s", path, s->first_damage_at,
        s->first_damage == NI_INF_END ? "bytes that are no gzip" : ni_inflate_result_name(s->first_damage),
        s->gave_up ? ", gave up" : "");
}
