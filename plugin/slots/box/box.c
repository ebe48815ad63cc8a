/*
 * The field table is the one place where the plugin's structs meet ni_box.h: a field that is moved is
 * followed by the compiler, one whose meaning changes needs a new NI_BOX_VERSION.
 */
#include "box.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "format/timing.h"
#include "plugin/slots/beside/annex.h"
#include "plugin/os/host.h"
#include "plugin/settings/job.h"
#include "plugin/slots/state.h"

#define NO_THREAD_COMMIT (UINT64_C(32) << 20) /* nobody commits later */

/* ---- the field table ---- */

#define SAME(box, ours) ((int)(box) == (int)(ours))
_Static_assert(SAME(NI_BOX_OP_LIVE, NI_OP_LIVE) && SAME(NI_BOX_OP_CLOSED, NI_OP_CLOSED) &&
                   SAME(NI_BOX_OP_KDONE, NI_OP_KDONE) && SAME(NI_BOX_OP_DONE, NI_OP_DONE) &&
                   SAME(NI_BOX_OP_RETIRED, NI_OP_RETIRED) && SAME(NI_BOX_OP_GIVEN_UP, NI_OP_GIVEN_UP) &&
                   SAME(NI_BOX_OP_SETTLED, NI_OP_SETTLED) && SAME(NI_BOX_WANT_UNKNOWN, NI_WANT_UNKNOWN),
               "the state word is the box's");
_Static_assert(NI_BOX_KINDS == NI_KIND_COUNT && SAME(NI_BOX_MASK_OFF, NI_MASK_OFF) && NI_COMM_FREE == 0 &&
                   NI_COMM_LIVE == 1 && NI_COMM_CLOSING == 2 && NI_CLOCK_GETTIME == 0 && NI_CLOCK_TSC == 1 &&
                   NI_CLOCK_CNTVCT == 2 && NI_H_GEN_BITS == 28,
               "numbers that ni_box.h states");
_Static_assert(SAME(NI_BOX_ORIGIN_CALLED, NI_OP_CALLED) && SAME(NI_BOX_ORIGIN_REPLAYED, NI_OP_REPLAYED) &&
                   SAME(NI_BOX_ORIGIN_API, NI_OP_API) && SAME(NI_BOX_ORIGIN_CE, NI_OP_CE) &&
                   SAME(NI_BOX_ORIGIN_SYMMETRIC, NI_OP_SYMMETRIC) && SAME(NI_BOX_ORIGIN_FUSED, NI_OP_FUSED) &&
                   SAME(NI_BOX_PROXY_SEND, NI_EVF_SEND) && SAME(NI_BOX_PROXY_PARENT, NI_EVF_PARENT) &&
                   SAME(NI_BOX_PHASE_PEER_CREDIT, NI_PH_PEER_CREDIT) && SAME(NI_BOX_PHASE_WIRE, NI_PH_WIRE) &&
                   SAME(NI_BOX_PHASE_COUNT, NI_PH_COUNT) && SAME(NI_EVS_LIVE, NI_BOX_OP_LIVE) &&
                   SAME(NI_EVS_CLOSED, NI_BOX_OP_CLOSED),
               "what it says of calls and of network operations");

static const struct ni_box_field fields[NI_BOX_FIELD_COUNT] = {
#define OP struct ni_op
#define PROXY struct ni_proxy_slot
#define COMM struct ni_comm
#define KIND struct ni_comm_kind
#define CELL struct ni_chan_cell
#define TEXT struct ni_interned
#define ANNEX struct ni_annex
#define FIELD(of, name, member, bytes) {offsetof(of, member), sizeof(((of *)0)->member)},
    NI_BOX_FIELDS(FIELD)
#undef FIELD
};
_Static_assert(sizeof(struct ni_comm) <= UINT16_MAX, "places are 16 bits");

/* ---- words that others read ---- */

