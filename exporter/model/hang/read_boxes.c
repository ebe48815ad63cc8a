#include "read_boxes.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "exporter/base/process/as_user.h"
#include "exporter/base/threads.h"
#include "exporter/input/box/box_decode.h"
#include "settle.h"

struct box_taking {
  const struct ni_box *b;
  struct ni_hang_model *m;
  struct ni_hang_member **member; /* by the box's communicators; NULL: over */
  struct ni_box_comm *comm;
  size_t n;
  uint64_t seen_ns;
};

bool ni_hang_is_box_op(const struct ni_box_op *op, uint64_t started) {
  const bool is_possible = op->sn <= INT64_MAX && op->rec_sn < started;
  if (op->src != NI_SRC_EVENT || op->is == NI_BOX_SLOT_GIVEN_UP || !is_possible)
    return false;
  return op->is != NI_BOX_SLOT_FREE || op->gen != 0; /* never used, or being filled for the first time */
}

enum ni_hang_state ni_hang_box_state(const struct ni_box *b, size_t comm, const struct ni_box_op *op,
                                     uint64_t *open, struct ni_box_net *net) {
  *open = ni_box_open_channels(b, comm, op);
  if (!ni_box_net_of(b, op, net))
    *net = (struct ni_box_net){.peer = -1, .channel = -1};
  if (net->on_network)
    return NI_HANG_NETWORK;
  if (op->started == 0 && !*open)
    return NI_HANG_LAUNCHED;
  return !*open && op->started == op->stopped && op->want == op->stopped ? NI_HANG_FINISHING : NI_HANG_KERNEL;
}

static bool is_stated(const char *text) { return text && *text && strcmp(text, "Unknown") != 0; }

/*
 * A symmetric kernel of a CUDA graph has an algorithm and no protocol. Writers before 2.31 was known took it
 * for in flight.
 */
static bool is_unknown_kernel(const struct ni_box_op *in) {
  bool symmetric = is_stated(in->algo) && !is_stated(in->proto);
  return in->kind == NI_KIND_COLL && symmetric && (in->origin & NI_BOX_ORIGIN_REPLAYED);
}

static int add_box_op(const struct ni_box_op *in, void *arg) {
  struct box_taking *t = arg;
  int64_t i = ni_box_comm_of(t->b, in);
  struct ni_hang_member *x = i < 0 ? NULL : t->member[i];
  if (x && in->src != NI_SRC_EVENT) { /* its number is the plugin's own, and when it ended nobody knows */
    uint64_t at = ni_box_unix_ns(t->b, in->ticks_start);
    x->invisible++;
    if (at > x->active_ns)
      x->active_ns = at;
    return 0;
  }
  if (!x || !ni_hang_is_box_op(in, x->started[in->kind]))
    return 0;
  int func = ni_hang_name(t->m, in->func), datatype = ni_hang_name(t->m, in->datatype);
  if (func < 0 || datatype < 0)
    return -ENOMEM;
  struct ni_hang_op op = {.kind = (uint8_t)in->kind,
                          .func = (uint16_t)func,
                          .datatype = (uint16_t)datatype,
                          .sn = in->sn,
                          .rec_sn = in->rec_sn,
                          .bytes = in->bytes,
                          .enqueue_ns = ni_box_unix_ns(t->b, in->ticks_start),
                          .root = in->root,
                          .want = in->want == NI_BOX_WANT_UNKNOWN ? -1 : (int32_t)in->want,
                          .started = (int32_t)in->started,
                          .stopped = (int32_t)in->stopped,
                          .net_peer = -1,
                          .net_channel = -1,
                          .replay = is_unknown_kernel(in)};
  uint64_t call;
  if (ni_box_call_of(&t->comm[i], in, &call))
    op.call_sn = call + 1;
  if (in->is != NI_BOX_SLOT_IN_FLIGHT || op.replay) {
    uint64_t end = in->ticks_done > in->ticks_start ? in->ticks_done : op.replay ? in->ticks_stop : 0;
    op.seen_ns = end > in->ticks_start ? ni_box_unix_ns(t->b, end) : 0;
    return ni_hang_finished(x, &op);
  }
  struct ni_box_net net;
  op.state = (uint8_t)ni_hang_box_state(t->b, (size_t)i, in, &op.channels_open, &net);
  op.channels_above = ni_box_open_above(t->b, in, op.channels_open);
  int text = ni_hang_name(t->m, net.waits_for);
  if (text < 0)
    return text;
  op.net_peer = net.peer;
  op.net_channel = net.channel;
  op.net_state = (uint16_t)text;
  /* Of a dead process seen_ns is its last heartbeat, and it went on a little. */
  op.seen_ns =
      op.enqueue_ns > t->seen_ns && op.enqueue_ns < ni_box_taken_ns(t->b) ? op.enqueue_ns : t->seen_ns;
  return ni_hang_in_flight(x, &op);
}

