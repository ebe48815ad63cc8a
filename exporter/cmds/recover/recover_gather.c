#include "recover_gather.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "exporter/input/box/box_decode.h"
#include "exporter/input/box/box_image.h"
#include "format/apart.h"
#include "format/library.h"
#include "format/line.h"
#include "format/timing.h"

/* Hash 0 stands for the whole process in a log. */
static bool is_sound(const struct ni_ident *id) {
  return id->comm_hash && id->n_ranks > 0 && id->rank >= 0 && id->rank < id->n_ranks && id->nnodes >= 0;
}

static int gather_comms(struct ni_recover_job *j) {
  struct ni_box_comm c;
  while (ni_box_comm_at(j->b, j->n, &c))
    j->n++;
  j->life = calloc(j->n + 1, sizeof *j->life);
  if (!j->life)
    return -ENOMEM;
  for (size_t i = 0; i < j->n; i++) {
    struct ni_recover_life *l = &j->life[i];
    (void)ni_box_comm_at(j->b, i, &l->c);
    l->index = i;
    if (l->c.phase == 0)
      continue;
    if (!is_sound(&l->c.id) || l->c.init_ns > INT64_MAX) {
      j->out->damaged++;
      l->c.phase = 0;
      continue;
    }
    l->log = ni_log_state_find(j->log, l->c.id.comm_hash, l->c.id.rank, l->c.init_ns);
    /* killed between its last write and the release of its page */
    if (l->log && l->log->final)
      l->c.phase = 0;
    j->out->communicators += l->c.phase != 0;
  }
  return 0;
}

static int append_ref(struct ni_recover_list *l, struct ni_recover_ref op) {
  if (!ni_array_room(l->op, l->n, l->cap))
    return -ENOMEM;
  l->op[l->n++] = op;
  return 0;
}

static int gather_op(const struct ni_box_op *op, void *arg) {
  struct ni_recover_job *j = arg;
  if (op->is == NI_BOX_SLOT_FREE || op->is == NI_BOX_SLOT_RESTING)
    return 0;
  int64_t i = ni_box_comm_of(j->b, op);
  if (i < 0 || j->life[i].c.phase == 0)
    return 0;
  struct ni_recover_life *l = &j->life[i];
  struct ni_recover_ref ref = {op->rec_sn, op->ticks_start, op->slot, (uint8_t)op->kind, false};
  if (op->is == NI_BOX_SLOT_CALLED)
    return j->live || op->bytes > INT64_MAX ? 0 : append_ref(&l->called, ref);
  const bool is_possible = op->sn <= INT64_MAX && op->rec_sn <= INT64_MAX && op->bytes <= INT64_MAX;
  if (!is_possible || op->rec_sn >= l->c.kind[op->kind].started) {
    j->out->damaged++;
    return 0;
  }
  if (op->is == NI_BOX_SLOT_IN_FLIGHT)
    return append_ref(&l->in_flight, ref);
  bool given_up = op->is == NI_BOX_SLOT_GIVEN_UP;
  const struct ni_seq_set *has = !l->log ? NULL
      : given_up                         ? &l->log->kind[op->kind].incomplete
                                         : &l->log->kind[op->kind].records;
  if (has && ni_seq_set_has(has, op->rec_sn))
    return 0;
  return append_ref(given_up ? &l->given_up : &l->finished, ref);
}

/*
 * The operation may have come since the dump thread looked at the call. Then the call is no collective of its
 * own.
 */
static int gather_call(const struct ni_box_op *op, void *arg) {
  struct ni_recover_job *j = arg;
  int64_t i = op->src == NI_SRC_EVENT && op->kind == NI_KIND_COLL ? ni_box_comm_of(j->b, op) : -1;
  uint64_t call;
  if (i < 0 || !j->life[i].called.n || !ni_box_call_of(&j->life[i].c, op, &call))
    return 0;
  return ni_seq_set_add(&j->life[i].had_one, call);
}

static NI_ORDER_BY(by_number, struct ni_recover_ref, kind, rec_sn);

void ni_recover_sort(struct ni_recover_job *j, struct ni_recover_list *l) {
  size_t kept = 0;
  if (l->n > 1)
    qsort(l->op, l->n, sizeof *l->op, by_number);
  for (size_t i = 0; i < l->n; i++) {
    if (kept && by_number(&l->op[kept - 1], &l->op[i]) == 0)
      j->out->damaged++;
    else
      l->op[kept++] = l->op[i];
  }
  l->n = kept;
}

static NI_ORDER_BY(by_start, struct ni_recover_ref, sn /* ticks_start */, slot);

/*
 * As at a process's exit: their groups are over, so no kernel of theirs will come, and they take the next
 * numbers.
 */