#define PUT(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELAXED)
/* names what was stored before */
#define NAME(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELEASE)

/* `end` is stored last: who finds it finds the time and the count that belong to it. */
static void say_end(struct ni_box_header *h, enum ni_box_end end) {
  PUT(h->end_unix_ns, ni_realtime_ns());
  __atomic_store_n(&h->end, (uint32_t)end, __ATOMIC_SEQ_CST);
}

/* ---- making ---- */

int ni_keep_open_arena(struct ni_keeper *b, struct ni_arena *a, const struct ni_config *c) {
  memset(b, 0, sizeof *b);
  b->wanted = c->blackbox_dir[0] != 0;
  uint32_t coll = (uint32_t)c->coll_pool_slots, p2p = (uint32_t)c->p2p_pool_slots;
  if (b->wanted) {
    char host[256], boot_id[64];
    ni_host_name(host, sizeof host);
    ni_process_boot_id(boot_id, sizeof boot_id);
    (void)ni_box_prune(c->blackbox_dir, boot_id);
    int rc = ni_box_file_make(&b->file, c->blackbox_dir, host, getpid(), ni_arena_box_min_bytes(),
                              ni_arena_box_max_bytes(c->pool_max_bytes), b->why);
    if (rc == 0) {
      rc = ni_arena_open(a, c->pool_max_bytes, coll, p2p, &b->file);
      if (rc == 0) {
        if (!c->dump_thread)
          ni_arena_commit(a, NO_THREAD_COMMIT);
        b->h = ni_arena_page(a, NI_FRONT_HEADER);
        return 0;
      }
      snprintf(b->why, sizeof b->why, "%.100s: %s", c->blackbox_dir, strerror(-rc));
      ni_box_file_remove(&b->file);
    }
  }
  return ni_arena_open(a, c->pool_max_bytes, coll, p2p, NULL);
}

static uint64_t offset_of(const struct ni_arena *a, const void *p) {
  return (uint64_t)((const unsigned char *)p - a->base);
}

static struct ni_box_piece piece(uint64_t page, uint64_t bytes, uint32_t stride, uint32_t entries) {
  return (struct ni_box_piece){page * NI_PAGE_BYTES, bytes, stride, entries};
}

static void copy_text(char *to, size_t cap, const char *from) {
  size_t n = strnlen(from, cap - 1);
  memcpy(to, from, n);
  to[n] = 0;
}

