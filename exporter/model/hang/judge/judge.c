/*
 * The verdict: how long each knot is pending and from when on that is too long, and, once graph.h has decided
 * which of them hang, the answer and how certain it is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fate.h"
#include "graph.h"
#include "knot.h"
#include "knots.h"
#include "order.h"

/* ---- pending ---- */

/* What a process did last, in whatever communicator; 0: nothing. */
struct activity {
  uint64_t moved_ns;  /* newest start or end of an operation */
  uint64_t passed_ns; /* newest call of one that has finished */
  uint64_t begun_ns;  /* newest beginning of a communicator */
  uint64_t ended_ns;  /* newest end of one */
};

/* By process number. */
static struct activity *measure_activity(const struct ni_hang_model *m) {
  struct activity *all = calloc(m->n_processes + 1, sizeof *all);
  for (size_t i = 0; all && i < m->n_members; i++) {
    const struct ni_hang_member *x = m->member[i];
    struct activity *a = &all[x->who->process];
    ni_hang_raise(&a->moved_ns, x->active_ns);
    ni_hang_raise(&a->ended_ns, x->ended_ns);
    for (int k = 0; k < NI_KIND_COUNT; k++)
      ni_hang_raise(&a->passed_ns, x->passed_ns[k]);
    /* By the same clock as what ran in it: not by one that was set back since. */
    uint64_t begun = x->who->init_ns - (uint64_t)m->process[x->who->process].skew_ns;
    uint64_t used = x->passed_ns[NI_KIND_COLL] > x->passed_ns[NI_KIND_P2P] ? x->passed_ns[NI_KIND_COLL]
                                                                           : x->passed_ns[NI_KIND_P2P];
    if (x->who->init_ns && begun < (used ? used : m->process[x->who->process].alive_ns))
      ni_hang_raise(&a->begun_ns, begun);
  }
  return all;
}

/*
 * Has this rank moved on? A rank that called and finished something elsewhere, long after it called this
 * operation, is not held up by it. A communicator that was made since then says so at once: its ranks have
 * abandoned the old one.
 */
static bool has_moved_on(const struct ni_hang_process *p, const struct activity *a,
                         const struct ni_hang_op *op) {
  if (p->several || !op || !op->enqueue_ns)
    return false;
  return a->passed_ns > op->enqueue_ns + NI_HANG_GRACE_NS || a->begun_ns > op->enqueue_ns;
}

uint64_t ni_hang_known_until(const struct ni_hang_verdict *v, const struct ni_hang_view *w) {
  const struct ni_hang_process *p = ni_hang_process_at(v, w);
  /*
   * A box is one look at everything. A log's stuck line is newer than what its dump_stats lines said before.
   */
  bool whole = p->has_box || !w->op || w->op->seen_ns <= w->member->open_ns;
  if (w->member->open_ns && whole)
    return p->life == NI_HANG_DEAD && p->alive_ns > w->member->open_ns ? p->alive_ns : w->member->open_ns;
  /* From a log: a stuck line, and no record since, as long as the process still writes. */
  return w->op && w->op->seen_ns > p->alive_ns ? w->op->seen_ns : p->alive_ns;
}

static uint64_t elapsed_since(uint64_t now, uint64_t then) { return now > then ? now - then : 0; }

/*
 * Does this rank keep the others waiting? If it is inside an operation that all others have finished, they
 * wait for it in a later one.
 */
static bool holds_up(const struct ni_hang_knot *k, const struct ni_hang_view *w) {
  return ni_hang_blocks(k, w) || (k->behind_it && ni_hang_waits(w));
}

static uint64_t last_moved_ns(const struct ni_hang_verdict *v, const struct ni_hang_view *w,
                              const struct activity *active) {
  const struct ni_hang_process *p = ni_hang_process_at(v, w);
  if (w->where == NI_HANG_GONE)
    return p->alive_ns;
  return p->several ? w->member->active_ns : active[w->member->who->process].moved_ns;
}

/*
 * Since when the first rank of the knot has waited: since it called the operation, and since what it was in
 * before ended. A host calls far ahead of its GPU, so the call alone says little about what came first.
 */
static uint64_t waits_since(const struct ni_hang_knot *k, const struct activity *active) {
  uint64_t first = UINT64_MAX;
  for (size_t i = 0; i < k->n; i++) {
    const struct ni_hang_view *w = &k->view[i];
    const bool is_named = k->kind == NI_KIND_COLL || w->waits_for >= 0;
    const bool has_call = w->op && w->op->enqueue_ns && !w->later;
    if (!ni_hang_is_held(k, w) || !is_named || !has_call)
      continue;
    uint64_t t = w->op->enqueue_ns;
    ni_hang_raise(&t, active[w->member->who->process].ended_ns);
    first = ni_hang_least(first, t);
  }
  return first;
}

