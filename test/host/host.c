/*
 * host SO TRUTH VERB...    a small application that drives a profiler plugin by a script of verbs, and writes down what
 * it did (truth.h), so that verify.py can compare the log with it.
 *
 *   iface N            interface version from here on: 4, 5 or 6 (default: the newest)
 *   channels N base NS operations of communicators to come: 1 .. N channels, NS .. 2 NS - 1 ns long (4, 100)
 *   ranks N            ranks of communicators to come (8); rank: init's argument
 *   init C | initname C HEX | init-null C     communicator number C (0 .. 16383)
 *   ops C N | p2p C N | self C N   finished operations, one thread; open C N, half C N: never finished
 *   muted-ops C N      callbacks that must leave no record, and do not stand in the truth
 *   paced C N RATE     at RATE per second; duet C N RATE, duetp C N RATE: two threads (0: as fast as
 *                      possible)
 *   fin C              finalize; again C: finalize a second time, with the old context
 *   cycle N OPS        init, OPS operations, finalize; N times
 *   many N OPS         N communicators at once, OPS operations each, then finalize all
 *   bg VERB            the next verb on a thread of its own;  join: waits for all of them
 *   forever C          operations until the process ends (with bg)
 *   timed MS VERB      fails (exit 3) when the next verb takes longer, the machine's own delays (pulse.h)
 *                      left out
 *   starve  feed       the dump thread runs only when nobody else wants the CPU (SCHED_IDLE); as all others again
 *   rested             waits until the dump thread has nothing to do
 *   spin MS            two threads take all CPU time they get
 *   sleep MS  mark     mark: says by D lines what is finished now
 *   live FILE          keeps what is finished in FILE from here on, for verify.py --live, whoever kills us
 *                      and when
 *   sh CMD  chdir DIR  umask OCTAL  fsize BYTES  nofile N  closefds  sig N  setenv NAME=VALUE
 *   closeall FILE      closes every descriptor from 3 to 199, and opens FILE under all of them
 *   fault RULE         tells the preloaded fault object (test/preload), e.g. write=ENOSPC
 *   fired              prints how many calls the fault object has failed so far
 *   rss LIMIT_KB       remembers resident memory at the first call, fails at a later one that is LIMIT_KB
 *                      above
 *   cpu MS PERMYRIAD N CPU time of the thread nccl-insp-dump over MS; fails above PERMYRIAD / 10000 of a core and above
 *                      twice what its wake-ups alone cost on this machine (pulse.h), or with more than N wake-ups a second
 *   fork VERBS end | rawfork VERBS end | forknowait VERBS end   a child; the parent waits and fails if the child did
 *   atexit-init C      init and 10 operations of a communicator from an exit handler that runs after the
 *                      plugin's
 *   exit N | quick N | _exit N | abort | kill     ends the process; otherwise main returns 0
 *
 * Exit status: 0; 3: a limit was broken; 64: usage; 66, 67: the host itself has no disk or no threads.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "host_measure.h"
#include "host_ops.h"

static char **word; /* the script */
static const char *so;
static int interface, n_ranks = 8, channels = 4, my_rank;
static uint64_t base_ns = 100;
static long first_rss;
static pthread_t threads[64];
static int n_threads;
__attribute__((format(printf, 5, 6))) static void logger(enum ni_log_level level, unsigned long flags,
                                                         const char *where, int line, const char *fmt, ...) {
  va_list ap;
  char text[4096];
  (void)flags;
  (void)where;
  (void)line;
  va_start(ap, fmt);
  int n = snprintf(text, 16, "%s ", level == NI_LOG_WARN ? "WARN" : "INFO");
  n += vsnprintf(text + n, sizeof text - (size_t)n - 1, fmt, ap);
  va_end(ap);
  if (n > (int)sizeof text - 2)
    n = sizeof text - 2;
  text[n++] = '\n';
  const char *to = getenv("HOST_LOG");
  int fd = open(to ? to : "/dev/null", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd >= 0) {
    if (write(fd, text, (size_t)n) != n) { /* the disk may be full, that is the test */
    }
    close(fd);
  }
}

static char *next_word(void) {
  if (!*word) {
    fprintf(stderr, "the script ends within a verb\n");
    exit(64);
  }
  return *word++;
}
static uint64_t next_number(void) { return strtoull(next_word(), NULL, 0); }
static struct comm *next_comm(void) { return &comms[next_number() % MAX_COMMS]; }