static int number_called(const struct ni_recover_job *j, struct ni_recover_life *l) {
  int e = 0;
  if (l->called.n > 1)
    qsort(l->called.op, l->called.n, sizeof *l->called.op, by_start);
  for (size_t i = 0; e == 0 && i < l->called.n; i++) {
    struct ni_recover_ref ref = l->called.op[i];
    struct ni_box_op op;
    ni_box_op_at(j->b, ref.slot, &op);
    uint64_t *sn = &l->c.api_sn[ni_func_from_name(op.func)], call;
    if (!ni_box_call_of(&l->c, &op, &call) || ni_seq_set_has(&l->had_one, call))
      continue;
    if (*sn > INT64_MAX || l->c.kind[NI_KIND_COLL].started > INT64_MAX)
      continue;
    ref.sn = (*sn)++;
    ref.rec_sn = l->c.kind[NI_KIND_COLL].started++;
    ref.numbered = true;
    e = append_ref(&l->finished, ref);
  }
  return e;
}

int ni_recover_gather(struct ni_recover_job *j) {
  int e = gather_comms(j);
  if (e == 0)
    e = ni_box_each_op(j->b, gather_op, j);
  bool called = false;
  for (size_t i = 0; e == 0 && i < j->n; i++)
    called |= j->life[i].called.n > 0;
  if (called)
    e = ni_box_each_op(j->b, gather_call, j);
  for (size_t i = 0; e == 0 && i < j->n; i++)
    e = number_called(j, &j->life[i]);
  return e;
}

void ni_recover_gather_free(struct ni_recover_job *j) {
  for (size_t i = 0; j->life && i < j->n; i++) {
    free(j->life[i].finished.op);
    free(j->life[i].in_flight.op);
    free(j->life[i].given_up.op);
    free(j->life[i].called.op);
    ni_seq_set_free(&j->life[i].had_one);
  }
  free(j->life);
}

int ni_part_about(struct ni_log_part *p, const struct ni_ident *id) {
  ni_line_prefix_free(&p->prefix);
  return ni_line_prefix_init(&p->prefix, id, &p->meta);
}

void ni_part_put(struct ni_log_part *p, size_t n) { fwrite(p->line, 1, n, p->f); }

void ni_part_note(struct ni_log_part *p, const char *text) {
  struct ni_note_line in = {text};
  NI_PART_PUT(p, note, &in);
}

static int32_t to_int32(int64_t v) { return v >= 0 && v <= INT32_MAX ? (int32_t)v : -1; }

void ni_part_process(struct ni_log_part *p, const struct ni_box_header *h, uint64_t start_ns,
                     uint64_t recovered_ns, bool live) {
  char interface[16];
  snprintf(interface, sizeof interface, "v%u", h->interface);
  struct ni_process_line in = {.start_ns = start_ns,
                               .boot_id = h->boot_id,
                               .exe = h->exe,
                               .interface = interface,
                               .rank = to_int32(h->rank),
                               .local_rank = to_int32(h->local_rank),
                               .world_size = to_int32(h->world_size),
                               .nccl_version = h->nccl_version ? to_int32(h->nccl_version) : -1,
                               .library = ni_library_word((enum ni_library)h->library),
                               .gpu_clock_khz = h->gpu_khz == NI_NS_KHZ ? 0 : h->gpu_khz,
                               .recovered_ns = recovered_ns,
                               .recovered_live = live};
  NI_PART_PUT(p, process, &in);
}

void ni_part_comm(struct ni_log_part *p, const struct ni_box_comm *c) {
  struct ni_comm_line in = {.name = c->id.comm_name,
                            .hash = c->id.comm_hash,
                            .rank = c->id.rank,
                            .n_ranks = c->id.n_ranks,
                            .nnodes = c->id.nnodes,
                            .gpu_index = c->gpu_index,
                            .gpu_uuid = c->gpu_uuid,
                            .gpu_pci = c->gpu_pci,
                            .init_ns = c->init_ns};
  NI_PART_PUT(p, comm, &in);
}

void ni_part_unfinished(const struct ni_box_op *op, struct ni_unfinished_line *in) {
  int32_t root = op->root < 0 ? 0 : op->root;
  *in = (struct ni_unfinished_line){
      .kind = ni_kind_names[op->kind],
      .func = op->func,
      .sn = op->sn,
      .rec_sn = op->rec_sn,
      .msg_bytes = op->bytes,
      .channels_expected = op->want == NI_BOX_WANT_UNKNOWN ? -1 : (int32_t)op->want,
      .channels_started = (int32_t)op->started,
      .channels_stopped = (int32_t)op->stopped,
      .datatype = op->datatype,
      .root = root,
      .peer = root};
}

void ni_part_state(struct ni_unfinished_line *in, const char *state, uint64_t channels_open,
                   const struct ni_box_net *net) {
  in->state = state;
  in->channels_open = channels_open;
  if (!net)
    return;
  in->net_peer = net->peer;
  in->net_channel = net->channel;
  in->net_state = net->waits_for;
}

/* ---- a slot of a black box as the record that the plugin would have written ---- */

#define CLOCK_RATE 7 /* likewise: the GPU clock's rate is not known */
/* ni_fallback_names: older than the previous work on the same channel */
#define BEFORE_PREVIOUS 2

