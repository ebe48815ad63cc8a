#include "lines.h"

#include "accounts.h"
#include "block.h"
#include "plugin/slots/state.h"

/* A control line: left out when the settings say so. */
static int put_control(struct ni_writer *w, size_t n) {
  return ni_g.config.control_lines ? ni_block_put(w, w->line, n) : 0;
}

size_t ni_lines_comm_text(struct ni_writer *w, struct ni_comm_writer *s) {
  struct ni_comm_line in = {.name = s->ident.comm_name,
                            .hash = s->ident.comm_hash,
                            .rank = s->ident.rank,
                            .n_ranks = s->ident.n_ranks,
                            .nnodes = s->ident.nnodes,
                            .gpu_index = s->gpu.index,
                            .gpu_uuid = *s->gpu.uuid ? s->gpu.uuid : NULL,
                            .gpu_pci = *s->gpu.pci ? s->gpu.pci : NULL,
                            .init_ns = s->init_ns};
  return ni_format_comm(w->line, sizeof w->line, &s->prefix, w->ts_us, &in);
}

int ni_lines_identify(struct ni_writer *w, struct ni_comm_writer *s, int force) {
  if (s->identified)
    return 1;
  struct ni_comm *c = s->comm;
  uint32_t known = ni_load_acq(&c->ident); /* pairs with late_ident's release */
  if (known != NI_IDENT_GIVEN && known != NI_IDENT_KNOWN && !force)
    return 0;
  struct ni_ident id = s->ident;
  if (known == NI_IDENT_KNOWN) {
    id.comm_hash = c->late_hash;
    id.comm_name = c->has_name ? c->name : NULL;
    id.rank = c->late_rank;
  }
  /* The translations of 2.27 and later have no hash for v1 to v3: one of our own, so that communicators stay
   * apart in this process; it joins nothing across processes. */
  if (id.comm_hash == 0 && known != NI_IDENT_GIVEN)
    id.comm_hash = ((s->init_ns ^ ni_g.nonce) * UINT64_C(0x9e3779b97f4a7c15) + s->index) | UINT64_C(1) << 63;
  struct ni_line_prefix p;
  if (known != NI_IDENT_GIVEN) {
    if (ni_line_prefix_init(&p, &id, &w->origin))
      return 0; /* no memory: the next tick tries again */
    ni_line_prefix_free(&s->prefix);
    s->prefix = p;
    s->ident = id;
  }
  s->identified = 1;
  return 1;
}

void ni_lines_comm(struct ni_writer *w, struct ni_comm_writer *s) {
  if (!ni_lines_identify(w, s, 0))
    return;
  if (put_control(w, ni_lines_comm_text(w, s)))
    return;
  s->announced = 1;
  w->comms_changed = 1; /* the head of the next file names it, too */
}

/* ---- accounting ---- */

static void fill_events(struct ni_stats_line *in, const struct ni_event_store *st,
                        const struct ni_event_writer *ev) {
  struct ni_event_stats *e = in->events.kind;
  ni_accounts_events(st, ev, e);
  for (int i = 0; i < NI_EVENT_COUNT; i++)
    in->has_events |= e[i].started != 0;
  /* lines: steps inside others do not count, as with NVIDIA */
  in->proxy_records = ev->proxy_lines - ev->stats_lines;
  in->proxy_dropped_total = e[NI_EVENT_PROXY_OP].dropped + e[NI_EVENT_STEPS].dropped;
  in->proxy_dropped_since = in->proxy_dropped_total - ev->stats_dropped;
}

static void told_events(const struct ni_stats_line *in, struct ni_event_writer *ev) {
  ev->stats_lines += in->proxy_records;
  ev->stats_dropped = in->proxy_dropped_total;
}

void ni_lines_stats(struct ni_writer *w, struct ni_comm_writer *s, int final) {
  struct ni_stats_line in = {.final = final != 0};
  struct ni_kind_counts counts[NI_KIND_COUNT];
  uint64_t strays[NI_STRAY_COUNT];
  for (int kind = 0; kind < NI_KIND_COUNT; kind++) {
    ni_accounts_fill(s, kind, final, &counts[kind]);
    ni_stats_set_kind(&in, (enum ni_kind)kind, &counts[kind]);
  }
  for (int i = 0; i < NI_STRAY_COUNT; i++)
    strays[i] = ni_load_rlx(&s->comm->stray[i]);
  ni_stats_set_strays(&in, strays);
  fill_events(&in, &s->comm->events, &s->ev);
  if (put_control(w, ni_format_dump_stats(w->line, sizeof w->line, &s->prefix, w->ts_us, &in)))
    return;
  s->last_stats_ms = w->now_ms;
  s->stuck_told = 0;
  told_events(&in, &s->ev);
  for (int kind = 0; kind < NI_KIND_COUNT; kind++) {
    s->kind[kind].stats_lines = counts[kind].written;
    s->kind[kind].stats_dropped += counts[kind].dropped_since_last;
  }
}

