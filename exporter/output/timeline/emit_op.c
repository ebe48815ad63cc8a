/*
 * Operations: the kernel on the track of its communicator, its channels in verbose logs, and the enqueue on the host.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/model/timeline/scan.h"
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
  ni_tr_i64(e, NI_TR_K_RANK, m->rank);
  ni_tr_u64(e, NI_TR_K_COMM, m->hash);
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
  struct ni_tr_event e = {.ts = ni_tr_time(r, w->process, start), .dur = dur};
  int64_t enqueue = o->has & NI_HAS_ENQUEUE ? ni_tr_time(r, w->process, (int64_t)o->enqueue_ns) : NI_TR_NO_TIME;
  if (o->has & NI_HAS_REC_SN) ni_tr_note_gap_border(m, l->is_p2p, o->rec_sn, enqueue != NI_TR_NO_TIME ? enqueue : e.ts);
  if ((r->opt.coll.n && !ni_words_have_func(&r->opt.coll, o->func)) || !m->shown) return 0;
  uint32_t name;
  int err = name_of(r, l, "", &name);
  if (err < 0) return err;
  r->count.shown++;

  /* Only the bracket around the enqueue is known: no kernel can be drawn. */
  bool bracket_only = o->timing == NI_TIMING_COLLECTIVE_CPU;
  e.category = l->is_p2p ? NI_TR_C_P2P : NI_TR_C_COLL;
  if (bracket_only) {
    err = name_of(r, l, o->src == NI_SRC_CE ? " (copy engine, enqueue only)" : o->src == NI_SRC_API ? " (API call only)"
                                                                                               : " (enqueue only)", &e.name);
    if (err == 0) err = ni_tr_track(r, m->unit, w->member, NI_TR_T_ENQUEUE, 0, &e.track);
    e.category = NI_TR_C_ENQUEUE;
  } else {
    e.name = name;
    err = ni_tr_track(r, m->unit, w->member, l->is_p2p ? NI_TR_T_P2P : NI_TR_T_COLL, 0, &e.track);
  }
  if (err == 0) err = describe(r, &e, m, l);
  if (err < 0) return err;
  if (how == NI_TR_BY_ENQUEUE && !bracket_only) {
    r->count.start_assumed++;
    err = ni_tr_text(r, &e, NI_TR_K_PLACED, "enqueue: the start is not known");
  } else if (how == NI_TR_BY_CPU) {
    err = ni_tr_text(r, &e, NI_TR_K_PLACED, "arrival at the CPU");
  }
  if (err < 0) return err;
  if (enqueue != NI_TR_NO_TIME && !bracket_only && how != NI_TR_BY_ENQUEUE) ni_tr_i64(&e, NI_TR_K_WAITED, e.ts - enqueue);

  const struct ni_tr_process *p = &r->process[w->process];
  bool flows = !r->opt.no_flows && !bracket_only;
  /* Where the group of the plan is a line of its own, it shows the enqueue; network operations hang on the operation's. */
  if (!bracket_only && (!(o->has & NI_HAS_PLAN_SN) || p->has_net) && enqueue != NI_TR_NO_TIME) {
    uint64_t number = o->has & NI_HAS_REC_SN ? o->rec_sn : o->sn;
    /* A kernel may have begun before its call was told of (contract: the bracket comes after the launch). */
    bool forward = enqueue < e.ts && how != NI_TR_BY_ENQUEUE;
    struct ni_tr_event q = {.ts = enqueue, .name = name, .category = NI_TR_C_ENQUEUE};
    err = ni_tr_track(r, m->unit, w->member, NI_TR_T_ENQUEUE, 0, &q.track);
    ni_tr_u64(&q, NI_TR_K_SN, o->sn);
    if (flows && forward) {
      uint64_t id = ni_tr_arrow_id(w->member, NI_TR_A_ENQUEUE, l->is_p2p, number);
      ni_tr_arrow(&q, NI_TR_A_ENQUEUE, true, id);
      ni_tr_arrow(&e, NI_TR_A_ENQUEUE, false, id);
    }
    if (flows && p->has_net) ni_tr_arrow(&q, NI_TR_A_POST, true, ni_tr_arrow_id(w->member, NI_TR_A_POST, l->is_p2p, number));
    /* The call's bracket in verbose logs, else the moment of its start. */
    if (l->trace && l->trace->has_ts && l->trace->start_us && l->trace->stop_us > l->trace->start_us &&
        l->trace->stop_us - l->trace->start_us < 3600000000u)
      q.dur = (int64_t)(l->trace->stop_us - l->trace->start_us) * 1000;
    if (err == 0) err = ni_tr_put(r, &q);
  }
  if (flows && p->has_api && (o->has & NI_HAS_CALL_SN) && !o->graph)
    ni_tr_arrow(&e, NI_TR_A_CALL, false, ni_tr_arrow_id(w->member, NI_TR_A_CALL, l->is_p2p, o->call_sn));
  if (flows && p->has_launches && (o->has & NI_HAS_PLAN_SN))
    ni_tr_arrow(&e, NI_TR_A_LAUNCH, false, ni_tr_arrow_id(w->member, NI_TR_A_LAUNCH, 0, o->plan_sn));
  if (flows && p->has_net && (o->has & NI_HAS_REC_SN))
    ni_tr_arrow(&e, NI_TR_A_NET, true, ni_tr_arrow_id(w->member, NI_TR_A_NET, l->is_p2p, o->rec_sn));
  if (err == 0) err = ni_tr_put(r, &e);
  if (err == 0 && l->trace && l->trace->has_ts) err = put_channels(r, w, m, l, name);
  return err;
}
