/*
 * A black box made by hand, by ni_box.h alone: other places of the fields than the plugin's, so that a reader
 * that knows the plugin's structs fails. For unit tests, as seed of the fuzzer, and for jobs of thousands of
 * ranks (test/host/hanggen.c).
 *
 * Layout: header page, piece page (words, class map), texts page, two session pages, then communicators and
 * operations as they are added. Everything is in one growing block; sbox_write() puts it into a file. Not
 * thread-safe.
 */
#ifndef SYNTHETIC_BOX_H
#define SYNTHETIC_BOX_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ni_box.h"
#include "format/names.h"

/* page classes, bytes of a slot, first page */
enum { SBOX_OPS = 3, SBOX_COMM = 7, SBOX_SLOT = 256, SBOX_DATA = 6 };

struct sbox {
  unsigned char *p;
  uint32_t pages, cap;
  uint32_t op_page, n_ops; /* the page that is being filled */
  uint32_t n_texts;
};

static inline struct ni_box_header *sbox_header(struct sbox *b) {
  return (struct ni_box_header *)(void *)b->p;
}

static inline uint32_t sbox_page(struct sbox *b, uint8_t cls) {
  if (b->pages == b->cap) {
    b->cap = b->cap ? 2 * b->cap : 16;
    b->p = realloc(b->p, (size_t)b->cap * NI_BOX_PAGE_BYTES);
    if (!b->p)
      abort();
  }
  memset(b->p + (size_t)b->pages * NI_BOX_PAGE_BYTES, 0, NI_BOX_PAGE_BYTES);
  if (cls)
    b->p[NI_BOX_PAGE_BYTES + 64 + b->pages] = cls; /* the class map has room for 4,000 pages */
  return b->pages++;
}

/* Backwards, so that no field lies where the plugin has it. */
static inline void sbox_fields(struct ni_box_header *h, int from, int to, uint32_t room,
                               const uint16_t *sizes) {
  uint32_t at = room;
  for (int i = from; i <= to; i++) {
    uint16_t size = sizes[i] ? sizes[i] : ni_box_elem_bytes[i];
    at = (at - size) & ~(uint32_t)7;
    h->field[i] = (struct ni_box_field){(uint16_t)at, size};
  }
}

