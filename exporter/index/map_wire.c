#include "map_wire.h"

#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"

static void wire_context(struct ni_wire *w, struct ni_granules *g, size_t i) {
  struct ni_ident d = {0};
  struct ni_meta m = {0};
  bool sampled = false;
  if (!w->load) {
    d = g->context[i].ident;
    m = g->context[i].meta;
    sampled = g->context[i].p2p_sampled;
  }
  char *text[] = {(char *)(uintptr_t)d.comm_name, (char *)(uintptr_t)m.version, (char *)(uintptr_t)m.git_rev,
                  (char *)(uintptr_t)m.rec_mechanism, (char *)(uintptr_t)m.hostname, (char *)(uintptr_t)m.producer};
  ni_wire_u64(w, &d.comm_hash);
  ni_wire_i32(w, &d.rank);
  ni_wire_i32(w, &d.n_ranks);
  ni_wire_i32(w, &d.nnodes);
  ni_wire_i64(w, &m.pid);
  ni_wire_bool(w, &sampled);
  for (int k = 0; k < 6; k++) ni_wire_text(w, &text[k]);
  if (!w->load) return;
  uint32_t no = 0;
  d.comm_name = text[0];
  m.version = text[1];
  m.git_rev = text[2];
  m.rec_mechanism = text[3];
  m.hostname = text[4];
  m.producer = text[5];
  /* A line without these has them as "". */
  w->bad |= !m.version || !m.hostname || ni_granules_context(g, &d, &m, &no) < 0 || no != i;
  if (!w->bad) g->context[no].p2p_sampled = sampled;
  for (int k = 0; k < 6; k++) free(text[k]);
}

static void wire_sort(struct ni_wire *w, struct ni_granules *g, size_t i) {
  struct ni_granule_sort s = {0};
  if (!w->load) s = g->sort[i];
  char *func = (char *)(uintptr_t)s.func;
  uint32_t kind = s.kind, no = 0;
  ni_wire_u32(w, &s.context);
  ni_wire_u32(w, &kind);
  ni_wire_text(w, &func);
  ni_wire_u64(w, &s.records);
  if (s.records) ni_wire_u64(w, &s.min_sn);
  if (s.records) ni_wire_u64(w, &s.max_sn);
  if (!w->load) return;
  w->bad |= s.context >= g->n_contexts || kind > NI_SORT_OTHER || !func || (kind != NI_SORT_OP && s.records) ||
            s.min_sn > s.max_sn;
  w->bad |= !w->bad && (ni_granules_sort(g, s.context, (enum ni_sort_kind)kind, func, &no) < 0 || no != i);
  free(func);
  if (w->bad) return;
  g->sort[no].records = s.records;
  if (!s.records) return;
  g->sort[no].min_sn = s.min_sn;
  g->sort[no].max_sn = s.max_sn;
}

/* A number of which only what it is above another is put. */
static void wire_above(struct ni_wire *w, uint64_t low, uint64_t *high) {
  uint64_t more = *high - low;
  ni_wire_u64(w, &more);
  *high = low + more;
  w->bad |= *high < low;
}

static void wire_list(struct ni_wire *w, struct ni_granules *g, struct ni_granule *x) {
  size_t n = x->n_sorts;
  uint32_t next = 0;
  ni_wire_count(w, &n, 1);
  if (w->load) x->first_sort = (uint32_t)g->n_list;
  for (size_t i = 0; i < n && !w->bad; i++) {
    uint32_t gap = w->load ? 0 : g->list[x->first_sort + i] - next;
    ni_wire_u32(w, &gap);
    next += gap;
    if (!w->load) {
      next++;
      continue;
    }
    w->bad |= next >= g->n_sorts || next < gap || !ni_array_room(g->list, g->n_list, g->cap_list);
    if (w->bad) return;
    g->list[g->n_list++] = next++;
    x->n_sorts++;
  }
}

