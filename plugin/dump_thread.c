#include "glibc_compat.h"

#include "dump_thread.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "events.h"
#include "futex.h"
#include "process_id.h"

#define MS_NS UINT64_C(1000000)
#define STALL_MS 1800u  /* no progress for so long: the file system hangs or is full, the host must not wait for it */
#define HARD_MS 30000u
#define EXIT_MS 2000u
#define ROOM_STALL_MS 200u /* an init that finds all memory taken waits while that helps, */
#define ROOM_MS 2000u      /* and so long at most */
#define LEAVE_MS 1500u /* of these; the rest is for the last lines and the write */
#define STACK_BYTES (1u << 20) /* sanitizer builds need room; untouched pages cost nothing */

/* ---- making ---- */

struct ni_dump *ni_dump_new(const struct ni_config *c) {
  struct ni_dump *d = calloc(1, sizeof *d);
  if (!d) return NULL;
  d->gz = ni_gz_create(ni_format_compressed(c->format), NI_CODEC_LEVEL);
  d->gz_head = ni_gz_create(ni_format_compressed(c->format), NI_CODEC_LEVEL);
  if (!d->gz || !d->gz_head) {
    ni_dump_free(d);
    return NULL;
  }
  ni_host_name(d->hostname, sizeof d->hostname);
  ni_process_boot_id(d->boot_id, sizeof d->boot_id);
  ni_process_exe(d->exe, sizeof d->exe);
  if (!getcwd(d->cwd, sizeof d->cwd) || d->cwd[0] != '/') d->cwd[0] = 0; /* gone, or above our root */
  ni_config_settings_json(c, d->settings, sizeof d->settings);
  ni_job_read(&d->job);
  ni_detail_init(d, c);
  d->origin = (struct ni_origin){.hostname = d->hostname, .git_rev = NI_GIT_REV, .version = NI_VERSION, .pid = getpid()};
  return d;
}

void ni_dump_free(struct ni_dump *d) {
  if (!d) return;
  ni_gz_free(d->gz);
  ni_gz_free(d->gz_head);
  ni_gz_free(d->gz_roll);
  free(d);
}

struct ni_side *ni_side_new(struct ni_dump *d, struct ni_comm *c, const struct ni_ident *ident) {
  struct ni_side *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->comm = c;
  s->index = c->index;
  s->ident = *ident;
  for (int kind = 0; kind < NI_KIND_COUNT; kind++) s->kind[kind].told = &c->kind[kind].told;
  s->init_ns = ni_realtime_ns();
  s->has_gpu = ni_gpu_id_read(&s->gpu) == 0;
  if (ni_line_prefix_init(&s->prefix, ident, &d->origin)) {
    free(s);
    return NULL;
  }
  return s;
}

void ni_side_free(struct ni_side *s) {
  if (s) ni_line_prefix_free(&s->prefix);
  free(s);
}

void ni_dump_join(struct ni_dump *d, struct ni_side *s) {
  struct ni_side *head = atomic_load_explicit(&d->joining, memory_order_relaxed);
  do s->next = head;
  /* Release pairs with the exchange in take_joining: the side is whole. */
  while (!atomic_compare_exchange_weak_explicit(&d->joining, &head, s, memory_order_release, memory_order_relaxed));
  if (ni_load_acq(&d->has_thread)) ni_futex_wake_one(&ni_g.wake_word);
}

/* ---- a session: one log file, from the first communicator to the last ---- */

enum { LOG_DIR_BYTES = NI_CWD_BYTES + NI_DIR_MAX_BYTES + 1 };

/* The log's folder with its tokens put in, absolute where that is known. False: it is too long, the current one serves. */
static bool log_dir(const struct ni_dump *d, char path[LOG_DIR_BYTES]) {
  char dir[NI_DIR_MAX_BYTES];
  bool fits = ni_config_dump_dir(&ni_g.config, &d->job, d->hostname, d->origin.pid, dir, sizeof dir) >= 0;
  if (!fits) memcpy(dir, ".", 2);
  snprintf(path, LOG_DIR_BYTES, "%s%s%s", dir[0] == '/' ? "" : d->cwd, dir[0] == '/' || !d->cwd[0] ? "" : "/", dir);
  return fits;
}

