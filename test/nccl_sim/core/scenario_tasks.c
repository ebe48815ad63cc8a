/* The operations that a scenario line describes; see scenario_parser.h. */
#include "scenario_parser.h"

#include <string.h>

#include "core.h"
#include "settings.h"

const char *const ni_held_names[NI_HELD_COUNT] = {"no", "queued", "started"};
const char *const ni_stamps_names[NI_STAMPS_COUNT] = {"good", "zero", "backward", "stale", "future", "long"};

struct ni_step *ni_scn_add_step(struct ni_parser_state *p, enum ni_verb verb) {
  struct ni_step *st = NI_ADD(p->scn->steps, p->scn->n_steps);
  *st = (struct ni_step){.verb = verb,
                         .line = p->line,
                         .comm = -1,
                         .times = 1,
                         .skip_rank = -1,
                         .only_rank = -1,
                         .pair_from = -1,
                         .pair_to = -1,
                         .graph = -1,
                         .who = -1,
                         .with = -1};
  return st;
}

static struct ni_task *add_task(struct ni_step *st) {
  struct ni_plan *plan = &st->plans[0];
  struct ni_task *t = NI_ADD(plan->tasks, plan->n_tasks);
  *t = (struct ni_task){.peer = -1,
                        .only_rank = -1,
                        .late_ch = -1,
                        .missing_ch = -1,
                        .hang_rank = -1,
                        .lost_rank = -1,
                        .warps = 16,
                        .announced = -1};
  return t;
}

/* Names of symmetric kernels (NCCL 2.31.2, include/sym_kernels.h); more come with releases. */
static const char *const variants[] = {"AllReduce_AGxLL_R",
                                       "AllReduce_AGxLLMC_R",
                                       "AllReduce_RSxTmaLD_AGxTmaST",
                                       "AllReduce_RSxLD_AGxST",
                                       "AllReduce_RSxLDMC_AGxSTMC",
                                       "AllGather_LL",
                                       "AllGather_LLMC",
                                       "AllGather_TmaST",
                                       "AllGather_ST",
                                       "AllGather_TmaSTMC",
                                       "AllGather_STMC",
                                       "AllGather_RailRing_LsaSTMC",
                                       "ReduceScatter_LL",
                                       "ReduceScatter_TmaLD",
                                       "ReduceScatter_LD",
                                       "ReduceScatter_LDMC",
                                       "ReduceScatter_RailA2A_LsaLD",
                                       "ReduceScatter_RailA2A_LsaLDMC"};

static void read_symmetric(struct ni_parser_state *p, struct ni_task *t) {
  const char *name = ni_arg_text(p, "variant", NULL);
  t->symmetric = ni_arg_num(p, "symmetric", name != NULL, 0, 1) != 0;
  t->unprofiled = ni_arg_num(p, "profiled", 1, 0, 1) == 0;
  t->behind_replay = ni_arg_num(p, "behind_replay", 0, 0, 1) != 0;
  if (!t->symmetric)
    return;
  bool small = ni_task_bytes(t) < 65536;
  if (!name)
    name = t->func == NI_FUNC_ALLREDUCE ? small ? "AllReduce_AGxLL_R" : "AllReduce_RSxLD_AGxST"
        : t->func == NI_FUNC_ALLGATHER  ? small ? "AllGather_LL" : "AllGather_ST"
        : small                         ? "ReduceScatter_LL"
                                        : "ReduceScatter_LD";
  int k = ni_pick(name, variants, (int)(sizeof variants / sizeof *variants));
  size_t n = t->func_name ? strlen(t->func_name) : 0;
  if (k < 0)
    ni_bad(p, "variant=%s: not a symmetric kernel of NCCL 2.31", name);
  if (!n || strncmp(variants[k], t->func_name, n) != 0 || variants[k][n] != '_')
    ni_bad(p, "symmetric=1: AllReduce, AllGather and ReduceScatter have such kernels, each its own");
  t->variant = variants[k];
  t->algo = t->variant + n + 1;
  t->proto = "";
  t->ch0 = 0;
}

