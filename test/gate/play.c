/*
 * Plays recorded callbacks of real NCCL to the plugin, as fast as it takes them: for the gate, which counts
 * their instructions, and for the proof that they make no system call, take no lock and allocate nothing.
 *
 *   play --plugin SO --nccl RELEASE [--interface V] [--loops N] [--sealed] [--wakes] [--yields]
 *        [--plant malloc|getppid] FILE.rec...
 *
 * Each recorded thread is a thread here, and they call one after the other, in the recorded order. The
 * callbacks are those that this release raises for the plugin's mask, through the given interface
 * (test/nccl_sim/core). Of a recording with one communicator what lies between its init and its finalize is
 * played N times; between two times the main thread makes and ends another communicator, which lets a plugin
 * without a thread of its own write what has finished. So all times but the first find memory that was used
 * before. From NCCL 2.29 on copy-engine events are made up, which no recording has.
 *
 * Prints how many operations and callbacks of each kind were raised, "collective 320 5120", and the page
 * faults of the threads that raised them, "faults 12 12".
 *
 *   --sealed   the threads that call may not make a system call: a filter of the kernel traps it (seccomp).
 *              They wait for each other by raw_call, the one instruction that the filter lets through.
 *   --wakes    a wake-up by futex is allowed, and counted: what a callback may do at interval 0
 *   --yields   sched_yield() is allowed: a test build calls it at its test points (plugin/os/testpoint.c)
 *   --plant    each callback is made to do this too, to show that it is noticed
 *
 * With count_calls.so preloaded (test/preload), calls of the C library during callbacks are counted as well.
 * Exit status: 0; 1 when a callback did what it must not, with a line for each; 77 when the kernel refuses
 * the filter.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test/nccl_sim/core/core.h"
#include "test/nccl_sim/replay/recording.h"

enum kind { COLLECTIVE, P2P, API, NETWORK, COPY_ENGINE, PROXY_CTRL, KINDS };
static const char *const kind_names[KINDS] = {"collective", "p2p",         "api",
                                              "network",    "copy_engine", "proxy_ctrl"};
enum { MOST_THREADS = 256, SEQ_NUMBERS = 10000, LAST_BEFORE_COPY_ENGINE = 22899 };
enum { REST_US = 200000 }; /* the plugin's thread has gone to sleep by then, so that it is woken */

struct played { /* one event, in the loop that is played now */
  void *handle;
  bool called;
};

static struct {
  struct ni_recording r;
  struct played *played;
  enum kind *kind; /* by event */
  void **ctx;
  int first, end, loops, loop; /* the calls that are repeated, and how often */
  _Atomic uint32_t
      turn; /* whose: an index into r.threads; pass_on() stores by release, wait_for() loads by acquire */
  int at;   /* the call that is next; whoever has the turn owns all of this */
  uint64_t operations[KINDS], callbacks[KINDS], faults;
  bool sealed, wakes, yields;
  const char *plant;
} play;
static int pid;

/* Of count_calls.so; NULL without it. */
static void (*inside)(int begins);

/* ---- one system call, at one known place ---- */

/* A system call with up to five arguments. raw_call_end is the address behind its instruction, by which the
 * filter knows it. */
long raw_call(long number, long a, long b, long c, long d, long e) __attribute__((visibility("hidden")));
extern const char raw_call_end[] __attribute__((visibility("hidden")));
#if defined(__x86_64__)
__asm__(
    ".text\n.hidden raw_call\n.globl raw_call\n.type raw_call, @function\nraw_call:\n"
    "  mov %rdi, %rax\n  mov %rsi, %rdi\n  mov %rdx, %rsi\n  mov %rcx, %rdx\n  mov %r8, %r10\n"
    "  mov %r9, %r8\n  syscall\n"
    ".hidden raw_call_end\n.globl raw_call_end\nraw_call_end:\n  ret\n.size raw_call, .-raw_call\n");
#elif defined(__aarch64__)
__asm__(
    ".text\n.hidden raw_call\n.globl raw_call\n.type raw_call, %function\nraw_call:\n"
    "  mov x8, x0\n  mov x0, x1\n  mov x1, x2\n  mov x2, x3\n  mov x3, x4\n  mov x4, x5\n  svc #0\n"
    ".hidden raw_call_end\n.globl raw_call_end\nraw_call_end:\n  ret\n.size raw_call, .-raw_call\n");
#endif

