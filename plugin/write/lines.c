/*
 * The lines beside the operations: who wrote the log, with which clocks, and how the accounting closes.
 */
#include <string.h>

#include "plugin/dump/dump.h"

int ni_lines_put(struct ni_dump *d, const char *line, size_t n) {
  return n ? ni_gz_append(d->gz, line, n) : 0;
}

int ni_lines_room(struct ni_dump *d) {
  int rc = ni_gz_reserve(d->gz, NI_ROOM_BYTES);
  if (rc) d->no_room = 1;
  return rc;
}

/* A control line: left out when the settings say so. */
static int put_control(struct ni_dump *d, size_t n) {
  return ni_g.config.control_lines ? ni_lines_put(d, d->line, n) : 0;
}

size_t ni_lines_comm_text(struct ni_dump *d, struct ni_side *s) {
  struct ni_comm_line in = {&s->ident, s->has_gpu ? &s->gpu : NULL, s->init_ns};
  return ni_format_comm(d->line, sizeof d->line, &s->prefix, d->ts_us, &in);
}

int ni_side_identify(struct ni_dump *d, struct ni_side *s, int force) {
  if (s->identified) return 1;
  struct ni_comm *c = s->comm;
  uint32_t known = ni_load_acq(&c->ident); /* pairs with late_ident's release */
  if (known != NI_IDENT_GIVEN && known != NI_IDENT_KNOWN && !force) return 0;
  struct ni_ident id = s->ident;
  if (known == NI_IDENT_KNOWN) {
    id.comm_hash = c->late_hash;
    id.comm_name = c->has_name ? c->name : NULL;
    id.rank = c->late_rank;
  }
  /* The translations of 2.27 and later have no hash for v1 to v3: one of our own, so that communicators stay apart in
   * this process; it joins nothing across processes. */
  if (id.comm_hash == 0 && known != NI_IDENT_GIVEN)
    id.comm_hash = ((s->init_ns ^ ni_g.nonce) * UINT64_C(0x9e3779b97f4a7c15) + s->index) | UINT64_C(1) << 63;
  struct ni_line_prefix p;
  if (known != NI_IDENT_GIVEN) {
    if (ni_line_prefix_init(&p, &id, &d->origin)) return 0; /* no memory: the next tick tries again */
    ni_line_prefix_free(&s->prefix);
    s->prefix = p;
    s->ident = id;
  }
  s->identified = 1;
  return 1;
}

void ni_lines_comm(struct ni_dump *d, struct ni_side *s) {
  if (!ni_side_identify(d, s, 0)) return;
  if (put_control(d, ni_lines_comm_text(d, s))) return;
  s->announced = 1;
  d->comms_changed = 1; /* the head of the next file names it, too */
}

/* ---- accounting ---- */

uint64_t ni_side_filtered(const struct ni_side *s, int kind, enum ni_filter f) {
  uint64_t n = ni_load_rlx(&s->comm->kind[kind].filtered[f]);
  return f == NI_FILTER_NO_KERNEL_TIMING ? n + s->kind[kind].told->judged_out : n;
}

uint64_t ni_side_dropped(const struct ni_side *s, int kind, enum ni_drop why) {
  uint64_t n = ni_load_rlx(&s->comm->kind[kind].dropped[why]);
  return why == NI_DROP_WRITE_ERROR ? n + s->kind[kind].told->lost_write : n;
}

int64_t ni_side_unsettled(const struct ni_side *s, int kind) {
  const struct ni_side_kind *k = &s->kind[kind];
  uint64_t settled = k->told->written + k->in_block + k->told->incomplete;
  for (int f = 0; f < NI_FILTER_COUNT; f++) settled += ni_side_filtered(s, kind, (enum ni_filter)f);
  for (int w = 0; w < NI_DROP_COUNT; w++) settled += ni_side_dropped(s, kind, (enum ni_drop)w);
  return (int64_t)(ni_load_rlx(&s->comm->kind[kind].started) - settled);
}