static inline struct sbox sbox_new(const char *host, int64_t pid, int64_t rank, int64_t world,
                                   uint64_t unix_ns) {
  static const uint16_t sizes[NI_BOX_FIELD_COUNT] = {
      [NI_BOX_COMM_NAME] = 64,     [NI_BOX_COMM_GPU_UUID] = 48, [NI_BOX_COMM_GPU_PCI] = 16,
      [NI_BOX_COMM_STRAY] = 72,    [NI_BOX_KIND_FILTERED] = 24, [NI_BOX_KIND_DROPPED] = 40,
      [NI_BOX_KIND_FALLBACK] = 48, [NI_BOX_TEXT_TEXT] = 24};
  struct sbox b = {0};
  for (int i = 0; i < SBOX_DATA; i++)
    (void)sbox_page(&b, 0);
  struct ni_box_header *h = sbox_header(&b);
  memcpy(h->magic, NI_BOX_MAGIC, 8);
  h->byte_order = NI_BOX_BYTE_ORDER;
  h->version = NI_BOX_VERSION;
  h->header_bytes = sizeof *h;
  h->n_fields = NI_BOX_FIELD_COUNT;
  h->page_bytes = NI_BOX_PAGE_BYTES;
  h->slot_bytes = SBOX_SLOT;
  h->comm_pages = 2;
  h->comm_class = SBOX_COMM;
  h->op_classes = 1u << SBOX_OPS;
  h->data_page = SBOX_DATA;
  h->kind_stride = 256;
  h->cell_stride = 32;
  strcpy(h->producer, "nccl-inspector-c 0.0.test");
  h->pid = pid;
  h->start_ticks = 1;
  h->pid_namespace = 1; /* nobody's: neither alive nor dead by /proc */
  h->made_ns = unix_ns;
  strcpy(h->boot_id, "00000000-0000-0000-0000-000000000000");
  snprintf(h->hostname, sizeof h->hostname, "%s", host);
  strcpy(h->exe, "synthetic");
  h->rank = rank;
  h->local_rank = rank >= 0 ? rank % 8 : -1;
  h->world_size = world;
  h->nccl_version = 23007;
  h->interface = 6;
  h->words = (struct ni_box_piece){NI_BOX_PAGE_BYTES, 64, 0, 0};
  h->class_map = (struct ni_box_piece){NI_BOX_PAGE_BYTES + 64, NI_BOX_PAGE_BYTES - 64, 1, 0};
  h->texts = (struct ni_box_piece){2 * NI_BOX_PAGE_BYTES, NI_BOX_PAGE_BYTES, 32, 128};
  for (int i = 0; i < 2; i++)
    h->session[i] = (struct ni_box_piece){(3u + (unsigned)i) * NI_BOX_PAGE_BYTES, NI_BOX_PAGE_BYTES, 0, 0};
  h->watermark_at = NI_BOX_PAGE_BYTES;
  h->outside_at = NI_BOX_PAGE_BYTES + 4;
  h->state = NI_BOX_LIVE;
  h->session_now = 2;
  h->heartbeat_ns = 1000000000000;
  h->heartbeat_unix_ns = unix_ns;
  h->heartbeat_every_ms = 100;
  /* One tick is one ns, and tick 0 is the Unix epoch: tests write Unix times as ticks. */
  h->clock[0] = (struct ni_box_clock){UINT64_C(1) << 40, unix_ns, unix_ns, unix_ns};
  sbox_fields(h, NI_BOX_OP_STATE, NI_BOX_OP_NCHANNELS, SBOX_SLOT, sizes);
  sbox_fields(h, NI_BOX_KIND_STARTED, NI_BOX_KIND_FALLBACK, 256, sizes);
  sbox_fields(h, NI_BOX_CELL_OPEN, NI_BOX_CELL_START_NS, 32, sizes);
  sbox_fields(h, NI_BOX_TEXT_READY, NI_BOX_TEXT_TEXT, 0, sizes);
  uint32_t at = 0;
  for (int i = NI_BOX_TEXT_READY; i <= NI_BOX_TEXT_TEXT; i++) {
    uint16_t size = sizes[i] ? sizes[i] : ni_box_elem_bytes[i];
    h->field[i] = (struct ni_box_field){(uint16_t)at, size};
    at += size;
  }
  uint32_t room = 2 * NI_BOX_PAGE_BYTES;
  for (int i = NI_BOX_COMM_STATE; i <= NI_BOX_COMM_POISONED; i++) {
    uint16_t size = i == NI_BOX_COMM_KIND ? 1
        : i == NI_BOX_COMM_CELL           ? 1
        : sizes[i]                        ? sizes[i]
                                          : ni_box_elem_bytes[i];
    if (i == NI_BOX_COMM_KIND || i == NI_BOX_COMM_CELL)
      continue;
    room = (room - size) & ~7u;
    h->field[i] = (struct ni_box_field){(uint16_t)room, size};
  }
  h->field[NI_BOX_COMM_KIND] = (struct ni_box_field){4096, 1};
  h->field[NI_BOX_COMM_CELL] = (struct ni_box_field){0, 1};
  h->field[NI_BOX_OP_CALL_SN] = (struct ni_box_field){0, 4};
  h->field[NI_BOX_OP_ORIGIN] = (struct ni_box_field){8, 1};
  h->field[NI_BOX_COMM_CALLS] = (struct ni_box_field){5120, 16};
  h->field[NI_BOX_COMM_API_SN] = (struct ni_box_field){5136, 8 * NI_FUNC_COUNT};
  return b;
}

static inline void sbox_set(struct sbox *b, unsigned char *base, enum ni_box_field_id id, uint32_t i,
                            uint64_t v) {
  const struct ni_box_field *f = &sbox_header(b)->field[id];
  uint32_t size = ni_box_elem_bytes[id], v4 = (uint32_t)v;
  unsigned char *p = base + f->at + (size_t)i * size;
  if (size == 8)
    memcpy(p, &v, 8);
  else if (size == 4)
    memcpy(p, &v4, 4);
  else
    *p = (unsigned char)v;
}

