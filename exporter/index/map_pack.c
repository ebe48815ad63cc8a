#include "map_pack.h"

#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"

static void pack_context(struct ni_pack *p, struct ni_granules *g, size_t i) {
  struct ni_ident d = {0};
  struct ni_meta m = {0};
  bool sampled = false;
  if (!ni_pack_reads(p)) {
    d = g->context[i].ident;
    m = g->context[i].meta;
    sampled = g->context[i].p2p_sampled;
  }
  char *text[] = {(char *)(uintptr_t)d.comm_name, (char *)(uintptr_t)m.version, (char *)(uintptr_t)m.git_rev,
                  (char *)(uintptr_t)m.rec_mechanism, (char *)(uintptr_t)m.hostname, (char *)(uintptr_t)m.producer};
  ni_pack_u64(p, &d.comm_hash);
  ni_pack_i32(p, &d.rank);
  ni_pack_i32(p, &d.n_ranks);
  ni_pack_i32(p, &d.nnodes);
  ni_pack_i64(p, &m.pid);
  ni_pack_bool(p, &sampled);
  for (int k = 0; k < 6; k++) ni_pack_text(p, &text[k]);
  if (!ni_pack_reads(p)) return;
  uint32_t no = 0;
  d.comm_name = text[0];
  m.version = text[1];
  m.git_rev = text[2];
  m.rec_mechanism = text[3];
  m.hostname = text[4];
  m.producer = text[5];
  /* A line without these has them as "". */
  p->bad |= !m.version || !m.hostname || ni_granules_context(g, &d, &m, &no) < 0 || no != i;
  if (!p->bad) g->context[no].p2p_sampled = sampled;
  for (int k = 0; k < 6; k++) free(text[k]);
}

static void pack_sort(struct ni_pack *p, struct ni_granules *g, size_t i) {
  struct ni_granule_sort s = {0};
  if (!ni_pack_reads(p)) s = g->sort[i];
  char *func = (char *)(uintptr_t)s.func;
  uint32_t kind = s.kind, no = 0;
  ni_pack_u32(p, &s.context);
  ni_pack_u32(p, &kind);
  ni_pack_text(p, &func);
  ni_pack_u64(p, &s.records);
  if (s.records) ni_pack_u64(p, &s.min_sn);
  if (s.records) ni_pack_u64(p, &s.max_sn);
  if (!ni_pack_reads(p)) return;
  p->bad |= s.context >= g->n_contexts || kind > NI_SORT_OTHER || !func || (kind != NI_SORT_OP && s.records) ||
            s.min_sn > s.max_sn;
  p->bad |= !p->bad && (ni_granules_sort(g, s.context, (enum ni_sort_kind)kind, func, &no) < 0 || no != i);
  free(func);
  if (p->bad) return;
  g->sort[no].records = s.records;
  if (!s.records) return;
  g->sort[no].min_sn = s.min_sn;
  g->sort[no].max_sn = s.max_sn;
}

/* A number of which only what it is above another is put. */
static void pack_above(struct ni_pack *p, uint64_t low, uint64_t *high) {
  uint64_t more = *high - low;
  ni_pack_u64(p, &more);
  *high = low + more;
  p->bad |= *high < low;
}

static void pack_list(struct ni_pack *p, struct ni_granules *g, struct ni_granule *x) {
  size_t n = x->n_sorts;
  uint32_t next = 0;
  ni_pack_count(p, &n, 1);
  if (ni_pack_reads(p)) x->first_sort = (uint32_t)g->n_list;
  for (size_t i = 0; i < n && !p->bad; i++) {
    uint32_t gap = ni_pack_reads(p) ? 0 : g->list[x->first_sort + i] - next;
    ni_pack_u32(p, &gap);
    next += gap;
    if (!ni_pack_reads(p)) {
      next++;
      continue;
    }
    p->bad |= next >= g->n_sorts || next < gap || !ni_array_room(g->list, g->n_list, g->cap_list);
    if (p->bad) return;
    g->list[g->n_list++] = next++;
    x->n_sorts++;
  }
}

