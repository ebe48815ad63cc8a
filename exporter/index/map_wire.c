#include "map_wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "exporter/base/array.h"

static void wire_context(struct ni_wire *w, struct ni_granules *g, size_t i) {
  struct ni_granule_context c = w->load ? (struct ni_granule_context){0} : g->context[i];
  const char **const text[] = {NI_CONTEXT_TEXTS(&c)};
  uint32_t no = 0;
  NI_WIRE(w, &c.ident.comm_hash, &c.ident.rank, &c.ident.n_ranks, &c.ident.nnodes, &c.meta.pid,
          &c.p2p_sampled);
  for (int k = 0; k < NI_N_CONTEXT_TEXTS; k++) {
    char *of = (char *)(uintptr_t)*text[k];
    ni_wire_text(w, &of);
    *text[k] = of;
  }
  if (!w->load)
    return;
  /* A line without these has them as "". */
  w->bad |=
      !c.meta.version || !c.meta.hostname || ni_granules_context(g, &c.ident, &c.meta, &no) < 0 || no != i;
  if (!w->bad)
    g->context[no].p2p_sampled = c.p2p_sampled;
  for (int k = 0; k < NI_N_CONTEXT_TEXTS; k++)
    free((char *)(uintptr_t)*text[k]);
}

static void wire_sort(struct ni_wire *w, struct ni_granules *g, size_t i) {
  struct ni_granule_sort s = w->load ? (struct ni_granule_sort){0} : g->sort[i];
  char *func = (char *)(uintptr_t)s.func;
  uint32_t kind = s.kind, no = 0;
  NI_WIRE(w, &s.context, &kind, &func, &s.records);
  if (s.records)
    NI_WIRE(w, &s.untimed, &s.min_sn, &s.max_sn);
  if (!w->load)
    return;
  w->bad |= s.context >= g->n_contexts || kind > NI_SORT_EVENT || !func;
  w->bad |= (kind != NI_SORT_OP && s.records) || s.min_sn > s.max_sn;
  w->bad |= !w->bad && (ni_granules_sort(g, s.context, (enum ni_sort_kind)kind, func, &no) < 0 || no != i);
  free(func);
  if (w->bad)
    return;
  struct ni_granule_sort *to = &g->sort[no];
  to->records = s.records;
  to->untimed = s.untimed;
  if (s.records) {
    to->min_sn = s.min_sn;
    to->max_sn = s.max_sn;
  }
}

/* A number that is not below another one: only the difference is stored. */
static void wire_difference(struct ni_wire *w, uint64_t low, uint64_t *high) {
  uint64_t more = *high - low;
  ni_wire_u64(w, &more);
  *high = low + more;
  w->bad |= *high < low;
}

static void wire_sort_list(struct ni_wire *w, struct ni_granules *g, struct ni_granule *x) {
  size_t n = x->n_sorts;
  uint32_t next = 0;
  ni_wire_count(w, &n, 1);
  if (w->load)
    x->first_sort = (uint32_t)g->n_list;
  for (size_t i = 0; i < n && !w->bad; i++) {
    uint32_t gap = w->load ? 0 : g->list[x->first_sort + i] - next;
    ni_wire_u32(w, &gap);
    next += gap;
    if (!w->load) {
      next++;
      continue;
    }
    w->bad |= next >= g->n_sorts || next < gap || !ni_array_room(g->list, g->n_list, g->cap_list);
    if (w->bad)
      return;
    g->list[g->n_list++] = next++;
    x->n_sorts++;
  }
}

/* From when to when the granule's operations ran, in us relative to the times that are known of it. */
static void wire_reach(struct ni_wire *w, struct ni_granule *x, int64_t *before_us) {
  enum { ANY = 1, ENDLESS = 2, PROCESS = 4 };
  const int64_t most = INT64_MAX / 1000 - 1;
  bool has_time = x->begin_ns <= x->end_ns, endless = x->end_ns == INT64_MAX;
  uint32_t how =
      (has_time ? ANY : 0) | (has_time && endless ? ENDLESS : 0) | (x->process_lines ? PROCESS : 0);
  ni_wire_below(w, &how, 8);
  x->process_lines = how & PROCESS;
  if (!(how & ANY))
    return;
  int64_t base = x->records ? x->first_us : *before_us, begin = x->begin_ns / 1000,
          end = w->load || endless ? begin : (x->end_ns - 1) / 1000 + 1;
  int64_t of_begin = (int64_t)((uint64_t)begin - (uint64_t)base);
  ni_wire_i64(w, &of_begin);
  if (w->load)
    begin = (int64_t)((uint64_t)base + (uint64_t)of_begin);
  if (!x->records)
    *before_us = begin;
  base = x->records ? x->last_us : begin;
  int64_t of_end = (int64_t)((uint64_t)end - (uint64_t)base);
  if (!(how & ENDLESS))
    ni_wire_i64(w, &of_end);
  if (!w->load)
    return;
  end = (int64_t)((uint64_t)base + (uint64_t)of_end);
  const bool has_wrong_end = !(how & ENDLESS) && (end < begin || end > most);
  w->bad |= begin < 0 || begin > most || has_wrong_end;
  if (w->bad)
    return;
  x->begin_ns = begin * 1000;
  x->end_ns = how & ENDLESS ? INT64_MAX : end * 1000;
}

