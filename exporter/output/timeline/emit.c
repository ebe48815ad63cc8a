/*
 * The second pass: every line that is shown becomes events in aligned time.
 *
 * Here those beyond the operations (docs/format.md, 4b): calls of the API, launches, network operations and
 * their steps, the progress thread. A line without a communicator belongs to the process's first unit.
 */
#include "emit.h"

#include <math.h>
#include <string.h>

#include "exporter/base/now.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/model/timeline/choose.h"
#include "emit_others.h"
#include "emit_op.h"

struct track_place {
  uint32_t unit;
  bool shown;
};

static struct track_place find_place(const struct ni_tr *r, const struct ni_tr_where *w) {
  if (w->member != NI_TR_NONE)
    return (struct track_place){r->member[w->member].unit, r->member[w->member].shown};
  uint32_t u = r->process[w->process].first_unit;
  return (struct track_place){u, u != NI_TR_NONE && r->unit[u].shown && !r->opt.filter.comm.n};
}

/* Sets start and duration. What never stopped goes on to the last time known of the process, and says so. */
static int set_times(struct ni_tr *r, const struct ni_tr_where *w, struct ni_tr_event *e, uint64_t start_ns,
                     int64_t dur_ns, enum ni_tr_category category, const char *name) {
  char text[192];
  bool open = dur_ns < 0;
  int64_t last = r->process[w->process].last_us * 1000;
  e->category = (uint8_t)category;
  e->ts = ni_tr_time(r, w->process, (int64_t)start_ns);
  e->dur = !open ? dur_ns : last > (int64_t)start_ns ? last - (int64_t)start_ns : 0;
  if (open) {
    snprintf(text, sizeof text, "%.150s NOT FINISHED", name);
    e->category = NI_TR_C_OPEN;
  }
  return ni_name(&r->names, &r->cache, open ? text : name, &e->name);
}

static void set_number(struct ni_tr_event *e, enum ni_tr_key_id k, uint64_t v) {
  if (v != NI_NO_SN)
    ni_tr_u64(e, k, v);
}

static int fill_api(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_line *l,
                    struct ni_tr_event *e) {
  const struct ni_event_line *x = &l->event;
  bool group = strcmp(x->api, "group") == 0, p2p = strcmp(x->api, "p2p") == 0;
  int err = set_times(r, w, e, x->start_ns, x->dur_ns, NI_TR_C_API,
                      group          ? "group"
                          : *x->func ? x->func
                                     : "call");
  if (err < 0)
    return err;
  set_number(e, NI_TR_K_CALL_SN, x->call_sn);
  set_number(e, NI_TR_K_GROUP_SN, x->group_sn);
  if (group) {
    ni_tr_i64(e, NI_TR_K_DEPTH, x->depth);
  } else {
    ni_tr_u64(e, NI_TR_K_COUNT, x->count);
    err = ni_tr_text(r, e, NI_TR_K_DATATYPE, x->datatype);
    if (err == 0)
      err = ni_tr_text(r, e, NI_TR_K_SEEN, x->seen);
    ni_tr_u64(e, NI_TR_K_STREAM, x->stream);
  }
  if (x->graph)
    ni_tr_u64(e, NI_TR_K_GRAPH, 1);
  if (err == 0)
    err = ni_tr_tag(r, e, x->user_tag);
  if (r->opt.no_flows || err < 0)
    return err;
  if (group && x->group_sn != NI_NO_SN && r->process[w->process].has_launches)
    ni_tr_arrow(e, NI_TR_A_GROUP, true, ni_tr_arrow_id(w->process, NI_TR_A_GROUP, 0, x->group_sn));
  if (!group && x->call_sn != NI_NO_SN && !x->graph)
    ni_tr_arrow(e, NI_TR_A_CALL, true, ni_tr_arrow_id(w->member, NI_TR_A_CALL, p2p, x->call_sn));
  return 0;
}

static int fill_launch(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_line *l,
                       struct ni_tr_event *e) {
  const struct ni_event_line *x = &l->event;
  int err = set_times(r, w, e, x->start_ns, x->dur_ns, NI_TR_C_LAUNCH, "launch");
  set_number(e, NI_TR_K_PLAN_SN, x->plan_sn);
  set_number(e, NI_TR_K_GROUP_SN, x->group_sn);
  ni_tr_u64(e, NI_TR_K_STREAM, x->stream);
  if (r->opt.no_flows)
    return err;
  if (x->group_sn != NI_NO_SN)
    ni_tr_arrow(e, NI_TR_A_GROUP, false, ni_tr_arrow_id(w->process, NI_TR_A_GROUP, 0, x->group_sn));
  if (x->plan_sn != NI_NO_SN)
    ni_tr_arrow(e, NI_TR_A_LAUNCH, true, ni_tr_arrow_id(w->member, NI_TR_A_LAUNCH, 0, x->plan_sn));
  return err;
}