/*
 * Fills the accounting of one kind. in_flight is what is left of `started`. On a final line of a destroyed
 * communicator nothing moves any more and walking the slot states must give the same; at exit callbacks may still run,
 * and what they finish after the drain counts as in flight. `started` is read last: an operation that starts while we
 * add up appears in flight, never as a negative number.
 */
static void fill_kind(struct ni_side *s, int kind, int final, struct ni_kind_stats *o) {
  struct ni_side_kind *k = &s->kind[kind];
  uint64_t settled = o->written = k->told->written + k->in_block, dropped = 0;
  for (int f = 0; f < NI_FILTER_COUNT; f++) settled += o->filtered[f] = ni_side_filtered(s, kind, (enum ni_filter)f);
  for (int w = 0; w < NI_DROP_COUNT; w++) {
    /* At exit operations are still dropped: the last line states those that its gap lines name, more are in flight. */
    bool as_told = final && w <= NI_DROP_OVERWRITTEN;
    dropped += o->dropped[w] = as_told ? k->gap_seen[w] : ni_side_dropped(s, kind, (enum ni_drop)w);
  }
  settled += dropped + (o->incomplete = k->told->incomplete);
  o->late = ni_load_rlx(&s->comm->kind[kind].late);
  memcpy(o->fallback, k->told->fallback, sizeof o->fallback);
  atomic_thread_fence(memory_order_seq_cst); /* the counters above are read before `started` below */
  o->started = ni_load_rlx(&s->comm->kind[kind].started);
  o->in_flight = o->started > settled ? o->started - settled : 0;
  o->records = o->written - k->stats_lines;
  o->dropped_since_last = dropped - k->stats_dropped;
}

static void fill_events(struct ni_stats_line *in, const struct ni_event_store *st, const struct ni_side_events *ev) {
  ni_events_fill_stats(st, ev, in->events);
  in->proxy_records = ev->proxy_lines - ev->stats_lines; /* lines: steps inside others do not count, as with NVIDIA */
  in->proxy_dropped_total = in->events[NI_EVENT_PROXY_OP].dropped + in->events[NI_EVENT_STEPS].dropped;
  in->proxy_dropped_since = in->proxy_dropped_total - ev->stats_dropped;
}

static void told_events(const struct ni_stats_line *in, struct ni_side_events *ev) {
  ev->stats_lines += in->proxy_records;
  ev->stats_dropped = in->proxy_dropped_total;
}

void ni_lines_stats(struct ni_dump *d, struct ni_side *s, int final) {
  struct ni_stats_line in = {.final = final != 0};
  for (int kind = 0; kind < NI_KIND_COUNT; kind++) fill_kind(s, kind, final, &in.kind[kind]);
  for (int i = 0; i < NI_STRAY_COUNT; i++) in.strays[i] = ni_load_rlx(&s->comm->stray[i]);
  fill_events(&in, &s->comm->events, &s->ev);
  if (put_control(d, ni_format_dump_stats(d->line, sizeof d->line, &s->prefix, d->ts_us, &in))) return;
  s->last_stats_ms = d->now_ms;
  s->stuck_told = 0;
  told_events(&in, &s->ev);
  for (int kind = 0; kind < NI_KIND_COUNT; kind++) {
    s->kind[kind].stats_lines = in.kind[kind].written;
    s->kind[kind].stats_dropped += in.kind[kind].dropped_since_last;
  }
}

