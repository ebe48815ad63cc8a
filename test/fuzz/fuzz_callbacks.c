/*
 * libFuzzer: bytes as a sequence of callbacks, with handles that are valid, stale, of the wrong kind or
 * forged, in any order, on the real core. It must never crash or hang, and when the communicators are over
 * the accounting must close: started = written + filtered + dropped + incomplete, nothing in flight, no
 * memory kept, every record's text well formed.
 *
 * There is no dump thread, and the log lies in a folder that goes: the dump role's functions are called here,
 * with the judge's clock in the input's hands. The process's random number is fixed, so that an input means
 * the same in every run and can forge handles.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "plugin/callbacks/callbacks.h"
#include "plugin/callbacks/callbacks_channel.h"
#include "plugin/callbacks/callbacks_call.h"
#include "plugin/callbacks/callbacks_event.h"
#include "plugin/callbacks/callbacks_proxy.h"
#include "plugin/callbacks/chan_trace.h"
#include "plugin/drain/collect.h"
#include "plugin/drain/event_drain.h"
#include "plugin/drain/judge.h"
#include "plugin/drain/settle.h"
#include "plugin/dump/session.h"
#include "plugin/dump/tick.h"
#include "plugin/write/accounts.h"
#include "plugin/write/block.h"
#include "plugin/write/lines.h"
#include "plugin/slots/state.h"
#include "plugin/callbacks/event_masks.h"
#include "plugin/life/lifecycle.h"

#include "fuzz_dir.h"

static void need(int truth) {
  if (!truth)
    abort();
}

static const uint8_t *in, *in_end;
static unsigned byte(void) { return in < in_end ? *in++ : 0; }
static uint64_t number(int bytes) {
  uint64_t v = 0;
  while (bytes--)
    v = v << 8 | byte();
  return v;
}

enum { COMMS = 3, HANDLES = 64 };
static void *ctx[COMMS], *handle[HANDLES];
static unsigned n_handles;
static int mask;
static const char *const texts[] = {
    "AllReduce",   "ncclFloat32", "Send", "Recv", "RING",
    "ncclInt8",    "Broadcast",   "",     NULL,   "a name that is much longer than the table has room for",
    "\x01\xff\"\\"};

static const char *text(void) { return texts[byte() % (sizeof texts / sizeof *texts)]; }
static void keep(void *h) {
  if (h)
    handle[n_handles++ % HANDLES] = h;
}
static void *some_handle(void) { return handle[byte() % HANDLES]; }
static void *some_context(void) { return ctx[byte() % COMMS]; }

static char logs[64];

static void clean(void) {
  DIR *d = opendir(logs);
  for (struct dirent *e; d && (e = readdir(d));)
    (void)unlinkat(dirfd(d), e->d_name, 0);
  if (d)
    (void)closedir(d);
  (void)rmdir(logs);
}

static void set_up(void) {
  snprintf(logs, sizeof logs, "%s", fuzz_dir("callbacks"));
  need(atexit(clean) == 0);
  setenv("NCCL_INSPECTOR_ENABLE", "1", 1);
  setenv("NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", 1);
  setenv("NCCL_INSPECTOR_DUMP_FORMAT", "jsonl", 1);
  setenv("NCCL_INSPECTOR_DUMP_DIR", logs, 1);
  setenv("NCCL_INSPECTOR_FILE_MAX_BYTES", "1m", 1);
  setenv("NCCL_INSPECTOR_DIR_MAX_BYTES", "4m", 1);
  setenv("NCCL_INSPECTOR_BLACKBOX", "0", 1);
  setenv("NCCL_INSPECTOR_POOL_MAX_BYTES", "1m", 1); /* so that the arena's cap is met */
  setenv("NCCL_INSPECTOR_COLL_POOL_SIZE", "40", 1);
  setenv("NCCL_INSPECTOR_P2P_POOL_SIZE", "40", 1);
  struct ni_init_args a = {.comm_hash = 1, .n_nodes = 1, .n_ranks = 2};
  ni_init(7, &ctx[0], &mask, &a);
  need(ni_g.dump != NULL);
  need(ni_load_rlx(&ni_g.dump->open)); /* init has opened a session */
  ni_g.nonce = 0x5a5a5a5a5a5a5a5 /* 60 bits */;
}

