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

/* ---- what is done in a communicator: from when on it tells ---- */

enum {
  MANY_PEERS = 4,       /* with one among them that is no neighbour: a stage of a pipeline sends to fewer */
  EXPERT_RANKS_MIN = 4, /* of three ranks all are neighbours, as in a pipeline */
  FAR_OVERLAPPED = 3,   /* gradients are reduced while ranks compute: so many that do for one that waits */
  IN_LINE_MIN = 4,      /* activations are waited for: by so many ranks for one that computes meanwhile */
  OPS_MIN = 2,          /* collectives of activations for one of gradients */
  /* the same where the first scatter while ranks compute, and may be pieces of gradients themselves */
  OPS_MIN_OVERLAPPED = 4,
};
/* What is scattered within hosts and reduced between them is the same: as often, within a tenth. */
#define SHARDED_LEAST 0.9
#define SHARDED_MOST 1.1

/* ---- what a name says ---- */

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
static unsigned parse_meanings(const char *name) {
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

static bool parse_role_name(const char *name, enum ni_role *role) {
  const unsigned bits = parse_meanings(name), ep = 1u << NI_ROLE_EP;
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
static bool has_stated_role(const struct ni_role_map *m, const struct ni_comm_row *c, enum ni_role *role) {
  for (size_t i = 0; i < m->n; i++) {
    const char *p = m->item[i].pattern;
    const bool is_its_name = c->name && (strcmp(p, c->name) == 0 || fnmatch(p, c->name, 0) == 0);
    if (fnmatch(p, c->id, 0) != 0 && !is_its_name)
      continue;
    *role = m->item[i].role;
    return true;
  }
  return c->name && parse_role_name(c->name, role);
}

static int parse_map_lines(struct ni_run *r, const char *path, size_t n) {
  struct ni_role_map *m = &r->roles;
  size_t number = 1;
  for (char *line = m->text, *end; line < m->text + n; line = end + 1, number++) {
    char word[8] = "", rest[2] = "#";
    int i = 0, to = 0;
    end = line + strcspn(line, "\n");
    const bool is_text = *end || end == m->text + n; /* no byte 0 in it */
    *end = 0;
    line += strspn(line, " \t\r\v\f");
    if (is_text && (!*line || *line == '#'))
      continue;
    const bool has_role = sscanf(line, "%*s%n %7s %1s", &to, word, rest) > 0;
    while (i < NI_ROLES && strcmp(word, ni_role_names[i]) != 0)
      i++;
    const bool is_valid = is_text && has_role && *rest == '#' && i < NI_ROLES;
    if (!is_valid)
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
  int e = path ? ni_run_read_words(r, path, &r->roles.text) : 0;
  if (e > 0)
    e = parse_map_lines(r, path, (size_t)e);
  return e < 0 ? ni_run_fail(r, e, "%.200s: %s", path, strerror(-e)) : e; /* the first text stays */
}

/* What one communicator looks like. */
struct shape {
  uint32_t n, rank[2];          /* ranks with operations; of blame.rank: its ranks 0 and 1 */
  bool uneven;                  /* its global ranks are not a fixed stride apart */
  bool to_all;                  /* it has AlltoAll */
  bool stated;                  /* the map or its name says what it is for, or that it is none of these */
  bool up, down;                /* messages to the next rank, to the one before */
  uint64_t reduced, scattered;  /* records of AllReduce, of ReduceScatter */
  uint64_t ops;                 /* collectives of one rank */
  uint32_t overlapped, in_line; /* ranks whose collectives run while they compute; those whose do not */
  uint32_t senders, to_neighbours, to_many; /* ranks that send; to neighbours alone; to all or to many */
};

/* Most: three quarters and more. Some ranks' logs may be missing, or begin late. */
static bool is_most(uint32_t part, uint32_t whole) { return part * 4 >= whole * 3; }

static int64_t measure_stride(const struct ni_blame *b, const struct shape *x) {
  return x->n < 2 || x->uneven ? 0 : (int64_t)ni_blame_global(b, x->rank[1]) - ni_blame_global(b, x->rank[0]);
}

static void count_cell_records(const struct ni_blame *b, struct shape *shape) {
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

/* i: the rank's first slot with messages in the communicator, which has n ranks. */
static void count_sends(const struct ni_blame_rank *o, uint32_t i, int64_t n, struct shape *x) {
  uint32_t peers = 0, far = 0;
  for (uint32_t k = 0; k < o->n_slots; k++) {
    const int64_t by = (int64_t)o->slot[k].peer - o->slot[i].rank;
    const bool is_neighbour = by == 1 || by == -1 || by == n - 1 || by == 1 - n;
    if (o->slot[k].comm != o->slot[i].comm || o->slot[k].kind != NI_BLAME_SEND)
      continue;
    if (k < i)
      return; /* its first one has counted all */
    peers++;
    x->up |= by == 1;
    x->down |= by == -1;
    far += !is_neighbour;
  }
  const bool sends_to_all = peers + 1 >= n, sends_to_many = far && peers >= MANY_PEERS;
  x->senders++;
  x->to_neighbours += !far;
  x->to_many += n > 2 && (sends_to_all || sends_to_many);
}

/* Is the rank where the stride says that it is? */
static void check_stride(const struct ni_blame *b, uint32_t rank, struct shape *shape) {
  const struct ni_blame_rank *o = &b->rank[rank];
  for (uint32_t i = 0; i < o->n_slots; i++) {
    struct shape *x = &shape[o->slot[i].comm];
    const int64_t expected = ni_blame_global(b, x->rank[0]) + measure_stride(b, x) * o->slot[i].rank;
    x->uneven |= expected != ni_blame_global(b, rank);
  }
}

static void count_slots(const struct ni_blame *b, uint32_t rank, struct shape *shape) {
  const struct ni_blame_rank *o = &b->rank[rank];
  for (uint32_t i = 0, k; i < o->n_slots; i++) {
    const struct ni_blame_slot *t = &o->slot[i];
    struct shape *x = &shape[t->comm];
    for (k = 0; o->slot[k].comm != t->comm;)
      k++;
    const bool is_first = k == i;
    if (is_first && t->rank >= 0 && t->rank < 2)
      x->rank[t->rank] = rank;
    x->n += is_first;
    if (t->kind == NI_BLAME_COLL) {
      if (t->overlapped)
        x->overlapped++;
      else
        x->in_line++;
      x->ops = t->ops;
    }
    if (t->kind == NI_BLAME_SEND)
      count_sends(o, i, b->s->comm[t->comm].n_ranks, x);
  }
}

/* Is there a communicator, but for one of all ranks, that both are in? */
static bool share_communicator(const struct ni_blame *b, const struct shape *x, uint32_t comm) {
  const struct ni_blame_rank *o = &b->rank[x->rank[0]], *p = &b->rank[x->rank[1]];
  for (uint32_t i = 0; i < o->n_slots; i++)
    for (uint32_t k = 0, c = o->slot[i].comm; k < p->n_slots; k++)
      if (c == p->slot[k].comm && c != comm && b->s->comm[c].role != NI_ROLE_WORLD)
        return true;
  return o->n_slots == NI_BLAME_SLOTS;
}

static enum ni_role tell_by_messages(const struct ni_blame *b, const struct shape *x, uint32_t comm) {
  const bool has_collectives = x->overlapped + x->in_line;
  if (!is_most(x->senders, x->n))
    return NI_ROLE_NONE;
  if (is_most(x->to_many, x->senders))
    return x->n >= EXPERT_RANKS_MIN ? NI_ROLE_EP : NI_ROLE_NONE;
  const bool is_line = x->to_neighbours == x->senders && x->up && x->down;
  if (!is_line || has_collectives)
    return NI_ROLE_NONE;
  return x->n > 2 || !share_communicator(b, x, comm) ? NI_ROLE_PP : NI_ROLE_NONE;
}

/* All its ranks do collectives in it, and nothing else. */
static bool has_only_collectives(const struct ni_comm_row *c, const struct shape *x) {
  return !x->senders && !x->to_all && x->n == (uint32_t)c->n_ranks;
}

static bool can_have_role(const struct ni_comm_row *c, const struct shape *x, enum ni_role role) {
  return c->role == role || (c->role == NI_ROLE_NONE && !x->stated);
}

static bool can_be_tensor_parallel(const struct ni_blame *b, const struct ni_comm_row *c,
                                   const struct shape *x) {
  return can_have_role(c, x, NI_ROLE_TP) && measure_stride(b, x) == 1 && c->one_host >= 0;
}

static bool can_be_data_parallel(const struct ni_blame *b, const struct ni_comm_row *c,
                                 const struct shape *x) {
  return can_have_role(c, x, NI_ROLE_DP) && measure_stride(b, x) > 1;
}

/* Of a rank's communicators the only one that can be tp, and the only one that can be dp. */
struct candidates {
  const struct shape *tp, *dp; /* NULL: none */
  uint32_t n_tp, n_dp;
};

static struct candidates find_candidates(const struct ni_blame *b, const struct shape *shape,
                                         const struct ni_blame_rank *o) {
  struct candidates found = {0};
  for (uint32_t i = 0; i < o->n_slots; i++) {
    const struct ni_comm_row *c = &b->s->comm[o->slot[i].comm];
    const struct shape *x = &shape[o->slot[i].comm];
    if (o->slot[i].kind != NI_BLAME_COLL || !has_only_collectives(c, x))
      continue;
    if (can_be_tensor_parallel(b, c, x)) {
      found.tp = x;
      found.n_tp++;
    }
    if (can_be_data_parallel(b, c, x)) {
      found.dp = x;
      found.n_dp++;
    }
  }
  return found;
}

/* Without tensor parallelism: gradients between hosts, reduced while the ranks compute. */
static bool is_far_data_parallel(const struct ni_comm_row *c, const struct shape *dp) {
  return dp->overlapped >= FAR_OVERLAPPED * dp->in_line && c->one_host < 0;
}

/* Each rank of one tensor-parallel group has its replicas at the same place of the other groups. */
static bool is_across_groups(const struct ni_blame *b, const struct shape *tp, const struct shape *dp) {
  return measure_stride(b, dp) % tp->n == 0;
}

/* A layer has several collectives of its activations, and one of its gradients at most. */
static bool has_activations_of(const struct shape *tp, const struct shape *dp) {
  const bool is_waited_for = tp->overlapped * IN_LINE_MIN <= tp->in_line;
  const bool may_be_gradients = !is_waited_for && tp->scattered;
  return tp->ops >= (may_be_gradients ? OPS_MIN_OVERLAPPED : OPS_MIN) * dp->ops;
}

/*
 * Each gradient is scattered within a host, then reduced between hosts: both are data parallelism. Not
 * finite, so false: nothing is scattered.
 */
static bool is_sharded_data_parallel(const struct shape *tp, const struct shape *dp) {
  const double reduced = (double)dp->reduced / dp->n * tp->n / (double)tp->scattered;
  return reduced >= SHARDED_LEAST && reduced <= SHARDED_MOST;
}

static enum ni_role tell_by_collectives(const struct ni_blame *b, const struct shape *shape, uint32_t comm) {
  const struct shape *x = &shape[comm];
  const struct candidates found = find_candidates(b, shape, &b->rank[x->rank[0]]);
  const struct shape *tp = found.tp, *dp = found.dp;
  if (found.n_dp != 1 || found.n_tp > 1)
    return NI_ROLE_NONE;
  if (!tp)
    return dp == x && is_far_data_parallel(&b->s->comm[comm], dp) ? NI_ROLE_DP : NI_ROLE_NONE;
  if (!is_across_groups(b, tp, dp) || !has_activations_of(tp, dp))
    return NI_ROLE_NONE;
  if (dp == x)
    return NI_ROLE_DP;
  return tp == x && !is_sharded_data_parallel(tp, dp) ? NI_ROLE_TP : NI_ROLE_NONE;
}

/* What the map, the name, its size or AlltoAll say of it. */
static void tell_at_once(const struct ni_blame *b, struct ni_comm_row *c, struct shape *x, int64_t world) {
  x->stated = has_stated_role(&b->r->roles, c, &c->role);
  if (x->stated)
    return;
  if (c->n_ranks == world && world > 1)
    c->role = NI_ROLE_WORLD;
  else
    c->role = x->to_all ? NI_ROLE_EP : NI_ROLE_NONE;
}

static int64_t count_world(const struct ni_summary *s) {
  int64_t ranks = 0;
  if (s->n_processes && s->job.world_size > 0)
    return s->job.world_size;
  for (size_t i = 0; i < s->n_processes; i++)
    ranks += s->process[i].ranks;
  return ranks;
}

static bool is_judged_alone(const struct ni_blame *b, uint32_t rank) {
  return b->rank[rank].judged && b->s->process[rank].ranks == 1;
}

int ni_roles_tell(const struct ni_blame *b) {
  struct ni_summary *s = b->s;
  struct shape *shape = calloc(s->n_comms + 1, sizeof *shape);
  const uint32_t n_ranks = b->rank ? b->n_ranks : 0;
  if (!shape)
    return -ENOMEM;
  count_cell_records(b, shape);
  for (uint32_t rank = 0; rank < n_ranks; rank++)
    if (is_judged_alone(b, rank))
      count_slots(b, rank, shape);
  for (uint32_t rank = 0; rank < n_ranks; rank++)
    if (is_judged_alone(b, rank))
      check_stride(b, rank, shape);
  const int64_t world = count_world(s);
  for (uint32_t i = 0; i < s->n_comms; i++)
    tell_at_once(b, &s->comm[i], &shape[i], world);
  for (uint32_t i = 0; i < s->n_comms; i++) {
    const struct shape *x = &shape[i];
    const bool is_whole = x->n >= 2 && x->n == (uint32_t)s->comm[i].n_ranks;
    if (s->comm[i].role || x->stated || !is_whole)
      continue;
    s->comm[i].role = x->senders ? tell_by_messages(b, x, i) : tell_by_collectives(b, shape, i);
  }
  free(shape);
  return 0;
}
