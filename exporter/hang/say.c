#include "say.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "crowd.h"

#define NAMED 4                      /* so many waits and knots are told one by one */
#define OLD_NS UINT64_C(60000000000) /* when everything that was read is older, the answer says of when it is */

const char *ni_hang_where_name(enum ni_hang_where where) {
  static const char *const names[NI_HANG_WHERE_COUNT] = {"finished",   "inside", "queued",  "called",  "never_called",
                                                         "other_call", "gone",   "left",    "no_data", "not_involved"};
  return names[where];
}

const char *ni_hang_state_name(uint8_t state) {
  static const char *const names[NI_HANG_STATE_COUNT] = {"called", "launched", "kernel", "network", "finishing", "in_flight"};
  return names[state < NI_HANG_STATE_COUNT ? state : NI_HANG_UNSTATED];
}

static const struct ni_hang_process *process_of(const struct ni_hang_verdict *v, const struct ni_hang_view *w) {
  return &v->model->process[w->member->process];
}

int32_t ni_hang_global(const struct ni_hang_verdict *v, const struct ni_hang_view *w) {
  const struct ni_hang_process *p = process_of(v, w);
  return p->several ? -1 : p->rank;
}

void ni_hang_say_comm(FILE *f, const struct ni_hang_member *x) {
  if (x->name && *x->name) ni_hang_put(f, x->name);
  else fprintf(f, "0x%" PRIx64, x->hash);
}

void ni_hang_say_op(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_op *op) {
  const char *func = ni_hang_text(v->model, op->func);
  ni_hang_put(f, *func ? func : "an operation");
  if (op->kind == NI_KIND_COLL) fprintf(f, " %" PRIu64, op->sn);
  else if (op->root >= 0) fprintf(f, " %s rank %d", strcmp(func, "Send") == 0 ? "to" : "from", op->root);
}

/* ---- lists of ranks ---- */

typedef bool (*chosen_fn)(const struct ni_hang_verdict *v, const struct ni_hang_knot *k, const struct ni_hang_view *w,
                          const void *arg);

static bool is_where(const struct ni_hang_verdict *v, const struct ni_hang_knot *k, const struct ni_hang_view *w, const void *arg) {
  (void)v, (void)k;
  return w->where == *(const enum ni_hang_where *)arg;
}

/* "of dp0", for ranks that are not global; NULL without memory. */
static char *of_comm(const struct ni_hang_member *x) {
  char *text = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&text, &n);
  if (!f) return NULL;
  fputs(" of ", f);
  ni_hang_say_comm(f, x);
  fclose(f);
  return text;
}

/* Ranks without any member count as no data; they have no global rank, and then nobody in the list has. */
static void gather(struct ni_hang_crowd *c, const struct ni_hang_verdict *v, const struct ni_hang_knot *k,
                   chosen_fn chosen, const void *arg, size_t lost, bool global) {
  for (size_t i = 0; i < k->n; i++) {
    const struct ni_hang_view *w = &k->view[i];
    if (chosen(v, k, w, arg))
      c->who[c->n++] = (struct ni_hang_who){global ? ni_hang_global(v, w) : w->rank, process_of(v, w)->host};
  }
  if (k->kind == NI_KIND_COLL) {
    size_t at = 0;
    for (int32_t r = 0; lost && r < k->any->n_ranks; r++) {
      while (at < k->n && k->view[at].rank < r) at++;
      if (at < k->n && k->view[at].rank == r) continue;
      c->who[c->n++] = (struct ni_hang_who){r, NULL};
      lost--;
    }
    return;
  }
  for (size_t i = 0; lost && i < k->n; i++) {
    bool there = k->view[i].waits_for < 0;
    for (size_t j = 0; j < k->n && !there; j++) there = k->view[j].rank == k->view[i].waits_for;
    if (there) continue;
    c->who[c->n++] = (struct ni_hang_who){k->view[i].waits_for, NULL};
    lost--;
  }
}