/* Times are told by what they are behind those of the granule before: they are near. */
static void wire_granule(struct ni_wire *w, struct ni_granules *g, struct ni_granule *x, int64_t *before_us) {
  NI_WIRE(w, &x->bytes, &x->crc, &x->records);
  if (x->records) {
    int64_t first = (int64_t)((uint64_t)x->first_us - (uint64_t)*before_us);
    uint64_t span = (uint64_t)x->last_us - (uint64_t)x->first_us;
    NI_WIRE(w, &first, &span);
    x->first_us = (int64_t)((uint64_t)*before_us + (uint64_t)first);
    x->last_us = (int64_t)((uint64_t)x->first_us + span);
    *before_us = x->first_us;
    w->bad |= x->last_us < x->first_us;
    ni_wire_u64(w, &x->min_bytes);
    wire_difference(w, x->min_bytes, &x->max_bytes);
    ni_wire_u64(w, &x->min_sn);
    wire_difference(w, x->min_sn, &x->max_sn);
  }
  wire_reach(w, x, before_us);
  wire_sort_list(w, g, x);
}

/* Whoever wrote the window: ni_reader_open() bears anything. */
static void wire_entry(struct ni_wire *w, struct ni_granule *x) {
  struct ni_member_entry *e = &x->entry;
  uint32_t bits = e->bits;
  NI_WIRE(w, &x->text, &e->n);
  if (!e->n)
    return;
  ni_wire_below(w, &bits, 8);
  ni_wire_u32(w, &e->skip);
  const uint8_t *window = ni_wire_bytes(w, e->window, e->n);
  if (!w->load)
    return;
  w->bad |= !window;
  e->bits = (uint8_t)bits;
  e->window = window;
  if (w->bad)
    e->n = 0;
}

static void wire_granules(struct ni_wire *w, struct ni_granules *g) {
  size_t n = g->n;
  int64_t before_us = 0;
  uint64_t at = 0, records = 0, text = 0;
  ni_wire_count(w, &n, 4);
  w->bad |= n == 0 || n >= UINT32_MAX;
  for (size_t i = 0; i < n && !w->bad; i++) {
    if (w->load) {
      if (i && !ni_array_room(g->item, g->n, g->cap))
        w->bad = true;
      if (w->bad)
        return;
      g->n = i + 1;
      g->item[i] = (struct ni_granule){.at = at,
                                       .first_us = INT64_MAX,
                                       .last_us = INT64_MIN,
                                       .min_bytes = UINT64_MAX,
                                       .min_sn = UINT64_MAX,
                                       .begin_ns = INT64_MAX,
                                       .end_ns = INT64_MIN};
    }
    struct ni_granule *x = &g->item[i];
    wire_granule(w, g, x, &before_us);
    if (g->entries)
      wire_entry(w, x);
    w->bad |= x->bytes == 0 || x->bytes > INT64_MAX - at || x->records > UINT64_MAX - records;
    w->bad |= w->load && x->text > INT64_MAX - text;
    at += x->bytes;
    records += x->records;
    text += x->text; /* that of granules that follow each other is added up where they are read */
  }
  if (!w->load || w->bad)
    return;
  g->end = at;
  w->bad |= !g->odd && records != g->records;
  for (uint32_t i = 0, m = (uint32_t)g->n; i < g->item[m - 1].n_sorts; i++)
    g->seen[g->list[g->item[m - 1].first_sort + i]] = m;
}

/*
 * A clock line is told by what it is behind the one before; a text has its length, which is not 0, before it.
 */
