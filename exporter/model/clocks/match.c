#include "match.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/base/mix.h"

uint64_t ni_match_key(uint64_t comm_hash, uint32_t instance, const char *func, uint64_t sn,
                      uint64_t msg_bytes) {
  uint64_t h = ni_mix(comm_hash + ni_spread(1));
  for (const char *p = func; *p; p++)
    h = (h ^ (unsigned char)*p) * 0x100000001b3ULL;
  return ni_mix(ni_mix(ni_mix(h ^ instance) + sn) + msg_bytes);
}

int ni_match_init(struct ni_match *m, size_t entries) {
  uint32_t most = 64;
  while (most < entries && most < NI_MATCH_ENTRIES)
    most *= 2;
  *m = (struct ni_match){.most = most, .mask = 2 * most - 1, .bound = UINT64_MAX};
  m->entry = malloc(most * sizeof *m->entry);
  m->op = calloc(m->mask + 1, sizeof *m->op);
  return m->entry && m->op ? 0 : -ENOMEM;
}

void ni_match_free(struct ni_match *m) {
  free(m->entry);
  free(m->op);
  *m = (struct ni_match){0};
}

static struct ni_match_op *find_slot(struct ni_match *m, uint64_t key) {
  uint32_t k = (uint32_t)(ni_spread(key) >> 40) & m->mask;
  while (m->op[k].n && m->op[k].key != key)
    k = (k + 1) & m->mask;
  return &m->op[k];
}

/* Halves the sample. */
static int halve_sample(struct ni_match *m) {
  struct ni_match_op *old = m->op;
  struct ni_match_entry *entry = m->entry;
  uint32_t n = 0;
  m->op = calloc(m->mask + 1, sizeof *m->op);
  m->entry = malloc(m->most * sizeof *m->entry);
  if (!m->op || !m->entry) {
    free(m->op);
    free(m->entry);
    m->op = old;
    m->entry = entry;
    return -ENOMEM;
  }
  m->bound /= 2;
  m->n_ops = 0;
  for (uint32_t i = 0; i <= m->mask; i++) {
    if (!old[i].n || old[i].key >= m->bound)
      continue;
    struct ni_match_op *op = find_slot(m, old[i].key);
    *op = (struct ni_match_op){.key = old[i].key, .n = old[i].n};
    m->n_ops++;
    for (uint32_t e = old[i].first; e; e = entry[e - 1].next) {
      m->entry[n] = entry[e - 1];
      m->entry[n].next = op->first;
      op->first = ++n;
    }
  }
  m->n_entries = n;
  free(old);
  free(entry);
  return 0;
}

int ni_match_add(struct ni_match *m, uint64_t key, const struct ni_match_entry *entry) {
  if (key >= m->bound)
    return 0;
  struct ni_match_op *op = find_slot(m, key);
  /* The same number twice from one rank: the first counts, as in summaries. */
  for (uint32_t e = op->n ? op->first : 0; e; e = m->entry[e - 1].next)
    if (m->entry[e - 1].member == entry->member)
      return 0;
  while (m->n_entries == m->most) {
    int e = halve_sample(m);
    if (e < 0)
      return e;
    if (key >= m->bound)
      return 0;
    op = find_slot(m, key);
  }
  if (!op->n) {
    *op = (struct ni_match_op){.key = key};
    m->n_ops++;
  }
  m->entry[m->n_entries] = *entry;
  m->entry[m->n_entries].next = op->first;
  op->first = ++m->n_entries;
  op->n++;
  return 0;
}