/* The number of a text, added when it is new. */
static inline uint8_t sbox_text(struct sbox *b, const char *text) {
  struct ni_box_header *h = sbox_header(b);
  for (uint32_t i = 1; i <= b->n_texts; i++) {
    unsigned char *e = b->p + h->texts.at + (size_t)i * h->texts.stride;
    if (strcmp((char *)e + h->field[NI_BOX_TEXT_TEXT].at, text) == 0)
      return (uint8_t)i;
  }
  unsigned char *e = b->p + h->texts.at + (size_t)++b->n_texts * h->texts.stride;
  strncpy((char *)e + h->field[NI_BOX_TEXT_TEXT].at, text, h->field[NI_BOX_TEXT_TEXT].size - 1u);
  sbox_set(b, e, NI_BOX_TEXT_READY, 0, 1);
  sbox_set(b, e, NI_BOX_TEXT_ELEM_BYTES, 0, strcmp(text, "ncclFloat32") == 0 ? 4 : 1);
  return (uint8_t)b->n_texts;
}

static inline void sbox_session(struct sbox *b, uint64_t start_ns, const char *dir, const char *file,
                                const char *line) {
  struct ni_box_header *h = sbox_header(b);
  struct ni_box_session s = {start_ns, (uint32_t)strlen(dir), (uint32_t)strlen(file), (uint32_t)strlen(line),
                             0};
  unsigned char *p = b->p + h->session[0].at;
  memcpy(p, &s, sizeof s);
  memcpy(p + sizeof s, dir, s.dir_bytes);
  memcpy(p + sizeof s + s.dir_bytes, file, s.file_bytes);
  memcpy(p + sizeof s + s.dir_bytes + s.file_bytes, line, s.line_bytes);
  h->session_now = 0;
}

/* Page of a live communicator. */
static inline uint32_t sbox_comm(struct sbox *b, const char *name, uint64_t hash, int32_t rank,
                                 int32_t n_ranks, uint64_t init_ns) {
  uint32_t page = sbox_page(b, SBOX_COMM);
  (void)sbox_page(b, SBOX_COMM);
  unsigned char *c = b->p + (size_t)page * NI_BOX_PAGE_BYTES;
  sbox_set(b, c, NI_BOX_COMM_STATE, 0, 5 | UINT64_C(1) << 32);
  sbox_set(b, c, NI_BOX_COMM_HASH, 0, hash);
  sbox_set(b, c, NI_BOX_COMM_RANK, 0, (uint32_t)rank);
  sbox_set(b, c, NI_BOX_COMM_N_RANKS, 0, (uint32_t)n_ranks);
  sbox_set(b, c, NI_BOX_COMM_N_NODES, 0, 1);
  sbox_set(b, c, NI_BOX_COMM_HAS_NAME, 0, name != NULL);
  if (name)
    strncpy((char *)c + sbox_header(b)->field[NI_BOX_COMM_NAME].at, name, 63);
  sbox_set(b, c, NI_BOX_COMM_INIT_NS, 0, init_ns);
  sbox_set(b, c, NI_BOX_COMM_INIT_TICKS, 0, init_ns);
  sbox_set(b, c, NI_BOX_COMM_GPU_INDEX, 0, UINT32_MAX);
  return page;
}

static inline unsigned char *sbox_kind(struct sbox *b, uint32_t comm, int kind) {
  return b->p + (size_t)comm * NI_BOX_PAGE_BYTES + 4096 + (size_t)kind * 256;
}

struct sbox_op {
  uint32_t flags, want, started, stopped;
  int kind;
  uint64_t sn, rec_sn, count, start_ns, first_ns, done_ns, gpu_start_ns, gpu_stop_ns;
  int32_t root;
  uint32_t origin, call;
  const char *func, *datatype;
};

