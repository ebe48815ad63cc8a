/*
 * One knot in words: who is missing from it, who is inside, what they disagree on.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"
#include "exporter/model/hang/judge/fate.h"
#include "exporter/model/hang/judge/knot.h"
#include "exporter/model/hang/judge/knots.h"
#include "say_knot.h"
#include "words.h"

#define NAMED 4 /* so many waits are told one by one */

/* ---- lists of ranks ---- */

typedef bool (*chosen_fn)(const struct ni_hang_knot *k, const struct ni_hang_view *w, const void *arg);

static bool is_where(const struct ni_hang_knot *k, const struct ni_hang_view *w, const void *arg) {
  return w->where == *(const enum ni_hang_where *)arg;
}

/* "of dp0", for ranks that are not global; NULL without memory. */
static char *make_of_comm(const struct ni_who_member *x) {
  char *text = NULL;
  int n =
      x->name && *x->name ? asprintf(&text, " of %s", x->name) : asprintf(&text, " of 0x%" PRIx64, x->hash);
  return n < 0 ? NULL : text;
}

/*
 * Gathers ranks. Ranks without a member count as no data; they have no global rank, and then the whole list
 * has none.
 */
static void gather_crowd(struct ni_hang_crowd *c, const struct ni_hang_verdict *v,
                         const struct ni_hang_knot *k, chosen_fn chosen, const void *arg, size_t lost,
                         bool global) {
  for (size_t i = 0; i < k->n; i++) {
    const struct ni_hang_view *w = &k->view[i];
    if (chosen(k, w, arg))
      c->who[c->n++] = (struct ni_hang_who){global ? ni_hang_global(v, w) : w->rank,
                                            ni_hang_host(ni_hang_process_at(v, w))};
  }
  if (k->kind == NI_KIND_COLL) {
    size_t at = 0;
    for (int32_t r = 0; lost && r < k->any->who->n_ranks; r++) {
      while (at < k->n && k->view[at].rank < r)
        at++;
      if (at < k->n && k->view[at].rank == r)
        continue;
      c->who[c->n++] = (struct ni_hang_who){r, NULL};
      lost--;
    }
    return;
  }
  for (size_t i = 0; lost && i < k->n; i++) {
    if (k->view[i].waits_for < 0 || ni_hang_view_of(k, k->view[i].waits_for))
      continue;
    c->who[c->n++] = (struct ni_hang_who){k->view[i].waits_for, NULL};
    lost--;
  }
}

static size_t say_chosen(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_knot *k,
                         chosen_fn chosen, const void *arg, bool unseen) {
  size_t lost = unseen ? (k->unseen < 65536 ? (size_t)k->unseen : 65536) : 0;
  struct ni_hang_crowd c = ni_hang_crowd_new(k->n + lost, "rank", "ranks");
  bool global = lost == 0;
  if (!c.who)
    return 0;
  for (size_t i = 0; i < k->n; i++)
    if (chosen(k, &k->view[i], arg))
      global &= ni_hang_global(v, &k->view[i]) >= 0;
  char *of = global ? NULL : make_of_comm(k->any->who);
  c.of = of;
  gather_crowd(&c, v, k, chosen, arg, lost, global);
  ni_hang_say_crowd(f, &c);
  free(of);
  free(c.who);
  return c.n;
}

