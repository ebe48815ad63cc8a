#include "plugin/os/glibc_compat.h"

#include "thread.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "plugin/os/futex.h"
#include "plugin/os/host.h"
#include "plugin/slots/state.h"
#include "plugin/write/accounts.h"
#include "tick.h"

/* no progress for so long: the file system hangs or is full, the host must not wait for it */
#define STALL_MS 1800u
#define HARD_MS 30000u
#define EXIT_MS 2000u
#define ROOM_STALL_MS 200u     /* an init that finds all memory taken waits while that helps, */
#define ROOM_MS 2000u          /* and so long at most */
#define LEAVE_MS 1500u         /* of these; the rest is for the last lines and the write */
#define COUNT_MS 200u          /* a process that leaves waits so long to count what it could not write */
#define STACK_BYTES (1u << 20) /* sanitizer builds need room; untouched pages cost nothing */

/* ---- making ---- */

static void free_dump(struct ni_dump *d) {
  ni_gz_free(d->w.gz);
  ni_gz_free(d->w.gz_head);
  free(d);
}

struct ni_dump *ni_dump_new(const struct ni_config *c) {
  struct ni_dump *d = calloc(1, sizeof *d);
  if (!d)
    return NULL;
  d->drain.w = &d->w;
  d->w.gz = ni_gz_create(ni_format_compressed(c->format), NI_CODEC_LEVEL);
  d->w.gz_head = ni_gz_create(ni_format_compressed(c->format), NI_CODEC_LEVEL);
  if (!d->w.gz || !d->w.gz_head) {
    free_dump(d);
    return NULL;
  }
  ni_host_name(d->w.hostname, sizeof d->w.hostname);
  ni_process_boot_id(d->w.boot_id, sizeof d->w.boot_id);
  ni_process_exe(d->w.exe, sizeof d->w.exe);
  if (!getcwd(d->cwd, sizeof d->cwd) || d->cwd[0] != '/')
    d->cwd[0] = 0; /* gone, or above our root */
  ni_config_settings_json(c, d->w.settings, sizeof d->w.settings);
  ni_job_read(&d->w.job);
  ni_detail_init(d, c);
  d->w.origin = (struct ni_meta){.hostname = d->w.hostname,
                                 .git_rev = NI_GIT_REV,
                                 .producer = NI_PRODUCER " " NI_VERSION,
                                 .pid = getpid()};
  return d;
}

struct ni_comm_writer *ni_comm_writer_new(struct ni_dump *d, struct ni_comm *c,
                                          const struct ni_ident *ident) {
  struct ni_comm_writer *s = calloc(1, sizeof *s);
  if (!s)
    return NULL;
  s->comm = c;
  s->index = c->index;
  s->ident = *ident;
  for (int kind = 0; kind < NI_KIND_COUNT; kind++)
    s->kind[kind].account = &c->kind[kind].account;
  s->init_ns = ni_realtime_ns();
  s->has_gpu = ni_gpu_id_read(&s->gpu) == 0;
  if (ni_line_prefix_init(&s->prefix, ident, &d->w.origin)) {
    free(s);
    return NULL;
  }
  return s;
}

void ni_dump_join(struct ni_dump *d, struct ni_comm_writer *s) {
  struct ni_comm_writer *head = atomic_load_explicit(&d->drain.joining, memory_order_relaxed);
  do
    s->next = head;
  /* Release pairs with the exchange in ni_collect_join: the writer is whole. */
  while (!atomic_compare_exchange_weak_explicit(&d->drain.joining, &head, s, memory_order_release,
                                                memory_order_relaxed));
  if (ni_load_acq(&d->has_thread))
    ni_futex_wake_one(&ni_g.wake_word);
}

/* Answers whoever asked. Returns 1 when the process leaves and the last lines are out. */
static int serve(struct ni_dump *d) {
  uint32_t ask = ni_load_acq(&d->ask);        /* pairs with the release in request */
  d->awaited = ni_load_rlx(&d->waiting) != 0; /* relaxed: raised before ask was */
  int want = ask != ni_load_rlx(&d->answer), leaving = want && ni_load_acq(&d->drain.exiting);
  int done = ni_tick(d, want, leaving ? NI_END_EXIT : NI_END_NONE);
  if (want && done) {
    ni_store_rel(&d->answer, ask); /* pairs with the acquire in await */
    ni_futex_wake_all(&d->answer);
  }
  return leaving && done;
}

