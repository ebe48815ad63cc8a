/*
 * From the image to values: communicators, slots, clocks, texts. Everything that indexes the image was
 * checked by box.c (fields against their structs, pieces against the file) or is checked here (pages, texts'
 * numbers).
 */
#include "box_decode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "format/library.h"
#include "box_image.h"

/* ---- fields ---- */

uint64_t ni_box_get(const struct ni_box *b, const unsigned char *base, enum ni_box_field_id id, uint32_t i) {
  const struct ni_box_field *f = &b->field[id];
  uint32_t size = ni_box_elem_bytes[id];
  if ((uint64_t)(i + 1) * size > f->size)
    return 0;
  const unsigned char *p = base + f->at + (size_t)i * size;
  uint64_t v8;
  uint32_t v4;
  switch (size) {
    case 8:
      memcpy(&v8, p, 8);
      return v8;
    case 4:
      memcpy(&v4, p, 4);
      return v4;
    default:
      return *p;
  }
}

unsigned char ni_box_class(const struct ni_box *b, uint32_t page) {
  return page < b->h.class_map.bytes ? b->image[b->h.class_map.at + page] : 0;
}

bool ni_box_ops_class(const struct ni_box *b, unsigned char cls) {
  return cls && cls != b->h.comm_class && cls < 64 && (b->h.op_classes >> cls & 1);
}

static uint64_t read_field(const struct ni_box *b, const unsigned char *base, enum ni_box_field_id id) {
  return ni_box_get(b, base, id, 0);
}

static int32_t read_int32(const struct ni_box *b, const unsigned char *base, enum ni_box_field_id id) {
  return (int32_t)(uint32_t)read_field(b, base, id);
}

/* A time of the GPU's clock, in ns. Older writers have it in ns already. */
static uint64_t read_stamp(const struct ni_box *b, const unsigned char *base, enum ni_box_field_id id) {
  return ni_gpu_ns(read_field(b, base, id), b->h.gpu_khz ? b->h.gpu_khz : NI_NS_KHZ);
}

/* The text lies in the image. NULL: empty, absent, or without an end. */
static const char *read_text(const struct ni_box *b, const unsigned char *base, enum ni_box_field_id id) {
  const struct ni_box_field *f = &b->field[id];
  const char *text = (const char *)(base + f->at);
  return f->size && *text && memchr(text, 0, f->size) ? text : NULL;
}

static void read_counts(const struct ni_box *b, const unsigned char *base, enum ni_box_field_id id,
                        uint64_t *out, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    out[i] = ni_box_get(b, base, id, i);
}

/* ---- header ---- */

const struct ni_box_header *ni_box_header(const struct ni_box *b) { return &b->h; }
bool ni_box_is_copy(const struct ni_box *b) { return b->is_copy; }
enum ni_life ni_box_life(const struct ni_box *b) { return b->life.life; }
const struct ni_life_fact *ni_box_life_fact(const struct ni_box *b) { return &b->life; }
uint64_t ni_box_taken_ns(const struct ni_box *b) { return b->taken_ns; }
uint64_t ni_box_held(const struct ni_box *b) { return b->held_bytes; }
uint32_t ni_box_owner(const struct ni_box *b) { return b->owner; }
uint32_t ni_box_outside(const struct ni_box *b) { return b->outside; }

bool ni_box_session(const struct ni_box *b, struct ni_box_log *out) {
  struct ni_box *writable = (struct ni_box *)(uintptr_t)b; /* the texts are kept in it; one thread */
  struct ni_box_session s;
  if (b->h.session_now > 1)
    return false;
  const struct ni_box_piece *p = &b->h.session[b->h.session_now];
  if (p->bytes < sizeof s)
    return false;
  memcpy(&s, b->image + p->at, sizeof s);
  const uint32_t length[3] = {s.dir_bytes, s.file_bytes, s.line_bytes};
  uint64_t at = sizeof s;
  for (int i = 0; i < 3; i++) {
    if (length[i] > p->bytes - at)
      return false;
    free(writable->text[i]);
    writable->text[i] = strndup((const char *)b->image + p->at + at, length[i]);
    if (!writable->text[i])
      return false;
    at += length[i];
  }
  *out = (struct ni_box_log){s.start_ns, writable->text[0], writable->text[1], writable->text[2]};
  return true;
}