static size_t say_chosen(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_knot *k, chosen_fn chosen,
                         const void *arg, bool unseen) {
  size_t lost = unseen ? (k->unseen < 65536 ? (size_t)k->unseen : 65536) : 0;
  struct ni_hang_crowd c = ni_hang_crowd_new(k->n + lost, "rank", "ranks");
  bool global = lost == 0;
  if (!c.who) return 0;
  for (size_t i = 0; i < k->n; i++)
    if (chosen(v, k, &k->view[i], arg)) global &= ni_hang_global(v, &k->view[i]) >= 0;
  char *of = global ? NULL : of_comm(k->any);
  c.of = of;
  gather(&c, v, k, chosen, arg, lost, global);
  ni_hang_say_crowd(f, &c);
  free(of);
  free(c.who);
  return c.n;
}

void ni_hang_say_ranks(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_knot *k, enum ni_hang_where where) {
  say_chosen(f, v, k, is_where, &where, where == NI_HANG_NO_DATA);
}

/* ---- one knot ---- */

/* Parts of a sentence, divided by semicolons. */
struct parts {
  FILE *f;
  const struct ni_hang_verdict *v;
  const struct ni_hang_knot *k;
  int n;
};

static FILE *part(struct parts *p) {
  if (p->n++) fputs("; ", p->f);
  return p->f;
}

/* How it stood when the processes ended, not how it is. */
static bool is_over(const struct ni_hang_verdict *v, const struct ni_hang_knot *k) { return v->fate.over || k->past; }

static void part_where(struct parts *p, enum ni_hang_where where, const char *before, const char *after) {
  if (!p->k->count[where]) return;
  fputs(before, part(p));
  ni_hang_say_ranks(p->f, p->v, p->k, where);
  fputs(after, p->f);
}

/* Views that call the same operation with values like those of a sample. */
struct like {
  const struct ni_hang_op *op;
  bool bytes, type, root;
};

static bool same_values(const struct ni_hang_op *a, const struct like *l) {
  return (!l->bytes || a->bytes == l->op->bytes) && (!l->type || a->datatype == l->op->datatype) &&
         (!l->root || a->root == l->op->root);
}

static bool is_like(const struct ni_hang_verdict *v, const struct ni_hang_knot *k, const struct ni_hang_view *w, const void *arg) {
  const struct like *l = arg;
  (void)v;
  return w->op && ni_hang_is(w->op, k->op.func, k->op.sn) && same_values(w->op, l);
}

static void say_values(FILE *f, const struct ni_hang_verdict *v, const struct like *l) {
  const char *sep = "";
  if (l->bytes) fprintf(f, "%" PRIu64 " bytes", l->op->bytes), sep = ", ";
  if (l->type) fprintf(f, "%s%s", sep, ni_hang_text(v->model, l->op->datatype)), sep = ", ";
  if (l->root) fprintf(f, "%sroot %d", sep, l->op->root);
}

/* Different sizes, types or roots of one call: those of the fewest ranks are named, then those of the most. */
static void part_values(struct parts *p) {
  const struct ni_hang_knot *k = p->k;
  struct like most = {NULL, k->size_mismatch, k->type_mismatch, k->root_mismatch}, fewest = most;
  size_t n_most = 0, n_fewest = SIZE_MAX;
  if (!k->size_mismatch && !k->type_mismatch && !k->root_mismatch) return;
  for (size_t i = 0; i < k->n; i++) {
    const struct ni_hang_op *op = k->view[i].op;
    if (!op || !ni_hang_is(op, k->op.func, k->op.sn)) continue;
    if ((most.op && same_values(op, &most)) || (fewest.op && same_values(op, &fewest))) continue;
    struct like l = most;
    l.op = op;
    size_t n = 0;
    for (size_t j = i; j < k->n; j++) n += is_like(p->v, k, &k->view[j], &l);
    if (n > n_most) n_most = n, most.op = op;
    if (n <= n_fewest) n_fewest = n, fewest.op = op; /* of equals the later one */
  }
  if (!most.op || !fewest.op || most.op == fewest.op) return;
  say_chosen(part(p), p->v, k, is_like, &fewest, false);
  fputs(" called it with ", p->f);
  say_values(p->f, p->v, &fewest);
  fputs(", others with ", p->f);
  say_values(p->f, p->v, &most);
}