void ni_lines_gaps(struct ni_dump *d, struct ni_side *s) {
  int lost = 0;
  for (int kind = 0; kind < NI_KIND_COUNT; kind++)
    for (int why = 0; why <= NI_DROP_OVERWRITTEN; why++) {
      struct ni_comm_kind *c = &s->comm->kind[kind];
      if (!ni_load_rlx(&c->gap[why].first)) continue;
      if (ni_lines_room(d)) return; /* the mark stays, and so does what it stands for */
      /* The count before the mark. Acquire pairs with note_drop's release: first and last cover all that are counted. */
      uint64_t total = ni_load_acq(&c->dropped[why]), first = ni_swap_acqrel(&c->gap[why].first, 0);
      uint64_t last = ni_load_rlx(&c->gap[why].last);
      uint64_t *seen = &s->kind[kind].gap_seen[why];
      if (total == *seen) continue;
      struct ni_gap_line in = {.kind = (enum ni_kind)kind,
                               .cause = (enum ni_drop)why,
                               .count = total - *seen,
                               .rec_sn_from = first - 1,
                               .rec_sn_to = (last > first ? last : first) - 1};
      (void)put_control(d, ni_format_gap(d->line, sizeof d->line, &s->prefix, d->ts_us, &in));
      *seen = total;
      lost = 1;
    }
  if (!lost) return;
  ni_lines_stats(d, s, 0);
  ni_log_warn_limited(&ni_g.log, NI_LOG_CAUSE_POOL, d->now_ns,
                      "operations of communicator 0x%llx were not recorded (pool or arena full); the log counts them. "
                      "Raise NCCL_INSPECTOR_POOL_MAX_BYTES (now %llu), or with POOL_GROW=0 the pool sizes",
                      (unsigned long long)s->ident.comm_hash, (unsigned long long)ni_g.config.pool_max_bytes);
}

void ni_lines_given_up(struct ni_dump *d, struct ni_side *s, int kind, uint64_t count, uint64_t from, uint64_t to) {
  struct ni_gap_line in = {(enum ni_kind)kind, NI_DROP_WRITE_ERROR, count, from, to};
  (void)put_control(d, ni_format_gap(d->line, sizeof d->line, &s->prefix, d->ts_us, &in));
}

static void pool_line(struct ni_dump *d, struct ni_side *s, const char *kind, const struct ni_pool *p, uint64_t bytes,
                      uint64_t dropped) {
  uint64_t cap = ni_pool_capacity(p);
  struct ni_pool_line in = {.kind = kind,
                            .capacity = cap,
                            .high_water = ni_pool_high_water(p),
                            .growths = ni_load_rlx(&p->growths),
                            .bytes = cap * bytes,
                            .slot_bytes = bytes,
                            .dropped = dropped};
  (void)put_control(d, ni_format_pool_stats(d->line, sizeof d->line, &s->prefix, d->ts_us, &in));
}

static void pool_lines(struct ni_dump *d, struct ni_side *s) {
  for (int kind = 0; kind < NI_KIND_COUNT; kind++) {
    uint64_t dropped = 0;
    for (int why = 0; why <= NI_DROP_OVERWRITTEN; why++) dropped += ni_side_dropped(s, kind, (enum ni_drop)why);
    pool_line(d, s, ni_kind_names[kind], &s->comm->kind[kind].pool, NI_SLOT_BYTES, dropped);
  }
  /* Only of pools that were used; what they could not take is counted by kind in dump_stats. */
  const struct ni_event_store *st = &s->comm->events;
  if (ni_pool_capacity(&st->events)) pool_line(d, s, "event", &st->events, NI_SLOT_BYTES, 0);
  if (ni_pool_capacity(&st->proxies)) pool_line(d, s, "proxy", &st->proxies, NI_PROXY_SLOTS * NI_SLOT_BYTES, 0);
}