static int add_box_comms(struct box_taking *t, uint32_t process) {
  struct ni_box_comm c;
  while (ni_box_comm_at(t->b, t->n, &c))
    t->n++;
  t->member = calloc(t->n + 1, sizeof(struct ni_hang_member *));
  t->comm = calloc(t->n + 1, sizeof *t->comm);
  if (!t->member || !t->comm)
    return -ENOMEM;
  for (size_t i = 0; i < t->n; i++) {
    (void)ni_box_comm_at(t->b, i, &c);
    const bool is_possible = c.id.n_ranks > 0 && c.id.rank >= 0 && c.id.rank < c.id.n_ranks;
    if (c.phase == 0 || !is_possible)
      continue;
    int64_t k = ni_hang_member_of(t->m, process, &c.id, c.init_ns);
    if (k == -E2BIG) {
      t->m->left_out++;
      continue;
    }
    if (k < 0)
      return (int)k;
    struct ni_hang_member *x = t->member[i] = t->m->member[k];
    t->comm[i] = c;
    for (int kind = 0; kind < NI_KIND_COUNT; kind++)
      x->started[kind] = c.kind[kind].started;
    x->calls = c.kind[NI_KIND_COLL].calls;
    x->started_ns = x->open_ns = t->seen_ns;
    if (c.phase == 2) {
      x->destroyed = true;
      x->end_ns = t->seen_ns;
    }
  }
  return 0;
}

static int add_box(struct ni_hang_look *look, const struct ni_box *b, const char *path) {
  static const enum ni_hang_life lives[NI_LIFE_COUNT] = {NI_HANG_LIFE_UNKNOWN, NI_HANG_ALIVE, NI_HANG_DEAD,
                                                         NI_HANG_LEFT};
  const struct ni_box_header *h = ni_box_header(b);
  struct ni_box_log session = {0};
  struct box_taking t = {.b = b, .m = &look->m, .seen_ns = ni_box_seen_ns(b)};
  (void)ni_box_session(b, &session);
  look->ns = ni_box_taken_ns(b);
  look->m.boxes = 1;
  int64_t k = ni_hang_process_of(t.m, h->hostname, h->pid, session.start_ns);
  if (k < 0)
    return (int)k;
  struct ni_hang_process *p = &t.m->process[k];
  p->rank = h->rank >= 0 && h->rank < INT32_MAX ? (int32_t)h->rank : -1;
  p->world = h->world_size > 0 && h->world_size < INT32_MAX ? (int32_t)h->world_size : -1;
  p->nccl_version = h->nccl_version < INT32_MAX ? (int32_t)h->nccl_version : 0;
  memcpy(p->boot_id, h->boot_id, sizeof p->boot_id);
  p->life = lives[ni_box_life(b)];
  p->longest_operation_ns = h->longest_operation_ns;
  p->longest_gap_ns = h->longest_gap_ns;
  bool left = p->life == NI_HANG_LEFT && h->end == NI_BOX_END_EXITED;
  p->uncounted = left && h->unwritten == NI_BOX_NOT_COUNTED;
  if (left && !p->uncounted)
    p->unwritten = h->unwritten;
  p->unwritten_error = h->unwritten_error;
  p->alive_ns = t.seen_ns;
  p->look_ns = p->file_ns = look->ns;
  p->has_box = p->ours = true;
  if (!(p->exe = strdup(h->exe)) || !(p->file = strdup(path)))
    return -ENOMEM;
  int e = h->state == NI_BOX_LIVE ? add_box_comms(&t, (uint32_t)k) : 0;
  if (e == 0 && t.n)
    e = ni_box_each_op(b, add_box_op, &t);
  for (size_t i = 0; i < t.n && t.member; i++) {
    uint64_t moved = t.member[i] ? t.member[i]->active_ns : 0;
    if (moved > p->alive_ns && moved <= look->ns)
      p->alive_ns = moved;
  }
  free(t.member);
  free(t.comm);
  return e;
}

/* What the reading threads share. */
struct box_pool {
  struct ni_hang_looks *looks;
  struct ni_hang_model *bad;
  const struct ni_inputs *only;
  const struct ni_file *file;
  size_t n;
  _Atomic size_t next;  /* relaxed: a ticket */
  pthread_mutex_t lock; /* looks with passed, bad, error */
  int error;
};

