#include "roles.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/model/sums/ranks/blame.h"

const char *const ni_role_names[NI_ROLES] = {"-", "tp", "dp", "pp", "ep", "world"};
const char *const ni_role_words[NI_ROLES] = {"", "TP ", "DP ", "PP ", "EP ", "world "};

enum { OTHER = NI_ROLES, MIXED, MEANINGS };
static const char *const words[MEANINGS] = {"",
                                            " tp tensor ",
                                            " dp ddp fsdp hsdp data zero ",
                                            " pp pipe pipeline ",
                                            " ep expert experts moe ",
                                            " world default ",
                                            " cp context sp sequence embedding amax ",
                                            " and "};

/* What words of a name mean, a bit each. What follows "with" tells variants of one group apart. */
static unsigned meanings(const char *name) {
  for (unsigned bits = 0;; name++) {
    char word[20] = " ";
    size_t n = 1;
    for (; isalnum((unsigned char)*name); name++)
      if (n < sizeof word - 2)
        word[n++] = (char)tolower((unsigned char)*name);
    while (isdigit((unsigned char)word[n - 1]))
      n--; /* "tp12" */
    memcpy(word + n, " ", 2);
    for (int i = 0; i < MEANINGS; i++)
      bits |= (unsigned)!!strstr(words[i], word) << i;
    if (!*name || strcmp(word, " with ") == 0)
      return bits;
  }
}

static bool by_name(const char *name, enum ni_role *role) {
  const unsigned bits = meanings(name), ep = 1u << NI_ROLE_EP;
  unsigned roles = bits & ((1u << NI_ROLES) - 1);
  /* data parallelism of experts */
  if (roles != ep)
    roles &= ~ep;
  /* mesh_dp_cp: gradients */
  const bool mixed = bits & 1u << MIXED || (bits & 1u << OTHER && roles != 1u << NI_ROLE_DP);
  *role = mixed || !roles || roles & (roles - 1) ? NI_ROLE_NONE : (enum ni_role)__builtin_ctz(roles);
  return bits;
}

/* True: the map or the name says it, also that it is none of these. */
static bool is_said(const struct ni_role_map *m, const struct ni_comm_row *c, enum ni_role *role) {
  for (size_t i = 0; i < m->n; i++) {
    const char *p = m->item[i].pattern;
    if (fnmatch(p, c->id, 0) && (!c->name || (strcmp(p, c->name) && fnmatch(p, c->name, 0))))
      continue;
    *role = m->item[i].role;
    return true;
  }
  return c->name && by_name(c->name, role);
}

static int take_lines(struct ni_run *r, const char *path, size_t n) {
  struct ni_role_map *m = &r->roles;
  size_t number = 1;
  for (char *line = m->text, *end; line < m->text + n; line = end + 1, number++) {
    char word[8] = "", rest[2] = "#";
    int i = 0, to = 0;
    end = line + strcspn(line, "\n");
    const bool whole = *end || end == m->text + n; /* no byte 0 in it */
    *end = 0;
    line += strspn(line, " \t\r\v\f");
    if (whole && (!*line || *line == '#'))
      continue;
    const bool two = sscanf(line, "%*s%n %7s %1s", &to, word, rest) > 0;
    while (i < NI_ROLES && strcmp(word, ni_role_names[i]) != 0)
      i++;
    if (!whole || !two || *rest != '#' || i == NI_ROLES)
      return ni_run_fail(r, -EINVAL,
                         "%.200s:%zu: \"%.100s\": want a name, hash or glob of a communicator and its role, "
                         "one of tp, dp, pp, ep, world and -",
                         path, number, line);
    if (!ni_array_room(m->item, m->n, m->cap))
      return -ENOMEM;
    line[to] = 0;
    m->item[m->n++] = (struct ni_role_line){line, (enum ni_role)i};
  }
  return 0;
}

int ni_role_map_read(struct ni_run *r) {
  const char *path = r->opt.comm_map;
  int e = path ? ni_run_words(r, path, &r->roles.text) : 0;
  if (e > 0)
    e = take_lines(r, path, (size_t)e);
  return e < 0 ? ni_run_fail(r, e, "%.200s: %s", path, strerror(-e)) : e; /* the first text stays */
}

