#include "uplink.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "exporter/base/index.h"
#include "exporter/base/now.h"
#include "exporter/base/out_file.h"
#include "exporter/base/process/secret.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/rpc/messages.h"
#include "exporter/rpc/rpc.h"
#include "spool.h"

#define SECOND INT64_C(1000000000)
#define PERIOD_MIN (SECOND / 100)
#define PERIOD_MAX (3600 * SECOND)
enum { SILENT_S = 30, AWAY_MAX_S = 60, UNSENT_MAX = 256 << 10, UUID = 36 };
enum { HEADS_CLOCK, OWN_CLOCK }; /* of a sample's time in the spool, as its sent_ns says there */

struct way { /* of a message there and its answer back; at_ns 0: none yet */
  /* the head's Unix clock before our CLOCK_MONOTONIC; took: on the way alone */
  int64_t ahead_ns, took_ns, at_ns;
};

struct ni_uplink {
  char *head, *token, *ca, *cert, *key, host[NI_HOST_MAX], uuid[UUID + 4];
  pthread_t thread;
  int wake, epoll;
  _Atomic int64_t end_ns; /* until when it goes on; 0: for ever */
  /* The thread's: */
  enum state { AWAY, ASKED, WELCOMED, OLD_ASKED, OLD } state;
  struct ni_rpc *rpc;
  struct ni_rpc_call *call;
  uint64_t cursor; /* the next to be sent */
  /* when hello was sent; since when the head owes an answer, 0: it does not; when to try again */
  int64_t hello_ns, owes_ns, due_ns;
  unsigned failed;        /* tries, one after the other */
  char broken[256];       /* why the connection is to be given up; "" */
  pthread_mutex_t lock;   /* of what follows */
  struct ni_spool *spool; /* NULL: the end was not waited for */
  struct ni_uplink_totals totals;
  struct way best;
  /* from our own clock to the head's, when that was first known; time of the newest sample */
  int64_t shift_ns, last_ns;
  uint64_t period_ns; /* 0: no head has said it */
  bool bandwidth;     /* as the head said last */
};

static int64_t mono(void) { return (int64_t)ni_now_ns(CLOCK_MONOTONIC); }
static int64_t own(void) { return (int64_t)ni_now_ns(CLOCK_REALTIME) - mono(); }
static int64_t skew_of(const struct ni_uplink *u) { return u->best.at_ns ? own() - u->best.ahead_ns : 0; }

/*
 * The head's clock by one way there and back; locked. The shortest way counts, whose doubt grows by how far
 * clocks go apart (0.05 %, says NTP). What does not fit together with it: the head's clock was set.
 */
static void take_clock(struct ni_uplink *u, int64_t sent, int64_t back, const struct ni_from_head *m) {
  const struct way best = u->best;
  if (sent <= 0 || !ni_time_of_a_job(m->received_ns) || !ni_time_of_a_job(m->now_ns))
    return;
  const struct way w = {((m->received_ns - sent) + (m->now_ns - back)) / 2,
                        back - sent - (m->now_ns - m->received_ns), back};
  if (w.took_ns < 0)
    return;
  int64_t doubt = best.took_ns + (back - best.at_ns) / 1000;
  bool set = llabs(w.ahead_ns - best.ahead_ns) > (w.took_ns + doubt) / 2 + SECOND / 1000;
  if (!best.at_ns) {
    u->shift_ns = w.ahead_ns - own();
    u->last_ns += u->shift_ns;
  }
  if (!best.at_ns || set || w.took_ns <= doubt)
    u->best = w;
}

/* ---- what the head says; the thread's ---- */

static void give_up(struct ni_uplink *u, const char *why) {
  if (!*u->broken)
    ni_safe_text(why && *why ? why : "it has ended the connection", u->broken, sizeof u->broken);
}