static void part_other_calls(struct parts *p) {
  const struct ni_hang_knot *k = p->k;
  if (!k->count[NI_HANG_OTHER_CALL]) return;
  ni_hang_say_ranks(part(p), p->v, k, NI_HANG_OTHER_CALL);
  fputs(" called ", p->f);
  for (size_t i = 0; i < k->n; i++)
    if (k->view[i].where == NI_HANG_OTHER_CALL) {
      ni_hang_say_op(p->f, p->v, k->view[i].op);
      break;
    }
  fputs(" instead", p->f);
}

static bool is_rank(const struct ni_hang_verdict *v, const struct ni_hang_knot *k, const struct ni_hang_view *w, const void *arg) {
  (void)v, (void)k;
  return w->rank == *(const int32_t *)arg;
}

static int part_network(struct parts *p) {
  int told = 0;
  for (size_t i = 0; i < p->k->n && told < NAMED; i++) {
    const struct ni_hang_view *w = &p->k->view[i];
    if (w->where != NI_HANG_INSIDE || w->op->state != NI_HANG_NETWORK) continue;
    int32_t g = ni_hang_global(p->v, w);
    fprintf(part(p), "rank %d (", g >= 0 ? g : w->rank);
    ni_hang_put(p->f, process_of(p->v, w)->host);
    fprintf(p->f, ") %s on the network", is_over(p->v, p->k) ? "waited" : "waits");
    if (w->op->net_peer >= 0) {
      fputs(" for ", p->f);
      say_chosen(p->f, p->v, p->k, is_rank, &w->op->net_peer, false);
    }
    if (w->op->net_channel >= 0) fprintf(p->f, " on channel %d", w->op->net_channel);
    if (w->op->net_state) fprintf(p->f, " (%s)", ni_hang_text(p->v->model, w->op->net_state));
    told++;
  }
  return told;
}

static bool is_waiting(const struct ni_hang_view *w) {
  return w->where == NI_HANG_INSIDE || w->where == NI_HANG_QUEUED;
}

static void part_transfers(struct parts *p) {
  const struct ni_hang_knot *k = p->k;
  for (int told = 0, i = 0; i < (int)k->n && told < NAMED; i++) {
    const struct ni_hang_view *w = &k->view[i];
    if (w->waits_for < 0 || !is_waiting(w)) continue;
    int32_t g = ni_hang_global(p->v, w);
    fprintf(part(p), "rank %d (", g >= 0 ? g : w->rank);
    ni_hang_put(p->f, process_of(p->v, w)->host);
    fprintf(p->f, ") %s in ", is_over(p->v, p->k) ? "waited" : "waits");
    ni_hang_say_op(p->f, p->v, w->op);
    told++;
  }
}

static size_t blockers(const struct ni_hang_knot *k) {
  size_t n = 0;
  for (size_t i = 0; i < k->n; i++) n += ni_hang_blocks(k, &k->view[i]);
  return n;
}