static int clock_line(struct ni_dump *d, const struct ni_line_prefix *p, struct ni_side *s) {
  struct ni_clock *c = &ni_g.clock;
  struct ni_clock_line in = {.source = ni_clock_source_name(c->source),
                             .ticks = c->newest.ticks,
                             .monotonic_ns = c->newest.monotonic_ns,
                             .realtime_ns = c->newest.realtime_ns,
                             .ns_per_tick = c->ns_per_tick};
  int64_t offset;
  uint64_t at;
  if (s && ni_gpu_fit_offset(&s->fit, &offset, &at)) {
    uint64_t to_unix = c->newest.realtime_ns - c->newest.monotonic_ns; /* the fit is in monotonic time */
    in.has_gpu = true;
    in.gpu_offset_ns = offset + (int64_t)to_unix;
    in.gpu_offset_at_ns = at + to_unix;
    in.gpu_samples = s->fit.n_samples;
  }
  int rc = put_control(d, ni_format_clock(d->line, sizeof d->line, p, d->ts_us, &in));
  if (rc == 0 && in.has_gpu) {
    s->stated_offset_ns = offset;
    s->offset_stated = 1;
  }
  return rc;
}

/* Below this a difference is not worth a line: the GPU's clock counts in steps of 32 ns to 1 us. */
enum { STATED_NS = 1000 };

int ni_lines_gpu_offset(struct ni_dump *d, struct ni_side *s) {
  int64_t offset, off;
  if (!ni_g.config.control_lines || !ni_gpu_fit_offset(&s->fit, &offset, NULL)) return 0;
  if (s->offset_stated && !__builtin_sub_overflow(offset, s->stated_offset_ns, &off) && off >= -STATED_NS && off <= STATED_NS)
    return 0;
  return clock_line(d, &s->prefix, s);
}

void ni_lines_clock(struct ni_dump *d) {
  (void)clock_line(d, &d->process_prefix, NULL);
  for (struct ni_side *s = d->sides; s; s = s->next)
    if (s->fit.n_samples != s->clock_samples) {
      s->clock_samples = s->fit.n_samples;
      (void)clock_line(d, &s->prefix, s);
    }
}

void ni_lines_end(struct ni_dump *d, struct ni_side *s, enum ni_end end) {
  ni_lines_gaps(d, s);
  pool_lines(d, s);
  (void)clock_line(d, &s->prefix, s);
  for (int kind = 0; end == NI_END_DESTROY && kind < NI_KIND_COUNT; kind++) {
    struct ni_kind_stats k;
    fill_kind(s, kind, 1, &k);
    uint64_t walked = ni_judge_in_flight(s, (enum ni_kind)kind);
    if (walked != k.in_flight || ni_side_unsettled(s, kind) < 0)
      ni_lines_note(d, "the accounting of a communicator does not close: operations in flight by slot states differ from "
                       "started - settled");
  }
  ni_lines_stats(d, s, 1);
  (void)put_control(d, ni_format_comm_end(d->line, sizeof d->line, &s->prefix, d->ts_us,
                                          end == NI_END_DESTROY ? "destroy" : "exit", ni_realtime_ns()));
}

void ni_lines_late(struct ni_dump *d) {
  struct ni_late l;
  while (!ni_late_empty(&ni_g.late) && ni_lines_room(d) == 0 && ni_late_pop(&ni_g.late, &l)) {
    struct ni_side *s = d->sides;
    while (s && s->comm->page != l.comm_page) s = s->next;
    if (!s) continue; /* its communicator is over; its final line has counted the child */
    struct ni_late_line in = {(enum ni_kind)l.kind, ni_intern_text(&ni_g.intern, l.func), l.sn, l.rec_sn,
                              l.channel,            l.stop_gpu_ns};
    (void)put_control(d, ni_format_late(d->line, sizeof d->line, &s->prefix, d->ts_us, &in));
  }
}