/* ---- clocks ---- */

static const struct ni_box_clock *find_clock(const struct ni_box *b) {
  return &b->h.clock[b->h.clock_now & 1];
}

uint64_t ni_box_span_ns(const struct ni_box *b, uint64_t ticks) {
  return (uint64_t)(((unsigned __int128)ticks * find_clock(b)->mult) >> 40);
}

uint64_t ni_box_monotonic_ns(const struct ni_box *b, uint64_t ticks) {
  const struct ni_box_clock *c = find_clock(b);
  if (ticks >= c->ticks)
    return c->monotonic_ns + ni_box_span_ns(b, ticks - c->ticks);
  uint64_t back = ni_box_span_ns(b, c->ticks - ticks);
  return back < c->monotonic_ns ? c->monotonic_ns - back : 0;
}

uint64_t ni_box_unix_ns(const struct ni_box *b, uint64_t ticks) {
  return ni_box_monotonic_ns(b, ticks) + (find_clock(b)->realtime_ns - find_clock(b)->monotonic_ns);
}

uint64_t ni_box_seen_ns(const struct ni_box *b) {
  if (b->life.life == NI_LIFE_ALIVE)
    return b->taken_ns;
  uint64_t sign = b->h.heartbeat_unix_ns ? b->h.heartbeat_unix_ns : b->h.made_ns;
  return b->life.life == NI_LIFE_ENDED && b->h.end_unix_ns > sign ? b->h.end_unix_ns : sign;
}

/* ---- communicators ---- */

static const unsigned char *find_comm(const struct ni_box *b, size_t i) {
  return b->image + (uint64_t)b->comm_page[i] * NI_BOX_PAGE_BYTES;
}

bool ni_box_comm_at(const struct ni_box *b, size_t i, struct ni_box_comm *out) {
  if (i >= b->n_comm_pages)
    return false;
  const unsigned char *c = find_comm(b, i);
  *out = (struct ni_box_comm){
      .page = b->comm_page[i],
      .phase = NI_BOX_COMM_PHASE(read_field(b, c, NI_BOX_COMM_STATE)),
      .init_ticks = read_field(b, c, NI_BOX_COMM_INIT_TICKS),
      .init_ns = read_field(b, c, NI_BOX_COMM_INIT_NS),
      .id = {.comm_hash = read_field(b, c, NI_BOX_COMM_HASH),
             .rank = read_int32(b, c, NI_BOX_COMM_RANK),
             .n_ranks = read_int32(b, c, NI_BOX_COMM_N_RANKS),
             .nnodes = read_int32(b, c, NI_BOX_COMM_N_NODES)},
      .gpu_index = b->field[NI_BOX_COMM_GPU_INDEX].size ? read_int32(b, c, NI_BOX_COMM_GPU_INDEX) : -1,
      .gpu_uuid = read_text(b, c, NI_BOX_COMM_GPU_UUID),
      .gpu_pci = read_text(b, c, NI_BOX_COMM_GPU_PCI),
      .group_ord = (uint32_t)read_field(b, c, NI_BOX_COMM_GROUP_ORD),
      .newest_group = (uint32_t)read_field(b, c, NI_BOX_COMM_NEWEST_GROUP),
      .fit_offset_ns = (int64_t)read_field(b, c, NI_BOX_COMM_FIT_OFFSET_NS),
      .fit_at_ns = read_field(b, c, NI_BOX_COMM_FIT_AT_NS),
      .fit_samples = read_field(b, c, NI_BOX_COMM_FIT_SAMPLES),
      .poisoned = read_field(b, c, NI_BOX_COMM_POISONED) != 0,
  };
  if (read_field(b, c, NI_BOX_COMM_HAS_NAME)) {
    out->id.comm_name = read_text(b, c, NI_BOX_COMM_NAME);
    if (!out->id.comm_name)
      out->id.comm_name = "";
  }
  read_counts(b, c, NI_BOX_COMM_STRAY, out->stray, NI_STRAY_COUNT);
  read_counts(b, c, NI_BOX_COMM_API_SN, out->api_sn, NI_FUNC_COUNT);
  for (int k = 0; k < NI_KIND_COUNT; k++) {
    const unsigned char *q = c + b->field[NI_BOX_COMM_KIND].at + (size_t)k * b->h.kind_stride;
    out->kind[k].calls = ni_box_get(b, c, NI_BOX_COMM_CALLS, (uint32_t)k);
    out->kind[k].started = read_field(b, q, NI_BOX_KIND_STARTED);
    out->kind[k].late = read_field(b, q, NI_BOX_KIND_LATE);
    out->kind[k].written = read_field(b, q, NI_BOX_KIND_WRITTEN);
    out->kind[k].judged_out = read_field(b, q, NI_BOX_KIND_JUDGED_OUT);
    out->kind[k].incomplete = read_field(b, q, NI_BOX_KIND_INCOMPLETE);
    out->kind[k].lost_write = read_field(b, q, NI_BOX_KIND_LOST_WRITE);
    read_counts(b, q, NI_BOX_KIND_FILTERED, out->kind[k].filtered, NI_FILTER_COUNT);
    read_counts(b, q, NI_BOX_KIND_DROPPED, out->kind[k].dropped, NI_DROP_COUNT);
    read_counts(b, q, NI_BOX_KIND_FALLBACK, out->kind[k].fallback, NI_FALLBACK_COUNT);
  }
  return true;
}