void ni_lines_gaps(struct ni_writer *w, struct ni_comm_writer *s) {
  int lost = 0;
  for (int kind = 0; kind < NI_KIND_COUNT; kind++)
    for (int why = 0; why < NI_DROP_OF_CALLBACKS; why++) {
      struct ni_comm_kind *c = &s->comm->kind[kind];
      if (!ni_load_rlx(&c->gap[why].first))
        continue;
      if (ni_block_room(w))
        return; /* the mark stays, and so does what it stands for */
      /*
       * The count before the mark. Acquire pairs with ni_lose's release: first and last cover all that are
       * counted.
       */
      uint64_t total = ni_load_acq(&c->dropped[why]), first = ni_swap_acqrel(&c->gap[why].first, 0);
      uint64_t last = ni_load_rlx(&c->gap[why].last);
      uint64_t *seen = &s->kind[kind].gap_seen[why];
      if (total == *seen)
        continue;
      struct ni_gap_line in = {.kind = ni_kind_names[kind],
                               .cause = ni_drop_names[why],
                               .count = total - *seen,
                               .rec_sn_from = first - 1,
                               .rec_sn_to = (last > first ? last : first) - 1};
      (void)put_control(w, ni_format_gap(w->line, sizeof w->line, &s->prefix, w->ts_us, &in));
      *seen = total;
      lost = 1;
    }
  if (!lost)
    return;
  ni_lines_stats(w, s, 0);
  ni_log_warn_limited(
      &ni_g.log, NI_LOG_CAUSE_POOL, w->now_ns,
      "operations of communicator 0x%llx were not recorded (pool or arena full); the log counts them. "
      "Raise NCCL_INSPECTOR_POOL_MAX_BYTES (now %llu), or with POOL_GROW=0 the pool sizes",
      (unsigned long long)s->ident.comm_hash, (unsigned long long)ni_g.config.pool_max_bytes);
}

void ni_lines_given_up(struct ni_writer *w, struct ni_comm_writer *s, int kind, uint64_t count, uint64_t from,
                       uint64_t to) {
  struct ni_gap_line in = {ni_kind_names[kind], ni_drop_names[NI_DROP_WRITE_ERROR], count, from, to};
  (void)put_control(w, ni_format_gap(w->line, sizeof w->line, &s->prefix, w->ts_us, &in));
}

static void pool_line(struct ni_writer *w, struct ni_comm_writer *s, const char *kind,
                      const struct ni_pool *p, uint64_t bytes, uint64_t dropped) {
  uint64_t cap = ni_pool_capacity(p);
  struct ni_pool_line in = {.kind = kind,
                            .capacity = cap,
                            .high_water = ni_pool_high_water(p),
                            .growths = ni_load_rlx(&p->growths),
                            .bytes = cap * bytes,
                            .slot_bytes = bytes,
                            .dropped = dropped};
  (void)put_control(w, ni_format_pool_stats(w->line, sizeof w->line, &s->prefix, w->ts_us, &in));
}

static void pool_lines(struct ni_writer *w, struct ni_comm_writer *s) {
  for (int kind = 0; kind < NI_KIND_COUNT; kind++) {
    uint64_t dropped = 0;
    for (int why = 0; why < NI_DROP_OF_CALLBACKS; why++)
      dropped += ni_accounts_dropped(s, kind, (enum ni_drop)why);
    pool_line(w, s, ni_kind_names[kind], &s->comm->kind[kind].pool, NI_SLOT_BYTES, dropped);
  }
  /* Only of pools that were used; what they could not take is counted by kind in dump_stats. */
  const struct ni_event_store *st = &s->comm->events;
  if (ni_pool_capacity(&st->events))
    pool_line(w, s, "event", &st->events, NI_SLOT_BYTES, 0);
  if (ni_pool_capacity(&st->proxies))
    pool_line(w, s, "proxy", &st->proxies, NI_PROXY_SLOTS * NI_SLOT_BYTES, 0);
}

