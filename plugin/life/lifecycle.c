#include "plugin/os/glibc_compat.h"

#include "lifecycle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "plugin/os/nccl_library.h"
#include "plugin/slots/registry.h"
#include "plugin/slots/state.h"
#include "plugin/dump/session.h"
#include "plugin/dump/thread.h"
#include "plugin/callbacks/chan_trace.h"
#include "plugin/callbacks/event_masks.h"
#include "format/release.h"
#include "plugin/callbacks/want.h"

/* A context for which nothing is recorded: not NULL, so that NCCL's NULL paths are not met. */
static void *dead_context(void) { return ni_handle_pack(NI_H_CONTEXT, 0, ni_g.nonce); }

/*
 * A thread of the host that is cancelled in here would take a lock with it: cancellation waits until it has
 * left.
 */
static int hold_cancel(void) {
  int before = PTHREAD_CANCEL_ENABLE;
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  return before;
}
static void allow_cancel(int before) { (void)pthread_setcancelstate(before, NULL); }

/* ---- exit and fork ---- */

/*
 * Runs among the host's exit handlers while callbacks may still come: frees nothing, logs nothing, waits 2 s
 * at most.
 */
static void at_exit(void) {
  /* Dekker's pattern with init: leaving stored, then armed read; armed stored, then leaving read. */
  ni_store_sc(&ni_g.leaving, 1);
  if (!ni_load_sc(&ni_g.armed))
    return; /* a forked child reads zero here */
  /* a child that inited inherits the parent's registration, and made its own */
  if (ni_load_acq(&ni_g.dump->drain.exiting))
    return;
  /* The framework's threads may hold NCCL's logger when the process dies under them. */
  ni_log_set(&ni_g.log, NULL);
  int before = hold_cancel();
  ni_dump_exit(ni_g.dump);
  allow_cancel(before);
}

/* Only where the kernel cannot wipe (before 4.14): misses raw clone, which the documentation says. */
static void wipe_in_child(void) { memset((void *)&ni_global_pages, 0, sizeof ni_global_pages); }

static void prepare_for_fork(void) {
  if (madvise(&ni_global_pages, sizeof ni_global_pages, MADV_WIPEONFORK))
    (void)pthread_atfork(NULL, NULL, wipe_in_child);
}

/* ---- the process's first init ---- */

static void warn_setting(void *arg, const char *text) { ni_log_warn(&ni_g.log, "%s", text); }
static void tell_setting(void *arg, const char *text) { ni_log_info(&ni_g.log, "%s", text); }

static uint64_t random_nonce(void) {
  uint64_t n = 0;
  if (getrandom(&n, sizeof n, GRND_NONBLOCK) != sizeof n)
    n = ni_monotonic_ns() * UINT64_C(0x9e3779b97f4a7c15);
  return n & NI_H_PAYLOAD_MASK;
}

/*
 * Fills everything callbacks read, last `armed`. 0, or a negative errno with nothing started. Registry lock
 * held.
 */