/* Times are told by what they are behind those of the granule before: they are near. */
static void pack_granule(struct ni_pack *p, struct ni_granules *g, struct ni_granule *x, int64_t *before_us) {
  ni_pack_u64(p, &x->bytes);
  ni_pack_u32(p, &x->crc);
  ni_pack_u64(p, &x->records);
  if (x->records) {
    int64_t first = (int64_t)((uint64_t)x->first_us - (uint64_t)*before_us);
    uint64_t span = (uint64_t)x->last_us - (uint64_t)x->first_us;
    ni_pack_i64(p, &first);
    ni_pack_u64(p, &span);
    x->first_us = (int64_t)((uint64_t)*before_us + (uint64_t)first);
    x->last_us = (int64_t)((uint64_t)x->first_us + span);
    *before_us = x->first_us;
    p->bad |= x->last_us < x->first_us;
    ni_pack_u64(p, &x->min_bytes);
    pack_above(p, x->min_bytes, &x->max_bytes);
    ni_pack_u64(p, &x->min_sn);
    pack_above(p, x->min_sn, &x->max_sn);
  }
  pack_list(p, g, x);
}

static void pack_granules(struct ni_pack *p, struct ni_granules *g) {
  size_t n = g->n;
  int64_t before_us = 0;
  uint64_t at = 0, records = 0;
  ni_pack_count(p, &n, 4);
  p->bad |= n == 0 || n >= UINT32_MAX;
  for (size_t i = 0; i < n && !p->bad; i++) {
    if (ni_pack_reads(p)) {
      if (i && !ni_array_room(g->item, g->n, g->cap)) p->bad = true;
      if (p->bad) return;
      g->n = i + 1;
      g->item[i] = (struct ni_granule){.at = at, .first_us = INT64_MAX, .last_us = INT64_MIN, .min_bytes = UINT64_MAX, .min_sn = UINT64_MAX};
    }
    struct ni_granule *x = &g->item[i];
    pack_granule(p, g, x, &before_us);
    p->bad |= x->bytes == 0 || x->bytes > INT64_MAX - at || x->records > UINT64_MAX - records;
    at += x->bytes;
    records += x->records;
  }
  if (!ni_pack_reads(p) || p->bad) return;
  g->end = at;
  p->bad |= !g->odd && records != g->records;
  for (uint32_t i = 0, m = (uint32_t)g->n; i < g->item[m - 1].n_sorts; i++) g->seen[g->list[g->item[m - 1].first_sort + i]] = m;
}

void ni_map_pack(struct ni_pack *p, struct ni_granules *g) {
  size_t contexts = g->n_contexts, sorts = g->n_sorts, kept = g->n_kept;
  ni_pack_bool(p, &g->odd);
  ni_pack_bool(p, &g->closed);
  ni_pack_bool(p, &g->gzip);
  ni_pack_bool(p, &g->proxy);
  ni_pack_u64(p, &g->records);
  ni_pack_count(p, &contexts, 8);
  for (size_t i = 0; i < contexts && !p->bad; i++) pack_context(p, g, i);
  ni_pack_count(p, &sorts, 4);
  p->bad |= sorts > NI_SORTS_MAX;
  for (size_t i = 0; i < sorts && !p->bad; i++) pack_sort(p, g, i);
  pack_granules(p, g);
  ni_pack_count(p, &kept, 1);
  const uint8_t *text = ni_pack_bytes(p, g->kept, kept);
  if (!ni_pack_reads(p) || p->bad) return;
  p->bad |= kept > NI_KEPT_MAX || (g->odd && g->n != 1) || (kept && text[kept - 1] != '\n') ||
            (kept && !ni_array_exact(&g->kept, &g->cap_kept, kept, 1));
  if (p->bad || !kept) return;
  memcpy(g->kept, text, kept);
  g->n_kept = kept;
}