void ni_dump_plan(const struct ni_dump *d) {
  char path[LOG_DIR_BYTES];
  (void)log_dir(d, path);
  ni_keep_session(&ni_g.box, &ni_g.arena, 0, path, "", "", 0);
}

static int open_session(struct ni_dump *d) {
  char path[LOG_DIR_BYTES];
  const struct ni_config *c = &ni_g.config;
  if (!log_dir(d, path)) {
    ni_log_warn_once(&ni_g.log, NI_LOG_CAUSE_WRITE, "NCCL_INSPECTOR_DUMP_DIR with its tokens put in is longer than %d "
                     "bytes; writing to the current directory", NI_DIR_MAX_BYTES);
  }
  d->start_ns = ni_realtime_ns();
  struct ni_out_options o = {.dir = path,
                             .host = d->hostname,
                             .pid = d->origin.pid,
                             .start_s = d->start_ns / UINT64_C(1000000000),
                             .suffix = ni_format_suffix(c->format),
                             .file_max_bytes = c->file_max_bytes,
                             .dir_max_bytes = c->dir_max_bytes,
                             .keep_seconds = c->keep_seconds};
  struct ni_ident process = {.rank = (int32_t)d->job.rank,
                             .n_ranks = d->job.world_size > 0 ? (int32_t)d->job.world_size : 0};
  int rc = ni_line_prefix_init(&d->process_prefix, &process, &d->origin);
  if (rc == 0 && (rc = ni_out_init(&d->out, &o)) != 0) ni_line_prefix_free(&d->process_prefix);
  if (rc == 0 && (rc = ni_roll_open(d, &o)) != 0) {
    (void)ni_out_close(&d->out, NULL);
    ni_line_prefix_free(&d->process_prefix);
  }
  if (rc) {
    ni_log_warn_limited(&ni_g.log, NI_LOG_CAUSE_WRITE, d->now_ns, "cannot prepare the log in %s: %s; trying again", path,
                        strerror(-rc));
    return rc;
  }
  ni_detail_open(d, path);
  ni_store_rel(&d->open, 1);
  d->head_set = d->ended = 0;
  d->early_told = 0;
  d->last_flush_ms = d->now_ms;
  d->last_clock_line_ms = d->now_ms;
  d->ts_us = d->start_ns / 1000;
  ni_keep_session(&ni_g.box, &ni_g.arena, d->start_ns, path, ni_out_base(&d->out), d->line, ni_lines_process(d));
  return 0;
}

/* A communicator that has still something to say; one whose retired slots merely rest has not. */
static int session_wanted(const struct ni_dump *d) {
  if (atomic_load_explicit(&d->joining, memory_order_relaxed)) return 1;
  for (const struct ni_side *s = d->sides; s; s = s->next)
    if (s->stage != NI_SIDE_WRITTEN) return 1;
  return !ni_late_empty(&ni_g.late); /* a channel of a communicator that rests: its line is owed */
}

static void close_session(struct ni_dump *d) {
  ni_roll_close(d);
  int rc = ni_out_close(&d->out, NULL);
  if (rc)
    ni_log_warn_limited(&ni_g.log, NI_LOG_CAUSE_WRITE, d->now_ns, "closing the log failed: %s; its last records may be lost",
                        strerror(-rc));
  ni_line_prefix_free(&d->process_prefix);
  ni_store_rel(&d->open, 0); /* pairs with ni_dump_idle */
  ni_keep_state(&ni_g.box, 0);
  if (atomic_load(&d->joining)) ni_keep_state(&ni_g.box, 1); /* see add_comm */
}

/* ---- one tick ---- */

/* Formats what is there; a block that is full is written in between. 0 when nothing is left. */
static int format_all(struct ni_dump *d) {
  int rc;
  while ((rc = ni_drain_format(d)) == -EFBIG)
    if (ni_flush(d, d->awaited)) return -EBUSY;
  while (rc == 0 && (rc = ni_events_format(d)) == -EFBIG) {
    if (ni_flush(d, d->awaited)) return -EBUSY;
    rc = 0;
  }
  return rc;
}

/* Steps that wait for an operation whose communicator ends, or the process: its line may never come. */
static int release_steps(struct ni_dump *d, struct ni_side *s) {
  int rc;
  while ((rc = ni_steps_release(d, s, 1)) == -EFBIG)
    if (ni_flush(d, d->awaited)) return -EBUSY;
  return rc;
}

