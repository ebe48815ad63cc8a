/*
 * Operations: the kernel on the track of its communicator, its channels in verbose logs, and the enqueue on the host.
 */
#include <string.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/model/timeline/scan.h"
#include "exporter/model/timeline/with.h"
#include "emit_marks.h"
#include "emit_op.h"

static int name_of(struct ni_tr *r, const struct ni_line *l, const char *after, uint32_t *out) {
  char size[32], text[160];
  ni_size_text(l->op.msg_bytes, size);
  if (l->is_p2p) snprintf(text, sizeof text, "%s %s %d %s%s", l->op.func, strcmp(l->op.func, "Recv") == 0 ? "from" : "to",
                          l->op.root, size, after);
  else snprintf(text, sizeof text, "%s %s%s", l->op.func, size, after);
  return ni_name(&r->names, &r->cache, text, out);
}

static int describe(struct ni_tr *r, struct ni_tr_event *e, const struct ni_tr_member *m, const struct ni_line *l) {
  const struct ni_record *o = &l->op;
  ni_tr_u64(e, NI_TR_K_SN, o->sn);
  ni_tr_u64(e, NI_TR_K_BYTES, o->msg_bytes);
  if ((o->has & NI_HAS_TESTS_SIZE) && o->tests_bytes != o->msg_bytes) ni_tr_u64(e, NI_TR_K_TESTS_BYTES, o->tests_bytes);
  if (o->has & NI_HAS_BUSBW) ni_tr_f64(e, NI_TR_K_BUSBW, o->busbw_gbs);
  int err = ni_tr_text(r, e, NI_TR_K_ALGO, o->algo);
  if (err == 0) err = ni_tr_text(r, e, NI_TR_K_PROTO, o->proto);
  if (err == 0) err = ni_tr_text(r, e, NI_TR_K_DATATYPE, o->datatype);
  if (l->is_p2p) ni_tr_i64(e, NI_TR_K_PEER, o->root);
  else if ((o->has & NI_HAS_ROOT) && (strcmp(o->func, "Broadcast") == 0 || strcmp(o->func, "Reduce") == 0))
    ni_tr_i64(e, NI_TR_K_ROOT, o->root);
  if (o->has & NI_HAS_NCHANNELS) ni_tr_u64(e, NI_TR_K_CHANNELS, o->nchannels);
  if (err == 0) err = ni_tr_text(r, e, NI_TR_K_TIMING, ni_timing_names[o->timing]);
  ni_tr_i64(e, NI_TR_K_RANK, ni_tr_who(r, m)->rank);
  ni_tr_u64(e, NI_TR_K_COMM, ni_tr_who(r, m)->hash);
  if (o->has & NI_HAS_REC_SN) ni_tr_u64(e, NI_TR_K_REC_SN, o->rec_sn);
  if (o->has & NI_HAS_CALL_SN) ni_tr_u64(e, NI_TR_K_CALL_SN, o->call_sn);
  if (o->has & NI_HAS_PLAN_SN) ni_tr_u64(e, NI_TR_K_PLAN_SN, o->plan_sn);
  if (o->graph) ni_tr_u64(e, NI_TR_K_GRAPH, 1);
  return err;
}

/* Channel events are times at which the CPU heard of them. A start without a stop goes to the end of its operation. */
static int put_channels(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_tr_member *m, const struct ni_line *l,
                        uint32_t name) {
  int err = 0;
  for (uint32_t i = 0; err == 0 && i < l->trace->n; i++) {
    const struct ni_trace_event *c = &l->trace->event[i];
    if (!c->start_us || c->start_us > INT64_MAX / 1000 || c->stop_us > INT64_MAX / 1000 || c->channel < 0) continue;
    struct ni_tr_event e = {.name = name, .category = NI_TR_C_CHANNEL};
    uint64_t stop = c->stop_us >= c->start_us ? c->stop_us : c->start_us;
    e.ts = ni_tr_time(r, w->process, (int64_t)c->start_us * 1000);
    e.dur = (int64_t)(stop - c->start_us) * 1000;
    err = ni_tr_track(r, m->unit, w->member, NI_TR_T_CHANNEL, (uint32_t)c->channel, &e.track);
    ni_tr_u64(&e, NI_TR_K_SN, l->op.sn);
    ni_tr_u64(&e, NI_TR_K_CHANNEL, (uint64_t)c->channel);
    if (err == 0) err = ni_tr_put(r, &e);
  }
  return err;
}

/* What one record comes to. */
struct drawn {
  struct ni_tr *r;
  const struct ni_tr_where *w;
  const struct ni_line *l;
  struct ni_tr_member *m;
  enum ni_tr_placed how;
  bool bracket_only;           /* only the bracket around the enqueue is known: no kernel can be drawn */
  bool flows;                  /* arrows are wanted, and there is a kernel for them */
  int64_t enqueue;             /* aligned; NI_TR_NO_TIME */
  uint32_t name;
  struct ni_tr_event e;        /* the kernel, or the bracket */
};