/* Adds a slot; raises the communicator's `started`. Returns the slot's number. */
static inline uint32_t sbox_op(struct sbox *b, uint32_t comm, const struct sbox_op *op) {
  const uint32_t per_page = NI_BOX_PAGE_BYTES / SBOX_SLOT;
  if (b->n_ops % per_page == 0)
    b->op_page = sbox_page(b, SBOX_OPS);
  uint32_t slot = b->op_page * per_page + b->n_ops++ % per_page;
  unsigned char *p = b->p + (size_t)slot * SBOX_SLOT;
  const uint32_t gen = 9;
  sbox_set(b, p, NI_BOX_OP_STATE, 0, gen | (uint64_t)op->flags << 32 | (uint64_t)op->want << 40);
  sbox_set(b, p, NI_BOX_OP_PROG, 0, op->started << 16 | op->stopped);
  sbox_set(b, p, NI_BOX_OP_GPU_START_NS, 0, op->gpu_start_ns);
  sbox_set(b, p, NI_BOX_OP_GPU_STOP_NS, 0, op->gpu_stop_ns);
  sbox_set(b, p, NI_BOX_OP_TICKS_FIRST, 0, op->first_ns);
  sbox_set(b, p, NI_BOX_OP_TICKS_DONE, 0, op->done_ns);
  sbox_set(b, p, NI_BOX_OP_TICKS_START, 0, op->start_ns);
  sbox_set(b, p, NI_BOX_OP_COMM_PAGE, 0, comm);
  sbox_set(b, p, NI_BOX_OP_KIND, 0, (uint64_t)op->kind);
  sbox_set(b, p, NI_BOX_OP_SN, 0, op->sn);
  sbox_set(b, p, NI_BOX_OP_REC_SN, 0, op->rec_sn);
  sbox_set(b, p, NI_BOX_OP_COUNT, 0, op->count);
  sbox_set(b, p, NI_BOX_OP_ROOT, 0, (uint32_t)op->root);
  sbox_set(b, p, NI_BOX_OP_FUNC, 0, sbox_text(b, op->func));
  sbox_set(b, p, NI_BOX_OP_DATATYPE, 0, sbox_text(b, op->datatype ? op->datatype : "ncclFloat32"));
  sbox_set(b, p, NI_BOX_OP_ALGO, 0, sbox_text(b, "RING"));
  sbox_set(b, p, NI_BOX_OP_PROTO, 0, sbox_text(b, "SIMPLE"));
  sbox_set(b, p, NI_BOX_OP_NCHANNELS, 0, op->want < 65 ? op->want : 0);
  sbox_set(b, p, NI_BOX_OP_ORIGIN, 0, op->origin);
  sbox_set(b, p, NI_BOX_OP_CALL_SN, 0, op->call);
  for (uint32_t ch = op->flags & NI_BOX_OP_RETIRED ? 64 : op->stopped; ch < op->started && ch < 64; ch++)
    sbox_set(b, b->p + (size_t)comm * NI_BOX_PAGE_BYTES + (size_t)(2 * ch) * 32, NI_BOX_CELL_OPEN, 0,
             (uint64_t)slot << 28 | gen);
  unsigned char *k = sbox_kind(b, comm, op->kind);
  uint64_t started;
  memcpy(&started, k + sbox_header(b)->field[NI_BOX_KIND_STARTED].at, 8);
  if (op->rec_sn >= started)
    sbox_set(b, k, NI_BOX_KIND_STARTED, 0, op->rec_sn + 1);
  return slot;
}

/* The last numbers of the header; then the bytes are whole: b->p, b->pages * 4096. */
static inline void sbox_close(struct sbox *b) {
  struct ni_box_header *h = sbox_header(b);
  h->n_pages = b->pages;
  h->committed_pages = b->pages;
  memcpy(b->p + h->watermark_at, &b->pages, 4);
}

static inline int sbox_write(struct sbox *b, const char *path) {
  sbox_close(b);
  FILE *f = fopen(path, "wbe");
  if (!f)
    return -1;
  size_t n = fwrite(b->p, NI_BOX_PAGE_BYTES, b->pages, f);
  return fclose(f) == 0 && n == b->pages ? 0 : -1;
}

static inline void sbox_free(struct sbox *b) {
  free(b->p);
  memset(b, 0, sizeof *b);
}

#endif