void ni_lines_process_end(struct ni_dump *d) {
  struct ni_arena_line in = {.capacity_bytes = ni_arena_high_bytes(&ni_g.arena),
                             .used_bytes = ni_arena_used_bytes(&ni_g.arena),
                             .high_water_bytes = ni_arena_high_bytes(&ni_g.arena),
                             .cap_bytes = ni_g.arena.cap_bytes};
  (void)put_control(d, ni_format_arena_stats(d->line, sizeof d->line, &d->process_prefix, d->ts_us, &in));
  (void)clock_line(d, &d->process_prefix, NULL);
  /* Losses and strays that belong to no communicator: header id 0x0. */
  struct ni_stats_line st = {.final = true, .refused_communicators = ni_load_rlx(&ni_g.refused_comms)};
  for (int i = 0; i < NI_STRAY_COUNT; i++) st.strays[i] = ni_load_rlx(&ni_g.stray[i]);
  fill_events(&st, &ni_g.detached, &d->detached);
  ni_out_expire(&d->out, d->now_ns); /* a last look at what became of earlier files */
  struct ni_out_lost lost = ni_out_lost(&d->out);
  st.kind[NI_KIND_COLL].dropped[NI_DROP_EXPIRED] = lost.expired_records;
  st.kind[NI_KIND_COLL].dropped[NI_DROP_WRITE_ERROR] = lost.deleted_records;
  (void)put_control(d, ni_format_dump_stats(d->line, sizeof d->line, &d->process_prefix, d->ts_us, &st));
  if (ni_load_rlx(&ni_g.intern.overflow))
    ni_lines_note(d, "more different strings than the table holds: some function, datatype, algorithm or protocol names "
                     "read Unknown");
  if (st.refused_communicators)
    ni_lines_note(d, "some communicators were not recorded at all: no memory, or NCCL_INSPECTOR_POOL_MAX_BYTES was reached "
                     "at their init");
  if (ni_load_rlx(&ni_g.traces.lost))
    ni_lines_note(d, "no memory for the channel traces of some operations: their records have none; raise "
                     "NCCL_INSPECTOR_POOL_MAX_BYTES");
  if (ni_load_rlx(&ni_g.late.lost)) ni_lines_note(d, "more late channels than could be listed: some have no late line");
}

void ni_lines_note(struct ni_dump *d, const char *text) {
  (void)put_control(d, ni_format_note(d->line, sizeof d->line, &d->process_prefix, d->ts_us, text));
}

void ni_lines_control(struct ni_dump *d, const struct ni_control_line *in) {
  (void)put_control(d, ni_format_control(d->line, sizeof d->line, &d->process_prefix, d->ts_us, in));
}

/* ---- head of a file ---- */

static int put_head(struct ni_dump *d, size_t n) { return n ? ni_gz_append(d->gz_head, d->line, n) : 0; }

size_t ni_lines_process(struct ni_dump *d) {
  char interface[8] = {'v', (char)('0' + ni_g.interface), 0};
  struct ni_process_line in = {.start_ns = d->start_ns,
                               .boot_id = d->boot_id,
                               .exe = d->exe,
                               .interface = interface,
                               .rank = d->job.rank,
                               .local_rank = d->job.local_rank,
                               .world_size = d->job.world_size,
                               .env = d->job.env,
                               .n_env = d->job.n_env,
                               .nccl_version = ni_g.nccl_version,
                               .settings_json = d->settings,
                               .blackbox_wanted = ni_g.box.wanted,
                               .blackbox = ni_g.box.h ? ni_g.box.file.path : NULL,
                               .blackbox_why = ni_g.box.why};
  return ni_format_process(d->line, sizeof d->line, &d->process_prefix, d->ts_us, &in);
}

int ni_lines_head(struct ni_dump *d, struct ni_out *out, int comms) {
  if (!ni_g.config.control_lines) return 0;
  int rc = put_head(d, ni_lines_process(d));
  for (struct ni_side *s = comms ? d->sides : NULL; s && rc == 0; s = s->next)
    if (s->announced) rc = put_head(d, ni_lines_comm_text(d, s));
  const void *block;
  size_t n;
  if (rc == 0) rc = ni_gz_finish(d->gz_head, &block, &n);
  if (rc == 0) rc = ni_out_set_preamble(out, block, n);
  ni_gz_release(d->gz_head);
  return rc;
}