int64_t ni_box_comm_of(const struct ni_box *b, const struct ni_box_op *op) {
  size_t i;
  ni_array_search(i, b->n_comm_pages, b->comm_page[i] < op->comm_page);
  if (i == b->n_comm_pages || b->comm_page[i] != op->comm_page)
    return -1;
  const unsigned char *c = find_comm(b, i);
  uint32_t phase = NI_BOX_COMM_PHASE(read_field(b, c, NI_BOX_COMM_STATE));
  return phase && op->ticks_start >= read_field(b, c, NI_BOX_COMM_INIT_TICKS) ? (int64_t)i : -1;
}

uint64_t ni_box_open_channels(const struct ni_box *b, size_t comm, const struct ni_box_op *op) {
  uint64_t open = 0;
  if (comm >= b->n_comm_pages || b->field[NI_BOX_COMM_CELL].size == 0)
    return 0;
  const unsigned char *cell = find_comm(b, comm) + b->field[NI_BOX_COMM_CELL].at;
  for (uint32_t i = 0; i < 128; i++, cell += b->h.cell_stride) {
    uint64_t o = read_field(b, cell, NI_BOX_CELL_OPEN);
    if (o && NI_BOX_CELL_SLOT(o) == op->slot && NI_BOX_CELL_GEN(o) == (op->gen & 0xfffffff))
      open |= UINT64_C(1) << i / 2;
  }
  return open;
}

int32_t ni_box_open_above(const struct ni_box *b, const struct ni_box_op *op, uint64_t open) {
  int32_t all = (int32_t)op->started - (int32_t)op->stopped, low = __builtin_popcountll(open);
  return b->h.library == NI_LIBRARY_RCCL && all > low ? all - low : 0;
}

bool ni_box_call_of(const struct ni_box_comm *c, const struct ni_box_op *op, uint64_t *call_sn) {
  uint64_t all = c->kind[op->kind].calls;
  if (!(op->origin & NI_BOX_ORIGIN_CALLED))
    return false;
  *call_sn = all - (uint32_t)((uint32_t)all - op->call_low); /* the newest number with this low half */
  return *call_sn <= INT64_MAX;
}

/* ---- operations ---- */

static const char *find_text(const struct ni_box *b, uint64_t number, uint32_t *elem_bytes) {
  const struct ni_box_piece *t = &b->h.texts;
  if (elem_bytes)
    *elem_bytes = 1;
  if (number == 0 || number >= t->entries)
    return "Unknown";
  const unsigned char *e = b->image + t->at + number * t->stride;
  if (!read_field(b, e, NI_BOX_TEXT_READY))
    return "Unknown";
  if (elem_bytes && read_field(b, e, NI_BOX_TEXT_ELEM_BYTES))
    *elem_bytes = (uint32_t)read_field(b, e, NI_BOX_TEXT_ELEM_BYTES);
  const char *s = read_text(b, e, NI_BOX_TEXT_TEXT);
  return s ? s : "Unknown";
}

