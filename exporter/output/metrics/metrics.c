#include "metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/text/safe_text.h"

#define LINE_OF(line) LINE_CAT(line)
#define LINE_CAT(line) F_OF_LINE_##line
enum {
#define FAMILY(id, ...) F_##id,
#define THEIRS(id, ...) F_##id,
#define GPU(counter, ...) F_GPU_##counter,
#define OWN(...) LINE_OF(__LINE__),
#include "metrics_families.def"
  FAMILIES,
  LABELS_MAX = 9 /* beside node */
};
enum part { NOBODYS, OF_ni_agent_self, OF_ni_live, OF_ni_live_looked, OF_ni_live_func, OF_ni_live_member };

/* What is to be told is collected before it is written: series by family, equal labels once. */
struct metrics_build {
  const struct ni_metrics_in *in;
  struct family_series {
    uint32_t family, next; /* next: of the family, + 1; 0: none */
    uint64_t v, *bucket;   /* bucket: of a histogram, whose count is v */
    double sum;
    const char *label[LABELS_MAX];
  } *series; /* room for NI_METRICS_SERIES_MAX */
  uint32_t n, first[FAMILIES], last[FAMILIES];
  uint64_t told, left_out;
  struct ni_index index;
  char **text;
  size_t n_texts, cap_texts;
  bool failed; /* without memory */
};

/*
 * A type, and how equal labels count: COUNTER, HISTOGRAM, AMOUNT add up; of LEAST the smallest, of others the
 * largest.
 */
