#include "emit_parts.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/base/array.h"

enum { REPLAYS_MAX = 1 << 16 }; /* calls whose replays wait; those of further calls are drawn at once */

struct ni_tr_replays {
  struct waiting_replay {
    uint32_t member;
    bool there;
    uint64_t call_sn, enqueue_ns;
    struct ni_tr_event e;
  } *item;
  size_t n, cap;
  struct ni_index at_hash;
};

static int put_part(struct ni_tr *r, const struct ni_tr_event *op, int64_t from, uint64_t dur,
                    const char *name) {
  struct ni_tr_event e = {
      .ts = op->ts + from, .dur = (int64_t)dur, .track = op->track, .category = NI_TR_C_PHASE};
  int err = dur == 0 || e.dur == op->dur ? 0 : ni_name(&r->names, &r->cache, name, &e.name);
  if (err < 0 || !e.name)
    return err;
  e.n_arrows = 1; /* no arrow: the end of what it is a part of (choose_lane() in write.c) */
  e.arrow[0].id = (uint64_t)(op->ts + op->dur);
  return ni_tr_put(r, &e);
}

int ni_tr_put_phases(struct ni_tr *r, const struct ni_tr_event *op, const struct ni_record *o) {
  const uint64_t part[] = {o->initial_sync_ns, o->compute_ns, o->final_sync_ns}, all = (uint64_t)op->dur;
  static const char *const names[] = {"initial_sync", "compute", "final_sync"};
  if (!(o->has & NI_HAS_PHASES))
    return 0;
  if (part[0] > all || part[1] > all || part[2] > all)
    return 0;
  if (part[0] + part[1] + part[2] != all)
    return 0;
  int64_t from = 0;
  int err = 0;
  for (int i = 0; err == 0 && i < 3; i++) {
    err = put_part(r, op, from, part[i], names[i]);
    from += (int64_t)part[i];
  }
  return err;
}

static int put_shown(struct ni_tr *r, const struct ni_tr_event *e) {
  const uint64_t events = r->count.events;
  const int err = ni_tr_put(r, e);
  r->count.shown += r->count.events != events;
  return err;
}

/* Between the two there can be a replay that was lost, or sampled away: then the time is that one's. */
static bool is_follower(const struct waiting_replay *x, const struct ni_record *o) {
  const uint32_t both = NI_HAS_PREV_REPLAY | NI_HAS_ENQUEUE;
  if ((o->has & both) != both || o->enqueue_ns < x->enqueue_ns)
    return false;
  const uint64_t apart = o->enqueue_ns - x->enqueue_ns, said = o->prev_replay_ns;
  return (apart > said ? apart - said : said - apart) <= 1000 + apart / 1000;
}

static struct waiting_replay *find_or_add_waiting(struct ni_tr_replays *all, uint32_t member,
                                                  uint64_t call_sn) {
  const uint64_t hash = ni_hash(member, call_sn);
  uint32_t k;
  for (size_t at = 0; (k = ni_index_next(&all->at_hash, hash, &at)) != NI_INDEX_NONE;)
    if (all->item[k].member == member && all->item[k].call_sn == call_sn)
      return &all->item[k];
  if (all->n == REPLAYS_MAX)
    return NULL;
  if (!ni_array_room(all->item, all->n, all->cap))
    return NULL;
  if (ni_index_add(&all->at_hash, hash, (uint32_t)all->n) < 0)
    return NULL;
  all->item[all->n] = (struct waiting_replay){.member = member, .call_sn = call_sn};
  return &all->item[all->n++];
}

int ni_tr_put_replay(struct ni_tr *r, uint32_t member, const struct ni_record *o,
                     const struct ni_tr_event *e) {
  if (!(o->has & NI_HAS_CALL_SN))
    return put_shown(r, e);
  if (!r->replays && !(r->replays = calloc(1, sizeof *r->replays)))
    return -ENOMEM;
  struct waiting_replay *x = find_or_add_waiting(r->replays, member, o->call_sn);
  if (!x)
    return put_shown(r, e);
  if (x->there && is_follower(x, o))
    ni_tr_i64(&x->e, NI_TR_K_AT_MOST, (int64_t)o->prev_replay_ns);
  const int err = x->there ? put_shown(r, &x->e) : 0;
  x->there = true;
  x->enqueue_ns = o->enqueue_ns;
  x->e = *e;
  return err;
}

int ni_tr_replays_end(struct ni_tr *r) {
  int err = 0;
  for (size_t i = 0; r->replays && err == 0 && i < r->replays->n; i++)
    err = put_shown(r, &r->replays->item[i].e);
  ni_tr_replays_free(r);
  return err;
}

void ni_tr_replays_free(struct ni_tr *r) {
  if (!r->replays)
    return;
  free(r->replays->item);
  ni_index_free(&r->replays->at_hash);
  free(r->replays);
  r->replays = NULL;
}