static int set_up(int interface, const int *mask) {
  const struct ni_config *c = &ni_g.config;
  ni_g.nonce = random_nonce();
  ni_g.interface = (uint8_t)interface;
  struct ni_nccl_library found = ni_nccl_library(mask);
  ni_g.nccl_version = found.version;
  ni_g.library = found.library;
  ni_g.gpu_khz = ni_gpu_khz_of(found.library, c->gpu_clock_khz);
  ni_g.gpu_clock = ni_gpu_clock_of(found.library, c->gpu_clock_khz);
  ni_g.most_channels = ni_most_channels(found.library);
  ni_g.self_is_silent = ni_self_is_silent(interface, ni_g.nccl_version);
  ni_g.mask_shifts_counts = ni_mask_shifts_counts(interface, ni_g.nccl_version);
  ni_g.shows_symmetric = ni_shows_symmetric(ni_g.nccl_version);
  ni_g.polls_in_any_order = ni_polls_in_any_order(interface, ni_g.nccl_version);
  ni_g.p2p_channels_valid = ni_p2p_channels_valid(interface, ni_g.nccl_version);
  ni_g.enable_p2p = c->enable_p2p;
  ni_masks_take(c->events);
  ni_event_store_open(&ni_g.detached, c->proxy_step_pool_slots, c->proxy_op_pool_slots);
  ni_g.min_size_bytes = c->min_size_bytes;
  ni_clock_init(&ni_g.clock, false);
  ni_g.tick_source = ni_g.clock.source;
  int rc = ni_keep_open_arena(&ni_g.box, &ni_g.arena, c);
  if (rc)
    return rc;
  ni_intern_reset(&ni_g.intern, ni_arena_page(&ni_g.arena, NI_FRONT_TEXTS));
  ni_g.dump = ni_dump_new(c);
  if (!ni_g.dump) {
    (void)munmap(ni_g.arena.base, ni_g.arena.map_bytes);
    memset(&ni_g.arena, 0, sizeof ni_g.arena);
    ni_keep_drop(&ni_g.box);
    return -ENOMEM;
  }
  if (c->verbose)
    (void)ni_verbose_set(1);
  const struct ni_writer *w = &ni_g.dump->w;
  ni_keep_begin(&ni_g.box, &ni_g.arena,
                &(struct ni_keep_owner){w->origin.pid, w->hostname, w->boot_id, w->exe, &w->job, interface});
  ni_session_plan(ni_g.dump);
  /* Without a thread nobody could be woken. */
  ni_g.wake_on_push = c->interval_us == 0 && c->dump_thread;
  /* seq_cst; pairs with the acquire at the top of every callback, and see at_exit */
  (void)atomic_fetch_or(&ni_g.armed, NI_ARMED);
  if (c->dump_thread && (rc = ni_dump_start(ni_g.dump)) != 0) {
    ni_g.wake_on_push = 0;
    ni_log_warn(
        &ni_g.log,
        "cannot create the dump thread: %s; records are written when a communicator is destroyed and at "
        "exit only",
        strerror(-rc));
  }
  return 0;
}

static void tell_version(int interface) {
  static const char *const how[] = {[NI_GPU_CLOCK_SURE] = "",
                                    [NI_GPU_CLOCK_ASSUMED] = " (taken for it)",
                                    [NI_GPU_CLOCK_UNPROVEN] = " (if the host's clock agrees)"};
  char release[40], ticks[96] = "";
  if (ni_g.library != NI_LIBRARY_NCCL || ni_g.gpu_khz != NI_NS_KHZ)
    snprintf(ticks, sizeof ticks, ", a GPU clock of %u kHz%s", ni_g.gpu_khz, how[ni_g.gpu_clock]);
  ni_log_info(&ni_g.log, "version %s (%s), interface v%d, %s %s, clock %s%s", NI_VERSION, NI_GIT_REV,
              interface, ni_library_title(ni_g.library), ni_release_text(ni_g.nccl_version, release),
              ni_clock_source_name(ni_g.clock.source), ticks);
}

static void configure(int interface, const int *mask) {
  ni_g.configured = 1;
  prepare_for_fork();
  (void)ni_config_read(&ni_g.config, warn_setting, NULL);
  /* First of all, because the host may leave at any moment. They are refused when it has left already. */
  ni_g.off = !ni_g.config.enable || atexit(at_exit) || at_quick_exit(at_exit);
  if (ni_g.off)
    return;
  int rc = set_up(interface, mask);
  if (rc) {
    ni_g.off = 1;
    ni_log_warn(
        &ni_g.log,
        "switched off: %s while reserving NCCL_INSPECTOR_POOL_MAX_BYTES=%llu bytes of address space and "
        "buffers; the job is not affected",
        strerror(-rc), (unsigned long long)ni_g.config.pool_max_bytes);
    return;
  }
  ni_config_print(&ni_g.config, tell_setting, NULL);
  if (ni_g.box.wanted && !ni_g.box.h)
    ni_log_info(&ni_g.log,
                "no black box: %s. What is not yet written when the process is killed is lost "
                "(NCCL_INSPECTOR_BLACKBOX)",
                ni_g.box.why);
  tell_version(interface);
}