/* Is a callback on its way: a number taken and no slot yet, or finished and not on the done list yet? Its operation would
 * miss the last lines. Finalize promises that none is, but a communicator may share its progress thread with others, and
 * an abort waits for nobody. */
static int still_on_its_way(struct ni_dump *d, struct ni_side *s) {
  int away = 0; /* all that was in flight has become a record or incomplete by now, so nothing must be left */
  for (int kind = 0; kind < NI_KIND_COUNT; kind++) away |= ni_side_unsettled(s, kind) != 0;
  if (!away) return 0;
  if (!s->closing_ms) {
    s->closing_ms = d->now_ms;
    s->closing_judge_ms = d->judge_ms;
    s->closing_tick = (uint32_t)d->ticks;
  }
  d->watching = 1;
  return d->now_ms - s->closing_ms < NI_SETTLE_MS;
}

/* Is it time for the communicator's last lines, and why? */
static enum ni_end end_of(const struct ni_side *s, enum ni_end end) {
  if (s->stage != NI_SIDE_LIVE) return NI_END_NONE;
  /* Acquire pairs with finalize's release: the counters of its last callbacks are there. */
  return ni_comm_phase_of(ni_load_acq(&s->comm->state)) == NI_COMM_CLOSING ? NI_END_DESTROY : end;
}

/* Roll-ups that did not fit: makes room. 0, or it has to wait. */
static int roll_out_of_the_way(struct ni_dump *d) {
  return d->roll_open ? ni_roll_flush(d, d->awaited) : ni_flush(d, d->awaited);
}

/*
 * Last lines of the sides that finalize has left; at exit, of all. Returns how many are still to be closed.
 * Judge, drain, last lines, each for all sides: what the judge met half-way was finished by a callback and is on the done
 * list now, and nothing is drained once the first has had its last word: at exit callbacks go on.
 */
static uint32_t close_sides(struct ni_dump *d, enum ni_end end) {
  uint32_t open = 0;
  for (struct ni_side *s = d->sides; s; s = s->next) {
    enum ni_end why = end_of(s, end);
    if (why) ni_judge(d, s, why);
    open += why != NI_END_NONE;
  }
  if (!open) return 0;
  /* At exit callbacks may finish more at any time: what was finished when we first looked is in, more is in flight. */
  if (end != NI_END_EXIT) (void)ni_drain_collect(d);
  (void)ni_events_collect(d);
  for (struct ni_side *s = d->sides; s; s = s->next) {
    enum ni_end why = end_of(s, end);
    if (why) (void)ni_side_identify(d, s, 1);
    if (why == NI_END_DESTROY) ni_events_close(&s->comm->events, &s->ev);
  }
  int rc = format_all(d);
  for (struct ni_side *s = d->sides; s && rc == 0; s = s->next)
    if (end_of(s, end)) rc = release_steps(d, s);
  if (rc == 0 && end == NI_END_EXIT) rc = release_steps(d, NULL);
  if (rc == -ETIMEDOUT && end == NI_END_EXIT) {
    ni_drain_give_up(d);
    ni_events_give_up(d);
    ni_lines_note(d, "the process left before everything could be written: the rest is counted as write_error or in flight");
    rc = 0;
  }
  if (rc || ni_gz_finished(d->gz)) return open; /* the disk does not take it: later */
  for (struct ni_side *s = d->sides; s; s = s->next)
    if (end_of(s, end)) ni_events_judge(d, s, end_of(s, end));
  ni_lines_late(d);
  if (d->no_room && ni_flush(d, d->awaited)) return open;
  open = 0;
  for (struct ni_side *s = d->sides; s; s = s->next) {
    enum ni_end why = end_of(s, end);
    if (!why) continue;
    open++;
    if (why == NI_END_DESTROY && still_on_its_way(d, s)) continue;
    if (s->ev.wait.n || s->ev.todo.n || s->ev.n_kept) continue; /* the block took no more */
    int unsaid = ni_roll_say(d, s, 1);
    for (uint32_t i = 0; unsaid && i < 4 * NI_ROLLUP_ENTRIES && roll_out_of_the_way(d) == 0; i++) unsaid = ni_roll_say(d, s, 1);
    if (unsaid) continue;
    /* Where files may not grow long the last lines get a block of their own: roll-ups compress less well than records. */
    if (d->text_max && ni_gz_text_bytes(d->gz) > d->text_max / 8 && ni_flush(d, d->awaited)) continue;
    if (ni_lines_room(d) && (ni_flush(d, d->awaited) || ni_lines_room(d))) continue;
    if (!s->announced) ni_lines_comm(d, s);
    if (why == NI_END_EXIT) ni_unfinished_at_exit(d, s);
    ni_lines_end(d, s, why);
    s->stage = NI_SIDE_CLOSED;
    d->closed_in_block++;
    open--;
  }
  return open;
}