int ni_ras_mask(const char *text) {
  static const char *const names[] = {"group",     "coll",         "p2p",       "proxyop",  "proxystep",
                                      "proxyctrl", "kernelch",     "netplugin", "groupapi", "collapi",
                                      "p2papi",    "kernellaunch", "cecoll",    "cesync",   "cebatch"};
  int mask = 0;
  char copy[256], *end, *save = NULL;
  if (strcmp(text, "none") == 0)
    return 0;
  if (strcmp(text, "all") == 0)
    return NI_EV_ALL & ~NI_EV_KERNEL_PHASE;
  long number = strtol(text, &end, 0);
  if (end != text && !*end)
    return (int)number;
  snprintf(copy, sizeof copy, "%s", text);
  for (char *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
    int k = ni_pick(w, names, (int)(sizeof names / sizeof *names));
    if (k < 0)
      return -1;
    mask |= 1 << k;
  }
  return mask;
}

static void read_task(struct ni_parser_state *p, const struct ni_comm_decl *c, struct ni_task *t) {
  static const char *const types[] = {"ncclInt8",     "ncclInt32",      "ncclUint32",     "ncclInt64",
                                      "ncclUint64",   "ncclFloat16",    "ncclFloat32",    "ncclFloat64",
                                      "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2", "Unknown"};
  static const char *const algos[] = {"TREE",      "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",
                                      "NVLS_TREE", "PAT"};
  static const char *const protos[] = {"LL", "LL128", "SIMPLE"};
  const char *dtype = ni_arg_text(p, "dtype", "ncclFloat32");
  if (strcmp(dtype, "ncclUint8") == 0)
    dtype = "Unknown"; /* NCCL's own table has no case for it */
  int d = ni_pick(dtype, types, (int)(sizeof types / sizeof *types));
  if (d < 0)
    ni_bad(p, "dtype=%s: not a name NCCL prints", dtype);
  t->dtype = types[d];
  t->elem = ni_datatype_bytes(types[d]);
  double bytes = ni_arg_num(p, "bytes", 1048576, 0, 1e15);
  double count = ni_arg_num(p, "count", -1, 0, 1e15);
  t->count = count >= 0 ? (uint64_t)count : (uint64_t)bytes / t->elem;
  const char *algo = ni_arg_text(p, "algo", NULL), *proto = ni_arg_text(p, "proto", NULL);
  if (algo) {
    int a = ni_pick(algo, algos, 7);
    if (a < 0)
      ni_bad(p, "algo=%s: accepted are TREE RING COLLNET_DIRECT COLLNET_CHAIN NVLS NVLS_TREE PAT", algo);
    t->algo = algos[a];
  }
  if (proto) {
    int a = ni_pick(proto, protos, 3);
    if (a < 0)
      ni_bad(p, "proto=%s: accepted are LL LL128 SIMPLE", proto);
    t->proto = protos[a];
  }
  t->n_ch = (uint16_t)ni_arg_num(p, "channels", 0, 1, NI_SIM_CHANNELS);
  t->ch0 = (uint16_t)ni_arg_num(p, "first", 0, 0, NI_SIM_CHANNELS - 1);
  if (t->ch0 + t->n_ch > NI_SIM_CHANNELS)
    ni_bad(p, "first + channels must not exceed 256, or 64 of NCCL");
  t->root = (int)ni_arg_num(p, "root", 0, 0, c->n_ranks - 1);
  const char *late = ni_arg_text(p, "late", NULL);
  if (late) {
    int ch;
    unsigned ms;
    if (sscanf(late, "%d:%u", &ch, &ms) != 2 || ch < 0 || ch >= NI_SIM_CHANNELS || ms > 600000)
      ni_bad(p, "late=%s: accepted is CHANNEL:MILLISECONDS", late);
    t->late_ch = ch;
    t->late_ms = ms;
  }
  t->missing_ch = (int)ni_arg_num(p, "missing", -1, 0, NI_SIM_CHANNELS - 1);
  const char *hang = ni_arg_text(p, "hang", NULL);
  if (hang)
    t->hang_rank = strcmp(hang, "all") == 0 ? -2 : (int)ni_arg_num(p, "hang", -1, 0, c->n_ranks - 1);
  t->lost_rank = (int)ni_arg_num(p, "lost", -1, 0, c->n_ranks - 1);
  if (t->lost_rank >= 0)
    t->hang_rank = -2;
  const char *stamps = ni_arg_text(p, "stamps", "good");
  int k = ni_pick(stamps, ni_stamps_names, NI_STAMPS_COUNT);
  if (k < 0)
    ni_bad(p, "stamps=%s: accepted are good zero backward stale future long", stamps);
  t->stamps = (enum ni_stamps)k;
  t->pxn = (int)ni_arg_num(p, "pxn", 0, 0, 2);
  const char *tag = ni_arg_text(p, "tag", NULL), *held = ni_arg_text(p, "thrown", "no");
  if (tag) {
    char *end;
    t->tag = strtoull(tag, &end, 0); /* 64 bits: a double would not hold them */
    if (end == tag || *end)
      ni_bad(p, "tag=%s: accepted is a whole number of 64 bits", tag);
  }
  k = ni_pick(held, ni_held_names, NI_HELD_COUNT);
  if (k < 0)
    ni_bad(p, "thrown=%s: accepted are no queued started", held);
  t->held = (enum ni_held)k;
  t->announced = (int)ni_arg_num(p, "announced", -1, 0, 255);
  t->config = ni_arg_num(p, "config", 0, 0, 1) != 0;
  read_symmetric(p, t);
}

