#include "batch.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/utf8.h"
#include "exporter/input/box/box.h"
#include "exporter/model/hang/model.h"

const char *const ni_live_size_name[NI_LIVE_SIZES] = {"0-4Ki",    "4Ki-64Ki",   "64Ki-1Mi",
                                                      "1Mi-16Mi", "16Mi-256Mi", "256Mi-"};
const uint64_t ni_live_size_from[NI_LIVE_SIZES] = {0, 4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20};
const uint64_t ni_live_took_ns[NI_LIVE_TOOK] = {10000,      25000,      100000,      250000,     1000000,
                                                2500000,    10000000,   25000000,    100000000,  250000000,
                                                1000000000, 5000000000, 15000000000, 60000000000};
const uint64_t ni_live_bus_bytes_s[NI_LIVE_BUS] = {100000000,    1000000000,   5000000000,   10000000000,
                                                   25000000000,  50000000000,  100000000000, 200000000000,
                                                   300000000000, 400000000000, 800000000000, 2000000000000};

/* The bytes: this, then the arrays in the order of `parts`. Its pointers mean nothing there. */
struct wire {
  uint32_t bytes, pad;
  struct ni_live_batch b;
};

/* ---- what is sound ---- */

static bool is_valid_counts(const void *item) {
  const struct ni_live_counts *c = item;
  uint64_t took = 0, bus = 0;
  for (int i = 0; i <= NI_LIVE_TOOK; i++)
    took += c->took[i];
  for (int i = 0; i <= NI_LIVE_BUS; i++)
    bus += c->bus[i];
  return c->size_class < NI_LIVE_SIZES && took == c->timed && bus == c->bus_n && c->timed <= c->n &&
      c->bus_n <= c->timed && isfinite(c->bus_sum) && c->bus_sum >= 0;
}

static bool is_valid_nvidia(const void *item) {
  const struct ni_live_nvidia *v = item;
  return v->size_log2 < 64 && v->n && v->bus_n <= v->n && isfinite(v->log_bus_gbs) && isfinite(v->us) &&
      v->us >= 0;
}

static bool is_valid_process(const void *item) {
  const struct ni_live_process *p = item;
  return p->life < NI_LIFE_COUNT && p->pid >= 0 && p->rank >= -1 && p->world >= -1;
}

static bool is_valid_open(const void *item) {
  const struct ni_live_open *o = item;
  return o->kind < NI_KIND_COUNT && o->state < NI_HANG_STATE_COUNT && o->stuck <= o->in_flight &&
      o->comm_rank >= 0;
}

struct piece { /* text: of so many bytes; numbers: so many of 8 bytes, none above INT64_MAX */
  uint16_t at, n;
};
#define TEXT(tag, member) {offsetof(struct tag, member), sizeof(((struct tag *)0)->member)}
#define WHO(tag) TEXT(tag, who.job), TEXT(tag, who.attempt), TEXT(tag, who.comm), TEXT(tag, who.gpu_pci)