/* Has every communicator said its last? */
static int all_closed(const struct ni_dump *d) {
  for (const struct ni_side *s = d->sides; s; s = s->next)
    if (s->stage == NI_SIDE_LIVE) return 0;
  return !atomic_load_explicit(&d->joining, memory_order_acquire);
}

static void look_at_sides(struct ni_dump *d) {
  /* Thousands of communicators: ten ticks are soon enough, unless somebody asks for the roll-ups so far. */
  if (d->n_sides > 256 && d->ticks % 10 && !d->detail.flush) return;
  for (struct ni_side *s = d->sides; s; s = s->next) {
    if (s->stage != NI_SIDE_LIVE) continue;
    if (!ni_side_identify(d, s, 0)) continue; /* nothing has happened on it yet */
    ni_judge(d, s, NI_END_NONE);
    ni_events_judge(d, s, NI_END_NONE);
    ni_lines_gaps(d, s);
    d->no_room |= ni_roll_say(d, s, d->detail.flush) != 0 && !d->roll_open;
    d->watching |= s->watch != 0;
  }
  (void)ni_roll_flush(d, 0);
}

static int flush_due(struct ni_dump *d) {
  size_t text = ni_gz_text_bytes(d->gz);
  uint64_t since = d->now_ms - d->last_flush_ms;
  int64_t us = ni_g.config.interval_us;
  if (d->no_room || d->urgent || d->detail.flush) return 1;
  if (!text) return d->closed_in_block || d->busy; /* nothing to write, and so nothing to wait for */
  if (us == NI_INTERVAL_NEVER) {
    if (d->closed_in_block) return 1;
    if (ni_arena_used_bytes(&ni_g.arena) <= ni_g.arena.cap_bytes / 4 * 3) return 0;
    if (!d->early_told) ni_lines_note(d, "interval -1: written early, the arena is three quarters full");
    ni_log_warn_limited(&ni_g.log, NI_LOG_CAUSE_EARLY, d->now_ns,
                        "interval -1, but three quarters of NCCL_INSPECTOR_POOL_MAX_BYTES are in use: writing early");
    d->early_told = 1;
    return 1;
  }
  if (d->closed_in_block >= 64) return 1; /* their memory comes back with the write */
  if (us < 100000) return text >= NI_SMALL_TEXT ? since * 1000 >= (uint64_t)us : since >= 100;
  return since * 1000 >= (uint64_t)us;
}

/* Lines that go with a flush: accounting of whoever has written, clocks once a minute. */
static void flush_lines(struct ni_dump *d) {
  for (struct ni_side *s = d->busy; s; s = s->next_busy)
    if (s->stage == NI_SIDE_LIVE && d->now_ms - s->last_stats_ms >= NI_STATS_MS) ni_lines_stats(d, s, 0);
  if (d->now_ms - d->last_clock_line_ms >= NI_CLOCK_LINE_MS) {
    ni_lines_clock(d);
    d->last_clock_line_ms = d->now_ms;
  }
}

static void read_time(struct ni_dump *d) {
  uint64_t now = ni_monotonic_ns(), step = now / MS_NS - d->now_ms; /* whole ms, so that ticks of less add up */
  d->now_ns = now;
  d->now_ms = now / MS_NS;
  if (d->ticks && step > NI_AWAY_MS) d->awake_ns = now;
  d->real_ms = ni_realtime_ns() / MS_NS;
  d->judge_ms += step < NI_JUDGE_STEP_MS ? (uint32_t)step : NI_JUDGE_STEP_MS;
  if (d->judge_ms == 0) d->judge_ms = 1; /* 0 means "never looked" */
  d->ticks++;
  ni_keep_heartbeat(&ni_g.box, now, ni_load_rlx(&d->has_thread) ? NI_HEARTBEAT_MS : 0);
  if (d->now_ms - d->last_sample_ms < 1000) return;
  d->last_sample_ms = d->now_ms;
  (void)ni_clock_sample(&ni_g.clock);
  ni_keep_clock(&ni_g.box, &ni_g.clock);
}