static int clock_line(struct ni_writer *w, const struct ni_line_prefix *p, struct ni_comm_writer *s) {
  struct ni_clock *c = &ni_g.clock;
  struct ni_clock_line in = {.source = ni_clock_source_name(c->source),
                             .ticks = c->newest.ticks,
                             .monotonic_ns = c->newest.monotonic_ns,
                             .realtime_ns = c->newest.realtime_ns,
                             .ns_per_tick = c->ns_per_tick,
                             .gpu_offset_ns = NI_NO_OFFSET,
                             .gpu_offset_at_ns = NI_NO_OFFSET};
  int64_t offset;
  uint64_t at;
  bool has_gpu = s && ni_gpu_fit_offset(&s->fit, &offset, &at);
  if (has_gpu) {
    uint64_t to_unix = c->newest.realtime_ns - c->newest.monotonic_ns; /* the fit is in monotonic time */
    in.gpu_offset_ns = offset + (int64_t)to_unix;
    in.gpu_offset_at_ns = (int64_t)(at + to_unix);
    in.gpu_samples = s->fit.n_samples;
  }
  int rc = put_control(w, ni_format_clock(w->line, sizeof w->line, p, w->ts_us, &in));
  if (rc == 0 && has_gpu) {
    s->stated_offset_ns = offset;
    s->offset_stated = 1;
  }
  return rc;
}

/* Below this a difference is not worth a line: the GPU's clock counts in steps of 32 ns to 1 us. */
enum { STATED_NS = 1000 };

int ni_lines_gpu_offset(struct ni_writer *w, struct ni_comm_writer *s) {
  int64_t offset, off;
  if (!ni_g.config.control_lines || !ni_gpu_fit_offset(&s->fit, &offset, NULL))
    return 0;
  if (s->offset_stated && !__builtin_sub_overflow(offset, s->stated_offset_ns, &off) && off >= -STATED_NS &&
      off <= STATED_NS)
    return 0;
  return clock_line(w, &s->prefix, s);
}

void ni_lines_clock(struct ni_writer *w) {
  (void)clock_line(w, &w->process_prefix, NULL);
  for (struct ni_comm_writer *s = w->comms; s; s = s->next)
    if (s->fit.n_samples != s->clock_samples) {
      s->clock_samples = s->fit.n_samples;
      (void)clock_line(w, &s->prefix, s);
    }
}

void ni_lines_end(struct ni_writer *w, struct ni_comm_writer *s, enum ni_end end) {
  ni_lines_gaps(w, s);
  pool_lines(w, s);
  (void)clock_line(w, &s->prefix, s);
  for (int kind = 0; end == NI_END_DESTROY && kind < NI_KIND_COUNT; kind++) {
    struct ni_kind_counts k;
    ni_accounts_fill(s, kind, 1, &k);
    uint64_t walked = ni_accounts_walked(s, (enum ni_kind)kind);
    if (walked != k.in_flight || ni_accounts_unsettled(s, kind) < 0)
      ni_lines_note(
          w,
          "the accounting of a communicator does not close: operations in flight by slot states differ from "
          "started - settled");
  }
  ni_lines_stats(w, s, 1);
  struct ni_comm_end_line in = {end == NI_END_DESTROY ? "destroy" : "exit", ni_realtime_ns()};
  (void)put_control(w, ni_format_comm_end(w->line, sizeof w->line, &s->prefix, w->ts_us, &in));
}

void ni_lines_late(struct ni_writer *w) {
  struct ni_late_stop l;
  while (!ni_late_empty(&ni_g.late) && ni_block_room(w) == 0 && ni_late_pop(&ni_g.late, &l)) {
    struct ni_comm_writer *s = w->comms;
    while (s && s->comm->page != l.comm_page)
      s = s->next;
    if (!s)
      continue; /* its communicator is over; its final line has counted the child */
    struct ni_late_line in = {.kind = ni_kind_names[l.kind == NI_KIND_P2P],
                              .func = ni_intern_text(&ni_g.intern, l.func),
                              .sn = l.sn,
                              .rec_sn = l.rec_sn,
                              .channel = l.channel,
                              .stop_gpu_ns = ni_gpu_ns(l.stop_gpu_ns, ni_g.gpu_khz)};
    (void)put_control(w, ni_format_late(w->line, sizeof w->line, &s->prefix, w->ts_us, &in));
  }
}