static const struct part {
  size_t n, at, size; /* n, at: in struct ni_live_batch */
  uint32_t most, kind;
  bool who;      /* it begins with a struct ni_live_who */
  uint16_t flag; /* where a bool is; 0: none */
  bool (*ok)(const void *item);
  struct piece text[6], number[3];
} parts[] = {
#define PART(tag, array, max, of, ...) \
  {.n = offsetof(struct ni_live_batch, n_##array), \
   .at = offsetof(struct ni_live_batch, array), \
   .size = sizeof(struct tag), \
   .most = (max), \
   .kind = (of), \
   __VA_ARGS__}
    PART(ni_live_counts, counts, NI_LIVE_KEYS_MAX, NI_LIVE_LOGS, .who = true, .ok = is_valid_counts,
         .text = {WHO(ni_live_counts), TEXT(ni_live_counts, func)},
         .number = {{offsetof(struct ni_live_counts, n), 7}, {offsetof(struct ni_live_counts, late_n), 4}}),
    PART(ni_live_nvidia, nvidia, NI_LIVE_KEYS_MAX, NI_LIVE_LOGS, .who = true, .ok = is_valid_nvidia,
         .flag = offsetof(struct ni_live_nvidia, p2p),
         .text = {WHO(ni_live_nvidia), TEXT(ni_live_nvidia, func), TEXT(ni_live_nvidia, algo_proto)},
         .number = {{offsetof(struct ni_live_nvidia, n), 2}}),
    PART(ni_live_account, accounts, NI_LIVE_KEYS_MAX, NI_LIVE_LOGS, .who = true,
         .flag = offsetof(struct ni_live_account, begins), .text = {WHO(ni_live_account)},
         .number = {{offsetof(struct ni_live_account, started), 4 + NI_FILTER_COUNT + NI_DROP_COUNT}}),
    PART(ni_live_process, processes, NI_LIVE_LOOKS_MAX, NI_LIVE_LOOK, .ok = is_valid_process,
         .text = {TEXT(ni_live_process, job), TEXT(ni_live_process, attempt), TEXT(ni_live_process, host),
                  TEXT(ni_live_process, exe)},
         .number = {{offsetof(struct ni_live_process, start_ns), 2}}),
    PART(ni_live_open, open, NI_LIVE_LOOKS_MAX, NI_LIVE_LOOK, .who = true, .ok = is_valid_open,
         .text = {WHO(ni_live_open), TEXT(ni_live_open, func)},
         .number = {{offsetof(struct ni_live_open, started), NI_KIND_COUNT + 2},
                    {offsetof(struct ni_live_open, sn), 4}}),
    PART(ni_live_hang, hangs, 1, NI_LIVE_LOOK, .flag = offsetof(struct ni_live_hang, certain),
         .text = {TEXT(ni_live_hang, job), TEXT(ni_live_hang, attempt), TEXT(ni_live_hang, sentence),
                  TEXT(ni_live_hang, path)}),
};
enum { PARTS = sizeof parts / sizeof *parts };

static bool are_texts_valid(const char *base, const struct piece *p, size_t n) {
  for (size_t i = 0; i < n && p[i].n; i++) {
    const char *end = memchr(base + p[i].at, 0, p[i].n);
    if (!end || !ni_utf8_valid(base + p[i].at, (size_t)(end - base) - p[i].at))
      return false;
  }
  return true;
}

static bool are_numbers_valid(const char *base, size_t at, size_t n) {
  for (uint64_t v; n--; at += 8) {
    memcpy(&v, base + at, 8);
    if (v > INT64_MAX)
      return false;
  }
  return true;
}

static bool is_valid_item(const struct part *p, const char *item) {
  const struct ni_live_who *w = (const void *)item;
  for (size_t i = 0; i < sizeof p->number / sizeof *p->number; i++)
    if (!are_numbers_valid(item, p->number[i].at, p->number[i].n))
      return false;
  return are_texts_valid(item, p->text, sizeof p->text / sizeof *p->text) &&
      (!p->who || (w->rank >= -1 && w->gpu >= -1)) && (!p->flag || (unsigned char)item[p->flag] <= 1) &&
      (!p->ok || p->ok(item));
}

static bool is_valid_file(const struct ni_live_batch *b) {
  static const struct piece text[] = {TEXT(ni_live_file, job), TEXT(ni_live_file, attempt),
                                      TEXT(ni_live_file, path)};
  const struct ni_live_file *f = &b->file;
  return f->from <= f->to && f->to <= INT64_MAX && f->pid >= 0 && f->rank >= -1 && f->start_ns <= INT64_MAX &&
      ((const unsigned char *)f)[offsetof(struct ni_live_file, ended)] <= 1 &&
      are_texts_valid((const char *)f, text, 3);
}

/* ---- bytes ---- */

static uint32_t count_items(const struct ni_live_batch *b, const struct part *p) {
  uint32_t n;
  memcpy(&n, (const char *)b + p->n, sizeof n);
  return n;
}

void *ni_live_encode(const struct ni_live_batch *b, size_t *bytes) {
  size_t all = sizeof(struct wire);
  for (int i = 0; i < PARTS; i++)
    all += count_items(b, &parts[i]) * parts[i].size;
  struct wire *w = all <= NI_LIVE_BATCH_MAX ? malloc(all) : NULL;
  if (!w)
    return NULL;
  *w = (struct wire){.bytes = (uint32_t)all, .b = *b};
  char *at = (char *)(w + 1);
  for (int i = 0; i < PARTS; i++) {
    size_t n = count_items(b, &parts[i]) * parts[i].size;
    const void *from;
    memcpy(&from, (const char *)b + parts[i].at, sizeof from);
    if (n)
      memcpy(at, from, n);
    at += n;
  }
  *bytes = all;
  return w;
}

int ni_live_decode(struct ni_live_batch *b, void *bytes, size_t len, size_t *took) {
  struct wire *w = bytes;
  if (len < sizeof w->bytes)
    return 0;
  if (w->bytes < sizeof *w || w->bytes > NI_LIVE_BATCH_MAX)
    return -EBADMSG;
  if (len < w->bytes)
    return 0;
  memcpy(b, &w->b, sizeof *b);
  if (b->kind != NI_LIVE_LOGS && b->kind != NI_LIVE_LOOK)
    return -EBADMSG;
  if (b->kind == NI_LIVE_LOGS && !is_valid_file(b))
    return -EBADMSG;
  if (!are_numbers_valid((const char *)b, offsetof(struct ni_live_batch, totals), sizeof b->totals / 8) ||
      b->behind > INT64_MAX)
    return -EBADMSG;
  size_t at = sizeof *w;
  for (int i = 0; i < PARTS; i++) {
    const struct part *p = &parts[i];
    uint32_t n = count_items(b, p);
    const bool is_of_kind = !n || p->kind == b->kind;
    if (n > p->most || !is_of_kind || n * p->size > w->bytes - at)
      return -EBADMSG;
    char *item = n ? (char *)bytes + at : NULL;
    memcpy((char *)b + p->at, &item, sizeof item);
    for (uint32_t k = 0; k < n; k++)
      if (!is_valid_item(p, item + k * p->size))
        return -EBADMSG;
    at += n * p->size;
  }
  if (at != w->bytes)
    return -EBADMSG;
  *took = at;
  return 1;
}