/* Every event that was announced has a line or was dropped. */
static void events_add_up(const struct ni_event_store *st, const struct ni_event_writer *ev) {
  struct ni_event_stats n[NI_EVENT_COUNT];
  ni_accounts_events(st, ev, n);
  for (int k = 0; k < NI_EVENT_COUNT; k++)
    need(n[k].started == n[k].written + n[k].dropped);
}

/* What ni_finalize and close_sides do, without a thread and a file. */
static void end_comm(struct ni_dump *d, struct ni_comm_writer *s) {
  struct ni_comm *c = s->comm;
  ni_store_rel(&c->state, ni_comm_state((uint32_t)ni_load_rlx(&c->state), NI_COMM_CLOSING));
  need(ni_lines_identify(&d->w, s, 1) == 1);
  s->why = NI_END_DESTROY;
  ni_judge(&d->drain, s, NI_END_DESTROY);
  (void)ni_collect(&d->drain);
  (void)ni_events_collect(&d->drain);
  ni_events_close(&c->events, &s->ev);
  need(ni_drain_format(&d->drain) == 0);
  need(ni_events_format(&d->drain) == 0);
  ni_events_judge(&d->drain, s, NI_END_DESTROY);
  need(s->ev.todo.n == 0 && s->ev.wait.n == 0);
  events_add_up(&c->events, &s->ev);
  ni_lines_late(&d->w);
  for (int kind = 0; kind < NI_KIND_COUNT; kind++) {
    need(ni_accounts_unsettled(s, kind) == 0);
    need(ni_accounts_walked(s, (enum ni_kind)kind) == 0);
  }
  ni_lines_end(&d->w, s, NI_END_DESTROY);
  s->stage = NI_STAGE_WRITTEN;
  ni_g.live--;
}

static void settle(struct ni_dump *d) {
  const void *block;
  size_t n;
  need(ni_gz_finish(d->w.gz, &block, &n) == 0);
  if (n) { /* lines, each of them one object */
    const char *t = block;
    need(t[0] == '{' && t[n - 1] == '\n' && t[n - 2] == '}');
    need(memchr(t, 0, n) == NULL);
  }
  ni_gz_release(d->w.gz);
  ni_settle_block(&d->drain);
}

static void open_comm(unsigned i) {
  struct ni_init_args a = {.ident_follows = byte() & 1,
                           .comm_hash = number(2),
                           .comm_name = text(),
                           .n_nodes = (int)byte(),
                           .n_ranks = (int)byte(),
                           .rank = (int)byte()};
  ni_init(7, &ctx[i], &mask, &a);
}