static enum ni_box_slot_is classify_slot(const struct ni_box_op *op) {
  if (!(op->flags & NI_BOX_OP_LIVE))
    return op->flags == NI_BOX_OP_CLOSED && op->src == NI_SRC_API ? NI_BOX_SLOT_CALLED : NI_BOX_SLOT_FREE;
  if (op->flags & NI_BOX_OP_RETIRED) {
    if (op->flags & NI_BOX_OP_GIVEN_UP)
      return NI_BOX_SLOT_GIVEN_UP;
    return op->flags & NI_BOX_OP_SETTLED ? NI_BOX_SLOT_RESTING : NI_BOX_SLOT_FINISHED;
  }
  if (op->flags & NI_BOX_OP_DONE)
    return NI_BOX_SLOT_FINISHED;
  /* As at a process's exit: nobody will say more of an operation whose channel events were off. */
  bool over = op->started ? op->started == op->stopped : op->mask_doubt == NI_BOX_MASK_OFF;
  return op->want == NI_BOX_WANT_UNKNOWN && (op->flags & NI_BOX_OP_CLOSED) && over ? NI_BOX_SLOT_FINISHED
                                                                                   : NI_BOX_SLOT_IN_FLIGHT;
}

static enum ni_src find_source(uint64_t origin) {
  return origin & NI_BOX_ORIGIN_API ? NI_SRC_API : origin & NI_BOX_ORIGIN_CE ? NI_SRC_CE : NI_SRC_EVENT;
}

void ni_box_op_at(const struct ni_box *b, uint32_t slot, struct ni_box_op *op) {
  uint32_t per_page = NI_BOX_PAGE_BYTES / b->h.slot_bytes;
  const unsigned char *p = b->image + (uint64_t)(slot / per_page) * NI_BOX_PAGE_BYTES +
      (size_t)(slot % per_page) * b->h.slot_bytes;
  uint64_t state = read_field(b, p, NI_BOX_OP_STATE), prog = read_field(b, p, NI_BOX_OP_PROG);
  uint32_t elem;
  *op = (struct ni_box_op){
      .slot = slot,
      .comm_page = (uint32_t)read_field(b, p, NI_BOX_OP_COMM_PAGE),
      .gen = NI_BOX_GEN(state),
      .flags = NI_BOX_FLAGS(state),
      .want = NI_BOX_WANT(state),
      .group_ord = (uint32_t)read_field(b, p, NI_BOX_OP_GROUP_ORD),
      .kind = read_field(b, p, NI_BOX_OP_KIND) == NI_KIND_P2P ? NI_KIND_P2P : NI_KIND_COLL,
      .started = NI_BOX_STARTED(prog),
      .stopped = NI_BOX_STOPPED(prog),
      .gpu_start_ns = read_stamp(b, p, NI_BOX_OP_GPU_START_NS),
      .gpu_stop_ns = read_stamp(b, p, NI_BOX_OP_GPU_STOP_NS),
      .ticks_first = read_field(b, p, NI_BOX_OP_TICKS_FIRST),
      .ticks_done = read_field(b, p, NI_BOX_OP_TICKS_DONE),
      .ticks_start = read_field(b, p, NI_BOX_OP_TICKS_START),
      .ticks_stop = read_field(b, p, NI_BOX_OP_TICKS_STOP),
      .sn = read_field(b, p, NI_BOX_OP_SN),
      .count = read_field(b, p, NI_BOX_OP_COUNT),
      .rec_sn = read_field(b, p, NI_BOX_OP_REC_SN),
      .root = read_int32(b, p, NI_BOX_OP_ROOT),
      .bad = (uint32_t)read_field(b, p, NI_BOX_OP_BAD),
      .mask_doubt = (uint32_t)read_field(b, p, NI_BOX_OP_MASK_DOUBT),
      .nchannels = (uint32_t)read_field(b, p, NI_BOX_OP_NCHANNELS),
      .origin = (uint32_t)read_field(b, p, NI_BOX_OP_ORIGIN),
      .call_low = (uint32_t)read_field(b, p, NI_BOX_OP_CALL_SN),
      .src = find_source(read_field(b, p, NI_BOX_OP_ORIGIN)),
      .func = find_text(b, read_field(b, p, NI_BOX_OP_FUNC), NULL),
      .datatype = find_text(b, read_field(b, p, NI_BOX_OP_DATATYPE), &elem),
      .algo = find_text(b, read_field(b, p, NI_BOX_OP_ALGO), NULL),
      .proto = find_text(b, read_field(b, p, NI_BOX_OP_PROTO), NULL),
  };
  op->bytes = op->count * elem;
  uint64_t kernel = read_field(b, p, NI_BOX_OP_KERNEL), annex = read_field(b, p, NI_BOX_OP_ANNEX);
  op->kernel = kernel ? find_text(b, kernel, NULL) : "";
  if (annex && (annex + 1) * b->h.slot_bytes <= (uint64_t)b->h.n_pages * NI_BOX_PAGE_BYTES) {
    const unsigned char *x = b->image + annex * b->h.slot_bytes;
    op->user_tag = read_field(b, x, NI_BOX_ANNEX_USER_TAG);
    op->compute_from_ns = read_stamp(b, x, NI_BOX_ANNEX_COMPUTE_FROM_NS);
    op->compute_to_ns = read_stamp(b, x, NI_BOX_ANNEX_COMPUTE_TO_NS);
  }
  op->is = classify_slot(op);
}