static void do_init(struct comm *c, const char *name) {
  if (!plug.lib)
    plug = plug_open(so, interface);
  memset(c, 0, sizeof *c);
  c->hash = atomic_fetch_add(&next_hash, 1);
  c->rank = my_rank;
  c->n_ranks = n_ranks;
  c->channels = channels;
  c->base_ns = base_ns;
  static _Thread_local char hex[60000];
  size_t n = name ? strlen(name) : 0;
  for (size_t i = 0; i < n && i < sizeof hex / 2 - 1; i++)
    snprintf(hex + 2 * i, 3, "%02x", (unsigned char)name[i]);
  c->ctx = plug_init(&plug, c->hash, name, 2, c->n_ranks, c->rank, logger);
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&one);
  truth("I %llx %d %d %lld%09ld %s\n", (unsigned long long)c->hash, c->rank, c->n_ranks, (long long)t.tv_sec,
        t.tv_nsec, name ? (n ? hex : "empty") : "-");
  pthread_mutex_unlock(&one);
}

static void do_fin(struct comm *c) {
  truth("F %llx\n", (unsigned long long)c->hash);
  plug.finalize(c->ctx);
}

static void live(const char *path) {
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0 || ftruncate(fd, sizeof comms_here))
    _exit(66);
  comms = mmap(NULL, sizeof comms_here, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (comms == MAP_FAILED)
    _exit(66);
  close(fd);
}

static void mark(void) {
  for (int i = 0; i < MAX_COMMS; i++)
    for (int k = 0; k < 2; k++)
      if (comms[i].hash && comms[i].next[k])
        finished(&comms[i], k);
}

/* ---- verbs ---- */

static void run(void);

static void tell_fault(const char *rule) {
  void (*set)(const char *);
  *(void **)&set = dlsym(RTLD_DEFAULT, "ni_fault_set");
  if (!set) {
    fprintf(stderr, "no fault object is preloaded\n");
    exit(64);
  }
  set(rule);
}

static void tell_fired(void) {
  long (*get)(void);
  *(void **)&get = dlsym(RTLD_DEFAULT, "ni_fault_fired");
  printf("fired %ld\n", get ? get() : -1);
}

static char **skip_to_end(void) { /* of a child's block; blocks nest */
  int depth = 1;
  char **w = word;
  for (; *w; w++) {
    if (!strcmp(*w, "fork") || !strcmp(*w, "rawfork") || !strcmp(*w, "forknowait"))
      depth++;
    if (!strcmp(*w, "end") && --depth == 0)
      return w + 1;
  }
  fprintf(stderr, "fork without end\n");
  exit(64);
}

static void child(int raw, int wait_for_it) {
  char **after = skip_to_end();
  long pid = raw ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
  if (pid == 0) {
    next_hash += 0x100000; /* its communicators are others */
    n_threads = 0;
    run();
    if (raw)
      _exit(0); /* glibc does not know that it was cloned */
    exit(0);
  }
  word = after;
  int status = 0;
  if (pid < 0 || (wait_for_it && (waitpid((pid_t)pid, &status, 0) < 0 || status != 0))) {
    fprintf(stderr, "the child ended with status 0x%x\n", (unsigned)status);
    _exit(3);
  }
}

static void one_verb(void);

struct background { /* a verb on a thread of its own */
  int verb;
  struct comm *c;
  uint64_t n;
  double rate;
};

static void cycle(struct comm *c, uint64_t n, uint64_t ops) {
  for (uint64_t i = 0; i < n; i++) {
    do_init(c, "cycle");
    run_ops(c, 0, ops, RUN, 0);
    do_fin(c);
  }
}

static void *on_thread(void *arg) {
  struct background *a = arg;
  switch (a->verb) {
    case 'o':
      run_ops(a->c, 0, a->n, RUN, 0);
      break;
    case 'p':
      run_ops(a->c, 0, a->n, RUN, a->rate);
      break;
    case 'd':
      run_duet(a->c, 0, a->n, a->rate);
      break;
    case 'f':
      run_ops(a->c, 0, UINT32_MAX, RUN, 0);
      break;
    case 'F':
      do_fin(a->c);
      break;
    case 'i':
      do_init(a->c, "thread");
      break;
    case 'c':
      cycle(a->c, a->n, (uint64_t)a->rate);
      break;
  }
  free(a);
  return NULL;
}