/* From the done lists to the open block. Returns how many communicators are still to be closed. */
static uint32_t gather(struct ni_dump *d, int ask, enum ni_end end) {
  /* Acquire pairs with finalize's release add. Read before the joining list is taken: who finalizes has joined before,
   * so every communicator counted here is among the sides below. */
  uint32_t seen = ni_load_acq(&d->closings), closing = 0;
  ni_detail_tick(d);
  if (!ni_g.keep_last || ask || seen || d->detail.flush || d->now_ms - d->last_flush_ms >= (uint64_t)ni_g.config.interval_us / 1000)
    d->moved |= ni_drain_collect(d);
  d->moved |= ni_events_collect(d);
  d->patient = !ask && !seen && !end && !d->detail.flush && (ni_events_get() & NI_KINDS_PROXY) &&
               !ni_load_rlx(&ni_g.kernel_ch_ever);
  look_at_sides(d);
  d->moved |= format_all(d) != 0;
  ni_lines_late(d);
  if (seen || end) {
    closing = close_sides(d, end);
    if (!closing) (void)atomic_fetch_sub_explicit(&d->closings, seen, memory_order_relaxed);
  }
  return closing;
}

/* The process's last lines say how many records expired, so nothing may expire by the write that carries them. */
static void say_process_end(struct ni_dump *d) {
  const struct ni_config *c = &ni_g.config;
  if ((c->dir_max_bytes || c->keep_seconds) && ni_flush(d, d->awaited)) return;
  if (release_steps(d, NULL) || ni_lines_room(d)) return;
  ni_out_hold(&d->out, true);
  ni_lines_process_end(d);
  d->ended = 1;
}

/*
 * One pass. ask: someone waits, so everything goes out now. Returns 1 when nothing is pending any more: no operation
 * drained but unwritten, no communicator closing.
 */
static int tick(struct ni_dump *d, int ask, enum ni_end end) {
  read_time(d);
  d->moved = d->watching = d->no_room = 0;
  if (!d->open && session_wanted(d) && open_session(d)) return 0;
  if (!d->open) {
    if (d->ticks % 16 == 0) ni_drain_release(d);
    return 1;
  }
  if (ni_gz_finished(d->gz)) (void)ni_flush(d, d->awaited);

  int blocked = ni_gz_finished(d->gz);
  uint32_t closing = 0;
  int over = 0, unrolled = 0;
  if (!blocked) {
    if (ni_gz_text_bytes(d->gz) == 0) {
      d->ts_us = ni_realtime_ns() / 1000;
      uint64_t limit = ni_out_size_limit(); /* compressed, text is less than half of it; the file's head needs room too */
      d->text_max = limit == UINT64_MAX ? 0 : limit / 2 + 1;
    }
    if (!d->sealed) closing = gather(d, ask, end);
    /* At exit all is said now; what callbacks finish while the write is tried again was in flight. */
    d->sealed = end == NI_END_EXIT && !closing;
    /* Not `live`: a communicator may have come and gone since we looked at the list. */
    over = d->sealed || (!closing && all_closed(d));
    if (!over && d->ended) {
      d->ended = 0;
      ni_out_hold(&d->out, false);
    }
    if (over) unrolled = ni_roll_flush(d, d->awaited) != 0; /* at exit nobody closes their file */
    if (over && !d->ended) say_process_end(d);
    if (ask || over || flush_due(d)) {
      flush_lines(d);
      (void)ni_flush(d, d->awaited);
    }
    blocked = ni_gz_finished(d->gz);
    if (over && d->ended && !blocked && !d->busy && ni_gz_text_bytes(d->gz) == 0) {
      ni_drain_release(d);
      if (end != NI_END_EXIT) close_session(d);
    }
  }
  if (ask || d->ticks % 16 == 0) ni_drain_release(d);
  uint32_t mark = ni_arena_taken_pages(&ni_g.arena);
  d->moved |= mark != d->seen_mark || d->watching;
  d->seen_mark = mark;
  ni_arena_touch_ahead(&ni_g.arena);
  ni_trace_ahead();
  return !blocked && !unrolled && !d->busy && !closing && (!over || d->ended);
}

