#include "agree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/map.h"

#define APART_NS \
  UINT64_C(2000000000) /* clocks of hosts differ, and what was just launched may be in no count yet */

/*
 * What the plugin knows of a function of a member: how many were launched, and since when; and whether that
 * is all.
 */
struct known_op {
  uint64_t launched, at_ns;
  bool any, all;
};

/* Learns the newest operation, by number. If only the API call was seen, it is not launched. */
static void learn_op(struct known_op *k, const struct ni_hang_op *op) {
  if (op->sn + 1 <= k->launched || op->sn == UINT64_MAX)
    return;
  k->launched = op->sn + 1;
  k->at_ns = op->enqueue_ns;
}

static struct known_op learn_member(const struct ni_hang_model *m, const struct ni_hang_member *x,
                                    const char *func) {
  const struct ni_hang_process *p = &m->process[x->who->process];
  struct known_op k = {0};
  NI_EACH(const struct ni_hang_func, f, x->fin, x->n_fin) {
    if (strcmp(ni_hang_text(m, f->func), func) != 0)
      continue;
    k.any = true;
    k.launched = f->next;
  }
  NI_EACH(const struct ni_hang_op, op, x->recent, x->n_recent)
  if (op->kind == NI_KIND_COLL && strcmp(ni_hang_text(m, op->func), func) == 0 && op->sn + 1 >= k.launched) {
    k.any = true;
    k.launched = op->sn + 1;
    k.at_ns = op->enqueue_ns;
  }
  k.all = p->has_box && p->has_log && k.any;
  NI_EACH(const struct ni_hang_op, op, x->open, x->n_open) {
    if (op->kind != NI_KIND_COLL || op->state == NI_HANG_CALLED ||
        strcmp(ni_hang_text(m, op->func), func) != 0)
      continue;
    k.any = k.all = true;
    learn_op(&k, op);
  }
  k.all = k.all && x->open_ns;
  return k;
}

struct agreement_look {
  struct ni_ras_agreement *a;
  const struct ni_hang_model *m;
  uint64_t asked_ns, answered_ns;
};

static void add_difference(struct ni_ras_agreement *a, struct ni_ras_difference d) {
  if (a->n_differences < NI_RAS_DIFFERENCES)
    a->difference[a->n_differences] = d;
  a->n_differences++;
}

/* Is that a difference, or is one of the two only older? */
static bool is_difference(const struct agreement_look *l, const struct ni_hang_member *x,
                          const struct known_op *k, uint64_t by_ras) {
  if (by_ras > k->launched)
    return k->all && (!l->asked_ns || x->open_ns >= l->answered_ns);
  if (by_ras < k->launched)
    return !l->asked_ns || (k->at_ns && k->at_ns + APART_NS < l->asked_ns);
  return false;
}

static void compare_rank(struct agreement_look *l, const struct ni_ras *ras, const struct ni_ras_rank *r,
                         const struct ni_hang_member *x) {
  enum ni_hang_life life = l->m->process[x->who->process].life;
  bool any = false, same = true;
  l->a->ranks++;
  if (r->here == NI_RAS_DEAD && life == NI_HANG_ALIVE)
    add_difference(l->a, (struct ni_ras_difference){.what = NI_RAS_LIVES, .member = x, .rank = r});
  if (r->here == NI_RAS_HERE && life == NI_HANG_DEAD)
    add_difference(l->a, (struct ni_ras_difference){.what = NI_RAS_DIED, .member = x, .rank = r});
  for (size_t f = 0; r->counted && f < ras->n_funcs; f++) {
    struct known_op k = learn_member(l->m, x, ras->func[f]);
    if (!k.any)
      continue;
    any = true;
    if (!is_difference(l, x, &k, r->count[f]))
      continue;
    same = false;
    add_difference(
        l->a, (struct ni_ras_difference){NI_RAS_OTHER_COUNT, x, r, ras->func[f], r->count[f], k.launched});
  }
  l->a->compared += any;
  l->a->agree += any && same;
}

static uint64_t hash_comm(uint64_t hash, int32_t size) { return ni_hash(ni_hash(5, hash), (uint64_t)size); }

/* NULL: RAS does not know it. */
static const struct ni_ras_rank *find_rank(const struct ni_ras *ras, const struct ni_ras_comm *c,
                                           int32_t rank) {
  size_t i;
  ni_array_search(i, c->n, ras->rank[c->first + i].rank < rank);
  return i < c->n && ras->rank[c->first + i].rank == rank ? &ras->rank[c->first + i] : NULL;
}

int ni_ras_agree(struct ni_ras_agreement *a, const struct ni_ras *ras, const struct ni_hang_verdict *v,
                 uint64_t asked_ns, uint64_t answered_ns) {
  struct agreement_look l = {a, v->model, asked_ns, answered_ns};
  struct ni_map comms = {0}, others = {0};
  size_t *seen = calloc(ras->n_comms + 1, sizeof *seen);
  int64_t at = seen ? 0 : -ENOMEM;
  *a = (struct ni_ras_agreement){0};
  for (size_t i = 0; at >= 0 && i < ras->n_comms; i++)
    if (!ras->comm[i].odd)
      at = ni_map_find_or_add(&comms, hash_comm(ras->comm[i].hash, ras->comm[i].size), 0, (uint32_t)i);
  for (size_t i = 0; at >= 0 && i < v->model->n_members; i++) {
    const struct ni_hang_member *x = v->model->member[i];
    if (v->earlier[x->who->process] || x->dump || x->destroyed)
      continue;
    uint64_t name = hash_comm(x->who->hash, x->who->n_ranks);
    int64_t c = ni_map_get(&comms, name, 0);
    const struct ni_ras_rank *r = c < 0 ? NULL : find_rank(ras, &ras->comm[c], x->who->rank);
    if (c < 0)
      at = ni_map_find_or_add(&others, name, 0, (uint32_t)others.n);
    if (!r)
      continue;
    a->comms += seen[c]++ == 0;
    compare_rank(&l, ras, r, x);
  }
  a->comms_only_plugin = others.n;
  for (size_t i = 0; seen && i < ras->n_comms; i++) {
    if (ras->comm[i].odd)
      continue;
    if (!seen[i])
      a->comms_only_ras++;
    else if (ras->comm[i].n > seen[i])
      a->ranks_only_ras += ras->comm[i].n - seen[i];
  }
  ni_map_free(&comms);
  ni_map_free(&others);
  free(seen);
  return at < 0 ? (int)at : 0;
}
