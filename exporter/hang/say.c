#include "say.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAMED 4 /* so many ranks are named one by one with their hosts */
#define RANGES 8
#define HOSTS 3

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

/* Text of a log or a box on a terminal: control characters as '?'. */
static void put(FILE *f, const char *text) {
  for (; *text; text++) fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, f);
}

void ni_hang_say_comm(FILE *f, const struct ni_hang_member *x) {
  if (x->name && *x->name) put(f, x->name);
  else fprintf(f, "0x%" PRIx64, x->hash);
}

void ni_hang_say_op(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_op *op) {
  const char *func = ni_hang_text(v->model, op->func);
  put(f, *func ? func : "an operation");
  if (op->kind == NI_KIND_COLL) fprintf(f, " %" PRIu64, op->sn);
  else if (op->root >= 0) fprintf(f, " %s rank %d", strcmp(func, "Send") == 0 ? "to" : "from", op->root);
}

/* ---- lists of ranks ---- */

struct who {
  int32_t rank;     /* global, or of the communicator */
  const char *host; /* NULL: not known */
};

struct crowd {
  struct who *w;
  size_t n;
  bool global;
};

static int by_rank(const void *a, const void *b) {
  const struct who *x = a, *y = b;
  return x->rank < y->rank ? -1 : x->rank > y->rank;
}

typedef bool (*chosen_fn)(const struct ni_hang_verdict *v, const struct ni_hang_knot *k, const struct ni_hang_view *w,
                          const void *arg);

static bool is_where(const struct ni_hang_verdict *v, const struct ni_hang_knot *k, const struct ni_hang_view *w, const void *arg) {
  (void)v, (void)k;
  return w->where == *(const enum ni_hang_where *)arg;
}

/* Ranks without any member count as no data; they have no global rank, and then nobody in the list has. */
static struct crowd gather(const struct ni_hang_verdict *v, const struct ni_hang_knot *k, chosen_fn chosen, const void *arg,
                           bool unseen) {
  struct crowd c = {.global = !unseen || k->unseen == 0};
  size_t lost = unseen ? (k->unseen < 65536 ? (size_t)k->unseen : 65536) : 0;
  c.w = calloc(k->n + lost + 1, sizeof *c.w);
  if (!c.w) return c;
  for (size_t i = 0; i < k->n; i++)
    if (chosen(v, k, &k->view[i], arg)) c.global &= ni_hang_global(v, &k->view[i]) >= 0;
  for (size_t i = 0; i < k->n; i++) {
    const struct ni_hang_view *w = &k->view[i];
    if (chosen(v, k, w, arg)) c.w[c.n++] = (struct who){c.global ? ni_hang_global(v, w) : w->rank, process_of(v, w)->host};
  }
  if (k->kind == NI_KIND_COLL) {
    size_t at = 0;
    for (int32_t r = 0; lost && r < k->any->n_ranks; r++) {
      while (at < k->n && k->view[at].rank < r) at++;
      if (at < k->n && k->view[at].rank == r) continue;
      c.w[c.n++] = (struct who){r, NULL};
      lost--;
    }
  } else {
    for (size_t i = 0; lost && i < k->n; i++) {
      bool there = k->view[i].waits_for < 0;
      for (size_t j = 0; j < k->n && !there; j++) there = k->view[j].rank == k->view[i].waits_for;
      if (there) continue;
      c.w[c.n++] = (struct who){k->view[i].waits_for, NULL};
      lost--;
    }
  }
  if (c.n > 1) qsort(c.w, c.n, sizeof *c.w, by_rank);
  return c;
}

static void say_hosts(FILE *f, const struct crowd *c) {
  const char *host[HOSTS];
  size_t n = 0, more = 0;
  for (size_t i = 0; i < c->n; i++) {
    bool known = !c->w[i].host;
    for (size_t j = 0; j < n && !known; j++) known = strcmp(host[j], c->w[i].host) == 0;
    for (size_t j = i; n == HOSTS && j-- > 0 && !known;) known = c->w[j].host && strcmp(c->w[j].host, c->w[i].host) == 0;
    if (known) continue;
    if (n < HOSTS) host[n++] = c->w[i].host;
    else more++;
  }
  for (size_t i = 0; i < n; i++) {
    fputs(i == 0 ? " on " : i + 1 == n && !more ? " and " : ", ", f);
    put(f, host[i]);
  }
  if (more) fprintf(f, " and %zu more hosts", more);
}

/* "rank 3 (node-a) and rank 17 (node-c)", or "ranks 0-3, 8 and 17 on node-a, node-b and 3 more hosts". */
static void say_crowd(FILE *f, const struct ni_hang_knot *k, const struct crowd *c) {
  if (c->n <= NAMED) {
    for (size_t i = 0; i < c->n; i++) {
      fputs(i == 0 ? "" : i + 1 == c->n ? " and " : ", ", f);
      fprintf(f, "rank %d", c->w[i].rank);
      if (!c->global) {
        fputs(" of ", f);
        ni_hang_say_comm(f, k->any);
      }
      if (c->w[i].host) {
        fputs(" (", f);
        put(f, c->w[i].host);
        fputc(')', f);
      }
    }
    return;
  }
  size_t ranges = 0;
  fprintf(f, "%zu ranks (", c->n);
  for (size_t i = 0, end; i < c->n; i = end, ranges++) {
    for (end = i + 1; end < c->n && c->w[end].rank == c->w[end - 1].rank + 1; end++) {}
    if (ranges == RANGES) {
      fputs(", ...", f);
      break;
    }
    fprintf(f, "%s%d", ranges ? ", " : "", c->w[i].rank);
    if (end - i > 1) fprintf(f, "-%d", c->w[end - 1].rank);
  }
  if (!c->global) {
    fputs(" of ", f);
    ni_hang_say_comm(f, k->any);
  }
  fputc(')', f);
  say_hosts(f, c);
}