/* Times are told by what they are behind those of the granule before: they are near. */
static void wire_granule(struct ni_wire *w, struct ni_granules *g, struct ni_granule *x, int64_t *before_us) {
  ni_wire_u64(w, &x->bytes);
  ni_wire_u32(w, &x->crc);
  ni_wire_u64(w, &x->records);
  if (x->records) {
    int64_t first = (int64_t)((uint64_t)x->first_us - (uint64_t)*before_us);
    uint64_t span = (uint64_t)x->last_us - (uint64_t)x->first_us;
    ni_wire_i64(w, &first);
    ni_wire_u64(w, &span);
    x->first_us = (int64_t)((uint64_t)*before_us + (uint64_t)first);
    x->last_us = (int64_t)((uint64_t)x->first_us + span);
    *before_us = x->first_us;
    w->bad |= x->last_us < x->first_us;
    ni_wire_u64(w, &x->min_bytes);
    wire_above(w, x->min_bytes, &x->max_bytes);
    ni_wire_u64(w, &x->min_sn);
    wire_above(w, x->min_sn, &x->max_sn);
  }
  wire_list(w, g, x);
}

/* Whoever wrote the window: ni_reader_open() bears anything. */
static void wire_entry(struct ni_wire *w, struct ni_granule *x) {
  struct ni_member_entry *e = &x->entry;
  uint32_t bits = e->bits;
  ni_wire_u64(w, &x->text);
  ni_wire_u32(w, &e->n);
  if (!e->n) return;
  ni_wire_below(w, &bits, 8);
  ni_wire_u32(w, &e->skip);
  const uint8_t *window = ni_wire_bytes(w, e->window, e->n);
  if (!w->load) return;
  w->bad |= !window;
  e->bits = (uint8_t)bits;
  e->window = window;
  if (w->bad) e->n = 0;
}

static void wire_granules(struct ni_wire *w, struct ni_granules *g) {
  size_t n = g->n;
  int64_t before_us = 0;
  uint64_t at = 0, records = 0, text = 0;
  ni_wire_count(w, &n, 4);
  w->bad |= n == 0 || n >= UINT32_MAX;
  for (size_t i = 0; i < n && !w->bad; i++) {
    if (w->load) {
      if (i && !ni_array_room(g->item, g->n, g->cap)) w->bad = true;
      if (w->bad) return;
      g->n = i + 1;
      g->item[i] = (struct ni_granule){.at = at, .first_us = INT64_MAX, .last_us = INT64_MIN, .min_bytes = UINT64_MAX, .min_sn = UINT64_MAX};
    }
    struct ni_granule *x = &g->item[i];
    wire_granule(w, g, x, &before_us);
    if (g->entries) wire_entry(w, x);
    w->bad |= x->bytes == 0 || x->bytes > INT64_MAX - at || x->records > UINT64_MAX - records ||
              (w->load && x->text > INT64_MAX - text);
    at += x->bytes;
    records += x->records;
    text += x->text; /* that of granules that follow each other is added up where they are read */
  }
  if (!w->load || w->bad) return;
  g->end = at;
  w->bad |= !g->odd && records != g->records;
  for (uint32_t i = 0, m = (uint32_t)g->n; i < g->item[m - 1].n_sorts; i++) g->seen[g->list[g->item[m - 1].first_sort + i]] = m;
}

void ni_map_wire(struct ni_wire *w, struct ni_granules *g) {
  size_t contexts = g->n_contexts, sorts = g->n_sorts, kept = g->n_kept;
  ni_wire_bool(w, &g->odd);
  ni_wire_bool(w, &g->closed);
  ni_wire_bool(w, &g->gzip);
  ni_wire_bool(w, &g->proxy);
  ni_wire_bool(w, &g->entries);
  ni_wire_u64(w, &g->records);
  if (g->records) ni_wire_i64(w, &g->origin_ns);
  ni_wire_count(w, &contexts, 8);
  for (size_t i = 0; i < contexts && !w->bad; i++) wire_context(w, g, i);
  ni_wire_count(w, &sorts, 4);
  w->bad |= sorts > NI_SORTS_MAX;
  for (size_t i = 0; i < sorts && !w->bad; i++) wire_sort(w, g, i);
  wire_granules(w, g);
  ni_wire_count(w, &kept, 1);
  const uint8_t *text = ni_wire_bytes(w, g->kept, kept);
  if (!w->load || w->bad) return;
  w->bad |= kept > NI_KEPT_MAX || (g->odd && g->n != 1) || (kept && text[kept - 1] != '\n') ||
            (kept && !ni_array_exact(&g->kept, &g->cap_kept, kept, 1));
  if (w->bad || !kept) return;
  memcpy(g->kept, text, kept);
  g->n_kept = kept;
}