/* ---- the thread ---- */

/*
 * Is anything on a done list? seq_cst: the second half of Dekker's pattern, see publish_done in
 * callbacks_in.h.
 */
static int anything_dirty(const struct ni_dump *d) {
  for (uint32_t w = 0; w < (d->drain.cap_index + 63) / 64; w++)
    if (ni_load_sc(&ni_g.dirty[w]))
      return 1;
  return 0;
}

static void rest(struct ni_dump *d, uint32_t seen_wake) {
  if (!d->open && !d->w.comms && !atomic_load_explicit(&d->drain.joining, memory_order_acquire)) {
    ni_keep_heartbeat(&ni_g.box, ni_monotonic_ns(), 0);
    /* parked: init, finalize and exit raise the word */
    ni_futex_wait(&ni_g.wake_word, seen_wake, UINT64_MAX);
    return;
  }
  if (d->moved || ni_gz_text_bytes(d->w.gz)) {
    uint64_t ms = d->moved ? NI_TICK_MS : NI_IDLE_MS;
    int64_t us = ni_g.config.interval_us;
    if (!d->moved && us != NI_INTERVAL_NEVER && us < 100000)
      ms = NI_TICK_MS; /* text waits for its 100 ms */
    ni_futex_wait(&ni_g.wake_word, seen_wake, ms * NI_MS_NS);
    return;
  }
  if (ni_g.wake_on_push) {
    ni_store_sc(&ni_g.sleeping, 1);
    if (!anything_dirty(d))
      ni_futex_wait(&ni_g.wake_word, seen_wake, 1000 * NI_MS_NS);
    ni_store_sc(&ni_g.sleeping, 0);
    return;
  }
  ni_futex_wait(&ni_g.wake_word, seen_wake, NI_IDLE_MS * NI_MS_NS);
}

static void *thread_main(void *arg) {
  struct ni_dump *d = arg;
  (void)prctl(PR_SET_NAME, "nccl-insp-dump", 0, 0, 0);
  /* A host thread with a real-time policy may have made us; a logger must not compete with it. */
  struct sched_param p = {0};
  (void)sched_setscheduler(0, SCHED_OTHER, &p);
  /* Before the log is begun, which may take long: a job can begin with a burst. */
  pthread_mutex_lock(&d->role);
  ni_arena_touch_ahead(&ni_g.arena);
  pthread_mutex_unlock(&d->role);
  for (;;) {
    /* before the work: a wake during it ends the sleep at once */
    uint32_t seen = ni_load_acq(&ni_g.wake_word);
    pthread_mutex_lock(&d->role);
    int over = serve(d);
    pthread_mutex_unlock(&d->role);
    if (over)
      return NULL;
    if (ni_load_acq(&d->ask) == ni_load_rlx(&d->answer))
      rest(d, seen);
    /* the disk says no */
    else
      ni_futex_wait(&ni_g.wake_word, seen, (d->awaited ? NI_TICK_MS : NI_IDLE_MS) * NI_MS_NS);
  }
}