/* Its name, its track and what is said of it. */
static int take_kernel(struct drawn *d) {
  static const char *const brackets[NI_SRC_COUNT] = {[NI_SRC_CE] = " (copy engine, enqueue only)", [NI_SRC_API] = " (API call only)"};
  const struct ni_record *o = &d->l->op;
  bool p2p = d->l->is_p2p;
  int err = 0;
  d->e.category = d->bracket_only ? NI_TR_C_ENQUEUE : p2p ? NI_TR_C_P2P : NI_TR_C_COLL;
  d->e.name = d->name;
  if (d->bracket_only) err = name_of(d->r, d->l, brackets[o->src] ? brackets[o->src] : " (enqueue only)", &d->e.name);
  enum ni_tr_class class = d->bracket_only ? NI_TR_T_ENQUEUE : p2p ? NI_TR_T_P2P : NI_TR_T_COLL;
  if (err == 0) err = ni_tr_track(d->r, d->m->unit, d->w->member, class, 0, &d->e.track);
  if (err == 0) err = describe(d->r, &d->e, d->m, d->l);
  if (err < 0) return err;
  if (d->how == NI_TR_BY_ENQUEUE && !d->bracket_only) {
    d->r->count.start_assumed++;
    err = ni_tr_text(d->r, &d->e, NI_TR_K_PLACED, "enqueue: the start is not known");
  } else if (d->how == NI_TR_BY_CPU) {
    err = ni_tr_text(d->r, &d->e, NI_TR_K_PLACED, "arrival at the CPU");
  }
  if (err == 0 && d->enqueue != NI_TR_NO_TIME && !d->bracket_only && d->how != NI_TR_BY_ENQUEUE)
    ni_tr_i64(&d->e, NI_TR_K_WAITED, d->e.ts - d->enqueue);
  return err;
}

/*
 * The enqueue of a kernel, and the arrows from it. Where the group of the plan is a line of its own, that shows the enqueue;
 * network operations hang on the operation's.
 */
static int put_enqueue(struct drawn *d) {
  const struct ni_record *o = &d->l->op;
  const struct ni_trace *t = d->l->trace;
  uint32_t member = d->w->member;
  bool p2p = d->l->is_p2p, has_net = d->r->process[d->w->process].has_net;
  if (d->bracket_only || ((o->has & NI_HAS_PLAN_SN) && !has_net) || d->enqueue == NI_TR_NO_TIME) return 0;
  uint64_t number = o->has & NI_HAS_REC_SN ? o->rec_sn : o->sn;
  /* A kernel may have begun before its call was told of (contract: the bracket comes after the launch). */
  bool forward = d->enqueue < d->e.ts && d->how != NI_TR_BY_ENQUEUE;
  struct ni_tr_event q = {.ts = d->enqueue, .name = d->name, .category = NI_TR_C_ENQUEUE};
  int err = ni_tr_track(d->r, d->m->unit, member, NI_TR_T_ENQUEUE, 0, &q.track);
  ni_tr_u64(&q, NI_TR_K_SN, o->sn);
  if (d->flows && forward) {
    uint64_t id = ni_tr_arrow_id(member, NI_TR_A_ENQUEUE, p2p, number);
    ni_tr_arrow(&q, NI_TR_A_ENQUEUE, true, id);
    ni_tr_arrow(&d->e, NI_TR_A_ENQUEUE, false, id);
  }
  if (d->flows && has_net) ni_tr_arrow(&q, NI_TR_A_POST, true, ni_tr_arrow_id(member, NI_TR_A_POST, p2p, number));
  /* The call's bracket in verbose logs, else the moment of its start. */
  if (t && t->has_ts && t->start_us && t->stop_us > t->start_us && t->stop_us - t->start_us < 3600000000u)
    q.dur = (int64_t)(t->stop_us - t->start_us) * 1000;
  return err < 0 ? err : ni_tr_put(d->r, &q);
}

/* Arrows between the kernel and lines of other kinds. */
static void join_others(struct drawn *d) {
  const struct ni_record *o = &d->l->op;
  const struct ni_tr_process *p = &d->r->process[d->w->process];
  uint32_t member = d->w->member;
  bool p2p = d->l->is_p2p;
  if (!d->flows) return;
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
  int64_t start, dur, better;
  enum ni_tr_placed how = ni_tr_place(l, &start, &dur);
  if (how == NI_TR_NOWHERE) {
    r->count.no_start += m->shown;
    return 0;
  }
  if (how == NI_TR_BY_GPU && m->gpu_offset_ns != NI_NO_OFFSET && ni_gpu_clock_at(&r->unit[m->unit].clock, start, &better))
    start += better - m->gpu_offset_ns;
  struct drawn d = {.r = r, .w = w, .l = l, .m = m, .how = how, .bracket_only = o->timing == NI_TIMING_COLLECTIVE_CPU,
                    .e = {.ts = ni_tr_time(r, w->process, start), .dur = dur}};
  int err = how == NI_TR_BY_ENQUEUE || d.bracket_only ? 0 : ni_tr_with_note(r, m->unit, d.e.ts, o);
  if (err < 0) return err;
  d.flows = !r->opt.no_flows && !d.bracket_only;
  d.enqueue = o->has & NI_HAS_ENQUEUE ? ni_tr_time(r, w->process, (int64_t)o->enqueue_ns) : NI_TR_NO_TIME;
  if (o->has & NI_HAS_REC_SN) ni_tr_note_gap_border(m, l->is_p2p, o->rec_sn, d.enqueue != NI_TR_NO_TIME ? d.enqueue : d.e.ts);
  if ((r->opt.coll.n && !ni_words_have_func(&r->opt.coll, o->func)) || !m->shown) return 0; /* every filter is asked: which words fit nothing */
  if ((err = name_of(r, l, "", &d.name)) < 0) return err;
  r->count.shown++;
  if ((err = take_kernel(&d)) == 0) err = put_enqueue(&d);
  join_others(&d);
  if (err == 0) err = ni_tr_put(r, &d.e);
  if (err == 0 && l->trace && l->trace->has_ts) err = put_channels(r, w, m, l, d.name);
  return err;
}