/* ---- init ---- */

static int open_pools(struct ni_comm *c) {
  const struct ni_config *cfg = &ni_g.config;
  int rc = ni_pool_open(&ni_g.arena, &c->kind[NI_KIND_COLL].pool, NI_CHUNK_OP_COLL, cfg->pool_grow,
                        (uint32_t)cfg->coll_pool_slots);
  if (rc)
    return rc;
  rc = ni_pool_open(&ni_g.arena, &c->kind[NI_KIND_P2P].pool, NI_CHUNK_OP_P2P, cfg->pool_grow,
                    (uint32_t)cfg->p2p_pool_slots);
  if (rc)
    ni_pool_close(&ni_g.arena, &c->kind[NI_KIND_COLL].pool);
  return rc;
}

/*
 * The generation outlives the communicator, and so do the numbers of its cells: a KernelCh of the page's
 * life before must not be taken for one of this life.
 */
static void clear_comm(struct ni_comm *c) {
  const size_t after_state = offsetof(struct ni_comm, hash);
  memset((unsigned char *)c + after_state, 0, offsetof(struct ni_comm, cell) - after_state);
  for (struct ni_chan_cell *cell = c->cell; cell < c->cell + 2 * NI_CHANNELS; cell++) {
    uint32_t number = ni_load_rlx(&cell->number);
    memset((void *)cell, 0, sizeof *cell);
    ni_store_rlx(&cell->number, number);
  }
}

/* Who it is, as NCCL says. */
static void identify_comm(struct ni_comm *c, const struct ni_init_args *a) {
  c->hash = a->comm_hash;
  /*
   * What cannot be would make every line of it one that readers refuse: rank 0, and the numbers are not
   * known.
   */
  c->rank = a->rank > 0 || a->ident_follows ? a->rank : 0;
  c->n_ranks = a->n_ranks > c->rank ? a->n_ranks : 0;
  c->n_nodes = a->n_nodes > 0 ? a->n_nodes : 0;
  /* RCCL calls those unknown that have no name. */
  bool is_named = a->comm_name && !(ni_g.library == NI_LIBRARY_RCCL && strcmp(a->comm_name, "unknown") == 0);
  if (is_named) { /* the user's memory, only valid now (callbacks 4.1) */
    size_t len = strnlen(a->comm_name, NI_COMM_NAME_BYTES - 1);
    memcpy(c->name, a->comm_name, len);
    c->has_name = 1;
  }
  if (a->ident_follows)
    ni_store_rlx(&c->ident, NI_IDENT_UNKNOWN);
}