/* bg ops C N | paced C N RATE | duet C N RATE | forever C | fin C | init C | cycle C N OPS */
static void background(void) {
  struct background *a = calloc(1, sizeof *a);
  const char *v = next_word();
  a->c = next_comm();
  a->verb = !strcmp(v, "fin") ? 'F' : v[0];
  if (strchr("opdc", a->verb))
    a->n = next_number();
  if (strchr("pdc", a->verb))
    a->rate = strtod(next_word(), NULL);
  if (!strchr("opdcfFi", a->verb) || n_threads == 64 ||
      pthread_create(&threads[n_threads++], NULL, on_thread, a))
    exit(67);
}

static void muted_ops(struct comm *c, uint64_t n) {
  struct op o;
  while (n--) {
    op_start(c, 0, &o);
    op_close(&o);
    op_channels_start(c, &o);
    op_channels_stop(&o, 0);
  }
}

/*
 * The plugin registered its handler at init. The host's must run after it, so it is the destructor of main's
 * program.
 */
static struct comm *late_comm;
static int late_wanted;
static void late_init(void) { late_wanted = 1; }
__attribute__((destructor)) static void init_at_the_end(void) {
  if (!late_wanted)
    return;
  do_init(late_comm, "late");
  if (plug.mask)
    _exit(3);
  muted_ops(late_comm, 10);
  plug.finalize(late_comm->ctx);
}

static void many(uint64_t n, uint64_t ops) {
  for (uint64_t i = 0; i < n; i++)
    do_init(&comms[i], "many");
  for (uint64_t i = 0; i < n; i++)
    run_ops(&comms[i], 0, ops, RUN, 0);
  for (uint64_t i = 0; i < n; i++)
    do_fin(&comms[i]);
}

static void timed(void) {
  uint64_t ms = next_number();
  const char *what = *word;
  struct pulse machine;
  pulse_start(&machine, 1);
  uint64_t t = plug_now_ns();
  one_verb();
  double took = (double)(plug_now_ns() - t) / 1e6;
  pulse_stop(&machine);
  /*
   * An undisturbed sleep ends 50 to 100 us late, too: what is more than a tenth of the time is the machine's.
   */
  double late = fmax(0, machine.late_ns / 1e6 - took / 10);
  printf("%s took %.2f ms, %.2f ms of them late wake-ups\n", what ? what : "", took, late);
  if (took - late > (double)ms)
    broken("too long, ms", took - late, (double)ms);
}

static void close_all(const char *path) {
  for (int fd = 3; fd < 200; fd++) {
    close(fd);
    int other = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (other != fd && dup2(other, fd) >= 0)
      close(other);
  }
}

static int host_verb(const char *v) {
  if (!strcmp(v, "starve"))
    schedule_dump_thread(SCHED_IDLE);
  else if (!strcmp(v, "feed"))
    schedule_dump_thread(SCHED_OTHER);
  else if (!strcmp(v, "rested"))
    wait_rested();
  else if (!strcmp(v, "spin"))
    spin(next_number());
  else if (!strcmp(v, "sleep"))
    usleep((useconds_t)(next_number() * 1000));
  else if (!strcmp(v, "mark"))
    mark();
  else if (!strcmp(v, "live"))
    live(next_word());
  else if (!strcmp(v, "chdir"))
    return chdir(next_word());
  else if (!strcmp(v, "umask"))
    umask((mode_t)strtol(next_word(), NULL, 8));
  else if (!strcmp(v, "fsize"))
    limit(RLIMIT_FSIZE, next_number());
  else if (!strcmp(v, "nofile"))
    limit(RLIMIT_NOFILE, next_number());
  else if (!strcmp(v, "closefds")) {
    close(0);
    close(1);
    close(2);
  } else if (!strcmp(v, "closeall"))
    close_all(next_word());
  else if (!strcmp(v, "setenv"))
    return putenv(next_word());
  else if (!strcmp(v, "fault"))
    tell_fault(next_word());
  else if (!strcmp(v, "fired"))
    tell_fired();
  else if (!strcmp(v, "sh")) {
    if (system(next_word()) != 0)
      broken("a shell command failed", 1, 0);
  } else if (!strcmp(v, "rss")) {
    long now = rss_kb(), max = (long)next_number();
    printf("rss %ld kB\n", now);
    if (first_rss && now - first_rss > max)
      broken("growth of resident memory, kB", (double)(now - first_rss), (double)max);
    if (!first_rss)
      first_rss = now;
  } else if (!strcmp(v, "cpu")) {
    uint64_t ms = next_number();
    double permyriad = strtod(next_word(), NULL);
    check_cpu(ms, permyriad, strtod(next_word(), NULL));
  } else {
    return 1;
  }
  return 0;
}

