#include "recover_lines.h"
#include <string.h>
#include "format/line.h"
#include "exporter/input/box/box_decode.h"
#include "exporter/input/box/box_image.h"
#include "format/apart.h"
#include "format/timing.h"

int ni_part_about(struct ni_log_part *p, const struct ni_ident *id) {
  ni_line_prefix_free(&p->prefix);
  return ni_line_prefix_init(&p->prefix, id, &p->meta);
}

void ni_part_put(struct ni_log_part *p, size_t n) { fwrite(p->line, 1, n, p->f); }

void ni_part_note(struct ni_log_part *p, const char *text) {
  struct ni_note_line in = {text};
  NI_PART_PUT(p, note, &in);
}

static int32_t small(int64_t v) { return v >= 0 && v <= INT32_MAX ? (int32_t)v : -1; }

void ni_part_process(struct ni_log_part *p, const struct ni_box_header *h, uint64_t start_ns, uint64_t recovered_ns, bool live) {
  char interface[16];
  snprintf(interface, sizeof interface, "v%u", h->interface);
  struct ni_process_line in = {.start_ns = start_ns,
                               .boot_id = h->boot_id,
                               .exe = h->exe,
                               .interface = interface,
                               .rank = small(h->rank),
                               .local_rank = small(h->local_rank),
                               .world_size = small(h->world_size),
                               .nccl_version = h->nccl_version ? small(h->nccl_version) : -1,
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
  *in = (struct ni_unfinished_line){.kind = ni_kind_names[op->kind],
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

void ni_part_state(struct ni_unfinished_line *in, const char *state, uint64_t channels_open, const struct ni_box_net *net) {
  in->state = state;
  in->channels_open = channels_open;
  if (!net) return;
  in->net_peer = net->peer;
  in->net_channel = net->channel;
  in->net_state = net->waits_for;
}

/* ---- a slot of a black box as the record that the plugin would have written ---- */

#define BEFORE_PREVIOUS 2 /* ni_fallback_names: older than the previous work on the same channel */

/* Are the GPU stamps believed? *why: the reason they are not, an index of ni_fallback_names, or -1. */
static bool gpu_believed(const struct ni_box *b, const struct ni_box_comm *c, const struct ni_box_op *op,
                         struct ni_gpu_stamps *g, int *why) {
  static const int reason_of[] = {[NI_GPU_ZERO] = 0, [NI_GPU_STOP_BEFORE_START] = 1, [NI_GPU_SPAN_TOO_LONG] = 3,
                                  [NI_GPU_AFTER_ARRIVAL] = 4};
  uint32_t bad = op->bad & ((1u << NI_FALLBACK_COUNT) - 1);
  *why = -1;
  if (op->started == 0) return false;
  if (op->started != op->stopped && op->want == NI_BOX_WANT_UNKNOWN) {
    *why = 5; /* no_stop_stamp */
    return false;
  }
  if (op->started != op->stopped) return false;
  if (ni_apart_only(bad, op->gpu_start_ns)) {
    *why = NI_APART_REASON;
    return false;
  }
  bad &= ~(1u << NI_APART_REASON);
  if (c->poisoned && bad == 1u << BEFORE_PREVIOUS) bad = 0;
  if (bad) {
    *why = __builtin_ctz(bad);
    return false;
  }
  *g = (struct ni_gpu_stamps){op->gpu_start_ns, op->gpu_stop_ns, ni_box_monotonic_ns(b, op->ticks_first),
                              ni_box_monotonic_ns(b, op->ticks_done)};
  struct ni_gpu_relation relation = {c->fit_samples, c->fit_offset_ns, c->fit_at_ns};
  enum ni_gpu_verdict v = ni_gpu_judge(&relation, g);
  if (v != NI_GPU_OK) *why = reason_of[v];
  return v == NI_GPU_OK;
}

void ni_recover_record(const struct ni_box *b, const struct ni_box_comm *c, const struct ni_box_op *op,
                       struct ni_record *r, int *fallback) {
  struct ni_gpu_stamps g = {0};
  bool self = b->h.nccl_version < 23100 && op->kind == NI_KIND_P2P && op->root == c->id.rank; /* as the plugin's want.h */
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
  if (r->src == NI_SRC_EVENT) r->has |= NI_HAS_NCHANNELS;
  r->enqueue_ns = ni_box_unix_ns(b, op->ticks_start);
  if (ni_box_call_of(c, op, &r->call_sn)) {
    r->has |= NI_HAS_CALL_SN;
    r->graph = op->origin & NI_BOX_ORIGIN_REPLAYED;
  }

  struct ni_timing_in t = {.gpu_ok = gpu_believed(b, c, op, &g, fallback)};
  t.has_kernel = op->started && op->started == op->stopped && *fallback != NI_APART_REASON;
  t.gpu_ns = t.gpu_ok ? g.stop_ns - g.start_ns : 0;
  if (t.has_kernel) t.kernel_cpu_ns = ni_box_span_ns(b, ni_ticks_between(op->ticks_first, op->ticks_done));
  t.bracket_ns = ni_box_span_ns(b, ni_ticks_between(op->ticks_start, op->ticks_stop));
  ni_timing_fill(r, ni_func_from_name(r->func), c->id.n_ranks, &t);
  if (t.gpu_ok && c->fit_samples > 0) {
    r->has |= NI_HAS_GPU_DELTA;
    r->gpu_start_delta_ns =
        (int64_t)(g.start_ns + (uint64_t)c->fit_offset_ns - ni_box_monotonic_ns(b, op->ticks_start));
  }
}