/* Takes a communicator in. Registry lock held. 0 and its context, or a negative errno with nothing kept. */
static int add_comm(const struct ni_init_args *a, int *mask, void **context) {
  uint32_t index;
  int rc = ni_registry_take(&index);
  if (rc)
    return rc;
  rc = -ENOMEM;
  uint32_t page = ni_arena_take(&ni_g.arena, NI_CHUNK_COMM);
  if (!page)
    goto out_index;
  struct ni_comm *c = ni_arena_comm(&ni_g.arena, page);
  uint32_t gen = (uint32_t)ni_load_acq(&c->state);
  clear_comm(c);
  c->page = page;
  c->index = index;
  identify_comm(c, a);
  ni_pool_open_empty(&c->more, NI_CHUNK_EVENT, 1, 0);
  ni_pool_open_empty(&c->annexes, NI_CHUNK_OP_COLL, 1, 0);
  ni_event_store_open(&c->events, ni_g.config.proxy_step_pool_slots, ni_g.config.proxy_op_pool_slots);
  if (open_pools(c))
    goto out_page;
  struct ni_ident ident = {a->comm_hash, c->has_name ? c->name : NULL, c->rank, c->n_ranks, c->n_nodes};
  struct ni_comm_writer *writer = ni_comm_writer_new(ni_g.dump, c, &ident);
  if (!writer)
    goto out_pools;
  writer->gen = gen;
  c->init_ns = writer->init_ns;
  c->init_ticks = ni_ticks(ni_g.tick_source);
  c->gpu = writer->gpu;
  if (!writer->has_gpu)
    c->gpu.index = -1;
  c->mask_id = ni_masks_use(mask);
  c->mask_off = ni_load_rlx(&ni_g.mask_off[c->mask_id]);

  /* From here nothing fails. Release pairs with comm_of's acquire: identity and pools are there. */
  if (!a->ident_follows && (c->rank != a->rank || c->n_ranks != a->n_ranks || c->n_nodes != a->n_nodes))
    ni_log_warn(
        &ni_g.log, "communicator 0x%llx: rank %d of %d on %d nodes cannot be; written as rank %d of %d on %d",
        (unsigned long long)c->hash, a->rank, a->n_ranks, a->n_nodes, c->rank, c->n_ranks, c->n_nodes);
  ni_store_rel(&c->state, ni_comm_state(gen, NI_COMM_LIVE));
  ni_dump_join(ni_g.dump, writer);
  /*
   * Dekker's pattern with ni_session_close: joined, then LIVE stored; EMPTY stored, then the joining list
   * read.
   */
  ni_keep_state(&ni_g.box, 1);
  *context = ni_handle_pack(NI_H_CONTEXT, ni_payload_slot(page, gen), ni_g.nonce);
  return 0;

out_pools:
  ni_pool_close(&ni_g.arena, &c->kind[NI_KIND_COLL].pool);
  ni_pool_close(&ni_g.arena, &c->kind[NI_KIND_P2P].pool);
out_page:
  ni_arena_give(&ni_g.arena, NI_CHUNK_COMM, page);
out_index:
  ni_registry_give(index);
  return rc;
}

/*
 * All memory is taken, some of it by communicators that are over and wait for the dump thread: gives that a
 * moment, with the registry lock let go. 1: it is worth another try. Where a wait was in vain nobody waits
 * again for a while: the disk hangs, and NCCL's init is not to be slow because of it.
 */
static int wait_for_the_dead(void) {
  uint64_t again_ns = UINT64_C(10000000000);
  if (ni_g.next_index - ni_g.n_free_index <= ni_load_rlx(&ni_g.live) ||
      ni_monotonic_ns() < ni_g.no_wait_before_ns)
    return 0;
  pthread_mutex_unlock(&ni_g.lock);
  int done = ni_dump_make_room(ni_g.dump);
  pthread_mutex_lock(&ni_g.lock);
  if (!done)
    ni_g.no_wait_before_ns = ni_monotonic_ns() + again_ns;
  return 1;
}

/* The mask is one int of the process that NCCL reads without a lock (callbacks 5): an atomic store. */
static void clear_mask(int *mask) {
  if (mask)
    __atomic_store_n(mask, 0, __ATOMIC_RELAXED);
}