static void take_answer(struct ni_uplink *u, const struct ni_from_head *m) {
  uint64_t first, next, lost;
  pthread_mutex_lock(&u->lock);
  ni_spool_range(u->spool, &first, &next, &lost);
  bool fine = m->welcome ? u->state == ASKED && m->have < UINT64_MAX / 4
                         : u->state == WELCOMED && m->have < u->cursor;
  if (fine) {
    take_clock(u, m->echo_ns ? m->echo_ns : u->hello_ns, mono(), m);
    if (m->have >= first && first < next)
      u->totals.acknowledged += (m->have < next ? m->have + 1 : next) - first;
    ni_spool_drop(u->spool, m->have);
    if (m->period_ns >= PERIOD_MIN && m->period_ns <= PERIOD_MAX)
      u->period_ns = m->period_ns;
    u->bandwidth = m->bandwidth;
  }
  pthread_mutex_unlock(&u->lock);
  if (!fine)
    give_up(u, "it acknowledges what was never sent");
  if (fine && m->welcome) {
    u->state = WELCOMED;
    u->failed = 0;
    u->cursor = m->have + 1;
  }
  u->owes_ns = m->have + 1 < u->cursor ? mono() : 0;
}

static void message(void *arg, struct ni_rpc_call *c, void *data, const void *bytes, size_t len) {
  struct ni_uplink *u = arg;
  struct ni_from_head m;
  struct ni_reply r;
  if (u->state == ASKED || u->state == WELCOMED) {
    if (ni_head_decode(bytes, len, &m))
      take_answer(u, &m);
    else
      give_up(u, "it says what is no message of a head");
  } else if (u->state == OLD_ASKED && !(ni_reply_decode(bytes, len, &r) && r.success))
    give_up(u, "gsprof's head refuses us");
}

/* What comes then is begun by follow(), not inside the connection's turn. */
static void end(void *arg, struct ni_rpc_call *c, void *data, bool half, enum ni_rpc_status status,
                const char *text) {
  struct ni_uplink *u = arg;
  if (half || c != u->call)
    return;
  u->call = NULL;
  bool goes_on =
      u->state == ASKED ? status == NI_RPC_UNIMPLEMENTED : u->state == OLD_ASKED && status == NI_RPC_OK;
  if (!goes_on)
    give_up(u, text);
}

/* ---- what it is told ---- */

static void begin_call(struct ni_uplink *u, enum state state, const char *path, struct ni_pb_writer *w) {
  u->state = state;
  u->call = *u->broken ? NULL : ni_rpc_begin(u->rpc, path, NULL);
  if (!u->call || w->failed || (w->n && ni_rpc_send(u->call, w->bytes, w->n) < 0))
    give_up(u, ni_rpc_broken(u->rpc));
  u->owes_ns = mono();
  ni_pb_free(w);
}

/*
 * A head of gsprof: Connect with the GPUs of the newest sample, once there is one, then its stream, which it
 * never answers.
 */
static void follow(struct ni_uplink *u) {
  struct ni_pb_writer w = {0};
  struct ni_from_agent m = {0};
  uint64_t first, next, lost;
  size_t len = 0;
  if (u->call || *u->broken)
    return;
  if (u->state == OLD_ASKED) {
    begin_call(u, OLD, NI_GSPROF "StreamMetrics", &w);
    u->failed = 0;
  }
  u->owes_ns = 0;
  if (u->state == OLD)
    return;
  pthread_mutex_lock(&u->lock);
  u->totals.old = true;
  ni_spool_range(u->spool, &first, &next, &lost);
  const void *bytes = ni_spool_get(u->spool, next - 1, &len);
  if (bytes)
    (void)ni_agent_decode(bytes, len, &m); /* a sample: what we put there */
  pthread_mutex_unlock(&u->lock);
  if (!m.sample)
    return;
  ni_initial_encode(&w, u->host, m.sample);
  begin_call(u, OLD_ASKED, NI_GSPROF "Connect", &w);
  if (u->call)
    ni_rpc_finish(u->call, NI_RPC_OK, "");
  free(m.sample);
}

/*
 * The sample under the cursor as the head wants it, w empty where there is none; false: the cursor is behind
 * the last.
 */