/* Does anybody wait for a process that is dead or has ended? */
static bool waits_for_the_dead(const struct ni_hang_verdict *v, const struct ni_hang_knot *k) {
  if (k->count[NI_HANG_GONE])
    return true;
  for (size_t i = 0; k->count[NI_HANG_HAS_LEFT] && i < k->n; i++)
    if (k->view[i].where == NI_HANG_HAS_LEFT && ni_hang_process_at(v, &k->view[i])->life == NI_HANG_LEFT)
      return true;
  return false;
}

/* Since when somebody has waited for a process that was dead by then. What others did later does not help. */
static uint64_t given_up_ns(const struct ni_hang_verdict *v, const struct ni_hang_knot *k,
                            const struct activity *active) {
  uint64_t t = waits_since(k, active);
  for (size_t i = 0; i < k->n; i++) {
    const struct ni_hang_view *w = &k->view[i];
    if (w->where == NI_HANG_GONE || w->where == NI_HANG_HAS_LEFT)
      ni_hang_raise(&t, ni_hang_process_at(v, w)->alive_ns);
  }
  return t;
}

/*
 * Since when nothing has moved, where somebody waits for a dead process. Usually since its death, because
 * what others did later does not help. If it had already stood still for a whole limit before, it was ended
 * while it hung, for example by a watchdog: then since it stood still.
 */
static uint64_t stood_still_ns(const struct ni_hang_verdict *v, const struct ni_hang_knot *k,
                               const struct activity *active) {
  uint64_t died = given_up_ns(v, k, active), still = k->newest_ns;
  for (size_t i = 0; i < k->n; i++) {
    const struct ni_hang_view *w = &k->view[i];
    if (w->where == NI_HANG_GONE)
      ni_hang_raise(&still, active[w->member->who->process].moved_ns);
  }
  return still && died > still + v->limit_ns ? still : died;
}

/*
 * Returns how long it is pending by those who wait. The knot gets how long it is pending by all who matter,
 * which is never more.
 */
static uint64_t pending_since(const struct ni_hang_verdict *v, struct ni_hang_knot *k,
                              const struct activity *active, uint64_t *inside_known) {
  uint64_t known = UINT64_MAX, known_in = UINT64_MAX, moved = k->newest_ns, stillest = UINT64_MAX;
  for (size_t i = 0; i < k->n; i++) {
    const struct ni_hang_view *w = &k->view[i];
    bool holds = holds_up(k, w), held = ni_hang_is_held(k, w);
    uint64_t t = last_moved_ns(v, w, active);
    /* A rank without data about this operation may be known to have moved on elsewhere meanwhile. */
    if (holds || w->where == NI_HANG_NO_DATA)
      ni_hang_raise(&moved, t);
    if (held && !holds && t < stillest)
      stillest = t;
    const bool has_ended = w->where == NI_HANG_GONE || w->where == NI_HANG_HAS_LEFT;
    if ((!held && !holds) || has_ended)
      continue;
    uint64_t u = ni_hang_known_until(v, w);
    if (u < known)
      known = u;
    if (held && u < known_in)
      known_in = u;
  }
  if (stillest != UINT64_MAX)
    ni_hang_raise(&moved, stillest);
  if (waits_for_the_dead(v, k))
    moved = stood_still_ns(v, k, active);
  k->until_ns = known == UINT64_MAX ? 0 : known;
  k->pending_ns = elapsed_since(k->until_ns, moved);
  *inside_known = known_in;
  return known_in == UINT64_MAX ? 0 : elapsed_since(known_in, moved);
}

/*
 * Nothing was heard of a rank since long before those who wait were seen last. That it had not called then
 * says nothing about now.
 */
static void forget_stale(const struct ni_hang_verdict *v, struct ni_hang_knot *k, uint64_t inside_known) {
  for (size_t i = 0; i < k->n; i++) {
    struct ni_hang_view *w = &k->view[i];
    if (w->where != NI_HANG_NEVER || ni_hang_known_until(v, w) + NI_HANG_OUTLIVED_NS >= inside_known)
      continue;
    ni_hang_set_where(k, w, NI_HANG_NO_DATA);
  }
}