static int fill_copy(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_line *l,
                     struct ni_tr_event *e) {
  const struct ni_event_line *x = &l->event;
  char text[96];
  int err;
  if (l->kind == NI_LINE_CE) {
    snprintf(text, sizeof text, "%.60s (copy engine)", x->func);
    err = set_times(r, w, e, x->start_ns, x->dur_ns, NI_TR_C_API, text);
    ni_tr_u64(e, NI_TR_K_COUNT, x->count);
    if (err == 0)
      err = ni_tr_text(r, e, NI_TR_K_DATATYPE, x->datatype);
  } else {
    err = set_times(r, w, e, x->start_ns, x->dur_ns, NI_TR_C_API, l->kind == NI_LINE_SYNC ? "sync" : "batch");
    if (l->kind == NI_LINE_SYNC)
      ni_tr_i64(e, NI_TR_K_RANKS, x->n_ranks);
    else
      ni_tr_i64(e, NI_TR_K_OPS, x->n_ops);
    if (l->kind == NI_LINE_BATCH)
      ni_tr_u64(e, NI_TR_K_BYTES, x->bytes);
  }
  set_number(e, NI_TR_K_CALL_SN, x->call_sn);
  set_number(e, NI_TR_K_CE_SN, x->ce_sn);
  return err;
}

static int fill_proxy_thread(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_line *l,
                             struct ni_tr_event *e) {
  const struct ni_event_line *x = &l->event;
  char text[64];
  /* The flag flips: no duration of meaning. */
  bool flip = strcmp(x->what, "idle") == 0 || strcmp(x->what, "active") == 0;
  if (strcmp(x->what, "append") == 0)
    snprintf(text, sizeof text, "append %llu", (unsigned long long)x->appended);
  else
    snprintf(text, sizeof text, "%.40s", x->what);
  e->phase = flip ? NI_TR_INSTANT : NI_TR_SLICE;
  return set_times(r, w, e, x->start_ns, flip ? 0 : x->dur_ns, NI_TR_C_PROXY, text);
}

static int fill_net(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_line *l,
                    struct ni_tr_event *e) {
  const struct ni_event_line *x = &l->event;
  char text[64];
  snprintf(text, sizeof text, "%.40s", x->type);
  int err = set_times(r, w, e, x->start_ns, x->dur_ns, NI_TR_C_NET, text);
  set_number(e, NI_TR_K_PROXY_SN, x->proxy_op_sn);
  if (x->step >= 0)
    ni_tr_i64(e, NI_TR_K_STEP, x->step);
  ni_tr_u64(e, NI_TR_K_BYTES, x->bytes);
  return err;
}

static int emit_event(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_line *l) {
  static const uint8_t classes[] = {[NI_LINE_API] = NI_TR_T_CALLS,        [NI_LINE_LAUNCH] = NI_TR_T_CALLS,
                                    [NI_LINE_GROUP] = NI_TR_T_CALLS,      [NI_LINE_CE] = NI_TR_T_CALLS,
                                    [NI_LINE_SYNC] = NI_TR_T_CALLS,       [NI_LINE_BATCH] = NI_TR_T_CALLS,
                                    [NI_LINE_PROXY_CTRL] = NI_TR_T_PROXY, [NI_LINE_NET] = NI_TR_T_NET_PLUGIN};
  struct track_place at = find_place(r, w);
  struct ni_tr_event e = {0};
  const struct ni_event_line *x = &l->event;
  if (!at.shown || !ni_time_of_a_job((int64_t)x->start_ns))
    return 0;
  if (r->opt.filter.coll.n && *x->func && !ni_words_have_func(&r->opt.filter.coll, x->func))
    return 0;
  if (r->opt.filter.tag.n && *x->func && !ni_tags_have(&r->opt.filter.tag, x->user_tag))
    return 0;
  enum ni_tr_class class = classes[l->kind];
  /* One thread calls for all communicators; progress threads are one for each, unless shared. */
  uint32_t member = class == NI_TR_T_CALLS ? NI_TR_NONE : w->member;
  int err = ni_tr_track(r, at.unit, member, class, 0, &e.track);
  if (err < 0)
    return err;
  switch (l->kind) {
    case NI_LINE_API:
      err = fill_api(r, w, l, &e);
      break;
    case NI_LINE_LAUNCH:
      err = fill_launch(r, w, l, &e);
      break;
    case NI_LINE_GROUP:
      err = set_times(r, w, &e, x->start_ns, x->dur_ns, NI_TR_C_ENQUEUE, "enqueue");
      set_number(&e, NI_TR_K_PLAN_SN, x->plan_sn);
      break;
    case NI_LINE_PROXY_CTRL:
      err = fill_proxy_thread(r, w, l, &e);
      break;
    case NI_LINE_NET:
      err = fill_net(r, w, l, &e);
      break;
    default:
      err = fill_copy(r, w, l, &e);
      break;
  }
  if (w->member != NI_TR_NONE)
    ni_tr_u64(&e, NI_TR_K_COMM, r->who.member[w->member].hash);
  return err < 0 ? err : ni_tr_put(r, &e);
}