static void wire_kept(struct ni_wire *w, struct ni_granules *g) {
  struct ni_kept k = {0}, clock = {0};
  for (size_t i = 0; !w->bad && (w->load ? w->at < w->end : i < g->n_kept); i++) {
    const uint32_t granule = k.granule;
    if (!w->load)
      k = g->kept[i];
    uint32_t on = k.granule - granule;
    uint64_t len = k.len;
    NI_WIRE(w, &on, &len);
    k.granule = granule + on;
    w->bad |= k.granule < granule || k.granule >= g->n;
    if (len) {
      const uint8_t *text = ni_wire_bytes(w, g->kept_text ? g->kept_text + k.at : NULL, len);
      w->bad |= w->load && (!text || ni_kept_text(g, k.granule, (const char *)text, len) < 0);
      continue;
    }
    uint32_t context = k.context;
    int64_t at = (int64_t)((uint64_t)k.at_ns - (uint64_t)clock.at_ns),
            offset = (int64_t)((uint64_t)k.offset_ns - (uint64_t)clock.offset_ns);
    ni_wire_below(w, &context, g->n_contexts);
    NI_WIRE(w, &at, &offset);
    clock.at_ns = (int64_t)((uint64_t)clock.at_ns + (uint64_t)at);
    clock.offset_ns = (int64_t)((uint64_t)clock.offset_ns + (uint64_t)offset);
    w->bad |= w->load && !w->bad && ni_kept_clock(g, k.granule, context, clock.at_ns, clock.offset_ns) < 0;
  }
}

int ni_map_unpack(struct ni_granules *g) {
  uLongf n = g->n_unpacked;
  uint8_t *bytes = n ? malloc(n) : NULL;
  if (!n)
    return 0;
  if (!bytes)
    return -ENOMEM;
  bool is_unpacked = uncompress(bytes, &n, g->packed, g->n_packed) == Z_OK && n == g->n_unpacked;
  struct ni_wire w = ni_wire_load(bytes, is_unpacked ? n : 0);
  wire_kept(&w, g);
  is_unpacked &= ni_wire_over(&w) && !g->odd;
  free(bytes);
  g->packed = NULL;
  g->n_packed = g->n_unpacked = 0;
  return is_unpacked ? 0 : -EBADMSG;
}

/* Deflated; what was loaded and not asked for goes as it came. */
static void wire_packed(struct ni_wire *w, struct ni_granules *g) {
  struct ni_wire kept = {0};
  size_t n = g->n_packed, unpacked = g->n_unpacked;
  uint8_t *packed = NULL;
  if (!w->load && g->n_kept) {
    wire_kept(&kept, g);
    uLongf size = compressBound(kept.n);
    packed = malloc(size);
    w->bad |=
        kept.bad || !packed || compress2(packed, &size, kept.bytes, kept.n, Z_DEFAULT_COMPRESSION) != Z_OK;
    n = size;
    unpacked = kept.n;
  }
  uint64_t told = unpacked;
  ni_wire_u64(w, &told);
  ni_wire_count(w, &n, 1);
  const uint8_t *at = w->bad ? NULL : ni_wire_bytes(w, packed ? packed : g->packed, n);
  ni_wire_free(&kept);
  free(packed);
  if (!w->load)
    return;
  w->bad |= told > 2 * (uint64_t)NI_KEPT_MAX || (told > 0) != (n > 0);
  w->bad |= (n && !at) || (g->odd && g->n != 1);
  if (w->bad)
    return;
  g->packed = at;
  g->n_packed = n;
  g->n_unpacked = told;
}

void ni_map_wire(struct ni_wire *w, struct ni_granules *g) {
  size_t contexts = g->n_contexts, sorts = g->n_sorts;
  NI_WIRE(w, &g->odd, &g->closed, &g->gzip, &g->proxy, &g->api, &g->launches, &g->net, &g->entries);
  NI_WIRE(w, &g->first_ns, &g->last_ns, &g->last_dump_us, &g->records);
  if (g->records)
    ni_wire_i64(w, &g->origin_ns);
  ni_wire_count(w, &contexts, 8);
  for (size_t i = 0; i < contexts && !w->bad; i++)
    wire_context(w, g, i);
  ni_wire_count(w, &sorts, 4);
  w->bad |= sorts > NI_SORTS_MAX;
  for (size_t i = 0; i < sorts && !w->bad; i++)
    wire_sort(w, g, i);
  wire_granules(w, g);
  wire_packed(w, g);
}