static int end_verb(const char *v) {
  if (!strcmp(v, "exit")) {
    mark();
    exit((int)next_number());
  }
  if (!strcmp(v, "quick")) {
    mark();
    quick_exit((int)next_number());
  }
  if (!strcmp(v, "_exit")) {
    mark();
    _exit((int)next_number());
  }
  if (!strcmp(v, "abort")) {
    mark();
    abort();
  }
  if (!strcmp(v, "kill")) {
    mark();
    raise(SIGKILL);
  }
  return 1;
}

static void one_verb(void) {
  const char *v = next_word();
  struct comm *c;
  uint64_t n;
  if (!strcmp(v, "iface"))
    interface = (int)next_number();
  else if (!strcmp(v, "ranks"))
    n_ranks = (int)next_number();
  else if (!strcmp(v, "rank"))
    my_rank = (int)next_number();
  else if (!strcmp(v, "channels"))
    channels = (int)next_number();
  else if (!strcmp(v, "base"))
    base_ns = next_number();
  else if (!strcmp(v, "init")) {
    c = next_comm();
    do_init(c, "host");
  } else if (!strcmp(v, "init-null")) {
    c = next_comm();
    do_init(c, NULL);
  } else if (!strcmp(v, "initname")) {
    c = next_comm();
    do_init(c, next_word());
  } else if (!strcmp(v, "ops")) {
    c = next_comm();
    run_ops(c, 0, next_number(), RUN, 0);
  } else if (!strcmp(v, "p2p")) {
    c = next_comm();
    run_ops(c, 1, next_number(), RUN, 0);
  } else if (!strcmp(v, "self")) {
    c = next_comm();
    p2p_self = 1;
    run_ops(c, 1, next_number(), RUN, 0);
    p2p_self = 0;
  } else if (!strcmp(v, "open")) {
    c = next_comm();
    run_ops(c, 0, next_number(), OPEN, 0);
  } else if (!strcmp(v, "half")) {
    c = next_comm();
    run_ops(c, 0, next_number(), HALF, 0);
  } else if (!strcmp(v, "atexit-init")) {
    late_comm = next_comm();
    late_init();
  } else if (!strcmp(v, "muted-ops")) {
    c = next_comm();
    muted_ops(c, next_number());
  } else if (!strcmp(v, "paced")) {
    c = next_comm();
    n = next_number();
    run_ops(c, 0, n, RUN, strtod(next_word(), NULL));
  } else if (!strcmp(v, "duet")) {
    c = next_comm();
    n = next_number();
    run_duet(c, 0, n, strtod(next_word(), NULL));
  } else if (!strcmp(v, "duetp")) {
    c = next_comm();
    n = next_number();
    run_duet(c, 1, n, strtod(next_word(), NULL));
  } else if (!strcmp(v, "fin"))
    do_fin(next_comm());
  else if (!strcmp(v, "again"))
    plug.finalize(next_comm()->ctx);
  else if (!strcmp(v, "cycle")) {
    n = next_number();
    cycle(&comms[0], n, next_number());
  } else if (!strcmp(v, "many")) {
    n = next_number();
    many(n, next_number());
  } else if (!strcmp(v, "bg"))
    background();
  else if (!strcmp(v, "join"))
    while (n_threads)
      pthread_join(threads[--n_threads], NULL);
  else if (!strcmp(v, "timed"))
    timed();
  else if (!strcmp(v, "fork"))
    child(0, 1);
  else if (!strcmp(v, "rawfork"))
    child(1, 1);
  else if (!strcmp(v, "forknowait"))
    child(0, 0);
  else if (host_verb(v) && end_verb(v)) {
    fprintf(stderr, "unknown verb, or it failed: %s\n", v);
    exit(64);
  }
}

static void run(void) {
  while (*word && strcmp(*word, "end") != 0)
    one_verb();
}

int main(int argc, char **argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: host SO TRUTH VERB...\n");
    return 64;
  }
  so = argv[1];
  truth_open(argv[2]);
  word = argv + 3;
  run();
  mark();
  return 0;
}