static bool is_hopeless(const struct ni_hang_knot *k) {
  bool calls_differ = k->call_mismatch || k->size_mismatch || k->type_mismatch || k->root_mismatch;
  return k->count[NI_HANG_HAS_LEFT] || calls_differ;
}

static uint64_t limit_of_knot(const struct ni_hang_verdict *v, const struct ni_hang_knot *k) {
  uint64_t limit = v->limit_ns, half = k->op.timeout_ns / 2;
  if (k->op.timeout_ns)
    limit = ni_hang_least(limit, half < NI_HANG_GRACE_NS ? NI_HANG_GRACE_NS : half);
  if (is_hopeless(k))
    limit = ni_hang_least(limit, NI_HANG_GRACE_NS);
  if (waits_for_the_dead(v, k))
    limit = ni_hang_least(limit, NI_HANG_DEAD_NS);
  return limit;
}

static void judge_wait(struct ni_hang_verdict *v, struct ni_hang_knot *k, const struct activity *active) {
  uint64_t inside_known;
  for (struct ni_hang_view *w = k->view; w < k->view + k->n; w++)
    if ((ni_hang_waits(w) || w->where == NI_HANG_NEVER) && ni_hang_is_silent(v, ni_hang_process_at(v, w)))
      ni_hang_set_where(k, w, NI_HANG_NO_DATA);
  for (struct ni_hang_view *w = k->view; w < k->view + k->n; w++)
    w->went_on =
        has_moved_on(ni_hang_process_at(v, w), &active[w->member->who->process], w->later ? w->later : w->op);
  k->limit_ns = limit_of_knot(v, k);
  uint64_t alone = pending_since(v, k, active, &inside_known);
  if (!ni_hang_is_enough(v, k->pending_ns, k->limit_ns) && ni_hang_is_enough(v, alone, k->limit_ns)) {
    forget_stale(v, k, inside_known);
    (void)pending_since(v, k, active, &inside_known);
  }
}

/*
 * k is the process group of a dump. Does the hanging communicator o have the same ranks, each with the same
 * number?
 */
static bool has_same_ranks(const struct ni_hang_knot *k, const struct ni_hang_knot *o) {
  const bool is_same_size = o->kind == k->kind && o->any->who->n_ranks == k->any->who->n_ranks;
  if (o->any->dump || !o->hangs || !is_same_size)
    return false;
  for (size_t i = 0; i < o->n; i++) {
    const struct ni_hang_view *w = ni_hang_view_of(k, o->view[i].rank);
    if (!w || w->seat != o->view[i].seat)
      return false;
  }
  return true;
}

/*
 * One hang counts once. If all of its ranks have data of ours, what the dumps say of it is dropped; otherwise
 * the dumps say more.
 */
static void drop_doubles(struct ni_hang_verdict *v) {
  for (size_t i = 0; v->model->dumps && i < v->n; i++)
    for (size_t j = 0; v->knot[i].any->dump && v->knot[i].hangs && j < v->n; j++) {
      if (!has_same_ranks(&v->knot[i], &v->knot[j]))
        continue;
      struct ni_hang_knot *drop = v->knot[j].count[NI_HANG_NO_DATA] ? &v->knot[j] : &v->knot[i];
      drop->hangs = false;
    }
}

/* ---- the answer ---- */

const struct ni_hang_knot *ni_hang_first(const struct ni_hang_verdict *v) {
  if (!v->n || v->knot[0].past)
    return NULL;
  return v->fate.over || ni_hang_is_wait(&v->knot[0]) ? &v->knot[0] : NULL;
}

static enum ni_hang_answer decide_answer(const struct ni_hang_verdict *v) {
  const struct ni_hang_fate *t = &v->fate;
  const struct ni_hang_knot *first = ni_hang_first(v);
  bool unseen = t->unseen || v->model->unreadable || v->model->left_out || (!t->over && t->dark);
  if (v->model->n_processes == 0)
    return NI_HANG_NO_DATA_AT_ALL;
  if (v->n_hangs)
    return NI_HANG_LIKELY;
  if (t->over && t->in[NI_HANG_DEAD])
    return NI_HANG_ALL_DEAD;
  if (unseen)
    return NI_HANG_CANNOT_TELL;
  if (t->over)
    return NI_HANG_ALL_ENDED;
  return first && ni_hang_is_told(first) ? NI_HANG_NOT_YET : NI_HANG_NO_HANG;
}