struct shape {         /* what one communicator looks like */
  uint32_t n, rank[2]; /* ranks with operations; of blame.rank: its ranks 0 and 1 */
  /* uneven: no stride; up, down: messages to the next rank, to the one before */
  bool uneven, to_all, said, up, down;
  /* records of AllReduce, ReduceScatter; collectives of one rank */
  uint64_t reduced, scattered, ops;
  /* ranks by their collectives; that send, to neighbours alone, to all or many */
  uint32_t beside, in_line, senders, near, all;
};

static int64_t stride(const struct ni_blame *b, const struct shape *x) {
  return x->n < 2 || x->uneven ? 0 : (int64_t)ni_blame_global(b, x->rank[1]) - ni_blame_global(b, x->rank[0]);
}

static void take_cells(const struct ni_blame *b, struct shape *shape) {
  const struct ni_run *r = b->r;
  for (uint32_t i = 0; i < b->s->n_cells; i++) {
    const struct ni_sum_cell *c = &r->cell[r->cell_order[i]];
    const char *func = ni_name_text(&r->names, c->func);
    for (size_t k = 0; k < c->n; k++) {
      struct shape *x = &shape[r->comm_at[r->who.member[c->piece[k]->member].comm]];
      if (strcmp(func, "AllReduce") == 0)
        x->reduced += c->piece[k]->s.n;
      if (strcmp(func, "ReduceScatter") == 0)
        x->scattered += c->piece[k]->s.n;
      x->to_all |= strncmp(func, "AlltoAll", 8) == 0;
    }
    for (size_t k = 0; k < c->n_rows; k++)
      shape[r->comm_at[r->who.member[c->row[k].member].comm]].to_all |= strncmp(func, "AlltoAll", 8) == 0;
  }
}

static void take_sends(const struct ni_blame_rank *o, uint32_t i, int64_t n, struct shape *x) {
  uint32_t peers = 0, far = 0;
  for (uint32_t k = 0; k < o->n_slots; k++) {
    const int64_t by = (int64_t)o->slot[k].peer - o->slot[i].rank;
    if (o->slot[k].comm != o->slot[i].comm || o->slot[k].kind != NI_BLAME_SEND)
      continue;
    if (k < i)
      return; /* its first one has counted all */
    peers++;
    x->up |= by == 1;
    x->down |= by == -1;
    far += by != 1 && by != -1 && by != n - 1 && by != 1 - n;
  }
  x->senders++;
  x->near += !far;
  x->all += n > 2 && (peers + 1 >= n || (far && peers > 3));
}

static void take_slots(const struct ni_blame *b, uint32_t rank, bool again, struct shape *shape) {
  const struct ni_blame_rank *o = &b->rank[rank];
  for (uint32_t i = 0, k; i < o->n_slots; i++) {
    const struct ni_blame_slot *t = &o->slot[i];
    struct shape *x = &shape[t->comm];
    if (again)
      x->uneven |= ni_blame_global(b, x->rank[0]) + stride(b, x) * t->rank != ni_blame_global(b, rank);
    if (again)
      continue;
    for (k = 0; o->slot[k].comm != t->comm;)
      k++;
    if (k == i && t->rank >= 0 && t->rank < 2)
      x->rank[t->rank] = rank;
    x->n += k == i;
    if (t->kind == NI_BLAME_COLL) {
      *(t->beside ? &x->beside : &x->in_line) += 1;
      x->ops = t->ops;
    }
    if (t->kind == NI_BLAME_SEND)
      take_sends(o, i, b->s->comm[t->comm].n_ranks, x);
  }
}

/* Is there a communicator, but for one of all ranks, that both are in? */
static bool joined(const struct ni_blame *b, const struct shape *x, uint32_t comm) {
  const struct ni_blame_rank *o = &b->rank[x->rank[0]], *p = &b->rank[x->rank[1]];
  for (uint32_t i = 0; i < o->n_slots; i++)
    for (uint32_t k = 0, c = o->slot[i].comm; k < p->n_slots; k++)
      if (c == p->slot[k].comm && c != comm && b->s->comm[c].role != NI_ROLE_WORLD)
        return true;
  return o->n_slots == NI_BLAME_SLOTS;
}