static void take_in(int interface, void **context, int *mask, const struct ni_init_args *args) {
  pthread_mutex_lock(&ni_g.lock);
  ni_log_set(&ni_g.log, args->logger);
  if (!ni_g.configured)
    configure(interface, mask);
  *context = dead_context();
  if (ni_g.off || ni_load_sc(&ni_g.leaving)) { /* see at_exit */
    clear_mask(mask);
    pthread_mutex_unlock(&ni_g.lock);
    return;
  }
  uint32_t live = ni_load_rlx(&ni_g.live);
  /* libnccl may have been unloaded and loaded again in between: its strings' addresses mean nothing now. Not
   * while the dump role still has operations to format. */
  if (live == 0 && ni_dump_idle(ni_g.dump)) {
    ni_intern_reset(&ni_g.intern, ni_g.intern.text);
    memset(ni_g.mask, 0, sizeof ni_g.mask);
    memset(ni_g.mask_users, 0, sizeof ni_g.mask_users);
    memset((void *)ni_g.mask_seen, 0, sizeof ni_g.mask_seen);
  }
  int rc = add_comm(args, mask, context);
  if (rc == -ENOMEM && wait_for_the_dead()) {
    rc = add_comm(args, mask, context);
    live = ni_load_rlx(&ni_g.live); /* others came and went */
  }
  if (rc == 0) {
    ni_store_rel(&ni_g.live, live + 1);
  } else {
    ni_add_rlx(&ni_g.refused_comms, 1);
    ni_log_warn(
        &ni_g.log, "communicator 0x%llx is not recorded: %s; raise NCCL_INSPECTOR_POOL_MAX_BYTES (now %llu)",
        (unsigned long long)args->comm_hash, strerror(-rc), (unsigned long long)ni_g.config.pool_max_bytes);
    if (live == 0)
      clear_mask(mask);
  }
  pthread_mutex_unlock(&ni_g.lock);
  /* A life begins its log at once; without a dump thread nobody else comes to do it. */
  if (rc == 0 && live == 0 && !ni_load_acq(&ni_g.dump->has_thread))
    (void)ni_dump_make_room(ni_g.dump);
}

enum ni_result ni_init(int interface, void **context, int *mask, const struct ni_init_args *args) {
  if (!context)
    return NI_RES_SUCCESS;
  int before = hold_cancel();
  take_in(interface, context, mask, args);
  allow_cancel(before);
  return NI_RES_SUCCESS;
}

/* ---- finalize ---- */

enum ni_result ni_finalize(void *context) {
  if (!ni_load_acq(&ni_g.armed) || ni_handle_kind(context) != NI_H_CONTEXT)
    return NI_RES_SUCCESS;
  uint64_t p = ni_handle_payload(context, ni_g.nonce);
  uint32_t page = ni_payload_index(p);
  /* one that was not taken in */
  if (ni_arena_page_class(&ni_g.arena, page) != NI_CHUNK_COMM)
    return NI_RES_SUCCESS;
  struct ni_comm *c = ni_arena_comm(&ni_g.arena, page);
  uint64_t state = ni_load_acq(&c->state);
  if ((state & NI_H_GEN_MASK) != ni_payload_gen(p) || ni_comm_phase_of(state) != NI_COMM_LIVE)
    return NI_RES_SUCCESS;
  if (ni_load_acq(&ni_g.dump->drain.exiting))
    return NI_RES_SUCCESS; /* its final line is written: "exit" */
  /* while it is ours: the page may have another owner soon */
  uint8_t mask_id = c->mask_id;
  /*
   * Release pairs with end_of's acquire in closing.c. Only the caller's exchange counts: finalize twice is
   * finalize once.
   */
  if (!atomic_compare_exchange_strong_explicit(&c->state, &state,
                                               ni_comm_state((uint32_t)state, NI_COMM_CLOSING),
                                               memory_order_release, memory_order_relaxed))
    return NI_RES_SUCCESS;
  int before = hold_cancel();
  pthread_mutex_lock(&ni_g.lock);
  uint32_t live = ni_load_rlx(&ni_g.live) - 1;
  ni_store_rel(&ni_g.live, live);
  ni_masks_leave(mask_id);
  pthread_mutex_unlock(&ni_g.lock);
  ni_dump_finalize(ni_g.dump, live == 0);
  /*
   * NCCL may be unloaded after the last finalize: its logger with it. Unless another communicator came
   * meanwhile.
   */
  pthread_mutex_lock(&ni_g.lock);
  if (live == 0 && ni_load_rlx(&ni_g.live) == 0)
    ni_log_set(&ni_g.log, NULL);
  pthread_mutex_unlock(&ni_g.lock);
  allow_cancel(before);
  return NI_RES_SUCCESS;
}