static size_t say_chosen(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_knot *k, chosen_fn chosen,
                         const void *arg, bool unseen) {
  struct crowd c = gather(v, k, chosen, arg, unseen);
  say_crowd(f, k, &c);
  free(c.w);
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
    put(p->f, process_of(p->v, w)->host);
    fprintf(p->f, ") waits on the network");
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
    put(p->f, process_of(p->v, w)->host);
    fputs(") waits in ", p->f);
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
  bool p2p = k->kind == NI_KIND_P2P;
  part_other_calls(&p);
  part_values(&p);
  part_where(&p, NI_HANG_NEVER, "", p2p ? " has no matching call under way" : " never called it");
  part_where(&p, NI_HANG_GONE, "the process of ", " is gone");
  part_where(&p, NI_HANG_HAS_LEFT, "", " has left the communicator");
  part_where(&p, NI_HANG_API_ONLY, "", " called it, and nothing was launched");
  if (k->count[NI_HANG_INSIDE])
    part_where(&p, NI_HANG_QUEUED, "", " called it, and the kernel has not started");
  int network = part_network(&p);
  part_where(&p, NI_HANG_NO_DATA, "no data from ", "");
  if (p2p) part_transfers(&p);
  if (k->count[NI_HANG_FINISHED]) fprintf(part(&p), "%zu ranks have finished it", k->count[NI_HANG_FINISHED]);
  size_t inside = k->count[NI_HANG_INSIDE] + (k->count[NI_HANG_INSIDE] ? 0 : k->count[NI_HANG_QUEUED]);
  if (p2p) return;
  const char *where = k->count[NI_HANG_INSIDE] ? "inside" : "waiting for the kernel to start";
  bool differ = k->size_mismatch || k->type_mismatch || k->root_mismatch;
  if (blockers(k) == 0 && k->count[NI_HANG_NO_DATA] == 0 && k->count[NI_HANG_FINISHED] == 0)
    fprintf(part(&p), "everyone is %s%s", where,
            differ || network ? "" : ": nobody is missing, so look at GPUs, NVLink and the network");
  else if (inside == 1)
    fprintf(part(&p), "one rank is %s", where);
  else if (inside)
    fprintf(part(&p), "everyone else (%zu ranks) is %s", inside, where);
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

static void say_waiting(FILE *f, const struct ni_hang_verdict *v) {
  const struct ni_hang_knot *longest = NULL;
  for (size_t i = 0; i < v->n; i++)
    if (!longest || v->knot[i].pending_ns > longest->pending_ns) longest = &v->knot[i];
  fprintf(f, "no hang: %zu communicators, %zu ranks", v->n_communicators, v->n_ranks);
  if (!longest || longest->pending_ns < 1000000000u) return;
  fprintf(f, "; waited for longest, %" PRIu64 " s (a hang from %" PRIu64 " s on): ", longest->pending_ns / 1000000000u,
          v->after_ns / 1000000000u);
  say_subject(f, v, longest);
  fputs(": ", f);
  ni_hang_say_knot(f, v, longest);
}

void ni_hang_say(FILE *f, const struct ni_hang_verdict *v) {
  if (v->answer == NI_HANG_NO_HANG) {
    say_waiting(f, v);
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
  fprintf(f, "; nothing has moved for %" PRIu64 " s", k->pending_ns / 1000000000u);
}

bool ni_hang_say_missing(FILE *f, const struct ni_hang_verdict *v, size_t i) {
  const struct ni_hang_knot *k = v->n_hangs ? &v->knot[0] : NULL;
  size_t at = 0;
  if (!k) return false;
  if (!v->second_look && at++ == i) return fputs("a second look, 10 s or more after this one, that agrees", f), true;
  if (k->count[NI_HANG_NO_DATA] && at++ == i) {
    fprintf(f, "data of %zu ranks: ", k->count[NI_HANG_NO_DATA]);
    ni_hang_say_ranks(f, v, k, NI_HANG_NO_DATA);
    return true;
  }
  if (v->model->unreadable && at++ == i) {
    fprintf(f, "%" PRIu64 " files that could not be read, the first: ", v->model->unreadable);
    put(f, v->model->first_bad ? v->model->first_bad : "");
    return true;
  }
  if (k->blind && at++ == i) {
    fprintf(f, "sight: %zu of the ranks that never called it also run operations whose kernels NCCL does not show", k->blind);
    return true;
  }
  if (k->unsure && at++ == i) return fputs("common numbers: the ranks' operations could not be matched one to one", f), true;
  return false;
}