void ni_hang_say_ranks(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_knot *k,
                       enum ni_hang_where where) {
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

static FILE *next_part(struct parts *p) {
  if (p->n++)
    fputs("; ", p->f);
  return p->f;
}

/* Is this about how it stood when the processes ended, not about now? */
static bool is_over(const struct ni_hang_verdict *v, const struct ni_hang_knot *k) {
  return v->fate.over || k->past;
}

static void add_where(struct parts *p, enum ni_hang_where where, const char *before, const char *after) {
  if (!p->k->count[where])
    return;
  ni_put_text(next_part(p), before);
  ni_hang_say_ranks(p->f, p->v, p->k, where);
  ni_put_text(p->f, after);
}

static bool is_unheard(const struct ni_hang_knot *k, const struct ni_hang_view *w, const void *arg) {
  const struct parts *p = arg; /* n: 1: of machines that are silent; 0: the others */
  return w->where == NI_HANG_NO_DATA && ni_hang_is_silent(p->v, ni_hang_process_at(p->v, w)) == p->n;
}

static void add_no_data(struct parts *p) {
  struct parts silent = {.v = p->v, .n = 1}, other = {.v = p->v};
  size_t n = 0;
  uint64_t heard_ns = 0;
  for (const struct ni_hang_view *w = p->k->view; w < p->k->view + p->k->n; w++)
    if (is_unheard(p->k, w, &silent)) {
      n++;
      ni_hang_raise(&heard_ns, ni_hang_last_sign(ni_hang_process_at(p->v, w)));
    }
  if (n) {
    say_chosen((fputs("nothing has been heard of ", next_part(p)), p->f), p->v, p->k, is_unheard, &silent,
               false);
    ni_hang_say_span((fputs(" for ", p->f), p->f), p->v->now_ns - heard_ns);
    fputs(": the machine or its agent is gone, or nobody copied its black boxes", p->f);
  }
  if (p->k->count[NI_HANG_NO_DATA] == n)
    return;
  say_chosen((fputs("no data from ", next_part(p)), p->f), p->v, p->k, is_unheard, &other, true);
}

static bool is_odd(const struct ni_hang_knot *k, const struct ni_hang_view *w, const void *arg) {
  return w->op && ni_hang_is(w->op, k->op.func, k->op.sn) && ni_hang_has_same_values(k, w->op, k->odd);
}

static void say_values(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_knot *k,
                       const struct ni_hang_op *op) {
  const char *sep = "";
  if (k->size_mismatch) {
    ni_say(f, "%s %s", NI_COUNT(op->bytes), ni_plural(op->bytes, "byte", "bytes"));
    sep = ", ";
  }
  if (k->type_mismatch) {
    ni_say(f, "%s%s", sep, ni_hang_text(v->model, op->datatype));
    sep = ", ";
  }
  if (k->root_mismatch)
    ni_say(f, "%sroot %d", sep, op->root);
}

/*
 * Different sizes, types or roots of one call: names the ranks of the rarest values, then those of the most
 * frequent ones.
 */
static void add_values(struct parts *p) {
  const struct ni_hang_knot *k = p->k;
  if (!k->odd)
    return;
  say_chosen(next_part(p), p->v, k, is_odd, NULL, false);
  fputs(" called it with ", p->f);
  say_values(p->f, p->v, k, k->odd);
  fputs(", others with ", p->f);
  say_values(p->f, p->v, k, k->majority);
}

static void add_other_calls(struct parts *p) {
  const struct ni_hang_knot *k = p->k;
  if (!k->count[NI_HANG_OTHER_CALL])
    return;
  ni_hang_say_ranks(next_part(p), p->v, k, NI_HANG_OTHER_CALL);
  fputs(" called ", p->f);
  for (size_t i = 0; i < k->n; i++)
    if (k->view[i].where == NI_HANG_OTHER_CALL) {
      ni_hang_say_op(p->f, p->v, k->view[i].op);
      break;
    }
  fputs(" instead", p->f);
}

static bool is_rank(const struct ni_hang_knot *k, const struct ni_hang_view *w, const void *arg) {
  return w->rank == *(const int32_t *)arg;
}

/* "rank 0 (node-a) " */
static void say_one(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_view *w) {
  int32_t g = ni_hang_global(v, w);
  const char *host = ni_hang_host(ni_hang_process_at(v, w));
  ni_say(f, host ? "rank %d (%s) " : "rank %d ", g >= 0 ? g : w->rank, host);
}

static int add_network(struct parts *p) {
  int told = 0;
  for (size_t i = 0; i < p->k->n && told < NAMED; i++) {
    const struct ni_hang_view *w = &p->k->view[i];
    if (w->where != NI_HANG_INSIDE || w->op->state != NI_HANG_NETWORK)
      continue;
    say_one(next_part(p), p->v, w);
    ni_say(p->f, "%s on the network", is_over(p->v, p->k) ? "waited" : "waits");
    if (w->op->net_peer >= 0) {
      fputs(" for ", p->f);
      say_chosen(p->f, p->v, p->k, is_rank, &w->op->net_peer, false);
    }
    if (w->op->net_channel >= 0)
      ni_say(p->f, " on channel %d", w->op->net_channel);
    if (w->op->net_state)
      ni_say(p->f, " (%s)", ni_hang_text(p->v->model, w->op->net_state));
    told++;
  }
  return told;
}

static bool is_waiting(const struct ni_hang_view *w) {
  return w->where == NI_HANG_INSIDE || w->where == NI_HANG_IN_REPLAY || w->where == NI_HANG_QUEUED;
}

static void add_more(struct parts *p, size_t n) {
  if (n)
    ni_say(next_part(p), "and %s more %s", NI_COUNT(n), ni_plural(n, "rank", "ranks"));
}

static void add_transfers(struct parts *p) {
  const struct ni_hang_knot *k = p->k;
  size_t told = 0, more = 0;
  for (size_t i = 0; i < k->n; i++) {
    const struct ni_hang_view *w = &k->view[i];
    if (w->waits_for < 0 || !is_waiting(w))
      continue;
    if (told == NAMED) {
      more++;
      continue;
    }
    say_one(next_part(p), p->v, w);
    ni_say(p->f, "%s in ", is_over(p->v, p->k) ? "waited" : "waits");
    ni_hang_say_op(p->f, p->v, w->op);
    told++;
    const struct ni_hang_view *peer = ni_hang_view_of(k, w->waits_for);
    /* not there, or told as one who waits */
    if (!peer || !is_waiting(peer) || peer->waits_for >= 0)
      continue;
    say_one((fputs(", where ", p->f), p->f), p->v, peer);
    ni_hang_say_op((fputs(is_over(p->v, p->k) ? "was in " : "is in ", p->f), p->f), p->v, peer->op);
  }
  add_more(p, more);
}

/*
 * Sends and receives that all have their other half: says who is inside which. Sizes are printed and not
 * compared, as with several messages between two ranks one side may be at the next.
 */
static void add_pairs(struct parts *p) {
  const struct ni_hang_knot *k = p->k;
  size_t told = 0, waiting = ni_hang_count_inside(k) + k->count[NI_HANG_QUEUED];
  fputs("nobody is missing, each Send has its Recv under way", next_part(p));
  for (size_t i = 0; i < k->n && told < NAMED; i++) {
    const struct ni_hang_view *w = &k->view[i];
    if (!is_waiting(w))
      continue;
    say_one(next_part(p), p->v, w);
    ni_say(p->f, "%s in ", is_over(p->v, k) ? "was" : "is");
    ni_hang_say_op(p->f, p->v, w->op);
    ni_say(p->f, ", %s %s", NI_COUNT(w->op->bytes), ni_plural(w->op->bytes, "byte", "bytes"));
    told++;
  }
  add_more(p, waiting - told);
}

static size_t count_blockers(const struct ni_hang_knot *k) {
  size_t n = 0;
  for (size_t i = 0; i < k->n; i++)
    n += ni_hang_blocks(k, &k->view[i]);
  return n;
}

/* "rank 3 (node-a) has not called it for 74 s": it may yet. */
static void add_not_yet(struct parts *p) {
  size_t n = p->k->count[NI_HANG_NEVER];
  if (!n)
    return;
  add_where(p, NI_HANG_NEVER, "", n == 1 ? " has not called it for " : " have not called it for ");
  ni_hang_say_span(p->f, p->k->waited_ns);
}

/* Behind "everyone is waiting for the kernel to start". */
static void add_replay(struct parts *p) {
  fputs(": nobody is missing, and before it ", p->f);
  ni_hang_say_op(p->f, p->v, p->k->behind_replay);
  ni_say(p->f, " was replayed from a CUDA graph: NCCL does not show its kernel, which may be what %s not end",
         is_over(p->v, p->k) ? "did" : "does");
}

void ni_hang_say_knot(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_knot *k) {
  struct parts p = {f, v, k, 0};
  bool p2p = k->kind == NI_KIND_P2P, over = is_over(v, k);
  add_other_calls(&p);
  add_values(&p);
  if (v->answer == NI_HANG_NOT_YET && !p2p)
    add_not_yet(&p);
  else if (p2p)
    add_where(&p, NI_HANG_NEVER, "",
              over ? " had no matching call under way" : " has no matching call under way");
  else
    add_where(&p, NI_HANG_NEVER, "", over ? " had not called it" : " never called it");
  const bool is_one_gone = k->count[NI_HANG_GONE] == 1;
  add_where(&p, NI_HANG_GONE, is_one_gone ? "the process of " : "the processes of ",
            is_one_gone ? " is gone" : " are gone");
  add_where(&p, NI_HANG_HAS_LEFT, "", over ? " had left the communicator" : " has left the communicator");
  add_where(&p, NI_HANG_API_ONLY, "", " called it, and nothing was launched");
  if (ni_hang_count_inside(k))
    add_where(
        &p, NI_HANG_QUEUED, "",
        over ? " called it, and the kernel had not started" : " called it, and the kernel has not started");
  int network = add_network(&p);
  add_where(&p, NI_HANG_ELSEWHERE, "",
            k->count[NI_HANG_ELSEWHERE] == 1 ? " waits elsewhere" : " wait elsewhere");
  add_no_data(&p);
  if (p2p)
    add_transfers(&p);
  if (k->count[NI_HANG_FINISHED])
    ni_say(next_part(&p), "%s rank%s %s finished it", NI_COUNT(k->count[NI_HANG_FINISHED]),
           ni_plural(k->count[NI_HANG_FINISHED], "", "s"),
           over ? "had" : ni_plural(k->count[NI_HANG_FINISHED], "has", "have"));
  if (k->behind_it)
    ni_say(f, ", and %s wait%s in a later one", NI_COUNT(k->behind_it),
           over ? "ed" : ni_plural(k->behind_it, "s", ""));
  const enum ni_hang_where in = k->count[NI_HANG_INSIDE] ? NI_HANG_INSIDE
      : k->count[NI_HANG_IN_REPLAY]                      ? NI_HANG_IN_REPLAY
                                                         : NI_HANG_QUEUED;
  size_t inside = k->count[in];
  if (p2p) {
    if (p.n == 0)
      add_pairs(&p);
    return;
  }
  static const char *const wheres[] = {
      [NI_HANG_INSIDE] = "inside",
      [NI_HANG_IN_REPLAY] = "in it by a CUDA graph (NCCL does not show its kernel)",
      [NI_HANG_QUEUED] = "waiting for the kernel to start"};
  const char *where = wheres[in], *is = over ? "was" : "is";
  bool differ = k->size_mismatch || k->type_mismatch || k->root_mismatch;
  if (count_blockers(k) == 0 && k->count[NI_HANG_NO_DATA] == 0 && k->count[NI_HANG_FINISHED] == 0) {
    ni_say(next_part(&p), "everyone %s %s", is, where);
    if (k->behind_replay)
      add_replay(&p);
    else if (!differ && !network && !over)
      fputs(k->count[NI_HANG_INSIDE]
                ? ": nobody is missing, so look at GPUs, NVLink and the network"
                : ": nobody is missing, so look at what else the GPUs do and what their streams wait for",
            f);
  } else if (inside == 1) {
    ni_say(next_part(&p), "one rank %s %s", is, where);
    if (k->count[NI_HANG_FINISHED] || k->count[NI_HANG_NEVER] > 1)
      ni_hang_say_ranks((fputs(": ", f), f), v, k, in);
  } else if (inside) {
    ni_say(next_part(&p), "everyone else (%s ranks) %s %s", NI_COUNT(inside), is, where);
  }
}