int ni_hang_judge(struct ni_hang_verdict *v, const struct ni_hang_model *m, uint64_t after_ns,
                  uint64_t now_ns) {
  *v = (struct ni_hang_verdict){.model = m, .after_ns = after_ns, .limit_ns = after_ns, .wall_ns = now_ns};
  for (size_t i = 0; i < m->n_processes; i++) {
    const struct ni_hang_process *p = &m->process[i];
    ni_hang_raise(&v->now_ns, p->alive_ns);
    ni_hang_raise(&v->now_ns, p->look_ns);
  }
  struct activity *active = measure_activity(m);
  int e = active ? ni_hang_find_fate(v) : -ENOMEM;
  if (e == 0)
    e = ni_hang_find_knots(v);
  for (size_t i = 0; e == 0 && i < v->n; i++)
    judge_wait(v, &v->knot[i], active);
  for (size_t i = 0; e == 0 && i < v->n; i++) {
    struct ni_hang_knot *k = &v->knot[i];
    k->owed_ns = waits_since(k, active);
    k->waited_ns = elapsed_since(k->until_ns, k->owed_ns);
    ni_hang_raise(&k->waited_ns, k->pending_ns);
  }
  free(active);
  if (e == 0)
    e = ni_hang_decide(v);
  for (size_t i = 0; i < v->n; i++)
    for (size_t j = 0; j < v->knot[i].n; j++)
      v->knot[i].missing += ni_hang_blocks(&v->knot[i], &v->knot[i].view[j]);
  drop_doubles(v);
  for (size_t i = 0; i < v->n; i++) {
    v->n_hangs += v->knot[i].hangs;
    v->n_roots += v->knot[i].hangs && v->knot[i].root;
  }
  if (e == 0)
    e = ni_hang_order(v);
  v->answer = decide_answer(v);
  return e;
}

/* If anything moved since then in another communicator, the job is not quiet since then. */
bool ni_hang_is_quiet(const struct ni_hang_verdict *v) {
  const struct ni_hang_quiet *q = &v->quiet;
  bool last = q->any && v->fate.moved_ns <= q->since_ns + NI_HANG_DEAD_NS;
  return last && !v->fate.over && !v->n_hangs &&
      elapsed_since(v->now_ns, v->fate.moved_ns) >= NI_HANG_GRACE_NS;
}

bool ni_hang_is_final(const struct ni_hang_verdict *v) {
  return v->n_hangs && !v->fate.over && waits_for_the_dead(v, &v->knot[0]);
}

void ni_hang_make_certain(struct ni_hang_verdict *v) {
  bool sure = v->second_look || ni_hang_is_final(v);
  if (v->answer == NI_HANG_LIKELY && sure && ni_hang_is_complete(v))
    v->answer = NI_HANG_CERTAIN;
}

void ni_hang_verdict_free(struct ni_hang_verdict *v) {
  for (size_t i = 0; i < v->n; i++)
    free(v->knot[i].view);
  free(v->knot);
  free(v->earlier);
  *v = (struct ni_hang_verdict){0};
}

bool ni_hang_is_complete(const struct ni_hang_verdict *v) {
  const struct ni_hang_model *m = v->model;
  if (v->n_hangs == 0 || m->unreadable)
    return false;
  for (size_t i = 0; i < v->n_hangs; i++) {
    const struct ni_hang_knot *k = &v->knot[i];
    const bool is_unsure = k->count[NI_HANG_NO_DATA] || k->blind || k->unsure || k->behind_replay;
    if (k->root && is_unsure)
      return false;
  }
  return true;
}

bool ni_hang_verdicts_agree(const struct ni_hang_verdict *a, const struct ni_hang_verdict *b) {
  if (a->n_hangs == 0 || b->n == 0)
    return false;
  const struct ni_hang_knot *x = &a->knot[0];
  for (size_t i = 0; i < b->n; i++) {
    const struct ni_hang_knot *y = &b->knot[i];
    const bool is_same_comm = x->any->who->hash == y->any->who->hash && x->n == y->n;
    const bool is_same_op = x->kind == y->kind && x->op.sn == y->op.sn &&
        strcmp(ni_hang_text(a->model, x->op.func), ni_hang_text(b->model, y->op.func)) == 0;
    if (!is_same_comm || !is_same_op)
      continue;
    for (size_t j = 0; j < x->n; j++)
      if (x->view[j].rank != y->view[j].rank || x->view[j].where != y->view[j].where ||
          !ni_hang_process_at(b, &y->view[j])->has_box)
        return false; /* a log of now is no look of then */
    return true;
  }
  return false;
}