/* Events of the other kinds: whatever NCCL could hand over, and what it could not. */
static void event_step(void) {
  static const unsigned char payload[64] = {1};
  uint64_t value = number(2);
  void *parent = some_handle(), *c = some_context();
  switch (byte() % 8) {
    case 0:
    case 1:
    case 2: {
      struct ni_event_start s = {.parent = parent,
                                 .func = text(),
                                 .datatype = text(),
                                 .text = text(),
                                 .count = value,
                                 .number = value,
                                 .root = (int8_t)byte(),
                                 .n = (int8_t)byte(),
                                 .graph = byte() & 1,
                                 .flag = byte() & 1};
      static const enum ni_event kinds[] = {NI_EVENT_GROUP_API, NI_EVENT_COLL_API,  NI_EVENT_P2P_API,
                                            NI_EVENT_LAUNCH,    NI_EVENT_CE,        NI_EVENT_SYNC,
                                            NI_EVENT_BATCH,     NI_EVENT_PROXY_CTRL};
      enum ni_event kind = kinds[byte() % 8];
      /* As abi_body.h chooses, and now and then otherwise. */
      bool noted = ni_calls_are_noted() != (byte() % 16 == 0);
      if (noted && kind == NI_EVENT_GROUP_API)
        keep(ni_cb_user_group_start(c));
      else if (noted && kind == NI_EVENT_COLL_API)
        keep(ni_cb_call_note(c, parent, s.func, s.datatype, s.count, s.root, value & 7));
      else
        keep(ni_cb_event_start(c, kind, &s));
      break;
    }
    case 3: {
      struct ni_proxy_start s = {.parent = parent,
                                 .pid = (int)byte(),
                                 .rank = (int8_t)byte(),
                                 .peer = (int8_t)byte(),
                                 .n_steps = (int8_t)byte(),
                                 .chunk = (int8_t)byte(),
                                 .channel = (uint8_t)byte(),
                                 .send = byte() & 1};
      keep(ni_cb_proxy_start(c, &s));
      break;
    }
    case 4:
      keep(ni_cb_step_start(parent, (int8_t)byte()));
      break;
    case 5:
      keep(ni_cb_net_start(parent, (int64_t)number(4), byte() & 1 ? payload : NULL));
      break;
    case 6:
      ni_cb_state(parent, byte() % 40, byte() & 1 ? &value : NULL);
      break;
    case 7:
      ni_masks_take((uint32_t)value | ((uint32_t)byte() & 1 ? NI_KINDS_ALL : 0));
      break;
  }
}