/* Does the box's log lie where the command line says? */
static bool is_wanted_box(const struct box_pool *p, const struct ni_box *b) {
  struct ni_box_log session;
  if (!p->only || !p->only->n)
    return true;
  return ni_box_session(b, &session) && ni_box_is_under(p->only, session.dir);
}

static void *read_boxes_in_thread(void *arg) {
  struct box_pool *p = arg;
  int e = 0;
  for (size_t i; e == 0 && (i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed)) < p->n;) {
    struct ni_hang_look look = {0};
    struct ni_box *b = NULL;
    char why[256];
    int bad = ni_box_open(&b, p->file[i].path, ni_as_user_here() ? NI_BOX_ROOT_BYTES : 0, why, sizeof why);
    if (bad == 0 && p->only && ni_box_owner(b) != geteuid())
      bad = -EACCES; /* what it says could be forged */
    bool elsewhere = bad == 0 && !is_wanted_box(p, b);
    if (bad == -ENOMEM)
      e = bad;
    else if (bad == 0 && !elsewhere)
      e = add_box(&look, b, p->file[i].path);
    ni_box_close(b);
    pthread_mutex_lock(&p->lock);
    p->looks->passed.elsewhere += elsewhere;
    if (bad < 0 && e == 0) {
      /*
       * Of a damaged box of the machine nobody knows whose it is. A rank of ours that lacks its box is missed
       * all the same.
       */
      bool ours = !p->only || (ni_box_passes(&p->looks->passed, p->file[i].path, bad) && p->only->n == 0);
      if (ours)
        ni_hang_bad_file(p->bad, p->file[i].path, *why ? why : strerror(-bad));
    } else if (e == 0 && !elsewhere) {
      if (!ni_array_room(p->looks->look, p->looks->n, p->looks->cap))
        e = -ENOMEM;
      else
        p->looks->look[p->looks->n++] = look;
    }
    if (e < 0)
      p->error = e;
    pthread_mutex_unlock(&p->lock);
    if (bad < 0 || e < 0)
      ni_hang_model_free(&look.m);
  }
  return NULL;
}

int ni_hang_read_boxes(struct ni_hang_looks *l, const struct ni_file *file, size_t n, int threads,
                       const struct ni_inputs *only, struct ni_hang_model *bad) {
  struct box_pool p = {
      .looks = l, .bad = bad, .only = only, .file = file, .n = n, .lock = PTHREAD_MUTEX_INITIALIZER};
  l->passed = (struct ni_box_passed){0};
  (void)ni_threads(threads > 0 ? (size_t)threads : 1, read_boxes_in_thread, &p, 0);
  bad->foreign = l->passed.foreign;
  bad->foreign_uid = l->passed.uid;
  return p.error;
}

void ni_hang_looks_free(struct ni_hang_looks *l) {
  for (size_t i = 0; i < l->n; i++)
    ni_hang_model_free(&l->look[i].m);
  free(l->look);
  *l = (struct ni_hang_looks){0};
}

static int by_process(const void *a, const void *b) {
  const struct ni_hang_look *x = *(const struct ni_hang_look *const *)a,
                            *y = *(const struct ni_hang_look *const *)b;
  const struct ni_who_process *p = x->m.who.process, *q = y->m.who.process;
  int k = NI_BY(p, q, pid);
  if (k == 0)
    k = strcmp(p->host, q->host);
  if (k == 0)
    k = NI_BY(p, q, start_ns);
  return k ? k : NI_BY(x, y, ns);
}

static bool is_same_process(const struct ni_hang_look *x, const struct ni_hang_look *y) {
  const struct ni_who_process *p = x->m.who.process, *q = y->m.who.process;
  return p->pid == q->pid && p->start_ns == q->start_ns && strcmp(p->host, q->host) == 0;
}

int ni_hang_model_at(struct ni_hang_model *out, const struct ni_hang_model *base,
                     const struct ni_hang_looks *l, uint64_t until) {
  const struct ni_hang_look **order = malloc((l->n + 1) * sizeof *order);
  size_t n = 0;
  int e = order ? ni_hang_model_merge(out, base) : -ENOMEM;
  for (size_t i = 0; e == 0 && i < l->n; i++)
    if (l->look[i].ns <= until)
      order[n++] = &l->look[i];
  if (n > 1)
    qsort(order, n, sizeof *order, by_process);
  for (size_t i = 0; e == 0 && i < n; i++)
    if (i + 1 == n || !is_same_process(order[i], order[i + 1]))
      e = ni_hang_model_merge(out, &order[i]->m);
  free(order);
  if (e == 0)
    e = ni_hang_model_settle(out);
  return e;
}