/* Can the GPU stamps be trusted? *why: the reason if not, an index of ni_fallback_names, or -1. */
static bool is_gpu_believed(const struct ni_box *b, const struct ni_box_comm *c, const struct ni_box_op *op,
                            struct ni_gpu_stamps *g, int *why) {
  static const int reason_of[] = {[NI_GPU_ZERO] = 0,
                                  [NI_GPU_STOP_BEFORE_START] = 1,
                                  [NI_GPU_SPAN_TOO_LONG] = 3,
                                  [NI_GPU_AFTER_ARRIVAL] = 4};
  uint32_t bad = op->bad & ((1u << NI_FALLBACK_COUNT) - 1);
  *why = -1;
  if (op->started == 0)
    return false;
  if (op->started != op->stopped && op->want == NI_BOX_WANT_UNKNOWN) {
    *why = 5; /* no_stop_stamp */
    return false;
  }
  if (op->started != op->stopped)
    return false;
  if (ni_apart_only(bad, op->gpu_start_ns)) {
    *why = NI_APART_REASON;
    return false;
  }
  bad &= ~(1u << NI_APART_REASON);
  if (c->poisoned && bad == 1u << BEFORE_PREVIOUS)
    bad = 0;
  if (bad) {
    *why = __builtin_ctz(bad);
    return false;
  }
  if (b->h.gpu_clock == NI_GPU_CLOCK_UNPROVEN && c->fit_samples == 0) { /* the process believed none yet */
    *why = CLOCK_RATE;
    return false;
  }
  *g = (struct ni_gpu_stamps){op->gpu_start_ns, op->gpu_stop_ns, ni_box_monotonic_ns(b, op->ticks_first),
                              ni_box_monotonic_ns(b, op->ticks_done)};
  struct ni_gpu_relation relation = {c->fit_samples, c->fit_offset_ns, c->fit_at_ns};
  enum ni_gpu_verdict v = ni_gpu_judge(&relation, g);
  if (v != NI_GPU_OK)
    *why = reason_of[v];
  return v == NI_GPU_OK;
}

void ni_recover_record(const struct ni_box *b, const struct ni_box_comm *c, const struct ni_box_op *op,
                       struct ni_record *r, int *fallback) {
  struct ni_gpu_stamps g = {0};
  /* as the plugin's want.h */
  bool since_2_31 = b->h.nccl_version >= 23100 || (b->h.nccl_version == 0 && b->h.interface >= 7);
  bool self = !since_2_31 && op->kind == NI_KIND_P2P && op->root == c->id.rank;
  memset(r, 0, sizeof *r);
  r->kind = op->kind;
  r->func = op->func;
  r->datatype = op->datatype;
  r->src = op->kind == NI_KIND_COLL ? op->src : NI_SRC_EVENT;
  if (op->kind == NI_KIND_COLL && r->src == NI_SRC_EVENT) {
    r->algo = op->algo;
    r->proto = op->proto;
  }
  r->sn = op->sn;
  r->rec_sn = op->rec_sn;
  r->root = op->root < 0 ? 0 : op->root;
  r->msg_bytes = op->bytes;
  r->nchannels_observed = op->want == NI_BOX_WANT_UNKNOWN;
  r->nchannels = self ? 0 : r->nchannels_observed ? op->started : op->nchannels;
  r->has = NI_HAS_REC_SN | NI_HAS_ROOT | NI_HAS_ENQUEUE | NI_HAS_EXEC_NS | NI_HAS_TESTS_SIZE;
  if (r->src == NI_SRC_EVENT)
    r->has |= NI_HAS_NCHANNELS;
  r->enqueue_ns = ni_box_unix_ns(b, op->ticks_start);
  if (ni_box_call_of(c, op, &r->call_sn)) {
    r->has |= NI_HAS_CALL_SN;
    r->graph = op->origin & NI_BOX_ORIGIN_REPLAYED;
  }

  r->symmetric = (op->origin & NI_BOX_ORIGIN_SYMMETRIC) != 0;
  r->kernel = op->kernel;
  ni_split_tag(op->user_tag, &r->user_tag, &r->nccl_tag);

  struct ni_timing_in t = {.gpu_ok = is_gpu_believed(b, c, op, &g, fallback)};
  t.has_kernel = op->started && op->started == op->stopped && *fallback != NI_APART_REASON;
  t.gpu_ns = t.gpu_ok ? g.stop_ns - g.start_ns : 0;
  if (t.has_kernel)
    t.kernel_cpu_ns = ni_box_span_ns(b, ni_ticks_between(op->ticks_first, op->ticks_done));
  t.bracket_ns = ni_box_span_ns(b, ni_ticks_between(op->ticks_start, op->ticks_stop));
  ni_timing_fill(r, ni_func_from_name(r->func), c->id.n_ranks, &t);
  if (op->origin & NI_BOX_ORIGIN_FUSED)
    ni_timing_shared(r);
  struct ni_phases phases;
  if (t.gpu_ok && ni_phases_of(op->compute_from_ns, op->compute_to_ns, g.start_ns, g.stop_ns, &phases))
    ni_record_phases(r, &phases);
  if (t.gpu_ok && c->fit_samples > 0) {
    r->has |= NI_HAS_GPU_DELTA;
    r->gpu_start_delta_ns =
        (int64_t)(g.start_ns + (uint64_t)c->fit_offset_ns - ni_box_monotonic_ns(b, op->ticks_start));
  }
}