static void join_to_operation(struct ni_tr_event *e, uint32_t member, bool p2p, uint64_t rec_sn) {
  ni_tr_arrow(e, NI_TR_A_NET, false, ni_tr_arrow_id(member, NI_TR_A_NET, p2p, rec_sn));
  ni_tr_arrow(e, NI_TR_A_POST, false, ni_tr_arrow_id(member, NI_TR_A_POST, p2p, rec_sn));
}

/*
 * Some network operations never stop although all is well (CollNet). One that hangs belongs to an operation
 * that does.
 */
static bool is_parent_hanging(const struct ni_tr *r, const struct ni_tr_where *w, bool p2p, uint64_t rec_sn) {
  const struct ni_tr_member *m = w->member == NI_TR_NONE ? NULL : &r->member[w->member];
  for (size_t i = 0; m && i < m->n_open; i++)
    if (m->open[i].u.rec_sn == rec_sn && m->open[i].kind == p2p)
      return !m->open[i].finished;
  return false;
}

static int describe_net(struct ni_tr *r, struct ni_tr_event *e, const struct ni_proxy_line *x, bool step,
                        int64_t waited) {
  int err = 0;
  ni_tr_u64(e, NI_TR_K_PROXY_SN, x->proxy_op_sn);
  ni_tr_u64(e, NI_TR_K_BYTES, x->trans_size_bytes);
  ni_tr_i64(e, NI_TR_K_PEER, x->peer);
  if (step) {
    ni_tr_i64(e, NI_TR_K_STEP, x->step);
  } else {
    ni_tr_u64(e, NI_TR_K_STEPS, x->n_steps);
    ni_tr_u64(e, NI_TR_K_STEPS_DONE, x->n_steps_completed);
    ni_tr_f64(e, NI_TR_K_MAX_STEP, x->max_step_us);
    ni_tr_i64(e, NI_TR_K_QUEUED, waited);
    err = ni_tr_text(r, e, NI_TR_K_FUNC, x->parent_func);
    if (err == 0)
      err = ni_tr_text(r, e, NI_TR_K_STATE, x->state);
  }
  ni_tr_f64(e, NI_TR_K_GPU_PRODUCE, x->gpu_produce_us);
  ni_tr_f64(e, NI_TR_K_PEER_CREDIT, x->peer_credit_us);
  ni_tr_f64(e, NI_TR_K_WIRE, x->wire_us);
  ni_tr_f64(e, NI_TR_K_FLUSH, x->flush_us);
  ni_tr_f64(e, NI_TR_K_GPU_CONSUME, x->gpu_consume_us);
  if (x->origin_pid >= 0)
    ni_tr_i64(e, NI_TR_K_PID, x->origin_pid);
  return err;
}

/* A time in us that can be one; NAN and what is longer than an hour are none. */
static bool is_sane_us(double us) { return isfinite(us) && us >= 0 && us < 3.6e9; }