static bool encode_next(struct ni_uplink *u, struct ni_pb_writer *w) {
  struct ni_from_agent m = {0};
  uint64_t first, next, lost;
  size_t len = 0;
  pthread_mutex_lock(&u->lock);
  ni_spool_range(u->spool, &first, &next, &lost);
  if (u->cursor < first)
    u->cursor = first;
  if (u->state == OLD && u->cursor + 1 < next)
    u->cursor = next - 1;
  bool more = u->cursor < next;
  const void *bytes = more ? ni_spool_get(u->spool, u->cursor, &len) : NULL;
  if (bytes && ni_agent_decode(bytes, len, &m) && m.sample) {
    if (m.sent_ns == OWN_CLOCK)
      m.sample->time_ns += u->shift_ns;
    if (u->state == OLD)
      ni_update_encode(w, u->host, m.sample);
    else
      ni_sample_encode(w, m.sample, mono());
    u->totals.sent += w->n > 0;
  }
  if (more && u->state == OLD)
    ni_spool_drop(u->spool, u->cursor);
  pthread_mutex_unlock(&u->lock);
  u->cursor += more;
  free(m.sample);
  return more;
}

static void send_samples(struct ni_uplink *u) {
  struct ni_pb_writer w = {0};
  while (!*u->broken && u->call && ni_rpc_unsent(u->call) < UNSENT_MAX && encode_next(u, &w)) {
    if (w.n && (w.failed || ni_rpc_send(u->call, w.bytes, w.n) < 0))
      give_up(u, ni_rpc_broken(u->rpc));
    if (u->state == WELCOMED && !u->owes_ns)
      u->owes_ns = mono();
    ni_pb_free(&w);
  }
}

/* ---- the thread ---- */

static void connect_to(struct ni_uplink *u) {
  static const struct ni_rpc_handler handler = {.message = message, .end = end};
  const struct ni_rpc_options o = {.token = u->token, .ca = u->ca, .cert = u->cert, .key = u->key};
  struct ni_hello h = {.protocol = NI_PROTOCOL, .version = NI_VERSION};
  struct ni_pb_writer w = {0};
  uint64_t lost;
  char why[256] = "";
  if (ni_rpc_connect(&u->rpc, u->head, &o, &handler, u, why, sizeof why) < 0) {
    u->rpc = NULL;
    give_up(u, why);
  }
  /* the name may have been looked up for longer than the end is waited for */
  if (!u->rpc || u->end_ns)
    return;
  (void)epoll_ctl(u->epoll, EPOLL_CTL_ADD, ni_rpc_fd(u->rpc), &(struct epoll_event){.events = EPOLLIN});
  memcpy(h.uuid, u->uuid, sizeof h.uuid);
  memcpy(h.host, u->host, sizeof h.host);
  pthread_mutex_lock(&u->lock);
  ni_spool_range(u->spool, &h.first, &h.next, &lost);
  h.skew_ns = skew_of(u);
  h.epoch = ni_spool_epoch(u->spool);
  pthread_mutex_unlock(&u->lock);
  ni_hello_encode(&w, &h);
  u->hello_ns = mono();
  begin_call(u, ASKED, NI_HEAD_STREAM, &w);
}

static void tell_state(struct ni_uplink *u) {
  pthread_mutex_lock(&u->lock);
  u->totals.connected = u->state == WELCOMED || u->state == OLD;
  if (u->state == WELCOMED)
    u->totals.old = false;
  if (u->totals.connected || *u->broken)
    memcpy(u->totals.error, u->broken, sizeof u->broken);
  pthread_mutex_unlock(&u->lock);
}

static void go_away(struct ni_uplink *u) {
  int64_t s = (u->totals.old ? 5 : 1) << (u->failed < 6 ? u->failed : 6),
          pause = (s < AWAY_MAX_S ? s : AWAY_MAX_S) * SECOND;
  u->state = AWAY;
  u->call = NULL;
  u->failed++;
  u->owes_ns = 0;
  u->due_ns = mono() + pause + (int64_t)(ni_hash(0, ni_now_ns(CLOCK_MONOTONIC)) % (uint64_t)(pause / 10));
  tell_state(u);
  if (u->rpc)
    ni_rpc_close(u->rpc);
  u->rpc = NULL;
  *u->broken = 0;
}