/* Answers whoever asked. Returns 1 when the process leaves and the last lines are out. */
static int serve(struct ni_dump *d) {
  uint32_t ask = ni_load_acq(&d->ask); /* pairs with the release in request */
  d->awaited = ni_load_rlx(&d->waiting) != 0; /* relaxed: raised before ask was */
  int want = ask != ni_load_rlx(&d->answer), leaving = want && ni_load_acq(&d->exiting);
  int done = tick(d, want, leaving ? NI_END_EXIT : NI_END_NONE);
  if (want && done) {
    ni_store_rel(&d->answer, ask); /* pairs with the acquire in await */
    ni_futex_wake_all(&d->answer);
  }
  return leaving && done;
}

/* ---- the thread ---- */

/* Is anything on a done list? seq_cst: the second half of Dekker's pattern, see publish_done in callbacks.c. */
static int anything_dirty(const struct ni_dump *d) {
  for (uint32_t w = 0; w < (d->cap_index + 63) / 64; w++)
    if (ni_load_sc(&ni_g.dirty[w])) return 1;
  return 0;
}

static void rest(struct ni_dump *d, uint32_t seen_wake) {
  if (!d->open && !d->sides && !atomic_load_explicit(&d->joining, memory_order_acquire)) {
    ni_keep_heartbeat(&ni_g.box, ni_monotonic_ns(), 0);
    ni_futex_wait(&ni_g.wake_word, seen_wake, UINT64_MAX); /* parked: init, finalize and exit raise the word */
    return;
  }
  if (d->moved || ni_gz_text_bytes(d->gz)) {
    uint64_t ms = d->moved ? NI_TICK_MS : NI_IDLE_MS;
    int64_t us = ni_g.config.interval_us;
    if (!d->moved && us != NI_INTERVAL_NEVER && us < 100000) ms = NI_TICK_MS; /* text waits for its 100 ms */
    ni_futex_wait(&ni_g.wake_word, seen_wake, ni_detail_wait_ms(d, ms) * MS_NS);
    return;
  }
  if (ni_g.wake_on_push) {
    ni_store_sc(&ni_g.sleeping, 1);
    if (!anything_dirty(d)) ni_futex_wait(&ni_g.wake_word, seen_wake, ni_detail_wait_ms(d, 1000) * MS_NS);
    ni_store_sc(&ni_g.sleeping, 0);
    return;
  }
  ni_futex_wait(&ni_g.wake_word, seen_wake, ni_detail_wait_ms(d, NI_IDLE_MS) * MS_NS);
}

static void *thread_main(void *arg) {
  struct ni_dump *d = arg;
  (void)prctl(PR_SET_NAME, "nccl-insp-dump", 0, 0, 0);
  /* A host thread with a real-time policy may have made us; a logger must not compete with it. */
  struct sched_param p = {0};
  (void)sched_setscheduler(0, SCHED_OTHER, &p);
  ni_keep_prune_others(&ni_g.box, ni_g.config.blackbox_dir, ((struct ni_dump *)arg)->boot_id);
  for (;;) {
    uint32_t seen = ni_load_acq(&ni_g.wake_word); /* before the work: a wake during it ends the sleep at once */
    pthread_mutex_lock(&d->role);
    int over = serve(d);
    pthread_mutex_unlock(&d->role);
    if (over) return NULL;
    if (ni_load_acq(&d->ask) == ni_load_rlx(&d->answer)) rest(d, seen);
    else ni_futex_wait(&ni_g.wake_word, seen, (d->awaited ? NI_TICK_MS : NI_IDLE_MS) * MS_NS); /* the disk says no */
  }
}