enum {
  COUNTER = NI_METRICS_COUNTER,
  GAUGE,
  HISTOGRAM,
  INFO,
  MOST = COUNTER | 8,
  AMOUNT = GAUGE | 8,
  LEAST = GAUGE | 16
};
static const struct family_row {
  struct ni_family told;
  unsigned type;
  double per;
  const char *label[LABELS_MAX + 1]; /* NULL behind the last */
  const char *gpu;                   /* which counter of a GPU it is */
  uint64_t times;
  enum part part; /* whose field it is */
  size_t at;
} rows[FAMILIES] = {
#define LABELS(...) {__VA_ARGS__}
#define ROW(name, unit, type, per, labels, help, ...) \
  {{name, unit, help, (type) & 7}, type, per, LABELS labels, __VA_ARGS__},
#define FAMILY(id, name, unit, type, per, by, help) \
  ROW("nccl_inspector_" name, unit, type, per, by, help, NULL, 0, 0, 0)
#define THEIRS(id, name, labels, help) ROW(name, "", GAUGE, 0, labels, help, NULL, 0, 0, 0)
#define GPU(counter, times, name, unit, type, per, help) \
  ROW("nccl_inspector_" name, unit, type, per, ("gpu"), help, #counter, times, 0, 0)
#define OWN(part, field, name, unit, type, per, labels, help) \
  ROW("nccl_inspector_" name, unit, type, per, labels, help, NULL, 0, OF_##part, offsetof(struct part, field))
#include "metrics_families.def"
};

/* A copy that stays until the telling is over: of n bytes at most, safe to print. "" without memory. */
static const char *copy_text(struct metrics_build *o, const char *text, size_t n) {
  char *safe = ni_array_room(o->text, o->n_texts, o->cap_texts) ? malloc(n + 1) : NULL;
  if (safe)
    o->text[o->n_texts++] = safe;
  else
    o->failed = true;
  return safe ? ni_safe_text(text, safe, n + 1) : "";
}

static const char *format_number(struct metrics_build *o, int64_t number) {
  char text[24];
  return copy_text(o, text, (size_t)snprintf(text, sizeof text, "%" PRId64, number));
}

static size_t count_edges(unsigned family) {
  return family == F_TOOK ? NI_LIVE_TOOK : family == F_BUS ? NI_LIVE_BUS : 0;
}

static bool is_same_series(const struct family_series *s, unsigned family, const char *const *label) {
  for (size_t i = 0; s->family == family && rows[family].label[i]; i++)
    if (strcmp(s->label[i], label[i]) != 0)
      return false;
  return s->family == family;
}

/*
 * One more series, or where its labels are told already, more of it: v is added, or the larger one stays.
 * label: as many as the family has beside node, which stay. NULL: it has no place any more, which is counted,
 * or no memory.
 */
static struct family_series *add_series(struct metrics_build *o, unsigned family, uint64_t v,
                                        const char *const *label) {
  const struct family_row *row = &rows[family];
  size_t n = 0, edges = count_edges(family), cost = edges ? edges + 3 : 1;
  uint64_t hash = ni_hash(0, family);
  uint32_t k;
  while (row->label[n])
    hash = ni_hash_text(hash, label[n++]);
  for (size_t at = 0; (k = ni_index_next(&o->index, hash, &at)) != NI_INDEX_NONE;) {
    struct family_series *s = &o->series[k];
    if (!is_same_series(s, family, label))
      continue;
    if (row->type == COUNTER || row->type == HISTOGRAM || row->type == AMOUNT)
      s->v += v;
    else if (row->type == LEAST ? v < s->v : row->type == MOST ? v > s->v : (int64_t)v > (int64_t)s->v)
      s->v = v;
    return s;
  }
  bool room = o->told + cost <= NI_METRICS_SERIES_MAX;
  uint64_t *bucket = room && edges ? calloc(edges + 1, sizeof *bucket) : NULL;
  if (!room)
    o->left_out += cost;
  else if ((edges && !bucket) || ni_index_add(&o->index, hash, o->n) < 0)
    o->failed = true;
  if (!room || o->failed) {
    free(bucket);
    return NULL;
  }
  struct family_series *s = &o->series[o->n++];
  *s = (struct family_series){.family = family, .v = v, .bucket = bucket};
  for (size_t i = 0; i < n; i++)
    s->label[i] = label[i];
  *(o->first[family] ? &o->series[o->last[family] - 1].next : &o->first[family]) = o->n;
  o->last[family] = o->n;
  o->told += cost;
  return s;
}

#define TELL(o, id, v, ...) ((void)add_series(o, F_##id, v, (const char *const[LABELS_MAX]){__VA_ARGS__}))

/* All that the table has of a struct that lies at `of`; of ranks nothing that is 0. */
static void add_series_of_part(struct metrics_build *o, enum part part, const void *of,
                               const char *const *label) {
  for (unsigned f = 0; f < FAMILIES; f++) {
    uint64_t v = 0;
    if (rows[f].part == part)
      memcpy(&v, (const char *)of + rows[f].at, sizeof v);
    if (rows[f].part == part && (v || part < OF_ni_live_func))
      add_series(o, f, v, label);
  }
}

/* Has a GPU's counter a family of its own? Then it is told there, if it is to be told now. */
static bool add_own_gpu_series(struct metrics_build *o, const struct ni_running_value *v, const char *gpu,
                               bool now) {
  unsigned f = 0;
  while (f < FAMILIES && !(rows[f].gpu && strcmp(rows[f].gpu, v->name) == 0))
    f++;
  if (f < FAMILIES && now)
    add_series(o, f, v->total * rows[f].times, &gpu);
  return f < FAMILIES;
}

enum { JOB, ATTEMPT, USER, RANK, GPU, COMM, MORE, LABELS };

/*
 * The labels of a rank, but for USER. Its GPU is the one that NVML has at that address, else as the process
 * counts them.
 */
static void fill_labels(struct metrics_build *o, const struct ni_live_who *who, const char **label) {
  const struct ni_running *r = o->in->running;
  label[JOB] = who->job;
  label[ATTEMPT] = who->attempt;
  label[COMM] = who->comm;
  label[GPU] = NULL;
  label[RANK] = who->rank < 0 ? "" : format_number(o, who->rank);
  for (size_t i = 0; r && i < r->n && *who->gpu_pci && !label[GPU]; i++) {
    const struct ni_running_value *v = &r->value[i];
    bool here = v->source == NI_METRIC_GPU && strcmp(v->pci, who->gpu_pci) == 0;
    if (here && strncmp(v->entity, "gpu", 3) == 0)
      label[GPU] = v->entity + 3;
  }
  if (!label[GPU])
    label[GPU] = who->gpu < 0 ? "" : format_number(o, who->gpu);
}

static void add_open_series(struct metrics_build *o, const struct ni_live_open *p,
                            const struct ni_live_job *j, const char *user) {
  const char *label[LABELS];
  fill_labels(o, &p->who, label);
  label[JOB] = j->job;
  label[ATTEMPT] = j->attempt;
  label[USER] = user;
  label[COMM] = copy_text(o, p->who.comm, sizeof p->who.comm);
  add_series(o, F_IN_FLIGHT, p->in_flight, label);
  add_series(o, F_OLDEST, *p->func && o->in->unix_ns > p->since_ns ? o->in->unix_ns - p->since_ns : 0, label);
  add_series(o, F_STUCK, p->stuck, label);
}

static void add_job_series(struct metrics_build *o, const struct ni_live_job *j, const char *user) {
  bool said = *j->hang.job;
  /* Of logs alone nobody knows what is in flight: a 0 would read as "no hang". */
  if (!j->looked && !said) {
    TELL(o, LOGS_ONLY, 1, j->job, j->attempt, user);
    return;
  }
  TELL(o, PROCESSES, j->alive, j->job, j->attempt, user);
  TELL(o, HANG, j->stuck && !said, j->job, j->attempt, user, "stuck");
  TELL(o, HANG, said && !j->hang.certain, j->job, j->attempt, user, "likely");
  TELL(o, HANG, said && j->hang.certain, j->job, j->attempt, user, "certain");
}

static void add_member_series(struct metrics_build *o, const struct ni_live_member *m, const char **label) {
  fill_labels(o, &m->who, label);
  add_series_of_part(o, OF_ni_live_member, m, label);
  label[MORE] = "incomplete";
  if (m->incomplete)
    add_series(o, F_LOST, m->incomplete, label);
  for (size_t i = 0; i < NI_DROP_COUNT; i++)
    if (label[MORE] = ni_drop_names[i], m->dropped[i])
      add_series(o, F_LOST, m->dropped[i], label);
  for (size_t i = 0; i < NI_FILTER_COUNT; i++)
    if (label[MORE] = ni_filter_names[i], m->filtered[i])
      add_series(o, F_FILTERED, m->filtered[i], label);
}

static void add_class_series(struct metrics_build *o, const struct ni_live_class *c,
                             const struct ni_live_job *j, const char *user) {
  const char *label[] = {j->job, j->attempt, user, c->func, ni_live_size_name[c->size_class]};
  struct family_series *s = c->timed ? add_series(o, F_TOOK, c->timed, label) : NULL;
  if (s)
    s->sum += (double)c->ns / 1e9;
  for (size_t i = 0; s && i <= NI_LIVE_TOOK; i++)
    s->bucket[i] += c->took[i];
  s = c->bus_n ? add_series(o, F_BUS, c->bus_n, label) : NULL;
  if (s)
    s->sum += c->bus_sum;
  for (size_t i = 0; s && i <= NI_LIVE_BUS; i++)
    s->bucket[i] += c->bus[i];
}

static void add_mean_series(struct metrics_build *o, unsigned family, double mean, const char *const *label) {
  uint64_t bits;
  memcpy(&bits, &mean, sizeof bits);
  if (isfinite(mean))
    add_series(o, family, bits, label);
}

/* Adds the series that NVIDIA's exporter has in 2.30. Of sizes we know the power of two alone. */
static void add_nvidia_series(struct metrics_build *o, const struct ni_live_nvidia *n) {
  static const char *const unit[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
  char gpu[16], size[48];
  const char *who[LABELS];
  unsigned from = 1u << n->size_log2 % 10;
  fill_labels(o, &n->who, who);
  snprintf(gpu, sizeof gpu, "GPU%s", who[GPU]);
  snprintf(size, sizeof size, "%u-%u%s", from, from + 1, unit[n->size_log2 / 10 % 7]);
  const char *label[] = {"v5.1",
                         who[JOB],
                         copy_text(o, gpu, sizeof gpu),
                         who[COMM],
                         format_number(o, n->nnodes),
                         format_number(o, n->n_ranks),
                         n->func,
                         copy_text(o, size, sizeof size),
                         n->algo_proto};
  add_mean_series(o, n->p2p ? F_NVIDIA_P2P_BUS : F_NVIDIA_BUS,
                  n->bus_n ? exp(n->log_bus_gbs / (double)n->bus_n) : NAN, label);
  add_mean_series(o, n->p2p ? F_NVIDIA_P2P_TOOK : F_NVIDIA_TOOK, n->n ? n->us / (double)n->n : NAN, label);
}

/* What is told of users' jobs, in the order of the series of one user. */
enum what { A_JOB, A_PROCESS, AN_OPEN, A_MEMBER, A_FUNC, A_CLASS };
struct pieces {
  struct told_piece {
    const void *of;
    const struct ni_live_job *job;
    uint64_t turn; /* how many series its user has before it, at most; its number */
    enum what what;
  } *piece;
  size_t n, cap;
  uint64_t told[NI_LIVE_JOBS_MAX]; /* of a user, at his first job */
};

static void append_piece(struct metrics_build *o, struct pieces *p, enum what what,
                         const struct ni_live_job *job, const void *of) {
  static const uint8_t most[] = {
      4, 1, 3, 3 + NI_DROP_COUNT + NI_FILTER_COUNT, 7, NI_LIVE_TOOK + NI_LIVE_BUS + 2 * 4};
  const struct ni_live_job *first = o->in->live->job;
  bool room = ni_array_room(p->piece, p->n, p->cap);
  o->failed |= !room;
  if (!room || !job)
    return;
  while (first->uid != job->uid)
    first++;
  uint64_t *told = &p->told[first - o->in->live->job];
  p->piece[p->n] = (struct told_piece){of, job, *told << 32 | p->n, what};
  *told += most[what];
  p->n++;
}

static int compare_by_turn(const void *x, const void *y) {
  const struct told_piece *a = x, *b = y;
  return (a->turn > b->turn) - (a->turn < b->turn);
}

static void append_look_pieces(struct metrics_build *o, struct pieces *to, const struct ni_live_looked *k) {
  const struct ni_live *l = o->in->live;
  const struct ni_live_process *of = NULL;
  NI_EACH(const struct ni_live_process, p, k->process, k->n_processes)
  if (p->life != NI_LIFE_ENDED && !ni_live_replaced(k, p))
    append_piece(o, to, A_PROCESS, ni_live_job_of(l, p->job, p->attempt, k->uid), p);
  NI_EACH(const struct ni_live_open, p, k->open, k->n_open) {
    for (size_t i = 0; i < k->n_processes && !(of && of->pid == p->pid); i++)
      of = &k->process[i];
    if (of && of->pid == p->pid && ni_live_up(of, o->in->mono_ns)) /* of the dead nothing is in flight */
      append_piece(o, to, AN_OPEN, ni_live_job_of(l, p->who.job, p->who.attempt, k->uid), p);
  }
}

static void add_piece_series(struct metrics_build *o, const struct told_piece *p,
                             const char *(*label)[LABELS]) {
  const struct ni_live_process *process = p->of;
  const struct ni_live_func *f = p->of;
  size_t member =
      p->what == A_MEMBER ? (size_t)((const struct ni_live_member *)p->of - o->in->live->member) : 0;
  const char *rank = p->what == A_PROCESS && process->rank >= 0 ? format_number(o, process->rank) : "";
  const char *user = p->what == A_FUNC ? NULL : format_number(o, p->job->uid); /* the member's label has it */
  switch (p->what) {
    case A_JOB:
      add_job_series(o, p->job, user);
      return;
    case A_PROCESS:
      TELL(o, UP, ni_live_up(process, o->in->mono_ns), p->job->job, p->job->attempt, user, rank);
      return;
    case AN_OPEN:
      add_open_series(o, p->of, p->job, user);
      return;
    case A_MEMBER:
      label[member][USER] = user;
      add_member_series(o, p->of, label[member]);
      return;
    case A_FUNC:
      label[f->member][MORE] = f->func;
      add_series_of_part(o, OF_ni_live_func, f, label[f->member]);
      return;
    case A_CLASS:
      add_class_series(o, p->of, p->job, user);
      return;
  }
}

static void add_jobs_series(struct metrics_build *o) {
  const struct ni_live *l = o->in->live;
  /* by member, which comes before what it did */
  const char *(*label)[LABELS] = calloc(l->n_members + 1, sizeof *label);
  struct pieces all = {0};
  o->failed |= !label;
  for (size_t i = 0; i < l->n_jobs; i++)
    append_piece(o, &all, A_JOB, &l->job[i], &l->job[i]);
  for (size_t i = 0; i < l->n_looks; i++)
    append_look_pieces(o, &all, &l->look[i]);
  for (size_t i = 0; i < l->n_members; i++)
    append_piece(o, &all, A_MEMBER, &l->job[l->member[i].job], &l->member[i]);
  for (size_t i = 0; i < l->n_funcs; i++)
    append_piece(o, &all, A_FUNC, &l->job[l->member[l->func[i].member].job], &l->func[i]);
  for (size_t i = 0; i < l->n_classes; i++)
    append_piece(o, &all, A_CLASS, &l->job[l->class[i].job], &l->class[i]);
  if (all.n)
    qsort(all.piece, all.n, sizeof *all.piece, compare_by_turn);
  for (size_t i = 0; i < all.n && !o->failed; i++)
    add_piece_series(o, &all.piece[i], label);
  free(label);
  free(all.piece);
  for (size_t i = 0; i < l->n_nvidia_shown && o->in->nvidia; i++)
    add_nvidia_series(o, &l->nvidia_shown[i]);
}

/* In the order of importance. */
enum turn { GPUS, NICS, HOST, LESSER, TURNS };

static void add_gpu_series(struct metrics_build *o, const struct ni_running_value *v, enum turn turn) {
  const char *gpu = copy_text(o, v->entity + (strncmp(v->entity, "gpu", 3) == 0 ? 3 : 0), 64),
             *name = copy_text(o, v->name, 128);
  const char *comma = strstr(v->about, ", "), *uuid = comma ? comma + 2 : v->about;
  bool throttled = strncmp(name, "throttled_", 10) == 0, reasons = strcmp(name, "throttle_reasons") == 0;
  if (turn == GPUS)
    TELL(o, GPU_INFO, 1, gpu, copy_text(o, uuid, strcspn(uuid, ";")), copy_text(o, v->pci, 32));
  if (turn == GPUS && throttled)
    TELL(o, THROTTLED_SECONDS, v->total, gpu, name + 10);
  if (turn == GPUS && reasons) {
    TELL(o, THROTTLED, !!(v->total & 4), gpu, "power");
    TELL(o, THROTTLED, !!(v->total & 0x60), gpu, "thermal");
    TELL(o, THROTTLED, !!(v->total & 0x80), gpu, "brake");
    TELL(o, THROTTLED, (v->total & 0xe8) == 8, gpu, "hardware"); /* which of them it does not say */
  }
  if (throttled || reasons)
    return;
  if (!add_own_gpu_series(o, v, gpu, turn == GPUS) && turn == LESSER)
    add_series(o, v->what.kind == NI_METRIC_GAUGE ? F_GPU_LEVEL : F_GPU_OTHER, v->total,
               (const char *[]){gpu, name});
}

static void add_nic_series(struct metrics_build *o, const struct ni_running_value *v, enum turn turn) {
  const char *unified = ni_metric_unified(v->source, v->name), *nic = copy_text(o, v->entity, 64);
  unsigned family = unified ? F_NIC_UNIFIED : FAMILIES;
  if (unified && strcmp(unified, "rx_bytes") == 0)
    family = F_NIC_RECEIVE;
  else if (unified && strcmp(unified, "tx_bytes") == 0)
    family = F_NIC_TRANSMIT;
  if (turn == NICS && v->link_bytes_s > 0)
    TELL(o, NIC_LINK, (uint64_t)v->link_bytes_s, nic);
  if (turn == NICS && unified && v == &o->in->running->value[v->lead])
    add_series(o, family, v->alike, (const char *[]){nic, unified});
  if (turn == LESSER && family >= F_NIC_UNIFIED)
    add_series(o, v->what.kind == NI_METRIC_GAUGE ? F_NIC_LEVEL : F_NIC_OTHER, v->total,
               (const char *[]){nic, ni_source_name(v->source), copy_text(o, v->name, 128)});
}

static void add_host_series(struct metrics_build *o, const struct ni_running_value *v) {
  bool cpu = v->source == NI_METRIC_HOST && strncmp(v->name, "cpu_", 4) == 0;
  const char *name = copy_text(o, v->name + (cpu ? 4 : 0), 128);
  add_series(o,
             cpu                                   ? F_HOST_CPU
                 : v->what.kind == NI_METRIC_GAUGE ? F_HOST_LEVEL
                                                   : F_HOST_OTHER,
             v->total, &name);
}

static void add_sampled_series(struct metrics_build *o, const struct ni_running_value *v, enum turn turn) {
  bool gpu = v->source == NI_METRIC_GPU, host = v->source == NI_METRIC_HOST || v->source == NI_METRIC_TCP;
  if (gpu && (turn == GPUS || turn == LESSER))
    add_gpu_series(o, v, turn);
  else if (host && turn == HOST)
    add_host_series(o, v);
  else if (!gpu && !host && (turn == NICS || turn == LESSER))
    add_nic_series(o, v, turn);
}

/* Adds what the newest answer says. Once nobody answers it says nothing of now. */
static void add_ras_series(struct metrics_build *o, const struct ni_agent_ras *r) {
  if (!r->asked)
    return;
  TELL(o, RAS, r->answered, "answered");
  TELL(o, RAS, r->failed, "failed");
  if (!r->there)
    return;
  TELL(o, RAS_AGE, r->age_ns, NULL);
  TELL(o, RAS_COMMS, r->communicators, "sound");
  TELL(o, RAS_COMMS, r->odd, "odd");
  TELL(o, RAS_RANKS, r->ranks, "here");
  TELL(o, RAS_RANKS, r->absent, "not_a_member");
  TELL(o, RAS_RANKS, r->unresponsive, "unresponsive");
  TELL(o, RAS_RANKS, r->dead, "dead");
  TELL(o, RAS_BEHIND, r->behind, NULL);
  TELL(o, RAS_STILL, r->still_ns, NULL);
}

static void add_agent_series(struct metrics_build *o) {
  const struct ni_agent_self *self = o->in->self;
  const struct ni_live *l = o->in->live;
  add_series_of_part(o, OF_ni_agent_self, self, NULL);
  add_series_of_part(o, OF_ni_live, l, NULL);
  TELL(o, AGENT_INFO, 1, copy_text(o, self->version, 64));
  TELL(o, DEGRADED, self->degraded, NULL);
  TELL(o, OTLP, self->otlp_sent, "sent");
  TELL(o, OTLP, self->otlp_retried, "retried");
  TELL(o, OTLP, self->otlp_dropped, "dropped");
  if (self->head) {
    TELL(o, HEAD, self->head_connected, NULL);
    TELL(o, HEAD_SAMPLES, self->head_sent, "sent");
    TELL(o, HEAD_SAMPLES, self->head_acknowledged, "acknowledged");
    TELL(o, HEAD_SAMPLES, self->head_lost, "lost");
    TELL(o, HEAD_KEPT, self->head_kept, NULL);
    TELL(o, HEAD_SKEW, (uint64_t)self->head_skew_ns, NULL);
  }
  add_ras_series(o, &self->ras);
  TELL(o, SERIES, 0, NULL);
  TELL(o, LEFT_OUT, 0, NULL); /* known at the end */
  for (size_t i = 0; i < l->n_looks; i++) {
    const char *user = format_number(o, l->look[i].uid);
    add_series_of_part(o, OF_ni_live_looked, &l->look[i], &user);
    TELL(o, AGE, o->in->mono_ns > l->look[i].at_ns ? o->in->mono_ns - l->look[i].at_ns : 0, user);
  }
}

static void write_series(const struct family_series *s, const char *node, const struct ni_metrics_to *to) {
  const struct family_row *row = &rows[s->family];
  struct ni_label label[LABELS_MAX + 1] = {{"node", node}};
  struct ni_metrics_hist h = {.bucket = s->bucket, .n = count_edges(s->family), .sum = s->sum, .count = s->v};
  /* levels have a sign */
  double edge[NI_LIVE_TOOK], v = (row->type & 1 ? (double)(int64_t)s->v : (double)s->v) / row->per;
  size_t n = 1;
  for (; row->label[n - 1]; n++)
    label[n] = (struct ni_label){row->label[n - 1], s->label[n - 1]};
  if (row->per == 0)
    memcpy(&v, &s->v, sizeof v);
  for (size_t i = 0; i < h.n; i++)
    edge[i] = s->family == F_TOOK ? (double)ni_live_took_ns[i] / 1e9 : (double)ni_live_bus_bytes_s[i];
  h.edge = edge;
  if (h.n)
    to->hist(to->to, label, n, &h);
  else if (row->told.type == NI_METRICS_COUNTER && row->per == 1)
    to->whole(to->to, label, n, s->v);
  else
    to->value(to->to, label, n, v);
}

static void write_all(const struct metrics_build *o, const char *node, const struct ni_metrics_to *to) {
  for (unsigned f = 0; f < FAMILIES; f++) {
    if (o->first[f])
      to->family(to->to, &rows[f].told);
    for (uint32_t k = o->first[f]; k; k = o->series[k - 1].next)
      write_series(&o->series[k - 1], node, to);
  }
}

int ni_metrics_each(const struct ni_metrics_in *in, const struct ni_metrics_to *to) {
  struct metrics_build o = {.in = in, .series = calloc(NI_METRICS_SERIES_MAX, sizeof *o.series)};
  if (!o.series)
    return -ENOMEM;
  add_agent_series(&o);
  add_jobs_series(&o);
  for (enum turn turn = GPUS; in->running && turn < TURNS; turn++)
    for (size_t i = 0; i < in->running->n; i++)
      if (in->running->value[i].known)
        add_sampled_series(&o, &in->running->value[i], turn);
  TELL(&o, SERIES, o.told, NULL);
  TELL(&o, LEFT_OUT, o.left_out, NULL);
  const char *node = copy_text(&o, in->self->node, 256);
  if (!o.failed)
    write_all(&o, node, to);
  for (uint32_t i = 0; i < o.n; i++)
    free(o.series[i].bucket);
  for (size_t i = 0; i < o.n_texts; i++)
    free(o.text[i]);
  free(o.text);
  free(o.series);
  ni_index_free(&o.index);
  return o.failed ? -ENOMEM : 0;
}