void ni_lines_process_end(struct ni_writer *w, enum ni_end end) {
  struct ni_pool_line in = {.kind = "arena",
                            .capacity_bytes = ni_arena_high_bytes(&ni_g.arena),
                            .used_bytes = ni_arena_used_bytes(&ni_g.arena),
                            .high_water_bytes = ni_arena_high_bytes(&ni_g.arena),
                            .cap_bytes = ni_g.arena.cap_bytes};
  (void)put_control(w, ni_format_pool_stats(w->line, sizeof w->line, &w->process_prefix, w->ts_us, &in));
  (void)clock_line(w, &w->process_prefix, NULL);
  /* Losses and strays that belong to no communicator: header id 0x0. */
  struct ni_stats_line st = {.final = true,
                             .end = end == NI_END_EXIT ? "exited" : "finalized",
                             .refused_communicators = ni_load_rlx(&ni_g.refused_comms)};
  uint64_t strays[NI_STRAY_COUNT];
  for (int i = 0; i < NI_STRAY_COUNT; i++)
    strays[i] = ni_load_rlx(&ni_g.stray[i]);
  ni_stats_set_strays(&st, strays);
  fill_events(&st, &ni_g.detached, &w->detached);
  ni_out_expire(&w->out, w->now_ns); /* a last look at what became of earlier files */
  struct ni_out_lost lost = ni_out_lost(&w->out);
  struct ni_kind_counts gone = {.dropped[NI_DROP_EXPIRED] = lost.expired_records,
                                .dropped[NI_DROP_WRITE_ERROR] = lost.deleted_records};
  ni_stats_set_kind(&st, NI_KIND_COLL, &gone);
  (void)put_control(w, ni_format_dump_stats(w->line, sizeof w->line, &w->process_prefix, w->ts_us, &st));
  if (ni_load_rlx(&ni_g.intern.overflow))
    ni_lines_note(
        w,
        "more different strings than the table holds: some function, datatype, algorithm or protocol names "
        "read Unknown");
  if (st.refused_communicators)
    ni_lines_note(w,
                  "some communicators were not recorded at all: no memory, or "
                  "NCCL_INSPECTOR_POOL_MAX_BYTES was reached at their init");
  if (ni_load_rlx(&ni_g.traces.lost))
    ni_lines_note(w,
                  "no memory for the channel traces of some operations: their records have none; raise "
                  "NCCL_INSPECTOR_POOL_MAX_BYTES");
  if (ni_load_rlx(&ni_g.late.lost))
    ni_lines_note(w, "more late channels than could be listed: some have no late line");
}

void ni_lines_note(struct ni_writer *w, const char *text) {
  struct ni_note_line in = {text};
  (void)put_control(w, ni_format_note(w->line, sizeof w->line, &w->process_prefix, w->ts_us, &in));
}

void ni_lines_control(struct ni_writer *w, const struct ni_control_line *in) {
  (void)put_control(w, ni_format_control(w->line, sizeof w->line, &w->process_prefix, w->ts_us, in));
}

/* ---- head of a file ---- */

static int put_head(struct ni_writer *w, size_t n) { return n ? ni_gz_append(w->gz_head, w->line, n) : 0; }

size_t ni_lines_process(struct ni_writer *w) {
  char interface[8] = {'v', (char)('0' + ni_g.interface), 0};
  struct ni_process_line in = {.start_ns = w->start_ns,
                               .boot_id = w->boot_id,
                               .exe = w->exe,
                               .interface = interface,
                               .rank = (int32_t)w->job.rank, /* below 2^31, or -1 */
                               .local_rank = (int32_t)w->job.local_rank,
                               .world_size = (int32_t)w->job.world_size,
                               .nccl_version = ni_g.nccl_version > 0 ? ni_g.nccl_version : -1,
                               .library = ni_library_word(ni_g.library),
                               .gpu_clock_khz = ni_g.gpu_khz == NI_NS_KHZ ? 0 : ni_g.gpu_khz,
                               .settings.text = w->settings};
  for (; in.env.n < w->job.n_env; in.env.n++) {
    in.env.item[in.env.n].key = w->job.env[in.env.n].name;
    in.env.item[in.env.n].value = w->job.env[in.env.n].value;
  }
  if (ni_g.box.wanted && ni_g.box.h)
    in.blackbox = ni_g.box.file.path;
  else if (ni_g.box.wanted)
    in.blackbox_why = ni_g.box.why;
  return ni_format_process(w->line, sizeof w->line, &w->process_prefix, w->ts_us, &in);
}

int ni_lines_head(struct ni_writer *w, struct ni_out *out, int comms) {
  if (!ni_g.config.control_lines)
    return 0;
  int rc = put_head(w, ni_lines_process(w));
  for (struct ni_comm_writer *s = comms ? w->comms : NULL; s && rc == 0; s = s->next)
    if (s->announced)
      rc = put_head(w, ni_lines_comm_text(w, s));
  const void *block;
  size_t n;
  if (rc == 0)
    rc = ni_gz_finish(w->gz_head, &block, &n);
  if (rc == 0)
    rc = ni_out_set_preamble(out, block, n);
  ni_gz_release(w->gz_head);
  return rc;
}