void ni_keep_begin(struct ni_keeper *b, const struct ni_arena *a, const struct ni_keep_owner *o) {
  struct ni_box_header *h = b->h;
  if (!h)
    return;
  h->byte_order = NI_BOX_BYTE_ORDER;
  h->version = NI_BOX_VERSION;
  h->header_bytes = sizeof *h;
  h->n_fields = NI_BOX_FIELD_COUNT;
  h->page_bytes = NI_PAGE_BYTES;
  h->slot_bytes = NI_SLOT_BYTES;
  h->comm_pages = NI_COMM_PAGES;
  h->comm_class = NI_CHUNK_COMM;
  h->op_classes = 1u << NI_CHUNK_OP_FIRST | 1u << NI_CHUNK_OP_COLL | 1u << NI_CHUNK_OP_P2P;
  h->data_page = a->hdr->region[NI_REGION_BOX].first;
  h->n_pages = a->hdr->region[NI_REGION_BOX].end;
  h->proxy_class = NI_CHUNK_PROXY;
  h->proxy_bytes = sizeof(struct ni_proxy_slot);
  h->proxy_chunk_pages = a->hdr->chunk_pages[NI_CHUNK_PROXY];
  h->kind_stride = sizeof(struct ni_comm_kind);
  h->cell_stride = sizeof(struct ni_chan_cell);
  copy_text(h->producer, sizeof h->producer, NI_PRODUCER " " NI_VERSION);
  copy_text(h->git_rev, sizeof h->git_rev, NI_GIT_REV);
  h->pid = o->pid;
  h->pid_namespace = ni_box_pid_namespace();
  h->start_ticks = ni_box_start_ticks(o->pid);
  h->uid = (uint32_t)geteuid();
  h->clock_source = (uint32_t)ni_g.clock.source;
  h->made_ns = ni_realtime_ns();
  copy_text(h->boot_id, sizeof h->boot_id, o->boot_id);
  copy_text(h->hostname, sizeof h->hostname, o->hostname);
  copy_text(h->exe, sizeof h->exe, o->exe);
  h->rank = o->job->rank;
  h->local_rank = o->job->local_rank;
  h->world_size = o->job->world_size;
  h->nccl_version = ni_g.nccl_version > 0 ? (uint32_t)ni_g.nccl_version : 0;
  h->library = (uint32_t)ni_g.library;
  h->gpu_khz = ni_g.gpu_khz;
  h->gpu_clock = (uint32_t)ni_g.gpu_clock;
  h->interface = (uint32_t)o->interface;
  h->words = piece(NI_FRONT_WORDS, sizeof *a->hdr, 0, 0);
  h->class_map = piece(NI_FRONT_CLASS_MAP, h->n_pages, 1, h->n_pages);
  h->texts = piece(NI_FRONT_TEXTS, sizeof(struct ni_interned) * NI_INTERN_TEXTS, sizeof(struct ni_interned),
                   NI_INTERN_TEXTS);
  for (uint32_t i = 0; i < 2; i++)
    h->session[i] = piece(NI_FRONT_SESSIONS + i * NI_FRONT_SESSION_PAGES, NI_BOX_SESSION_BYTES, 0, 0);
  h->watermark_at = offset_of(a, &a->hdr->region[NI_REGION_BOX].watermark);
  h->outside_at = offset_of(a, &a->hdr->outside);
  h->session_now = 2;
  memcpy(h->field, fields, sizeof fields);
  ni_keep_clock(b, &ni_g.clock);
  ni_keep_heartbeat(b, ni_monotonic_ns(), 0);
  memcpy(h->magic, NI_BOX_MAGIC, sizeof h->magic);
  ni_keep_state(b, 0); /* until the first communicator: the process may leave before it */
  say_end(h, NI_BOX_END_NOT_YET);
  int rc = ni_box_file_publish(&b->file);
  if (rc == 0)
    return;
  snprintf(b->why, sizeof b->why, "%.100s: %s", b->file.path, strerror(-rc));
  b->h = NULL; /* the arena goes on in a file without a name, which ends with the process */
}

void ni_keep_drop(struct ni_keeper *b) {
  if (b->h)
    ni_box_file_remove(&b->file);
  memset(b, 0, sizeof *b);
}

/* ---- keeping ---- */

void ni_keep_session(struct ni_keeper *b, const struct ni_arena *a, uint64_t start_ns, const char *dir,
                     const char *file, const char *line, size_t line_bytes) {
  struct ni_box_header *h = b->h;
  if (!h)
    return;
  uint32_t next = h->session_now == 0;
  struct ni_box_session s = {
      .start_ns = start_ns, .dir_bytes = (uint32_t)strlen(dir), .file_bytes = (uint32_t)strlen(file)};
  uint64_t at = h->session[next].at, room = NI_BOX_SESSION_BYTES - sizeof s;
  while (line_bytes && line[line_bytes - 1] == '\n')
    line_bytes--;
  s.line_bytes = (uint32_t)line_bytes;
  /* cannot be: the three have their bounds */
  if ((uint64_t)s.dir_bytes + s.file_bytes + s.line_bytes > room)
    return;
  uint64_t bytes = sizeof s + s.dir_bytes + s.file_bytes + s.line_bytes;
  if (ni_box_file_commit(&b->file, at, at + bytes))
    return; /* recover then tells the file by its own name */
  unsigned char *p = a->base + at;
  memcpy(p, &s, sizeof s);
  memcpy(p + sizeof s, dir, s.dir_bytes);
  memcpy(p + sizeof s + s.dir_bytes, file, s.file_bytes);
  memcpy(p + sizeof s + s.dir_bytes + s.file_bytes, line, s.line_bytes);
  PUT(h->expired_records[next], 0);
  NAME(h->session_now, next);
}