int ni_dump_start(struct ni_dump *d) {
  sigset_t all, old;
  pthread_attr_t attr;
  pthread_t t;
  int rc = pthread_attr_init(&attr);
  if (rc)
    return -rc;
  (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
  sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &old); /* inherited by the thread from its first instruction */
  ni_store_rel(&d->has_thread, 1);
  rc = pthread_create(&t, &attr, thread_main, d);
  (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
  (void)pthread_attr_destroy(&attr);
  if (rc)
    ni_store_rel(&d->has_thread, 0);
  return -rc;
}

/* ---- asking ---- */

/*
 * Takes the dump role (d->role is locked then, the caller unlocks it). False: another thread had it until the
 * deadline.
 */
static bool take_role(struct ni_dump *d, uint64_t deadline_ns) {
  while (pthread_mutex_trylock(&d->role)) {
    if (ni_monotonic_ns() >= deadline_ns)
      return false;
    struct timespec t = {0, (long)NI_MS_NS};
    (void)nanosleep(&t, NULL);
  }
  return true;
}

/* Without a thread: does the work here, unless another thread is at it until the deadline. */
static void serve_here(struct ni_dump *d, uint64_t deadline_ns) {
  if (!take_role(d, deadline_ns))
    return;
  /* Twice at most when the disk takes it; a disk that does not is not waited for here. */
  for (int i = 0; i < 3 && ni_load_rlx(&d->answer) != ni_load_acq(&d->ask); i++)
    (void)serve(d);
  pthread_mutex_unlock(&d->role);
}

/* Asks for everything to be written and waits: until it is, until hard_ms are over, or until the dump role
 * has made no progress for stall_ms, because the disk hangs or refuses. 1: everything is written. What is not
 * stays asked for. */
static int await_answer(struct ni_dump *d, uint64_t stall_ms, uint64_t hard_ms) {
  uint64_t start = ni_monotonic_ns(), moved_at = start, progress = ni_load_rlx(&d->w.progress);
  /* Release pairs with serve's acquire: whatever made us ask (CLOSING, exiting) is seen with it. */
  uint32_t mine = atomic_fetch_add_explicit(&d->ask, 1, memory_order_acq_rel) + 1;
  if (!ni_load_acq(&d->has_thread)) {
    serve_here(d, start + hard_ms * NI_MS_NS);
    return (int32_t)(ni_load_acq(&d->answer) - mine) >= 0;
  }
  ni_futex_wake_one(&ni_g.wake_word);
  for (;;) {
    uint32_t answer = ni_load_acq(&d->answer); /* pairs with serve's release: the file is written */
    if ((int32_t)(answer - mine) >= 0)
      return 1;
    uint64_t now = ni_monotonic_ns(), p = ni_load_rlx(&d->w.progress);
    if (p != progress)
      moved_at = now;
    progress = p;
    if (now - start >= hard_ms * NI_MS_NS || now - moved_at >= stall_ms * NI_MS_NS)
      return 0;
    ni_futex_wait(&d->answer, answer, 10 * NI_MS_NS);
  }
}

/*
 * While somebody waits, a disk that refuses is tried at every tick; when nobody does any more, at growing
 * pauses.
 */
static int request(struct ni_dump *d, uint64_t stall_ms, uint64_t hard_ms) {
  (void)ni_add_rlx(&d->waiting, 1); /* the release of ask, which comes next, carries it to serve */
  int done = await_answer(d, stall_ms, hard_ms);
  (void)atomic_fetch_sub_explicit(&d->waiting, 1, memory_order_relaxed);
  return done;
}

void ni_dump_finalize(struct ni_dump *d, int last) {
  /* pairs with gather's acquire */
  (void)atomic_fetch_add_explicit(&d->drain.closings, 1, memory_order_release);
  if (!last && ni_load_acq(&d->has_thread)) {
    ni_futex_wake_one(&ni_g.wake_word);
  } else if (!request(d, STALL_MS, HARD_MS)) {
    ni_log_warn(&ni_g.log,
                "finalize waits no longer for the log's file system, which hangs or takes nothing: records "
                "are kept in memory and tried again, and %s if the process ends before that succeeds",
                ni_g.box.h ? "nccl-inspector recover gets them from the black box" : "are lost");
  }
}

int ni_dump_make_room(struct ni_dump *d) { return request(d, ROOM_STALL_MS, ROOM_MS); }

/* Acquire pairs with ni_session_close's release. */
int ni_dump_idle(const struct ni_dump *d) {
  return !ni_load_acq(&d->open) && !atomic_load(&d->drain.joining);
}

void ni_dump_exit(struct ni_dump *d) {
  d->drain.leave_by_ns = ni_monotonic_ns() + LEAVE_MS * NI_MS_NS;
  ni_store_rel(&d->drain.exiting, 1); /* pairs with the acquire in serve and in ni_drain_check */
  /* First of all: who is killed while it leaves has left by itself. */
  ni_keep_exited(&ni_g.box, NI_BOX_NOT_COUNTED, 0);
  /* All that had finished is in the log: the box has nothing to add. */
  if (request(d, EXIT_MS, EXIT_MS) && !d->drain.gave_up) {
    ni_keep_end(&ni_g.box);
    return;
  }
  /* The thread tries to write again and again, and has the role for a moment each time. A write that hangs
   * keeps it: then nobody can count, and the box says so. */
  if (!take_role(d, ni_monotonic_ns() + COUNT_MS * NI_MS_NS))
    return;
  ni_keep_exited(&ni_g.box, ni_accounts_unwritten(&d->w), d->w.write_error);
  pthread_mutex_unlock(&d->role);
}