enum { MOST_CALLS = 512 };
/* By the call's number. Relaxed: read when the threads have ended. */
static _Atomic uint32_t trapped[MOST_CALLS];

static void on_trap(int signal, siginfo_t *info, void *context) {
  (void)signal;
  (void)context;
  atomic_fetch_add_explicit(&trapped[(unsigned)info->si_syscall % MOST_CALLS], 1, memory_order_relaxed);
}

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define IF_EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), yes, no)

/* From here on the calling thread makes no system call but raw_call's, the return from a handler, and what is
 * allowed. */
static void seal(void) {
  const uintptr_t mine = (uintptr_t)raw_call_end;
  const uint32_t wake_op = play.wakes ? FUTEX_WAKE_PRIVATE : UINT32_MAX; /* no futex call has that one */
  const uint32_t yield = play.yields ? SYS_sched_yield : UINT32_MAX;
  struct sock_filter code[] = {
      LOAD(instruction_pointer),
      IF_EQUAL(mine, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4),
      IF_EQUAL((uint64_t)mine >> 32, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      LOAD(nr),
      IF_EQUAL(SYS_rt_sigreturn, 5, 0),
      IF_EQUAL(yield, 4, 0),
      IF_EQUAL(SYS_futex, 0, 2),
      LOAD(args[1]),
      IF_EQUAL(wake_op, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {sizeof code / sizeof *code, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0)) {
    fprintf(stderr, "play: the kernel takes no filter: %s\n", strerror(errno));
    exit(77);
  }
}

/* ---- what a call is about ---- */

static enum kind kind_of(int event) {
  const struct ni_event_rec *e = &play.r.events[event];
  switch (e->d.type) {
    case NI_EV_COLL:
      return COLLECTIVE;
    case NI_EV_P2P:
      return P2P;
    case NI_EV_KERNEL_CH:
      return e->parent >= 0 ? kind_of(e->parent) : COLLECTIVE;
    case NI_EV_GROUP:
      for (int i = event + 1; i < play.r.n_events; i++)
        if (play.r.events[i].parent_group == event)
          return play.r.events[i].d.type == NI_EV_P2P ? P2P : COLLECTIVE;
      return COLLECTIVE;
    case NI_EV_GROUP_API:
    case NI_EV_COLL_API:
    case NI_EV_P2P_API:
    case NI_EV_KERNEL_LAUNCH:
      return API;
    case NI_EV_CE_COLL:
    case NI_EV_CE_SYNC:
    case NI_EV_CE_BATCH:
      return COPY_ENGINE;
    case NI_EV_PROXY_CTRL:
      return PROXY_CTRL;
    default:
      return NETWORK;
  }
}

/* Which events count as operations of their kind. */
static bool is_operation(uint64_t type) {
  return type &
      (NI_EV_COLL | NI_EV_P2P | NI_EV_COLL_API | NI_EV_P2P_API | NI_EV_PROXY_OP | NI_EV_CE_COLL |
       NI_EV_PROXY_CTRL);
}

static bool wanted(const struct ni_event_rec *e) {
  int m = ni_core_mask();
  switch (e->d.type) {
    case NI_EV_GROUP:
      return ni_wants_group(m);
    case NI_EV_COLL:
      return ni_wants_coll(m);
    case NI_EV_P2P:
      return ni_wants_p2p(m, ni_core.release);
    case NI_EV_PROXY_OP:
      return ni_wants_proxy_op(m);
    case NI_EV_PROXY_STEP:
      return ni_wants_proxy_step(m);
    case NI_EV_GROUP_API:
      return ni_wants_group_api(m);
    case NI_EV_COLL_API:
      return ni_wants_coll_api(m);
    case NI_EV_P2P_API:
      return ni_wants_p2p_api(m);
    /* A child is raised only if its operation was. */
    case NI_EV_KERNEL_CH:
      return (m & NI_EV_KERNEL_CH) && e->parent >= 0 && play.played[e->parent].called;
    default:
      return m & (int)e->d.type;
  }
}

static void *handle_of(int event) { return event >= 0 ? play.played[event].handle : NULL; }

static void start(const struct ni_call_rec *c) {
  const struct ni_event_rec *e = &play.r.events[c->event];
  struct played *p = &play.played[c->event];
  if (!wanted(e))
    return;
  struct ni_prof_descr_v7 d = e->d;
  d.parentObj = handle_of(e->parent);
  if (d.type == NI_EV_COLL) {
    d.coll.parentGroup = handle_of(e->parent_group);
    d.coll.seqNumber += (uint64_t)play.loop * SEQ_NUMBERS;
  }
  if (d.type == NI_EV_P2P)
    d.p2p.parentGroup = handle_of(e->parent_group);
  if (d.type == NI_EV_PROXY_OP)
    d.proxyOp.pid = pid;
  p->called = true;
  play.callbacks[play.kind[c->event]]++;
  if (is_operation(d.type))
    play.operations[play.kind[c->event]]++;
  ni_core_start(e->comm >= 0 ? play.ctx[e->comm] : NULL, &p->handle, &d);
}

/* A callback, and nothing else. */
__attribute__((noinline)) static void raise_call(const struct ni_call_rec *c) {
  struct played *p = &play.played[c->event];
  union ni_prof_state_v4 a;
  if (c->kind == NI_REC_START) {
    start(c);
    return;
  }
  if (!p->called || !p->handle)
    return;
  play.callbacks[play.kind[c->event]]++;
  if (c->kind == NI_REC_STOP) {
    ni_core_stop(p->handle);
    return;
  }
  memcpy(&a, &c->args, sizeof a);
  ni_core_record(p->handle, (enum ni_prof_state)c->state, c->has_args ? &a : NULL);
}

/* The gate tells the rows by these names: whatever runs below one of them belongs to it. The comment in the
 * instruction keeps the compiler from making one function of them all. */
#define RAISE(name) \
  __attribute__((noinline)) static void name(const struct ni_call_rec *c) { \
    raise_call(c); \
    __asm__ volatile("# " #name ::: "memory"); \
  }
RAISE(raise_collective_starter)
RAISE(raise_collective_poller)
RAISE(raise_p2p_starter)
RAISE(raise_p2p_poller)
RAISE(raise_api)
RAISE(raise_network)
RAISE(raise_copy_engine)
RAISE(raise_proxy_ctrl)

static void raise_one(const struct ni_call_rec *c) {
  bool poller = play.r.events[c->event].d.type == NI_EV_KERNEL_CH;
  if (inside)
    inside(1);
  if (play.plant && !strcmp(play.plant, "malloc")) {
    void *volatile taken = malloc(24); /* volatile: or the compiler leaves both calls out */
    free(taken);
  }
  if (play.plant && !strcmp(play.plant, "getppid"))
    (void)getppid();
  switch (play.kind[c->event]) {
    case COLLECTIVE:
      (poller ? raise_collective_poller : raise_collective_starter)(c);
      break;
    case P2P:
      (poller ? raise_p2p_poller : raise_p2p_starter)(c);
      break;
    case API:
      raise_api(c);
      break;
    case NETWORK:
      raise_network(c);
      break;
    case COPY_ENGINE:
      raise_copy_engine(c);
      break;
    default:
      raise_proxy_ctrl(c);
      break;
  }
  if (inside)
    inside(0);
}

/* ---- the main thread: communicators ---- */

/* Its finalize is also an order to write: a plugin without a thread of its own does it here. */
static void drain(void) {
  void *ctx = NULL;
  struct ni_comm_ident id = {"drain", 0xd4a1, 1, 2, 0};
  if (!ni_core_load())
    return;
  ni_core_init(&ctx, &id);
  ni_core_finalize(ctx);
  ni_core_unload();
}

static void main_call(const struct ni_call_rec *c) {
  if (c->event < 0)
    return;
  const struct ni_comm_rec *m = &play.r.comms[c->event];
  struct ni_comm_ident id = {m->name, m->hash, m->n_nodes, m->n_ranks, m->rank};
  if (c->kind == NI_REC_INIT) {
    if (ni_core_load())
      ni_core_init(&play.ctx[c->event], &id);
    if (play.wakes)
      usleep(REST_US);
    return;
  }
  ni_core_finalize(play.ctx[c->event]);
  ni_core_unload();
}

/* ---- turns ---- */

static bool is_mains(const struct ni_call_rec *c) {
  return c->kind == NI_REC_INIT || c->kind == NI_REC_FINALIZE;
}

/* Whose turn the next call is: an index into r.threads, or n_threads for the main thread, also when all is
 * played. */
static uint32_t turn_of(int at) {
  uint32_t i = 0, n = (uint32_t)play.r.n_threads;
  if (at >= play.r.n_calls || is_mains(&play.r.calls[at]))
    return n;
  while (i < n && play.r.threads[i] != play.r.calls[at].thread)
    i++;
  return i;
}

static void wait_for(uint32_t me) {
  for (;;) {
    uint32_t now = atomic_load_explicit(&play.turn, memory_order_acquire); /* pairs with pass_on's release */
    if (now == me)
      return;
    raw_call(SYS_futex, (long)(uintptr_t)&play.turn, FUTEX_WAIT_PRIVATE, (long)now, 0, 0);
  }
}
static void pass_on(uint32_t to) {
  atomic_store_explicit(&play.turn, to, memory_order_release); /* pairs with wait_for's acquire */
  raw_call(SYS_futex, (long)(uintptr_t)&play.turn, FUTEX_WAKE_PRIVATE, INT32_MAX, 0, 0);
}

/* Plays calls while they are `me`'s. The main thread goes on to the next time at the end of each. */
static void my_calls(uint32_t me) {
  uint32_t mains = (uint32_t)play.r.n_threads;
  while (turn_of(play.at) == me) {
    if (play.at >= play.r.n_calls)
      return;
    const struct ni_call_rec *c = &play.r.calls[play.at];
    bool again = me == mains && play.at == play.end && play.loop + 1 < play.loops;
    if (again) {
      drain();
      play.loop++;
      play.at = play.first;
      memset(play.played, 0, (size_t)play.r.n_events * sizeof *play.played);
      continue;
    }
    if (me == mains)
      main_call(c);
    else
      raise_one(c);
    play.at++;
  }
}

/* Page faults of the calling thread so far, by the one system call that the filter lets through. */
static uint64_t my_faults(void) {
  struct rusage used = {0};
  raw_call(SYS_getrusage, RUSAGE_THREAD, (long)(uintptr_t)&used, 0, 0, 0);
  return (uint64_t)used.ru_minflt;
}

static void *thread_main(void *arg) {
  uint32_t me = (uint32_t)(uintptr_t)arg;
  if (play.sealed)
    seal();
  for (;;) {
    wait_for(me);
    if (play.at >= play.r.n_calls)
      break; /* the main thread wants us to end */
    uint64_t before = my_faults();
    my_calls(me);
    play.faults += my_faults() - before;
    pass_on(turn_of(play.at));
  }
  pass_on((uint32_t)play.r.n_threads);
  raw_call(SYS_exit, 0, 0, 0, 0, 0); /* the C library's way out makes system calls of its own */
  return NULL;
}

/* ---- the recording ---- */

static void add_call(enum ni_rec_kind kind, int event, int state) {
  struct ni_call_rec *c = ni_recording_call(&play.r);
  c->kind = kind;
  c->event = event;
  c->state = state;
  c->thread = play.r.threads[0];
}

static int add_event(uint64_t type, int parent) {
  int i = ni_recording_event(&play.r);
  struct ni_event_rec *e = &play.r.events[i];
  e->d.type = type;
  e->comm = 0;
  e->parent = parent;
  if (type == NI_EV_CE_COLL) {
    e->d.ceColl.func = "AllGather";
    e->d.ceColl.datatype = "ncclInt8";
    e->d.ceColl.count = 4096;
  }
  return i;
}

/* A copy-engine collective with its parts before the finalize, which is the recording's last call. */
static void add_copy_engine(void) {
  struct ni_call_rec finalize = play.r.calls[play.r.n_calls - 1];
  if (ni_core.release <= LAST_BEFORE_COPY_ENGINE || finalize.kind != NI_REC_FINALIZE)
    return;
  play.r.n_calls--;
  int coll = add_event(NI_EV_CE_COLL, -1);
  int sync = add_event(NI_EV_CE_SYNC, coll), batch = add_event(NI_EV_CE_BATCH, coll);
  add_call(NI_REC_START, coll, 0);
  add_call(NI_REC_START, sync, 0);
  add_call(NI_REC_STOP, sync, 0);
  add_call(NI_REC_START, batch, 0);
  add_call(NI_REC_STOP, batch, 0);
  add_call(NI_REC_STOP, coll, 0);
  *ni_recording_call(&play.r) = finalize;
}

static void read_file(const char *path, int loops) {
  struct ni_recording *r = &play.r;
  memset(r, 0, sizeof *r);
  ni_recording_read(r, path);
  add_copy_engine();
  free(play.played);
  free(play.kind);
  free(play.ctx);
  play.played = ni_xalloc((size_t)r->n_events * sizeof *play.played);
  play.kind = ni_xalloc((size_t)r->n_events * sizeof *play.kind);
  play.ctx = ni_xalloc((size_t)r->n_comms * sizeof *play.ctx);
  for (int i = 0; i < r->n_events; i++)
    play.kind[i] = kind_of(i);
  play.first = 1;
  play.end = r->n_calls - 1;
  play.loop = play.at = 0;
  play.loops = loops;
  bool one_life = r->n_comms == 1 && r->calls[0].kind == NI_REC_INIT && is_mains(&r->calls[play.end]);
  if (!one_life && loops > 1)
    ni_die(NI_SIM_FAILED, "%s: has more than one communicator; --loops is for those with one", path);
}

static void play_file(const char *path, int loops) {
  pthread_t threads[MOST_THREADS];
  uint32_t mains;
  read_file(path, loops);
  mains = (uint32_t)play.r.n_threads;
  atomic_store_explicit(&play.turn, mains, memory_order_relaxed); /* the threads do not yet run */
  for (uint32_t i = 0; i < mains; i++)
    if (pthread_create(&threads[i], NULL, thread_main, (void *)(uintptr_t)i))
      ni_die(NI_SIM_FAILED, "cannot create a thread");
  while (play.at < play.r.n_calls) {
    my_calls(mains);
    if (play.at >= play.r.n_calls)
      break;
    pass_on(turn_of(play.at));
    wait_for(mains);
  }
  for (uint32_t i = 0; i < mains; i++) {
    pass_on(i);
    pthread_join(threads[i], NULL);
    wait_for(mains);
  }
}

/* ---- what was done ---- */

int ncclGetVersion(int *version);
int ncclGetVersion(int *version) {
  *version = ni_core.release;
  return 0;
}

static int tell(void) {
  int (*told)(int wakes, int yields) = NULL;
  int bad = 0;
  for (int k = 0; k < KINDS; k++)
    if (play.callbacks[k])
      printf("%s %llu %llu\n", kind_names[k], (unsigned long long)play.operations[k],
             (unsigned long long)play.callbacks[k]);
  printf("faults %llu %llu\n", (unsigned long long)play.faults, (unsigned long long)play.faults);
  for (int i = 0; i < MOST_CALLS; i++) {
    uint32_t n = atomic_load_explicit(&trapped[i], memory_order_relaxed);
    if (n) {
      printf("a callback made system call %d, %u times in all\n", i, n);
      bad = 1;
    }
  }
  *(void **)&told = dlsym(RTLD_DEFAULT, "ni_inside_tell");
  return (told && told(play.wakes, play.yields)) || bad;
}

int main(int argc, char **argv) {
  int loops = 1, files = 0;
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (!strcmp(argv[i], "--sealed"))
      play.sealed = true;
    else if (!strcmp(argv[i], "--wakes"))
      play.wakes = true;
    else if (!strcmp(argv[i], "--yields"))
      play.yields = true;
    else if (strncmp(argv[i], "--", 2))
      argv[1 + files++] = argv[i];
    else {
      if (!strcmp(argv[i], "--plugin"))
        ni_core.library = value;
      else if (!strcmp(argv[i], "--nccl"))
        ni_core.release = ni_core_release(value);
      else if (!strcmp(argv[i], "--interface"))
        ni_core.want_interface = atoi(value);
      else if (!strcmp(argv[i], "--loops"))
        loops = atoi(value);
      else if (!strcmp(argv[i], "--plant"))
        play.plant = value;
      else
        ni_die(NI_SIM_USAGE, "play: %s: no such option", argv[i]);
      i++;
    }
  }
  if (!ni_core.library || !ni_core.release || !files || loops < 1)
    ni_die(NI_SIM_USAGE,
           "usage: play --plugin SO --nccl RELEASE [--interface V] [--loops N] [--sealed] [--wakes] "
           "[--yields] FILE.rec...");
  pid = getpid();
  ni_core.quiet = true;
  *(void **)&inside = dlsym(RTLD_DEFAULT, "ni_inside");
  struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
  if (play.sealed)
    sigaction(SIGSYS, &trap, NULL);
  /* One more user of the library, so that the process keeps it from one recording to the next. */
  if (!ni_core_load())
    return NI_SIM_FAILED;
  for (int i = 1; i <= files; i++)
    play_file(argv[i], loops);
  return tell();
}