static struct ni_step *work_step(struct ni_parser_state *p, int comm) {
  struct ni_step *st = p->block;
  if (st) {
    if (st->comm != comm)
      ni_bad(p, "a group here has one communicator: `%s`", p->scn->comms[st->comm].name);
    return st;
  }
  st = ni_scn_add_step(p, NI_DO_WORK);
  st->comm = comm;
  st->plans = ni_xalloc(sizeof *st->plans);
  st->n_plans = 1;
  return st;
}

void ni_scn_step_keys(struct ni_parser_state *p, struct ni_step *st) {
  if (p->block)
    return;
  st->times = (uint64_t)ni_arg_num(p, "repeat", 1, 0, 1e12);
  st->queue_ms = (uint32_t)ni_arg_num(p, "queue_ms", 0, 0, 3600000);
  st->skip_rank = (int)ni_arg_num(p, "skip", -1, 0, p->scn->comms[st->comm].n_ranks - 1);
  st->only_rank = (int)ni_arg_num(p, "only", -1, 0, p->scn->comms[st->comm].n_ranks - 1);
  const char *with = ni_arg_text(p, "with", NULL);
  if (with)
    st->with = ni_arg_find_comm(p, with);
  st->nonblocking_ms = (uint32_t)ni_arg_num(p, "nonblocking", 0, 0, 60000);
}

void ni_scn_coll(struct ni_parser_state *p) {
  int comm = ni_arg_comm(p);
  struct ni_comm_decl *c = &p->scn->comms[comm];
  struct ni_step *st = work_step(p, comm);
  ni_scn_step_keys(p, st);
  struct ni_task *t = add_task(st);
  const char *func = ni_arg_text(p, "func", "AllReduce");
  t->func = ni_func_from_name(func);
  if (t->func < NI_FUNC_ALLREDUCE || t->func > NI_FUNC_REDUCE)
    ni_bad(p, "func=%s: accepted are AllReduce AllGather ReduceScatter Broadcast Reduce", func);
  t->func_name = ni_func_table[t->func].name;
  read_task(p, c, t);
  ni_model_defaults(p->scn, c, t);
  int parts = (int)ni_arg_num(p, "parts", 1, 1, 2);
  if (parts == 1)
    return;
  struct ni_task part = *t;
  part.second_part = true;
  *add_task(st) = part;
}