/* A network operation, or one of its steps. Several of one channel and direction are under way at once. */
static int emit_net(struct ni_tr *r, const struct ni_tr_where *w, const struct track_place *at,
                    const struct ni_proxy_line *x, bool step) {
  struct ni_tr_event e = {0};
  char size[32], text[160];
  if (!x->start_ns || !ni_time_of_a_job((int64_t)x->start_ns)) {
    r->count.proxy_untimed++;
    return 0;
  }
  bool send = strcmp(x->direction, "send") == 0;
  ni_size_text(x->trans_size_bytes, size);
  if (step)
    snprintf(text, sizeof text, "%s step %lld", send ? "send" : "receive", (long long)x->step);
  else
    snprintf(text, sizeof text, "%s rank %d, %s", send ? "send to" : "receive from", x->peer, size);
  bool p2p = x->parent_type && strcmp(x->parent_type, "p2p") == 0, known = is_sane_us(x->total_us);
  if (!known && !is_parent_hanging(r, w, p2p, x->parent_rec_sn)) {
    known = true;
    e.phase = NI_TR_INSTANT;
    memcpy(text + strlen(text), " (no stop)", sizeof " (no stop)");
  }
  /*
   * Posted operations of one connection wait for each other: from the first progress on it is this one's
   * turn.
   */
  int64_t waited = is_sane_us(x->progress_us) ? llround(x->progress_us * 1000) : 0;
  int64_t total = e.phase == NI_TR_INSTANT ? waited : known ? llround(x->total_us * 1000) : -1;
  if (known && waited > total)
    waited = 0;
  int err =
      set_times(r, w, &e, x->start_ns + (uint64_t)waited, known ? total - waited : -1, NI_TR_C_NET, text);
  const enum ni_tr_class class = step ? NI_TR_T_STEPS : send ? NI_TR_T_NET_SEND : NI_TR_T_NET_RECV;
  if (err == 0)
    err = ni_tr_track(r, at->unit, w->member, class, x->channel < 0 ? 0 : (uint32_t)x->channel, &e.track);
  if (err == 0)
    err = describe_net(r, &e, x, step, waited);
  const bool has_parent = w->member != NI_TR_NONE && x->parent_rec_sn != NI_NO_SN;
  if (!r->opt.no_flows && !step && e.phase != NI_TR_INSTANT && has_parent)
    join_to_operation(&e, w->member, p2p, x->parent_rec_sn);
  return err < 0 ? err : ni_tr_put(r, &e);
}

/* A step that lies in its operation's line, as the line of its own that it would have had. */
static int emit_nested(struct ni_tr *r, const struct ni_tr_where *w, const struct track_place *at,
                       const struct ni_proxy_line *op, const struct ni_proxy_step *n) {
  struct ni_proxy_line x = *op;
  x.trans_size_bytes = n->trans_size_bytes;
  x.step = n->step;
  x.start_ns = n->start_ns;
  x.total_us = n->total_us;
  x.gpu_produce_us = n->gpu_produce_us;
  x.peer_credit_us = n->peer_credit_us;
  x.wire_us = n->wire_us;
  x.flush_us = n->flush_us;
  x.gpu_consume_us = n->gpu_consume_us;
  x.progress_us = NAN;
  x.origin_pid = -1;
  x.parent_rec_sn = NI_NO_SN; /* a step that never stopped is a mark; what hangs, its operation says */
  return emit_net(r, w, at, &x, true);
}

static int emit_proxy(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_line *l) {
  const struct ni_proxy_line *x = &l->proxy;
  struct track_place at = find_place(r, w);
  int err = 0;
  if (!at.shown || r->opt.filter.tag.n)
    return 0; /* they do not say their operation's tag */
  if (r->opt.filter.coll.n && !ni_words_have_func(&r->opt.filter.coll, x->parent_func))
    return 0;
  for (uint64_t i = 0; i < x->steps.n && err == 0; i++)
    err = emit_nested(r, w, &at, x, &x->steps.list[i]);
  if (err == 0 && ni_proxy_has_figures(x))
    err = emit_net(r, w, &at, x, strcmp(x->record_type, "proxy_step") == 0);
  return err;
}

static int emit_line(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_line *l) {
  switch (l->kind) {
    case NI_LINE_OP:
      return ni_tr_emit_op(r, w, l);
    case NI_LINE_PROXY:
      return emit_proxy(r, w, l);
    case NI_LINE_API:
    case NI_LINE_LAUNCH:
    case NI_LINE_GROUP:
    case NI_LINE_CE:
    case NI_LINE_SYNC:
    case NI_LINE_BATCH:
    case NI_LINE_PROXY_CTRL:
    case NI_LINE_NET:
      return emit_event(r, w, l);
    default:
      return ni_tr_emit_mark(r, w, l);
  }
}

int ni_tr_emit(struct ni_tr *r) {
  for (uint32_t i = 0; i < r->n_members; i++) {
    r->member[i].gpu_offset_ns = NI_NO_OFFSET;
    ni_tr_sort_gaps(&r->member[i]);
  }
  if (r->log)
    ni_tr_choose(r, NI_TR_DRAW);
  int e = r->log ? ni_tr_choose_losses(r) : 0;
  if (e == 0)
    e = ni_tr_pass(r, NI_TR_DRAW, emit_line);
  if (e == 0)
    e = ni_tr_emit_kept(r);
  if (e == 0)
    e = ni_tr_emit_counters(r);
  if (e == 0)
    e = ni_tr_emit_with(r);
  return e < 0 ? ni_tr_fail(r, e, "%s", strerror(-e)) : 0;
}
