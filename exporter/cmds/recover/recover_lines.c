#include "recover_lines.h"


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