int ni_dump_start(struct ni_dump *d) {
  sigset_t all, old;
  pthread_attr_t attr;
  pthread_t t;
  int rc = pthread_attr_init(&attr);
  if (rc) return -rc;
  (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
  sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &old); /* inherited by the thread from its first instruction */
  ni_store_rel(&d->has_thread, 1);
  rc = pthread_create(&t, &attr, thread_main, d);
  (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
  (void)pthread_attr_destroy(&attr);
  if (rc) ni_store_rel(&d->has_thread, 0);
  return -rc;
}

/* ---- asking ---- */

/* Without a thread: does the work here, unless another thread is at it until the deadline. */
static void serve_here(struct ni_dump *d, uint64_t deadline_ns) {
  while (pthread_mutex_trylock(&d->role)) {
    if (ni_monotonic_ns() >= deadline_ns) return;
    struct timespec t = {0, (long)MS_NS};
    (void)nanosleep(&t, NULL);
  }
  /* Twice at most when the disk takes it; a disk that does not is not waited for here. */
  for (int i = 0; i < 3 && ni_load_rlx(&d->answer) != ni_load_acq(&d->ask); i++) (void)serve(d);
  pthread_mutex_unlock(&d->role);
}

/* Asks for everything to be written and waits: until it is, until hard_ms are over, or until the dump role has made no
 * progress for stall_ms, because the disk hangs or refuses. 1: everything is written. What is not stays asked for. */
static int await_answer(struct ni_dump *d, uint64_t stall_ms, uint64_t hard_ms) {
  uint64_t start = ni_monotonic_ns(), moved_at = start, progress = ni_load_rlx(&d->progress);
  /* Release pairs with serve's acquire: whatever made us ask (CLOSING, exiting) is seen with it. */
  uint32_t mine = atomic_fetch_add_explicit(&d->ask, 1, memory_order_acq_rel) + 1;
  if (!ni_load_acq(&d->has_thread)) {
    serve_here(d, start + hard_ms * MS_NS);
    return (int32_t)(ni_load_acq(&d->answer) - mine) >= 0;
  }
  ni_futex_wake_one(&ni_g.wake_word);
  for (;;) {
    uint32_t answer = ni_load_acq(&d->answer); /* pairs with serve's release: the file is written */
    if ((int32_t)(answer - mine) >= 0) return 1;
    uint64_t now = ni_monotonic_ns(), p = ni_load_rlx(&d->progress);
    if (p != progress) moved_at = now;
    progress = p;
    if (now - start >= hard_ms * MS_NS || now - moved_at >= stall_ms * MS_NS) return 0;
    ni_futex_wait(&d->answer, answer, 10 * MS_NS);
  }
}

/* While somebody waits, a disk that refuses is tried at every tick; when nobody does any more, at growing pauses. */
static int request(struct ni_dump *d, uint64_t stall_ms, uint64_t hard_ms) {
  (void)ni_add_rlx(&d->waiting, 1); /* the release of ask, which comes next, carries it to serve */
  int done = await_answer(d, stall_ms, hard_ms);
  (void)atomic_fetch_sub_explicit(&d->waiting, 1, memory_order_relaxed);
  return done;
}

void ni_dump_finalize(struct ni_dump *d, int last) {
  (void)atomic_fetch_add_explicit(&d->closings, 1, memory_order_release); /* pairs with tick's acquire */
  if (!last && ni_load_acq(&d->has_thread)) {
    ni_futex_wake_one(&ni_g.wake_word);
  } else if (!request(d, STALL_MS, HARD_MS)) {
    ni_log_warn(&ni_g.log, "finalize waits no longer for the log's file system, which hangs or takes nothing: records are kept in "
                "memory and tried again, and are lost if the process ends before that succeeds");
  }
}

int ni_dump_make_room(struct ni_dump *d) { return request(d, ROOM_STALL_MS, ROOM_MS); }

/* Acquire pairs with close_session's release. */
int ni_dump_idle(const struct ni_dump *d) { return !ni_load_acq(&d->open) && !atomic_load(&d->joining); }

void ni_dump_exit(struct ni_dump *d) {
  d->leave_by_ns = ni_monotonic_ns() + LEAVE_MS * MS_NS;
  ni_store_rel(&d->exiting, 1); /* pairs with the acquire in serve and in ni_drain_check */
  /* All that had finished is in the log: the box has nothing to add. */
  if (request(d, EXIT_MS, EXIT_MS) && !d->gave_up) ni_keep_end(&ni_g.box);
}