static int visit_operations(const struct ni_box *b, bool in_flight,
                            int (*fn)(const struct ni_box_op *op, void *arg), void *arg) {
  uint32_t per_page = NI_BOX_PAGE_BYTES / b->h.slot_bytes;
  for (uint32_t page = b->h.data_page; page < b->end_page; page++) {
    if (!ni_box_holds(b, page) || !ni_box_ops_class(b, ni_box_class(b, page)))
      continue;
    for (uint32_t i = 0; i < per_page; i++) {
      struct ni_box_op op;
      const unsigned char *p = b->image + (uint64_t)page * NI_BOX_PAGE_BYTES + (size_t)i * b->h.slot_bytes;
      /* most are free */
      if (in_flight && !(NI_BOX_FLAGS(read_field(b, p, NI_BOX_OP_STATE)) & NI_BOX_OP_LIVE))
        continue;
      ni_box_op_at(b, page * per_page + i, &op);
      if (in_flight && op.is != NI_BOX_SLOT_IN_FLIGHT)
        continue;
      int e = fn(&op, arg);
      if (e < 0)
        return e;
    }
  }
  return 0;
}

int ni_box_each_op(const struct ni_box *b, int (*fn)(const struct ni_box_op *op, void *arg), void *arg) {
  return visit_operations(b, false, fn, arg);
}

int ni_box_each_in_flight(const struct ni_box *b, int (*fn)(const struct ni_box_op *op, void *arg),
                          void *arg) {
  return visit_operations(b, true, fn, arg);
}

/*
 * ---- network operations: which transfer of an operation waits, and for what ----
 *
 * They are read once, while their progress thread may go on: phases and times are single words, each true at
 * some moment.
 */

static int compare_by_parent(const void *a, const void *b) {
  const struct ni_box_proxy *x = a, *y = b;
  return NI_BY(x, y, comm_page, kind, rec_sn, at);
}

static int add_proxy(struct ni_box *b, const unsigned char *p, size_t *cap) {
  uint32_t flags = NI_BOX_FLAGS(ni_box_get(b, p, NI_BOX_PROXY_STATE, 0));
  if (!(flags & NI_BOX_OP_LIVE) || (flags & NI_BOX_OP_CLOSED))
    return 0;
  if (!(ni_box_get(b, p, NI_BOX_PROXY_FLAGS, 0) & NI_BOX_PROXY_PARENT))
    return 0;
  if (!ni_array_room(b->proxy, b->n_proxies, *cap))
    return -ENOMEM;
  b->proxy[b->n_proxies++] = (struct ni_box_proxy){ni_box_get(b, p, NI_BOX_PROXY_PARENT_REC_SN, 0), p,
                                                   (uint32_t)ni_box_get(b, p, NI_BOX_PROXY_COMM_PAGE, 0),
                                                   (uint32_t)ni_box_get(b, p, NI_BOX_PROXY_PARENT_KIND, 0)};
  return 0;
}