void ni_hang_say_knot(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_knot *k) {
  struct parts p = {f, v, k, 0};
  bool p2p = k->kind == NI_KIND_P2P, over = is_over(v, k);
  part_other_calls(&p);
  part_values(&p);
  part_where(&p, NI_HANG_NEVER, "",
             p2p ? (over ? " had no matching call under way" : " has no matching call under way")
                 : (over ? " had not called it" : " never called it"));
  part_where(&p, NI_HANG_GONE, "the process of ", " is gone");
  part_where(&p, NI_HANG_HAS_LEFT, "", over ? " had left the communicator" : " has left the communicator");
  part_where(&p, NI_HANG_API_ONLY, "", " called it, and nothing was launched");
  if (k->count[NI_HANG_INSIDE])
    part_where(&p, NI_HANG_QUEUED, "",
               over ? " called it, and the kernel had not started" : " called it, and the kernel has not started");
  int network = part_network(&p);
  part_where(&p, NI_HANG_NO_DATA, "no data from ", "");
  if (p2p) part_transfers(&p);
  if (k->count[NI_HANG_FINISHED])
    fprintf(part(&p), "%zu rank%s %s finished it", k->count[NI_HANG_FINISHED], k->count[NI_HANG_FINISHED] == 1 ? "" : "s",
            over ? "had" : k->count[NI_HANG_FINISHED] == 1 ? "has" : "have");
  size_t inside = k->count[NI_HANG_INSIDE] + (k->count[NI_HANG_INSIDE] ? 0 : k->count[NI_HANG_QUEUED]);
  if (p2p) return;
  const char *where = k->count[NI_HANG_INSIDE] ? "inside" : "waiting for the kernel to start",
             *is = over ? "was" : "is";
  bool differ = k->size_mismatch || k->type_mismatch || k->root_mismatch;
  if (blockers(k) == 0 && k->count[NI_HANG_NO_DATA] == 0 && k->count[NI_HANG_FINISHED] == 0) {
    fprintf(part(&p), "everyone %s %s", is, where);
    if (!differ && !network && !over)
      fputs(k->count[NI_HANG_INSIDE]
                ? ": nobody is missing, so look at GPUs, NVLink and the network"
                : ": nobody is missing, so look at what else the GPUs do and what their streams wait for",
            f);
  } else if (inside == 1) {
    fprintf(part(&p), "one rank %s %s", is, where);
  } else if (inside) {
    fprintf(part(&p), "everyone else (%zu ranks) %s %s", inside, is, where);
  }
}

/* ---- the sentence ---- */

static void say_subject(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_knot *k) {
  if (k->kind == NI_KIND_P2P) fputs("Send/Recv", f);
  else ni_hang_say_op(f, v, &k->op);
  fputs(" of communicator ", f);
  ni_hang_say_comm(f, k->any);
}

/* A ring of communicators that wait for each other. */
static void say_ring(FILE *f, const struct ni_hang_verdict *v, uint32_t ring) {
  size_t n = 0;
  for (size_t i = 0; i < v->n_hangs; i++) n += v->knot[i].ring == ring;
  fprintf(f, "deadlock of %zu communicators: ", n);
  for (size_t i = 0, told = 0; i < v->n_hangs && told < NAMED; i++) {
    const struct ni_hang_knot *k = &v->knot[i];
    if (k->ring != ring) continue;
    if (told++) fputs("; ", f);
    say_subject(f, v, k);
    fputs(": ", f);
    ni_hang_say_knot(f, v, k);
  }
}

/* Of this run's knots the one that waits longest, of those that hardly wait the first; NULL: none. *n: how many there are. */
static const struct ni_hang_knot *longest_wait(const struct ni_hang_verdict *v, size_t *n) {
  const struct ni_hang_knot *longest = NULL;
  *n = 0;
  for (size_t i = 0; i < v->n; i++) {
    const struct ni_hang_knot *k = &v->knot[i];
    if (k->past) continue;
    ++*n;
    if (!longest || k->pending_ns / 1000000000u > longest->pending_ns / 1000000000u) longest = k;
  }
  return longest;
}

/* Copies and logs may be of yesterday. */
static void say_as_of(FILE *f, const struct ni_hang_verdict *v) {
  if (v->wall_ns < v->now_ns + OLD_NS) return;
  fputs("; as of ", f);
  ni_hang_say_when(f, v, v->now_ns);
}