void ni_keep_expired(struct ni_keeper *b, uint64_t records) {
  struct ni_box_header *h = b->h;
  if (h && h->session_now < 2)
    PUT(h->expired_records[h->session_now], records);
}

void ni_keep_clock(struct ni_keeper *b, const struct ni_clock *c) {
  struct ni_box_header *h = b->h;
  if (!h)
    return;
  uint32_t next = h->clock_now ^ 1;
  h->clock[next] =
      (struct ni_box_clock){c->mult, c->newest.ticks, c->newest.monotonic_ns, c->newest.realtime_ns};
  NAME(h->clock_now, next);
}

void ni_keep_heartbeat(struct ni_keeper *b, uint64_t now_ns, uint32_t promised_ms) {
  struct ni_box_header *h = b->h;
  if (!h)
    return;
  PUT(h->heartbeat_ns, now_ns);
  PUT(h->heartbeat_unix_ns, ni_realtime_ns());
  PUT(h->heartbeat_every_ms, promised_ms);
  PUT(h->committed_pages, ni_load_rlx(&ni_g.arena.hdr->region[NI_REGION_BOX].limit));
  PUT(h->refused_communicators, ni_load_rlx(&ni_g.refused_comms));
  _Static_assert(NI_STRAY_COUNT <= sizeof h->process_stray / sizeof *h->process_stray, "all causes fit");
  for (int i = 0; i < NI_STRAY_COUNT; i++)
    PUT(h->process_stray[i], ni_load_rlx(&ni_g.stray[i]));
}

void ni_keep_fit(struct ni_comm *c, const struct ni_gpu_relation *r, uint8_t poisoned) {
  c->fit_offset_ns = r->offset_ns;
  c->fit_at_ns = r->confirmed_at_ns;
  c->fit_samples = r->n_samples;
  c->poisoned = poisoned;
}

void ni_keep_state(struct ni_keeper *b, int live) {
  if (!b->h)
    return;
  say_end(b->h, live ? NI_BOX_END_NOT_YET : NI_BOX_END_FINALIZED);
  __atomic_store_n(&b->h->state, live ? NI_BOX_LIVE : NI_BOX_EMPTY, __ATOMIC_SEQ_CST);
}

/* The dump thread may finalize meanwhile (say_end in ni_keep_state): what it says then stays. */
void ni_keep_exited(struct ni_keeper *b, uint64_t unwritten, int error) {
  if (!b->h)
    return;
  uint32_t not_yet = NI_BOX_END_NOT_YET;
  /* Pairs with the store of say_end. Finalized: nothing has come since then. */
  if (__atomic_load_n(&b->h->end, __ATOMIC_ACQUIRE) == NI_BOX_END_FINALIZED)
    return;
  PUT(b->h->unwritten, unwritten);
  PUT(b->h->unwritten_error, error);
  PUT(b->h->end_unix_ns, ni_realtime_ns());
  (void)__atomic_compare_exchange_n(&b->h->end, &not_yet, NI_BOX_END_EXITED, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_RELAXED);
}

void ni_keep_longest(struct ni_keeper *b, uint64_t operation_ns, uint64_t gap_ns) {
  if (!b->h)
    return;
  PUT(b->h->longest_operation_ns, operation_ns);
  PUT(b->h->longest_gap_ns, gap_ns);
}

void ni_keep_end(struct ni_keeper *b) {
  if (!b->h)
    return;
  ni_keep_state(b, 0);
  ni_box_file_remove(&b->file);
}
