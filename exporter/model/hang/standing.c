#include "standing.h"

#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"

/*
 * Each format has its own number. Raise FORMAT with every change of what is in it, or of what read_logs.c
 * makes of a line.
 */
enum { FORMAT = 6 };
#define SHAPE \
  (FORMAT + 8u * NI_HANG_RECENT + 1024u * NI_HANG_FUNCS + 65536u * NI_HANG_NAMES + NI_KIND_COUNT + \
   NI_HANG_STATE_COUNT)

static void wire_name(struct ni_wire *w, const struct ni_hang_model *m, uint16_t *name) {
  uint32_t v = *name;
  ni_wire_below(w, &v, m->n_names ? m->n_names : 1);
  *name = (uint16_t)v;
}

/* Ranks, channels: -1 is none. NULL: no more. */
static void wire_ranks(struct ni_wire *w, int32_t *const *rank) {
  for (; *rank; rank++) {
    ni_wire_i32(w, *rank);
    w->bad |= **rank < -1;
  }
}
#define RANKS(w, ...) wire_ranks(w, (int32_t *const[]){__VA_ARGS__, NULL})

static void wire_names(struct ni_wire *w, struct ni_hang_model *m) {
  size_t n = m->n_names;
  ni_wire_count(w, &n, 1);
  for (size_t i = 1; i < n && !w->bad; i++) {
    char *text = w->load ? NULL : m->name[i];
    ni_wire_text(w, &text);
    if (!w->load)
      continue;
    w->bad |= !text || ni_hang_name(m, text) != (int)i;
    free(text);
  }
}

/*
 * Times are near those of the operation before. For a finished operation there is mostly nothing more to
 * write.
 */
static void wire_op(struct ni_wire *w, const struct ni_hang_model *m, struct ni_hang_op *op,
                    uint64_t *before_ns) {
  static const struct ni_hang_op finished = {
      .want = -1, .started = -1, .stopped = -1, .net_peer = -1, .net_channel = -1};
  int64_t behind = (int64_t)(op->enqueue_ns - *before_ns), seen = (int64_t)(op->seen_ns - op->enqueue_ns);
  uint32_t kind = op->kind, state = op->state;
  bool more = op->call_sn || op->timeout_ns || op->channels_open || op->state || op->net_state ||
      op->want != -1 || op->started != -1 || op->stopped != -1 || op->given_up || op->net_peer != -1 ||
      op->net_channel != -1 || op->replay;
  if (w->load)
    *op = finished;
  ni_wire_below(w, &kind, NI_KIND_COUNT);
  NI_WIRE(w, &op->sn, &op->rec_sn, &op->bytes, &behind, &seen);
  RANKS(w, &op->root);
  wire_name(w, m, &op->func);
  wire_name(w, m, &op->datatype);
  ni_wire_bool(w, &more);
  op->kind = (uint8_t)kind;
  *before_ns = op->enqueue_ns = *before_ns + (uint64_t)behind;
  op->seen_ns = op->enqueue_ns + (uint64_t)seen;
  if (!more)
    return;
  NI_WIRE(w, &op->call_sn, &op->timeout_ns, &op->channels_open, &op->every_ns);
  wire_name(w, m, &op->net_state);
  RANKS(w, &op->want, &op->started, &op->stopped, &op->net_peer, &op->net_channel, &op->channels_above);
  ni_wire_bool(w, &op->given_up);
  ni_wire_bool(w, &op->replay);
  ni_wire_below(w, &state, NI_HANG_STATE_COUNT);
  op->state = (uint8_t)state;
}

static void wire_process(struct ni_wire *w, struct ni_hang_model *m, size_t i) {
  struct ni_who_process name = w->load ? (struct ni_who_process){0} : m->who.process[i];
  NI_WIRE(w, &name.host, &name.pid, &name.start_ns);
  if (w->load)
    w->bad = w->bad || !name.host || ni_hang_process_of(m, name.host, name.pid, name.start_ns) != (int64_t)i;
  if (w->load)
    free(name.host);
  if (w->bad)
    return;
  struct ni_hang_process *p = &m->process[i];
  uint32_t life = p->life;
  char *boot = p->boot_id;
  ni_wire_text(w, &p->exe);
  RANKS(w, &p->rank, &p->world, &p->nccl_version);
  ni_wire_text(w, &boot);
  if (w->load && boot) {
    w->bad |= strlen(boot) >= sizeof p->boot_id;
    strncpy(p->boot_id, boot, sizeof p->boot_id - 1);
    free(boot);
  }
  ni_wire_below(w, &life, NI_HANG_LIFE_COUNT);
  p->life = (enum ni_hang_life)life;
  NI_WIRE(w, &p->alive_ns, &p->look_ns, &p->has_log, &p->boxless, &p->ours);
  NI_WIRE(w, &p->longest_operation_ns, &p->longest_gap_ns, &p->ended_ns);
}