static void one_step(struct ni_dump *d) {
  switch (byte() % 24) {
    case 0: {
      unsigned i = byte() % COMMS;
      (void)ni_collect(&d->drain);
      for (struct ni_comm_writer *s = d->w.comms; s; s = s->next)
        if (s->stage == NI_STAGE_LIVE &&
            s->comm->page == ni_payload_index(ni_handle_payload(ctx[i], ni_g.nonce)) &&
            ni_handle_kind(ctx[i]) == NI_H_CONTEXT)
          end_comm(d, s);
      if (d->drain.n_comms < 8)
        open_comm(i);
      break;
    }
    case 1:
      keep(ni_cb_group_start(some_context()));
      break;
    case 2:
    case 3:
    case 4: {
      struct ni_start s = {.sn = number(1),
                           .func = text(),
                           .datatype = text(),
                           .algo = text(),
                           .proto = text(),
                           .count = number(2),
                           .root = (int8_t)byte(),
                           .nchannels = (uint8_t)byte(),
                           .group = some_handle(),
                           .call = some_handle()};
      struct ni_late_ident id = {text(), number(1), (int8_t)byte()};
      if (byte() & 1)
        s.ident = &id;
      void *c = some_context();
      unsigned what = byte();
      struct ni_start_v7 v7 = {(what & 2) && !(what & 1), "AllReduce_AGxLL_R", what & 4 ? number(2) : 0};
      enum ni_kind kind = what & 1 ? NI_KIND_P2P : NI_KIND_COLL;
      keep(what & 6 ? ni_cb_op_start_v7(c, kind, &s, &v7) : ni_cb_op_start(c, kind, &s));
      break;
    }
    case 5:
    case 6: {
      void *parent = some_handle();
      unsigned channel = byte();
      keep(ni_cb_channel_start(parent, channel & 1 ? channel : channel % 8, number(2)));
      break;
    }
    case 7: {
      void *h = some_handle();
      ni_cb_channel_stamp(h, number(2));
      ni_cb_phase_stamp(h, number(1));
      break;
    }
    case 8:
    case 9:
      ni_cb_stop(some_handle());
      break;
    case 10:
      keep((void *)(uintptr_t)number(8));
      break;   /* forged */
    case 11: { /* a valid one with a bit changed */
      uint64_t h = (uint64_t)(uintptr_t)some_handle();
      keep((void *)(uintptr_t)(h ^ UINT64_C(1) << (byte() % 64)));
      break;
    }
    case 12: {
      void *parent = some_handle();
      unsigned phase = byte();
      keep(ni_cb_phase_start(parent, phase % 5, number(2)));
      ni_cb_unknown();
      break;
    }
    case 13: /* time passes; perhaps the disk takes what there is */
      d->drain.judge_ms += byte() * 40 + 1;
      d->w.now_ms += 1000;
      d->drain.ticks += byte();
      (void)ni_collect(&d->drain);
      for (struct ni_comm_writer *s = d->w.comms; s; s = s->next)
        if (s->stage == NI_STAGE_LIVE) {
          ni_judge(&d->drain, s, NI_END_NONE);
          ni_lines_gaps(&d->w, s);
        }
      (void)ni_events_collect(&d->drain);
      for (struct ni_comm_writer *s = d->w.comms; s; s = s->next)
        if (s->stage == NI_STAGE_LIVE && ni_lines_identify(&d->w, s, 0))
          ni_events_judge(&d->drain, s, NI_END_NONE);
      need(ni_drain_format(&d->drain) == 0);
      need(ni_events_format(&d->drain) == 0);
      ni_lines_late(&d->w);
      if (byte() & 1)
        settle(d);
      ni_settle_release(&d->drain);
      break;
    case 14:
      mask = (int)byte();
      break; /* NCCL's mask is anybody's */
    case 15:
      ctx[byte() % COMMS] = some_handle();
      break; /* a context that is none */
    default:
      event_step();
      break;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!ni_g.dump)
    set_up();
  struct ni_dump *d = ni_g.dump;
  in = data;
  in_end = data + size;
  unsigned settings = byte();
  ni_g.config.pool_grow = settings & 1;
  ni_g.enable_p2p = !(settings & 4);
  ni_g.min_size_bytes = settings & 8 ? 1000 : 0;
  ni_g.p2p_channels_valid = !(settings & 16);
  ni_g.config.require_kernel_timing = !!(settings & 32);
  ni_g.mask_shifts_counts = !!(settings & 64);
  ni_g.shows_symmetric = 1;
  ni_masks_take(settings & 128 ? NI_KINDS_TRACE : NI_KINDS_STANDARD);
  mask = 0x46;
  memset(handle, 0, sizeof handle);
  n_handles = 0;
  for (unsigned i = 0; i < COMMS; i++)
    if (ctx[i] == NULL || d->drain.n_comms < COMMS)
      open_comm(i);
  while (in < in_end)
    one_step(d);
  /* The end: everything is settled and every byte comes back. */
  (void)ni_collect(&d->drain);
  for (struct ni_comm_writer *s = d->w.comms; s; s = s->next)
    if (s->stage == NI_STAGE_LIVE)
      end_comm(d, s);
  (void)ni_events_collect(&d->drain);
  ni_events_close(&ni_g.detached, &d->w.detached);
  need(ni_events_format(&d->drain) == 0);
  settle(d);
  events_add_up(&ni_g.detached, &d->w.detached);
  ni_pool_close(&ni_g.arena, &ni_g.detached.events);
  ni_pool_close(&ni_g.arena, &ni_g.detached.proxies);
  ni_event_store_open(&ni_g.detached, settings & 64 ? 200 : 0, settings & 64 ? 200 : 0);
  for (int i = 0; i < 2; i++) {
    d->drain.judge_ms += NI_REST_MS;
    d->drain.ticks += NI_REST_TICKS;
    ni_lines_late(&d->w);
    settle(d);
    ni_settle_release(&d->drain);
  }
  need(d->drain.n_comms == 0 && d->w.comms == NULL && d->drain.busy == NULL);
  need(ni_arena_used_bytes(&ni_g.arena) == (uint64_t)ni_g.arena.hdr->overhead_pages * NI_PAGE_BYTES);
  need(ni_g.live == 0);
  memset(ctx, 0, sizeof ctx);
  return 0;
}