/* In the end what is kept is sent for a while, where there is somebody who takes it. */
static bool goes_on(struct ni_uplink *u) {
  uint64_t first = 0, next = 0, lost;
  if (!u->end_ns)
    return true;
  pthread_mutex_lock(&u->lock);
  if (u->spool)
    ni_spool_range(u->spool, &first, &next, &lost);
  pthread_mutex_unlock(&u->lock);
  return u->state == WELCOMED && first < next && mono() < u->end_ns;
}

static void *work(void *arg) {
  struct ni_uplink *u = arg;
  struct epoll_event e;
  while (goes_on(u)) {
    int64_t wait_ms = u->rpc ? 1000 : (u->due_ns - mono()) / 1000000 + 1;
    if (u->rpc || wait_ms > 1)
      (void)epoll_wait(u->epoll, &e, 1, wait_ms > 1000 ? 1000 : (int)wait_ms);
    (void)!read(u->wake, &(uint64_t){0}, 8);
    if (!u->rpc && mono() >= u->due_ns && !u->end_ns)
      connect_to(u);
    if (u->rpc && !u->end_ns)
      follow(u);
    if (u->rpc && (u->state == WELCOMED || u->state == OLD))
      send_samples(u);
    if (u->rpc)
      ni_rpc_turn(u->rpc);
    if (u->owes_ns && mono() - u->owes_ns > SILENT_S * SECOND)
      give_up(u, "it says nothing");
    if (u->rpc && ni_rpc_broken(u->rpc))
      give_up(u, ni_rpc_broken(u->rpc));
    if (*u->broken)
      go_away(u);
    else
      tell_state(u);
  }
  if (u->rpc)
    ni_rpc_close(u->rpc);
  return NULL;
}

/* ---- the agent's ---- */

static void free_uplink(struct ni_uplink *u) {
  ni_spool_close(u->spool);
  if (u->wake >= 0)
    close(u->wake);
  if (u->epoll >= 0)
    close(u->epoll);
  free(u->head);
  ni_secret_free(u->token);
  ni_secret_free(u->ca);
  ni_secret_free(u->cert);
  ni_secret_free(u->key);
  free(u);
}

/*
 * Whose samples these are, for as long as the folder is there. One that cannot be kept holds for this
 * process.
 */