static void say_waiting(FILE *f, const struct ni_hang_verdict *v) {
  size_t n;
  const struct ni_hang_knot *longest = longest_wait(v, &n);
  fputs("no hang: ", f);
  ni_hang_say_job(f, v);
  say_as_of(f, v);
  if (!longest) {
    uint64_t idle = v->fate.moved_ns && v->now_ns > v->fate.moved_ns ? v->now_ns - v->fate.moved_ns : 0;
    if (idle >= NI_HANG_GRACE_NS) {
      fputs("; nothing is in flight, the last operation that was seen is ", f);
      ni_hang_say_span(f, idle);
      fputs(" old", f);
    }
    return;
  }
  if (longest->pending_ns < 1000000000u) return;
  fprintf(f, "; waited for longest, %" PRIu64 " s (a hang from %" PRIu64 " s on): ", longest->pending_ns / 1000000000u,
          v->after_ns / 1000000000u);
  say_subject(f, v, longest);
  fputs(": ", f);
  ni_hang_say_knot(f, v, longest);
}

/* A job that is over, and that did not hang before: how its processes ended, and what was in flight then. */
static void say_over(FILE *f, const struct ni_hang_verdict *v) {
  size_t n = 0;
  const struct ni_hang_knot *k = longest_wait(v, &n);
  fprintf(f, "%s (", v->fate.in[NI_HANG_DEAD] ? "DEAD" : "ENDED");
  ni_hang_say_job(f, v);
  fputs("): ", f);
  ni_hang_say_end(f, v);
  if (!k) {
    fputs("; nothing was in flight", f);
    return;
  }
  fputs("; in flight then: ", f);
  say_subject(f, v, k);
  fputs(": ", f);
  ni_hang_say_knot(f, v, k);
  if (n > 1) fprintf(f, "; and operations of %zu more communicator%s", n - 1, n == 2 ? "" : "s");
}

void ni_hang_say(FILE *f, const struct ni_hang_verdict *v) {
  if (v->model->n_processes == 0) {
    fputs("no data: no log and no black box says anything", f);
    return;
  }
  if (v->answer == NI_HANG_NO_HANG) {
    if (v->fate.over) say_over(f, v);
    else say_waiting(f, v);
    return;
  }
  const struct ni_hang_knot *k = &v->knot[0];
  fprintf(f, "HANG (%s): ", v->answer == NI_HANG_CERTAIN ? "certain" : "likely");
  if (k->ring) {
    say_ring(f, v, k->ring);
  } else {
    say_subject(f, v, k);
    fputs(": ", f);
    ni_hang_say_knot(f, v, k);
  }
  fprintf(f, "; nothing %s moved for ", v->fate.over ? "had" : "has");
  ni_hang_say_span(f, k->pending_ns);
  if (!v->fate.over) {
    say_as_of(f, v);
    return;
  }
  fputs("; by now ", f);
  ni_hang_say_end(f, v);
}

bool ni_hang_say_missing(FILE *f, const struct ni_hang_verdict *v, size_t i) {
  const struct ni_hang_knot *k = v->n_hangs ? &v->knot[0] : NULL;
  size_t at = 0;
  if (!k) return false;
  if (!v->second_look && at++ == i)
    return fputs(v->fate.over ? "two looks 10 s or more apart, from before the end (`snapshot`)"
                              : "a second look, 10 s or more after this one, that agrees",
                 f),
           true;
  if (k->count[NI_HANG_NO_DATA] && at++ == i) {
    fputs("data of ", f);
    ni_hang_say_ranks(f, v, k, NI_HANG_NO_DATA);
    return true;
  }
  if (v->model->unreadable && at++ == i) {
    fprintf(f, "%" PRIu64 " file%s that could not be read, the first: ", v->model->unreadable,
            v->model->unreadable == 1 ? "" : "s");
    ni_hang_put(f, v->model->first_bad ? v->model->first_bad : "");
    return true;
  }
  if (k->blind && at++ == i) {
    fprintf(f, "sight: %zu of the ranks that never called it also run operations whose kernels NCCL does not show", k->blind);
    return true;
  }
  if (k->unsure && at++ == i) return fputs("common numbers: the ranks' operations could not be matched one to one", f), true;
  return false;
}