static void add_p2p(struct ni_parser_state *p, struct ni_step *st, int kind, int shift, int first) {
  struct ni_comm_decl *c = &p->scn->comms[st->comm];
  struct ni_task *t = add_task(st);
  t->kind = kind;
  t->func = kind == NI_TASK_SEND ? NI_FUNC_SEND : NI_FUNC_RECV;
  t->func_name = ni_func_table[t->func].name;
  read_task(p, c, t);
  t->shift = shift;
  ni_model_defaults(p->scn, c, t);
  t->ch0 = (uint8_t)((first + t->ch0) % 64);
  if (t->ch0 + t->n_ch > NI_SIM_CHANNELS)
    t->ch0 = 0;
}

/* A Send and its Recv, between two ranks. */
static void add_ends(struct ni_parser_state *p, struct ni_step *st, int from, int to) {
  add_p2p(p, st, NI_TASK_SEND, 0, 0);
  struct ni_task *t = st->plans[0].tasks;
  t[st->plans[0].n_tasks - 1].peer = to;
  t[st->plans[0].n_tasks - 1].only_rank = from;
  add_p2p(p, st, NI_TASK_RECV, 0, 0);
  t = st->plans[0].tasks + st->plans[0].n_tasks - 1;
  t->peer = from;
  t->only_rank = to;
  t->paired = true;
}

void ni_scn_p2p(struct ni_parser_state *p) {
  int comm = ni_arg_comm(p);
  int n = p->scn->comms[comm].n_ranks;
  struct ni_step *st = work_step(p, comm);
  ni_scn_step_keys(p, st);
  int from = (int)ni_arg_num(p, "from", 0, 0, n - 1), to = (int)ni_arg_num(p, "to", n - 1, 0, n - 1);
  add_ends(p, st, from, to);
  if (!p->block) {
    st->pair_from = from;
    st->pair_to = to;
  }
}

void ni_scn_rooted(struct ni_parser_state *p, bool gather) {
  int comm = ni_arg_comm(p);
  int n = p->scn->comms[comm].n_ranks;
  struct ni_step *st = work_step(p, comm);
  ni_scn_step_keys(p, st);
  int root = (int)ni_arg_num(p, "root", 0, 0, n - 1);
  for (int k = 0; k < n; k++)
    add_ends(p, st, gather ? k : root, gather ? root : k);
  if (!p->block)
    st->user_group = true;
}

void ni_scn_shifts(struct ni_parser_state *p, int from, int to) {
  int comm = ni_arg_comm(p);
  struct ni_step *st = work_step(p, comm);
  ni_scn_step_keys(p, st);
  int n_ch = (int)ni_arg_num(p, "channels", 2, 1, 64), rounds = 32 / n_ch ? 32 / n_ch : 1;
  for (int k = from; k < to; k++) {
    int first = (k % rounds) * n_ch;
    add_p2p(p, st, NI_TASK_SEND, k, first);
    add_p2p(p, st, NI_TASK_RECV, k, first);
    st->plans[0].tasks[st->plans[0].n_tasks - 1].paired = true;
  }
  if (!p->block)
    st->user_group = true;
}

void ni_scn_ce(struct ni_parser_state *p) {
  int comm = ni_arg_comm(p);
  struct ni_step *st = work_step(p, comm);
  st->verb = NI_DO_CE;
  ni_scn_step_keys(p, st);
  st->ce_batches = (int)ni_arg_num(p, "batches", 1, 0, 1000);
  st->captured = ni_arg_num(p, "captured", 0, 0, 1) != 0;
  st->ce_syncs = (int)ni_arg_num(p, "syncs", 2, 0, 1000);
  struct ni_task *t = add_task(st);
  const char *func = ni_arg_text(p, "func", "AllGather");
  t->func = ni_func_from_name(func);
  if (t->func != NI_FUNC_ALLGATHER && t->func < NI_FUNC_ALLTOALL)
    ni_bad(p, "func=%s: the copy engine has AllGather AlltoAll Scatter Gather", func);
  t->func_name = ni_func_table[t->func].name;
  read_task(p, &p->scn->comms[comm], t);
  ni_model_defaults(p->scn, &p->scn->comms[comm], t);
}