static bool has_proxies(const struct ni_box_header *h) {
  const bool has_class = h->proxy_class > 0 && h->proxy_class <= 255 && h->proxy_class != h->comm_class;
  const bool has_size = h->proxy_bytes >= 64 && h->proxy_bytes % 8 == 0;
  return has_class && has_size && h->proxy_chunk_pages > 0 && h->proxy_chunk_pages <= 4096;
}

int ni_box_find_proxies(struct ni_box *b) {
  const struct ni_box_header *h = &b->h;
  size_t cap = 0;
  if (!has_proxies(h))
    return 0;
  uint32_t run = 0; /* pages of the class that lie one after the other */
  for (uint32_t page = h->data_page; page < b->end_page; page++) {
    run = ni_box_class(b, page) == h->proxy_class ? run + 1 : 0;
    if (run == 0 || run % h->proxy_chunk_pages)
      continue;
    uint32_t first = page + 1 - h->proxy_chunk_pages;
    const unsigned char *chunk = b->image + (uint64_t)first * NI_BOX_PAGE_BYTES;
    size_t bytes = (size_t)h->proxy_chunk_pages * NI_BOX_PAGE_BYTES;
    for (size_t at = 0; at + h->proxy_bytes <= bytes; at += h->proxy_bytes) {
      if (!ni_box_holds(b, first + (uint32_t)(at / NI_BOX_PAGE_BYTES)))
        continue; /* all 0: not in use */
      int e = add_proxy(b, chunk + at, &cap);
      if (e < 0)
        return e;
    }
  }
  if (b->n_proxies > 1)
    qsort(b->proxy, b->n_proxies, sizeof *b->proxy, compare_by_parent);
  return 0;
}

static bool is_proxy_of(const struct ni_box_proxy *p, const struct ni_box_op *op) {
  return p->comm_page == op->comm_page && p->kind == (uint32_t)op->kind && p->rec_sn == op->rec_sn;
}

bool ni_box_net_of(const struct ni_box *b, const struct ni_box_op *op, struct ni_box_net *out) {
  static const char *const phases[NI_BOX_PHASE_COUNT] = {"",     "gpu_produce", "peer_credit",
                                                         "wire", "flush",       "gpu_consume"};
  size_t at;
  const struct ni_box_proxy want = {op->rec_sn, NULL, op->comm_page, (uint32_t)op->kind};
  bool found = false;
  ni_array_search(at, b->n_proxies, compare_by_parent(&b->proxy[at], &want) < 0);
  uint32_t places = b->field[NI_BOX_PROXY_PHASE].size;
  for (; at < b->n_proxies && is_proxy_of(&b->proxy[at], op); at++) {
    const unsigned char *p = b->proxy[at].at;
    for (uint32_t i = 0; i < places && i < 64; i++) {
      uint64_t phase = ni_box_get(b, p, NI_BOX_PROXY_PHASE, i),
               ticks = ni_box_get(b, p, NI_BOX_PROXY_STEP_LAST, i);
      if (phase == NI_BOX_PHASE_NONE || phase >= NI_BOX_PHASE_COUNT)
        continue;
      uint64_t since = ni_box_unix_ns(b, ticks);
      bool net =
          phase == NI_BOX_PHASE_PEER_CREDIT || phase == NI_BOX_PHASE_WIRE || phase == NI_BOX_PHASE_FLUSH;
      /* One that waits for the network says more than one that waits for the own GPU. */
      bool is_less = found && (out->on_network > net || (out->on_network == net && out->since_ns <= since));
      if (is_less)
        continue;
      *out =
          (struct ni_box_net){(int32_t)(uint32_t)ni_box_get(b, p, NI_BOX_PROXY_PEER, 0),
                              (int32_t)ni_box_get(b, p, NI_BOX_PROXY_CHANNEL, 0), phases[phase], net, since};
      found = true;
    }
  }
  return found;
}
