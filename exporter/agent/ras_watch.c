#include "ras_watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/now.h"
#include "exporter/base/process/as_user.h"
#include "exporter/model/ras/verdict.h"

#define RAS_SECONDS 14u                /* less than the least distance of two answers */
#define RAS_MEMORY (UINT64_C(2) << 30) /* addresses; an answer of 128 MiB takes less than half */
#define NOBODY 65534
#define AGAIN_NS UINT64_C(60000000000)

/* Single numbers: relaxed, since nobody acts on two of them together. */
struct shared {
  _Atomic uint64_t answered, failed, answered_mono_ns, there, communicators, odd, ranks[NI_RAS_HERE_COUNT],
      behind, still_ns;
};

struct ni_ras_watch {
  struct shared *shared;
  pid_t child;
  uint64_t every_ns, ended_ns;
  char where[];
};

static void store_relaxed(_Atomic uint64_t *at, uint64_t value) {
  atomic_store_explicit(at, value, memory_order_relaxed);
}
static uint64_t load_relaxed(_Atomic uint64_t *at) { return atomic_load_explicit(at, memory_order_relaxed); }

/* In a job that runs, a rank is behind for a moment only. Those who stay behind are reported. */
static void publish_verdict(struct shared *s, const struct ni_ras_verdict *v) {
  uint64_t ranks[NI_RAS_HERE_COUNT] = {0}, behind = 0;
  for (size_t i = 0; i < v->look->ras.n_comms; i++) {
    const struct ni_ras_comm *c = &v->look->ras.comm[i];
    for (size_t k = c->first; !c->odd && k < c->first + c->n; k++)
      ranks[v->look->ras.rank[k].here]++;
  }
  NI_EACH(const struct ni_ras_trouble, t, v->trouble, v->n) behind += t->still_ns ? t->behind + t->unlike : 0;
  for (size_t i = 0; i < NI_RAS_HERE_COUNT; i++)
    store_relaxed(&s->ranks[i], ranks[i]);
  store_relaxed(&s->behind, behind);
  store_relaxed(&s->still_ns, v->still_ns);
  store_relaxed(&s->communicators, v->comms);
  store_relaxed(&s->odd, v->odd);
  store_relaxed(&s->answered_mono_ns, ni_now_ns(CLOCK_MONOTONIC));
  store_relaxed(&s->answered, load_relaxed(&s->answered) + 1);
  store_relaxed(&s->there, 1);
}

/* Asks once. Frees the look before, or keeps it if there is no answer. */
static bool ask_daemon(struct ni_ras_watch *w, struct ni_ras_look *before) {
  char why[512];
  size_t len;
  struct ni_ras_look now = {0};
  struct ni_ras_verdict v = {0};
  char *text = ni_ras_ask(w->where, RAS_SECONDS, &len, why, sizeof why);
  bool fine = text && ni_ras_parse(&now.ras, text, len, why, sizeof why) == 0;
  free(text);
  if (!fine)
    return false;
  now.ns = ni_now_ns(CLOCK_MONOTONIC);
  fine = ni_ras_judge(&v, &now, before->ns ? before : NULL, UINT64_MAX) == 0;
  if (fine)
    publish_verdict(w->shared, &v);
  ni_ras_verdict_free(&v);
  ni_ras_look_free(fine ? before : &now);
  if (fine)
    *before = now;
  return fine;
}

/* A sanitizer takes terabytes of addresses. */
static void bound_memory(void) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  struct rlimit most;
  if (getrlimit(RLIMIT_AS, &most) != 0 || most.rlim_max < RAS_MEMORY)
    return;
  most.rlim_cur = most.rlim_max = RAS_MEMORY;
  (void)setrlimit(RLIMIT_AS, &most);
#endif
}

static int watch_in_child(void *arg) {
  struct ni_ras_watch *w = arg;
  struct ni_ras_look before = {0};
  sigset_t none;
  (void)setpriority(PRIO_PROCESS, 0, 10);
  bound_memory();
  (void)sigprocmask(SIG_SETMASK, (sigemptyset(&none), &none), NULL);
  do {
    uint64_t began = ni_now_ns(CLOCK_MONOTONIC);
    if (!ask_daemon(w, &before)) {
      store_relaxed(&w->shared->there, 0);
      store_relaxed(&w->shared->failed, load_relaxed(&w->shared->failed) + 1);
      ni_ras_look_free(&before); /* of a job that may be another one next time */
    }
    uint64_t took = ni_now_ns(CLOCK_MONOTONIC) - began;
    uint64_t left_ms = took < w->every_ns ? (w->every_ns - took) / 1000000u : 0;
    (void)poll(NULL, 0, left_ms < INT32_MAX ? (int)left_ms : INT32_MAX);
  } while (w->every_ns); /* until it is killed */
  return 0;
}

static void begin_child(struct ni_ras_watch *w, uint64_t mono_ns) {
  pid_t child = ni_as_owner_start(geteuid() == 0 ? NOBODY : geteuid(), -1, watch_in_child, w);
  w->child = child > 0 ? child : 0;
  w->ended_ns = child > 0 ? 0 : mono_ns;
}

int ni_ras_watch_start(struct ni_ras_watch **out, const char *where, uint64_t every_ns) {
  struct ni_ras_watch *w = *out = calloc(1, sizeof *w + strlen(where) + 1);
  if (w)
    w->shared = ni_shared(sizeof *w->shared);
  if (!w || !w->shared) {
    free(w);
    *out = NULL;
    return -ENOMEM;
  }
  strcpy(w->where, where);
  w->every_ns = every_ns;
  begin_child(w, 0);
  return 0;
}

void ni_ras_watch_turn(struct ni_ras_watch *w, uint64_t mono_ns, struct ni_agent_ras *out) {
  struct shared *s = w->shared;
  if (w->child && waitpid(w->child, NULL, WNOHANG) == w->child) {
    w->child = 0;
    w->ended_ns = mono_ns;
    store_relaxed(&s->there, 0);
    store_relaxed(&s->failed, load_relaxed(&s->failed) + 1);
  }
  if (!w->child && mono_ns >= w->ended_ns + AGAIN_NS)
    begin_child(w, mono_ns);
  uint64_t at = load_relaxed(&s->answered_mono_ns);
  *out = (struct ni_agent_ras){.asked = true,
                               .there = load_relaxed(&s->there) == 1,
                               .answered = load_relaxed(&s->answered),
                               .failed = load_relaxed(&s->failed),
                               .age_ns = at && mono_ns > at ? mono_ns - at : 0,
                               .communicators = load_relaxed(&s->communicators),
                               .odd = load_relaxed(&s->odd),
                               .behind = load_relaxed(&s->behind),
                               .still_ns = load_relaxed(&s->still_ns)};
  out->ranks = load_relaxed(&s->ranks[NI_RAS_HERE]);
  out->absent = load_relaxed(&s->ranks[NI_RAS_ABSENT]);
  out->unresponsive = load_relaxed(&s->ranks[NI_RAS_UNRESPONSIVE]);
  out->dead = load_relaxed(&s->ranks[NI_RAS_DEAD]);
}

void ni_ras_watch_stop(struct ni_ras_watch *w) {
  if (!w)
    return;
  if (w->child) {
    kill(w->child, SIGKILL);
    (void)waitpid(w->child, NULL, 0);
  }
  munmap(w->shared, sizeof *w->shared);
  free(w);
}