static void take_uuid(struct ni_uplink *u, int dir) {
  struct ni_out_file o;
  int fd = openat(dir, "uuid", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  bool there = fd >= 0 && read(fd, u->uuid, UUID) == UUID && strspn(u->uuid, "0123456789abcdef-") == UUID;
  if (fd >= 0)
    close(fd);
  if (there)
    return;
  if ((fd = open("/proc/sys/kernel/random/uuid", O_RDONLY | O_CLOEXEC)) >= 0) {
    (void)!read(fd, u->uuid, UUID);
    close(fd);
  }
  if (ni_out_begin(&o, dir, 0600) < 0)
    return;
  if (ni_write_all(o.fd, u->uuid, UUID, -1) == 0)
    (void)ni_out_commit(&o, "uuid", true);
  else
    ni_out_drop(&o);
}

int ni_uplink_start(struct ni_uplink **out, const struct ni_uplink_options *o, char *why, size_t cap) {
  struct ni_uplink *u = *out = calloc(1, sizeof *u);
  if (!u) {
    snprintf(why, cap, "--head: %s", strerror(ENOMEM));
    return -ENOMEM;
  }
  *u = (struct ni_uplink){.lock = PTHREAD_MUTEX_INITIALIZER, .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  u->epoll = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event news = {.events = EPOLLIN};
  ni_safe_text(o->host, u->host, sizeof u->host);
  int e = u->wake < 0 || u->epoll < 0 || epoll_ctl(u->epoll, EPOLL_CTL_ADD, u->wake, &news) < 0 ? -errno : 0;
  if (e == 0 && !(u->head = strdup(o->head)))
    e = -ENOMEM;
  if (e == 0)
    e = ni_spool_open(&u->spool, o->state_dir);
  if (e < 0)
    snprintf(why, cap, "--head=%s: %s", o->head, strerror(-e));
  if (e == 0 && o->token_file)
    e = (u->token = ni_secret_read("head-token-file", o->token_file, true, why, cap)) ? 0 : -EACCES;
  if (e == 0 && o->ca)
    u->ca =
        strcmp(o->ca, "system") == 0 ? ni_secret_keep("") : ni_secret_read("head-ca", o->ca, false, why, cap);
  if (o->ca && !u->ca)
    e = -EACCES;
  if (e == 0 && o->cert)
    e = (u->cert = ni_secret_read("head-cert", o->cert, false, why, cap)) ? 0 : -EACCES;
  if (e == 0 && o->cert)
    e = (u->key = ni_secret_read("head-key", o->key, true, why, cap)) ? 0 : -EACCES;
  if (e == 0)
    take_uuid(u, o->state_dir);
  if (e == 0 && (e = -pthread_create(&u->thread, NULL, work, u)) < 0)
    snprintf(why, cap, "--head: %s", strerror(-e));
  if (e < 0) {
    free_uplink(u);
    *out = NULL;
  }
  return e;
}

void ni_uplink_put(struct ni_uplink *u, struct ni_sample *s, int64_t at_mono_ns) {
  struct ni_pb_writer w = {0};
  pthread_mutex_lock(&u->lock);
  s->seq = ni_spool_next(u->spool);
  s->time_ns = at_mono_ns + (u->best.at_ns ? u->best.ahead_ns : own());
  if (s->time_ns <= u->last_ns)
    s->time_ns = u->last_ns + 1;
  u->last_ns = s->time_ns;
  ni_sample_encode(&w, s, u->best.at_ns ? HEADS_CLOCK : OWN_CLOCK);
  (void)ni_spool_put(u->spool, w.bytes, w.failed ? 0 : w.n); /* what finds no room is counted there */
  pthread_mutex_unlock(&u->lock);
  ni_pb_free(&w);
  free(s);
  (void)!write(u->wake, &(uint64_t){1}, 8);
}

bool ni_uplink_wants(struct ni_uplink *u, int64_t *tick_mono_ns, uint64_t *period_ns, bool *bandwidth) {
  pthread_mutex_lock(&u->lock);
  int64_t ahead = u->best.ahead_ns, period = (int64_t)u->period_ns;
  *bandwidth = u->bandwidth;
  pthread_mutex_unlock(&u->lock);
  if (!ahead || !period)
    return false;
  *tick_mono_ns = ((mono() + ahead) / period + 1) * period - ahead;
  *period_ns = (uint64_t)period;
  return true;
}

struct ni_uplink_totals ni_uplink_totals(struct ni_uplink *u) {
  uint64_t first, next;
  pthread_mutex_lock(&u->lock);
  struct ni_uplink_totals t = u->totals;
  ni_spool_range(u->spool, &first, &next, &t.lost);
  t.kept = next - first;
  t.skew_ns = skew_of(u);
  pthread_mutex_unlock(&u->lock);
  return t;
}

void ni_uplink_stop(struct ni_uplink *u) {
  struct timespec until;
  if (!u)
    return;
  u->end_ns = mono() + SECOND;
  (void)!write(u->wake, &(uint64_t){1}, 8);
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 2;
  if (pthread_timedjoin_np(u->thread, NULL, &until) == 0) {
    free_uplink(u);
    return;
  }
  pthread_detach(u->thread); /* it asks for a name, and keeps what it uses */
  pthread_mutex_lock(&u->lock);
  ni_spool_close(u->spool);
  u->spool = NULL;
  pthread_mutex_unlock(&u->lock);
}