static enum ni_role by_messages(const struct ni_blame *b, const struct shape *x, uint32_t comm) {
  if (x->senders * 4 < x->n * 3)
    return NI_ROLE_NONE;
  if (x->all * 4 >= x->senders * 3)
    return x->n > 3 ? NI_ROLE_EP : NI_ROLE_NONE;
  if (x->near < x->senders || !x->up || !x->down || x->beside + x->in_line)
    return NI_ROLE_NONE;
  return x->n > 2 || !joined(b, x, comm) ? NI_ROLE_PP : NI_ROLE_NONE;
}

/* Of a rank's communicators the only one that can be tp, and the only one that can be dp. */
static enum ni_role by_collectives(const struct ni_blame *b, const struct shape *shape, uint32_t comm) {
  const struct ni_blame_rank *o = &b->rank[shape[comm].rank[0]];
  const struct shape *tp = NULL, *dp = NULL;
  uint32_t n_tp = 0, n_dp = 0;
  for (uint32_t i = 0; i < o->n_slots; i++) {
    const struct ni_comm_row *c = &b->s->comm[o->slot[i].comm];
    const struct shape *x = &shape[o->slot[i].comm];
    const bool free = c->role == NI_ROLE_NONE && !x->said;
    if (o->slot[i].kind != NI_BLAME_COLL || x->senders || x->to_all || x->n != (uint32_t)c->n_ranks)
      continue;
    if ((free || c->role == NI_ROLE_TP) && stride(b, x) == 1 && c->one_host >= 0) {
      tp = x;
      n_tp++;
    }
    if ((free || c->role == NI_ROLE_DP) && stride(b, x) > 1) {
      dp = x;
      n_dp++;
    }
  }
  if (n_dp != 1 || n_tp > 1)
    return NI_ROLE_NONE;
  const bool far = dp == &shape[comm] && dp->beside >= 3 * dp->in_line && b->s->comm[comm].one_host < 0;
  if (!tp)
    return far ? NI_ROLE_DP : NI_ROLE_NONE;
  /* else pieces of gradients beside the computing */
  const bool unlike = tp->beside * 4 <= tp->in_line || !tp->scattered;
  if (stride(b, dp) % tp->n || tp->ops < (unlike ? 2 : 4) * dp->ops)
    return NI_ROLE_NONE;
  if (dp == &shape[comm])
    return NI_ROLE_DP;
  /* Each gradient scattered within a host, then reduced between hosts: shards of data parallelism. */
  /* not finite: nothing is scattered */
  const double reduced = (double)dp->reduced / dp->n * tp->n / (double)tp->scattered;
  return tp != &shape[comm] || (reduced >= 0.9 && reduced <= 1.1) ? NI_ROLE_NONE : NI_ROLE_TP;
}

int ni_roles(const struct ni_blame *b) {
  struct ni_summary *s = b->s;
  struct shape *shape = calloc(s->n_comms + 1, sizeof *shape);
  int64_t world = 0;
  if (!shape)
    return -ENOMEM;
  for (size_t i = 0; i < s->n_processes; i++)
    world = s->job.world_size > 0 ? s->job.world_size : world + s->process[i].ranks;
  take_cells(b, shape);
  for (uint32_t i = 0, rank; b->rank && i < 2 * b->n_ranks; i++)
    if (b->rank[rank = i % b->n_ranks].judged && s->process[rank].ranks == 1)
      take_slots(b, rank, i >= b->n_ranks, shape);
  for (uint32_t i = 0; i < s->n_comms; i++) {
    struct ni_comm_row *c = &s->comm[i];
    if ((shape[i].said = is_said(&b->r->roles, c, &c->role)))
      continue;
    c->role = c->n_ranks == world && world > 1 ? NI_ROLE_WORLD : shape[i].to_all ? NI_ROLE_EP : NI_ROLE_NONE;
  }
  for (uint32_t i = 0; i < s->n_comms; i++) {
    const struct shape *x = &shape[i];
    if (s->comm[i].role || x->said || x->n < 2 || x->n != (uint32_t)s->comm[i].n_ranks)
      continue;
    s->comm[i].role = x->senders ? by_messages(b, x, i) : by_collectives(b, shape, i);
  }
  free(shape);
  return 0;
}