static void wire_ops(struct ni_wire *w, const struct ni_hang_model *m, struct ni_hang_member *x) {
  size_t recent = x->n_recent, open = x->n_open, funcs = x->n_fin;
  uint64_t before_ns = 0;
  ni_wire_count(w, &funcs, 2);
  ni_wire_count(w, &recent, 8);
  ni_wire_count(w, &open, 8);
  w->bad |= funcs > NI_HANG_FUNCS || recent > NI_HANG_RECENT;
  if (w->bad)
    return;
  if (w->load && open && !ni_array_exact(&x->open, &x->cap_open, open, sizeof *x->open))
    w->bad = true;
  else if (w->load && funcs && !ni_array_exact(&x->fin, &x->cap_fin, funcs, sizeof *x->fin))
    w->bad = true;
  else if (w->load && recent && !ni_array_exact(&x->recent, &x->cap_recent, recent, sizeof *x->recent))
    w->bad = true;
  if (w->bad)
    return;
  x->n_fin = (uint8_t)funcs;
  x->n_recent = (uint32_t)recent;
  x->n_open = open;
  if (w->load && open)
    memset(x->open, 0, open * sizeof *x->open);
  if (w->load && funcs)
    memset(x->fin, 0, funcs * sizeof *x->fin);
  if (w->load && recent)
    memset(x->recent, 0, recent * sizeof *x->recent);
  for (size_t i = 0; i < funcs; i++) {
    wire_name(w, m, &x->fin[i].func);
    ni_wire_u64(w, &x->fin[i].next);
  }
  for (size_t i = 0; i < recent; i++)
    wire_op(w, m, &x->recent[i], &before_ns);
  for (size_t i = 0; i < open; i++)
    wire_op(w, m, &x->open[i], &before_ns);
}

static void wire_member(struct ni_wire *w, struct ni_hang_model *m, size_t i) {
  struct ni_who_member name = w->load ? (struct ni_who_member){0} : m->who.member[i];
  ni_wire_below(w, &name.process, m->n_processes);
  NI_WIRE(w, &name.hash, &name.init_ns);
  RANKS(w, &name.rank, &name.n_ranks, &name.nnodes);
  ni_wire_text(w, &name.name);
  if (w->load) {
    const struct ni_ident id = ni_who_ident(&name);
    w->bad = w->bad || ni_hang_member_of(m, name.process, &id, name.init_ns) != (int64_t)i;
    free(name.name);
  }
  if (w->bad)
    return;
  struct ni_hang_member *x = m->member[i];
  for (int k = 0; k < NI_KIND_COUNT; k++) {
    uint64_t started = x->started[k] + 1; /* so that none is 0 */
    ni_seq_set_wire(w, &x->recorded[k]);
    ni_wire_u64(w, &started);
    x->started[k] = started - 1;
  }
  NI_WIRE(w, &x->passed_ns[NI_KIND_COLL], &x->passed_ns[NI_KIND_P2P], &x->ended_ns);
  NI_WIRE(w, &x->calls, &x->started_ns, &x->open_ns, &x->active_ns, &x->log_ns, &x->end_ns, &x->invisible,
          &x->destroyed);
  wire_ops(w, m, x);
  ni_anchors_wire(w, &x->anchors);
}

/* A number below n, or -1. */
static void wire_place(struct ni_wire *w, int64_t *at, size_t n) {
  uint32_t v = (uint32_t)(*at + 1);
  ni_wire_below(w, &v, n + 1);
  *at = (int64_t)v - 1;
}

void ni_hang_standing_wire(struct ni_wire *w, struct ni_hang_reading *r) {
  struct ni_hang_model *m = r->m;
  size_t processes = m->n_processes, members = m->n_members;
  uint32_t shape = SHAPE;
  ni_wire_u32(w, &shape);
  w->bad |= shape != SHAPE;
  NI_WIRE(w, &m->lines, &m->bad_lines, &m->left_out);
  wire_names(w, m);
  ni_wire_count(w, &processes, 8);
  for (size_t i = 0; i < processes && !w->bad; i++)
    wire_process(w, m, i);
  ni_wire_count(w, &members, 16);
  for (size_t i = 0; i < members && !w->bad; i++)
    wire_member(w, m, i);
  wire_place(w, &r->process, m->n_processes);
  wire_place(w, &r->member, m->n_members);
  ni_wire_bool(w, &r->recovered);
  ni_wire_u64(w, &r->newest_ns);
  r->x = r->member < 0 || w->bad ? NULL : m->member[r->member];
}

struct ni_wire ni_hang_standing_bytes(struct ni_hang_reading *r) {
  struct ni_hang_model m = {0};
  struct ni_hang_reading back = {.m = &m};
  struct ni_wire bytes = {0}, again = {0};
  for (size_t i = 0; i < r->m->n_members; i++)
    ni_hang_keep_newest(r->m->member[i]);
  ni_hang_standing_wire(&bytes, r);
  struct ni_wire load = ni_wire_load(bytes.bytes, bytes.n);
  if (!bytes.bad)
    ni_hang_standing_wire(&load, &back);
  if (!bytes.bad && ni_wire_over(&load))
    ni_hang_standing_wire(&again, &back);
  bytes.bad |= again.bad || again.n != bytes.n || memcmp(again.bytes, bytes.bytes, bytes.n) != 0;
  ni_wire_free(&again);
  ni_hang_model_free(&m);
  return bytes;
}
